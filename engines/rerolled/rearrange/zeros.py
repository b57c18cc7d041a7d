"""Zeros skipped: sums and sinks over inputs leave out inputs that are exactly 0.0, and no bit changes.

Most of an image is black. If w is finite, the term `w * 0.0` is a zero, and adding a zero to a sum changes at most the
sign of a zero, which engines may choose. The same holds for `q += 0.0 * g` if g is finite, and for `p -= rate * 0.0`.
If the factor is infinite or NaN, the term is NaN and must be added. Checking every weight would cost too much. Instead,
skipping is safe while two bounds are finite:

- A bound on the magnitude of the weights (`measure weights`). It is computed again after each dense update. An update
  of magnitude d that skips inputs raises it by at most d. Rounding changes a double by at most 2**-53 of its size; a
  limit of 1e300 leaves room for that.
- The sums of squares of inputs (`list inputs`) and of factors (`check factors`). Their product is infinite or NaN if
  one of them is, and bounds all products. The row that ends a batch also multiplies by the rate of the coming update.

If either bound fails, the list holds every input, and the same code computes every term.

The weights are those of a pair (`weight_reuse`). Only the pair's sink updates them, so the first bound holds. A pair
has at least 2,048 weights; with fewer, listing the inputs costs as much as it saves.

Example: for the inputs 0.0, 0.5, 0.0, 2.0 the list is 1, 3. A sum over four terms computes `w1 * 0.5 + w3 * 2.0`. If w0
were infinite, the list would be 0, 1, 2, 3, and the sum would be NaN as in the reference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange.weight_reuse import pair_of_loops
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Fact, Statement, rewrite
from zoomgrad.engines.rerolled.step.step import Pair, Step


def skip_zeros(step: Step, form: Form) -> Step:
    """Make the sums of a pair of loops, and their sink, visit only nonzero inputs."""
    pair = pair_of_loops(step.loops)
    if pair is None:
        return step
    step, _ = step.with_area("live", list_size(pair))
    live: dict[int, Any] = {pair.forward: {"live_segment": pair.segment}, pair.sink: {"live_lane": 0}}
    for name, runs in step.routines.items():
        step = step.with_routine(name, (replace(run, **live.get(run.number, {})) for run in runs))

    def change(statement: Statement) -> tuple[Statement, ...]:
        if statement == steps.TAKE_ROW:
            return (statement, steps.If(Fact.UNBOUNDED, (steps.MEASURE_WEIGHTS,)), steps.LIST_INPUTS)
        if statement == steps.Perform("gradients"):
            return (statement, steps.CHECK_FACTORS)
        return (statement, steps.MEASURE_WEIGHTS) if isinstance(statement, steps.Update) else (statement,)

    programs = step.programs
    return replace(step, skips=pair).with_programs(
        forward=(steps.LIST_EVERY_INPUT, *programs["forward"]),
        backward=(steps.LIST_EVERY_INPUT, *programs["backward"]),
        enter=(*programs["enter"], steps.MEASURE_WEIGHTS, steps.LIST_EVERY_INPUT),
        turn=rewrite(programs["turn"], change),
        evaluate=rewrite(programs["evaluate"], change),
    )


def list_size(skips: Optional[Pair]) -> int:
    """The doubles that a list takes: its length, a bound on squares, and entries of 4 bytes. It has an entry for each
    input and one more, because skipped inputs are also written."""
    assert skips
    start, stop = skips.inputs
    return 2 + -(-(stop - start + 1) // 2)
