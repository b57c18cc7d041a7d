"""The stages that `engines/compile.py` calls, `trace`, `lower`, `emit` and `load`, and what they share.

`engine` checks and prepares every engine that compiles a graph. `clock` times the phases, `flags` says how a C compiler
is called, and `machine` what this machine has.
"""
