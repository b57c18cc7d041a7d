"""Runs that several routines contain become a routine of their own, so that back ends write them once.

Runs with the same text are the same. Example: `values` runs the loops 0 to 19, and `values after the update` another
loop 0 and the same loops 1 to 19. Instead, a section runs `loop 0` or `loop 0 after its update`, then `loops 1 to 19`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from zoomgrad.engines.rerolled.step.language import Perform, Program, Run, Statement, rewrite
from zoomgrad.engines.rerolled.step.step import Step, run_lines


def share_runs(step: Step) -> Step:
    """Cut each routine between two runs that do not always stand together. Drop routines that are empty or unused."""
    texts = {name: list(map(str, runs)) for name, runs in step.pruned().routines.items()}
    pairs = {pair for of_routine in texts.values() for pair in zip(["", *of_routine], [*of_routine, ""])}
    following, preceding = (Counter(pair[at] for pair in pairs) for at in (0, 1))
    """How many different runs follow a run, and how many precede it. The ends of routines count as one."""
    routines: dict[str, tuple[Run, ...]] = {}
    names: dict[str, str] = {}
    """The first run of a new routine, which decides the others, as text -> the routine's name."""
    performed: dict[str, Program] = {}
    for name, of_routine in texts.items():
        steps = enumerate(zip(["", *of_routine], of_routine))
        starts = [at for at, (one, other) in steps if following[one] > 1 or preceding[other] > 1 or not at]
        for start, stop in zip(starts, [*starts[1:], len(of_routine)]):
            runs = step.routines[name][start:stop]
            text = name if len(starts) == 1 else " and ".join(run_lines(runs)).replace("-", " to ")
            new = names.setdefault(of_routine[start], text)
            assert routines.get(new, runs) == runs
            routines[new] = runs
        performed[name] = tuple(Perform(names[of_routine[start]]) for start in starts)

    def change(statement: Statement) -> Program:
        return performed[statement.routine] if isinstance(statement, Perform) else (statement,)

    programs = {name: rewrite(program, change) for name, program in step.programs.items()}
    return replace(step, routines=routines, programs=programs)
