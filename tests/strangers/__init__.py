"""Run other people's micrograd programs: `python -m tests.strangers FOLDER`. See docs/using.md.

find       folder -> programs: scripts and notebooks that use a class like micrograd's Value
notebook   notebook -> script
child      run one program on one engine, in a separate process, and write what it computed
run        start the child with limits, in a private copy of the program's folder
judge      runs of one program -> verdict
"""
