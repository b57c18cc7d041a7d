"""Sums -> Sums: inline a sum of one term into the only expression that reads it.

The inner sum then needs neither a place in memory nor a separate loop. Both expressions must be cheap, and the result
may have at most LARGEST primitives and three operands.

Example, continued from `chains`. %21 and %29 are each read once, by the gradient of a ReLU:

    >>> show(fuse(chain(pull(tape))))
    %8 = p0 + p1 * x0 + p2 * x1
    %9 = (0.0 if %8 < 0.0 else %8)
    %16 = p3 + p4 * x0 + p5 * x1
    %17 = (0.0 if %16 < 0.0 else %16)
    %18 = %9 * %17
    %22 = (%17 > 0.0) * (%9 * 1.0)
    q5 += x1 * %22
    q4 += x0 * %22
    q3 += %22
    %30 = (%9 > 0.0) * (%17 * 1.0)
    q2 += x1 * %30
    q1 += x0 * %30
    q0 += %30
    loss %18

%22 is read three times, so it stays a sum. So does %8, which is read once, by %9, but has three terms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

import numpy as np

from zoomgrad.engines.graph.expr import Expr, Leaf, leaves
from zoomgrad.engines.rerolled.recover.sums import NONE, Sums, distinct, read_once
from zoomgrad.engines.rerolled.recover.templates import SLOTS, is_cheap, size, substitute

LARGEST = 4
"""Limit on the number of primitives in an expression."""


def fuse(sums: Sums) -> Sums:
    """Go through the slots once, and inline sums whose own operands are final.

    No sum moves to the other pass. Every value leads to the loss or to an output, so the only reader of a value belongs
    to the forward pass.
    """
    template, slots = sums.template.copy(), sums.slots.copy()
    first = np.zeros(sums.nodes + 1, np.int32)  # the last entry is for NONE
    first[sums.node] = sums.first
    fusible = np.zeros(sums.nodes + 1, bool)
    fusible[sums.node[sums.count == 1]] = True
    """Node -> whether it is a sum of one term, read once and not yet fused."""
    fusible &= read_once(sums)
    outer = np.flatnonzero(fusible[slots].any(axis=0) & (template != 0))
    """The terms that may inline a sum."""
    is_fused = np.zeros(sums.nodes, bool)
    templates = dict(zip(sums.templates, range(len(sums.templates))))
    for slot in range(len(SLOTS)):
        terms = outer[fusible[slots[slot, outer]]]
        # The inner term must be complete, with no sum left to inline into it.
        terms = terms[~fusible[slots[:, first[slots[slot, terms]]]].any(axis=0)]
        inner = first[slots[slot, terms]]
        pairs, which = distinct(template[terms], template[inner])
        for index, pair in enumerate(pairs.tolist()):
            exprs = list(templates)
            result = _fused(exprs[template[terms[pair]]], exprs[template[inner[pair]]], slot)
            if result is None:
                continue
            expr, sources = result
            at = terms[which == index]
            nodes = slots[slot, at]
            operands = np.concatenate([slots[:, at], slots[:, first[nodes]]])
            fusible[nodes], is_fused[nodes] = False, True
            template[at] = templates.setdefault(expr, len(templates))
            slots[:, at] = NONE
            slots[: len(sources), at] = operands[sources]
    if not is_fused.any():
        return sums
    fused = replace(sums, templates=list(templates), template=template, slots=slots)
    return fused.with_terms(np.flatnonzero(~is_fused[sums.owner]))


def _fused(outer: Expr, inner: Expr, slot: int) -> Optional[tuple[Expr, list[int]]]:
    """The outer expression with the inner one in a slot, and the source of each of its slots; None if it is too large.

    Sources 0 to 2 are slots of the outer expression, 3 to 5 those of the inner one.
    """
    if not is_cheap(outer) or not is_cheap(inner) or inner == SLOTS[0] or size(outer) + size(inner) > LARGEST:
        return None
    numbered = substitute(inner, {leaf: Leaf(str(number)) for number, leaf in enumerate(SLOTS, len(SLOTS))})
    both = substitute(outer, {leaf: numbered if leaf == SLOTS[slot] else leaf for leaf in SLOTS})
    sources = list(dict.fromkeys(leaves(both)))
    if len(sources) > len(SLOTS):
        return None
    return substitute(both, dict(zip(sources, SLOTS))), [int(leaf.name) for leaf in sources]
