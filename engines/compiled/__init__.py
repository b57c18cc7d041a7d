"""The stages that `engines/compile.py` calls, in this order, and what they share.

    trace    workload -> Graph of Values
    lower    Tape -> Code or Step
    emit     Code or Step -> source
    load     C -> Kernel

`engine` checks and prepares every engine that compiles a graph. `clock` times the phases, `flags` says how a C compiler
is called, and `machine` what this machine has.
"""
