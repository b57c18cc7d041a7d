"""The fault campaign: what happens when processes die, disks fill up, engines misbehave and files are damaged.

    python -m faults run [KIND]…     every kind's batches, each in a process of its own; goes on where it ended
    python -m faults one KIND INDEX  one batch again, as a failure prints it
    python -m faults report          docs/reliability.md, from what was kept

A *kind* is a file of `faults.kinds`. It has numbered *batches*; a batch is some *tries* with one seed, and gives a
`Tally`. Nothing imports this package: it is for developers, runs from a checkout, and may import everything, the tests'
programs among it.
"""
