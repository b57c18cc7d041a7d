"""Two commits, or two interpreters, side by side on one machine: plan -> blocks of two processes in turns -> verdicts.

`turns` has the plan and says what blocks show, `measuring` plays one block after the other, `block` is one of them, and
`harness/worker/player.py` is the code of each process. `commits` and `layout` make what the processes run.
"""

SIDES = ("base", "head")
