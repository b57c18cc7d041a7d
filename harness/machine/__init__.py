"""Facts about this machine, its interpreters, and a worker environment for each of them.

C compilers are found by `engines.kernel.toolchains`. Which of the interpreters a run uses is decided in `harness.plan`.
"""
