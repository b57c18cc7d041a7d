"""Loops over one part of the lanes, or of the rows: the part with number `part`, of `parts`, for one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from engines.kernel.c_tree import Declare, For, If, Statement


def part_of(name: str, limit: int, step: int, body: Sequence[Statement]) -> list[Statement]:
    """One part of a loop, in whole steps. If it has one step, the last part runs it."""
    blocks = limit // step
    if blocks <= 1:
        return [If("part == parts - 1", body)]
    times = "" if step == 1 else f"{step} * "
    stop = f"{times}({blocks} * (part + 1) / parts)"
    return [For(name, stop, body, step, start=f"{times}({blocks} * part / parts)")]


def tiles_of_part(
    name: str, limit: Union[int, str], tall: int, whole: Sequence[Statement], rest: Sequence[Statement]
) -> list[Statement]:
    """One part of a loop over tiles that are so tall, then its rest one by one."""
    bounds: list[Statement] = [
        Declare("const long long", "first", f"{limit} * part / parts"),
        Declare("const long long", "last", f"{limit} * (part + 1) / parts"),
    ]
    if tall == 1:
        return [*bounds, For(name, "last", whole, start="first")]
    tiled = Declare("const long long", "tiled", f"last - (last - first) % {tall}")
    return [*bounds, tiled, For(name, "tiled", whole, tall, start="first"), For(name, "last", rest, start="tiled")]
