"""Sums -> Sums: what only one term uses is written into that term, so that it needs no place and no loop of its own.

A ReLU's gradient times the one product that feeds it is one expression, and one pass over the samples.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from engines.graph.expr import Expr, Leaf
from engines.rerolled.recover.sums import COMPUTED, NONE, SLOTS, Sums, is_cheap, leaves, size, substitute

LARGEST = 4
"""Primitives in one expression, at most."""
ROUNDS = 3


def fuse(found: Sums) -> Sums:
    """A sum of one cheap term that is used once, by an expression with a slot to spare, goes into it.

    Innermost first, a slot at a time. Values stay in their pass: what a gradient uses once, nothing else uses, and it
    is no value then.
    """
    import numpy as np

    template, slots = found.template.copy(), found.slots.copy()
    count = np.append(np.bincount(found.owner, minlength=found.nodes), 0)  # the last one is NONE's
    first = np.append(np.cumsum(count[:-1]) - count[:-1], 0)
    uses = np.bincount(slots.ravel() + 1, minlength=found.nodes + 1)[1:]
    uses[[found.loss, *found.outputs]] += 1
    whole = np.append((found.kind >= COMPUTED) & (uses == 1), False) & (count == 1)
    templates = dict(zip(found.templates, range(len(found.templates))))
    for _ in range(ROUNDS):
        fusing = False
        for slot in range(len(SLOTS)):
            at = np.flatnonzero(whole[slots[:, slot]] & (template != 0))
            # What is copied must be complete: it may not itself be about to take something in.
            inner = first[slots[at, slot]]
            at = at[~whole[slots[inner]].any(axis=1)]
            inner = first[slots[at, slot]]
            pairs, which = np.unique(np.stack([template[at], template[inner]]), axis=1, return_inverse=True)
            for index, (outer_number, inner_number) in enumerate(pairs.T.tolist()):
                fused = _fused(list(templates)[outer_number], list(templates)[inner_number], slot)
                if fused is None:
                    continue
                expr, sources = fused
                fusing = True
                terms = at[which.reshape(-1) == index]
                operands = np.concatenate([slots[terms], slots[first[slots[terms, slot]]]], axis=1)
                whole[slots[terms, slot]] = False
                count[slots[terms, slot]] = 0
                template[terms] = templates.setdefault(expr, len(templates))
                slots[terms] = NONE
                slots[terms, : len(sources)] = operands[:, sources]
        if not fusing:
            break
    kept = count[found.owner] > 0
    return replace(
        found, templates=list(templates), owner=found.owner[kept], template=template[kept], slots=slots[kept]
    )


def _fused(outer: Expr, inner: Expr, slot: int) -> Optional[tuple[Expr, list[int]]]:
    """The inner expression in a slot of the outer one; where its slots come from: 0.. the outer's, 3.. the inner's."""
    if not is_cheap(outer) or not is_cheap(inner) or inner == SLOTS[0] or size(outer) + size(inner) > LARGEST:
        return None
    of_inner = {leaf: number for number, leaf in enumerate(SLOTS, len(SLOTS))}
    of_outer = {leaf: number for number, leaf in enumerate(SLOTS)}
    both = ((inner, of_inner) if leaf == SLOTS[slot] else (leaf, of_outer) for leaf in leaves(outer))
    sources = list(dict.fromkeys(numbers[leaf] for expr, numbers in both for leaf in leaves(expr)))
    if len(sources) > len(SLOTS):
        return None
    slot_of = dict(zip(sources, SLOTS))
    filled: dict[Leaf, Expr] = {leaf: slot_of[number] for leaf, number in of_outer.items() if number in slot_of}
    filled[SLOTS[slot]] = substitute(inner, {leaf: slot_of[of_inner[leaf]] for leaf in leaves(inner)})
    return substitute(outer, filled), sources
