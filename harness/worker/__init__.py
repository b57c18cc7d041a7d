"""Code that runs inside a worker process, under the measured interpreter.

Workers are started by `harness.run`, `harness.profile` and `harness.compare`, and limited by `harness.containment`.
What is in `programs` runs in the process of `zoomgrad exec`.

Worker-safe: CPython 3.9 to 3.14 and PyPy, with the standard library and pyperf. A worker reads a job and writes a
reply, both plain JSON dictionaries. The harness validates the reply.
"""
