"""Value as a C extension type: its source, its build, and classes in place of a program's own.

The graphs that it records are also linearized here. Later stages are in other folders.
"""
