"""What runs inside a worker process, under whichever interpreter is measured.

Worker-safe: CPython 3.9 to 3.14 and PyPy, the standard library and pyperf. Workers read a job and write an outcome,
both plain JSON dictionaries; validation is the harness's.
"""
