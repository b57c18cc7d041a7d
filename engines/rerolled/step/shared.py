"""Runs that several routines contain become a routine of their own, so that back ends write them once.

Example: `values` runs the loops 0 to 19, and `values after the update` runs another loop 0 and the same loops 1 to 19.
Instead, a section runs `loop 0` or `loop 0 after its update`, and then `loops 1 to 19`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from zoomgrad.engines.rerolled.step.language import Perform, Program, Run, Statement, rewrite
from zoomgrad.engines.rerolled.step.step import Step, run_lines


def share_runs(step: Step) -> Step:
    """Cut each routine that a section runs between two runs unless every routine has both, one after the other."""
    texts = {name: list(map(str, runs)) for name, runs in step.pruned().routines.items()}
    pairs = {pair for of_routine in texts.values() for pair in zip(["", *of_routine], [*of_routine, ""])}
    followers, leaders = (Counter(pair[at] for pair in pairs) for at in (0, 1))
    routines: dict[str, tuple[Run, ...]] = {}
    names: dict[str, str] = {}
    """The first run of a new routine, as text -> the routine's name."""
    performed: dict[str, Program] = {}
    for name, of_routine in texts.items():
        steps = enumerate(zip(["", *of_routine], of_routine))
        starts = [at for at, (one, other) in steps if followers[one] + leaders[other] > 2 or not at]
        for start, stop in zip(starts, [*starts[1:], len(of_routine)]):
            runs = step.routines[name][start:stop]
            text = " and ".join(run_lines(runs)).replace("-", " to ")
            routines[names.setdefault(of_routine[start], name if len(starts) == 1 else text)] = runs
        performed[name] = tuple(Perform(names[of_routine[start]]) for start in starts)

    def change(statement: Statement) -> Program:
        return performed[statement.routine] if isinstance(statement, Perform) else (statement,)

    programs = {name: rewrite(program, change) for name, program in step.programs.items()}
    return replace(step, routines=routines, programs=programs)
