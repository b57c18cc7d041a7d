"""Value as a C extension type: its source, its build, and the engine `native`.

The graphs that it records are linearized here too; everything after the tape is elsewhere (`engines/kernel` and on).
"""
