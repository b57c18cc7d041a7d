"""Value as a C extension type: its source, its build, and the engine `native`.

The graphs that it records are also linearized here. Later stages are in other folders.
"""
