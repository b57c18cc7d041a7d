"""The fault campaign: what happens when processes die, disks fill up, engines misbehave and files are damaged.

    python -m faults run [KIND]…     run every kind's batches, each in its own process; resumes where it stopped
    python -m faults one KIND INDEX  repeat one batch; a failure prints this command
    python -m faults report          write docs/reliability.md from the stored results

A *kind* is a file of `faults.kinds`. It has numbered *batches*; a batch makes several *tries* with one seed and returns
a `Tally`. Nothing imports this package. It is for developers, needs a checkout, and may import everything, even tests.
"""
