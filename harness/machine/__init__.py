"""Facts about this machine, its interpreters, and a worker environment for each of them.

C compilers are found by `engines.kernel.toolchains`, and `harness.plan` decides which interpreters a run uses.
"""
