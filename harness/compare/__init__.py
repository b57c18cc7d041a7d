"""Two commits, or two interpreters, side by side on one machine: blocks of two processes that take turns.

`harness/worker/player.py` is the code of each process. `harness/compare/turns.py` says what the blocks show.
"""
