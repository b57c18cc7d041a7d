"""Two commits side by side on one machine: worktrees, blocks of two processes that take turns, and when to stop.

`harness/worker/player.py` is the code of each process. `results/duet/verdicts.py` says what the blocks show.
"""
