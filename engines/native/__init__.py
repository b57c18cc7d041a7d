"""Value as a C extension type: source, build, recorder of tapes, and classes in place of a program's own."""
