"""Code that runs inside a worker process, under the measured interpreter. Starting and limiting workers is not here.

Worker-safe: CPython 3.9 to 3.14 and PyPy, with the standard library and pyperf. A worker reads a job and writes a
reply, both plain JSON dictionaries. The harness validates the reply.
"""
