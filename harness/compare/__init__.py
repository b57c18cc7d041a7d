"""Two commits, or two interpreters, side by side on one machine: sides -> blocks of two processes in turns -> verdicts.

`turns` says which blocks to play and what they show, `block` plays one of them, and `harness/worker/player.py` is the
code of each process. `sides` makes what the processes run.
"""
