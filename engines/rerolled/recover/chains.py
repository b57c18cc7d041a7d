"""Sums -> Sums: turn chains of additions into one sum each, with their terms in the same order.

A neuron is written as `((b + w0*x0) + w1*x1) + …`. On the tape this is a chain of additions of two operands; as one sum
it has a term for each weight. Two rules do this. Both apply to an *inner* sum that is read once, by an *outer* sum, as
a whole term:

1. If the inner sum is the first term of the outer sum, all of its terms replace it: `(a + b) + c` is `a + b + c`,
   because sums are added from the left. Sinks are an exception, because they add their terms to their target's value.
2. If it is any other term, and has a single, cheap term, that term replaces it: `a + (b*c)` is `a + b*c`. With two
   terms, as in `a + (b + c)`, this would change the order of the additions, and so the bits.

Example, continued from `gradients`. By rule 2, the products %3, %7, %12 and %15 become terms of the sums that read
them; by rule 1, so do the terms of %4 and %13:

    >>> show(chain(pull(tape)))
    %8 = p0 + p1 * x0 + p2 * x1
    %9 = (0.0 if %8 < 0.0 else %8)
    %16 = p3 + p4 * x0 + p5 * x1
    %17 = (0.0 if %16 < 0.0 else %16)
    %18 = %9 * %17
    %21 = %9 * 1.0
    %22 = (%17 > 0.0) * %21
    q5 += x1 * %22
    q4 += x0 * %22
    q3 += %22
    %29 = %17 * 1.0
    %30 = (%9 > 0.0) * %29
    q2 += x1 * %30
    q1 += x0 * %30
    q0 += %30
    loss %18
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zoomgrad.engines.rerolled.recover.sums import COMPUTED, CONSTANT, NONE, SINK, Sums, jump_pointers, read_once
from zoomgrad.engines.rerolled.recover.templates import is_cheap


def chain(sums: Sums) -> Sums:
    """Apply rule 1 and rule 2, and remove added zeros and sums that nothing reads."""
    nodes, owner, template, operand = sums.nodes, sums.owner, sums.template, sums.slots[0]
    once = read_once(sums)
    once[:-1] &= sums.kind >= COMPUTED
    inner = np.where((template == 0) & once.take(operand), operand, NONE)
    """Term -> the inner sum that it is, or NONE."""

    # Rule 1. head: node -> the sum that its terms end up in.
    is_spliced = np.zeros(len(owner), bool)
    # A sink starts from its target's value, and adding another sum's terms to that one by one would change the bits.
    is_spliced[sums.first] = (inner.take(sums.first) != NONE) & (sums.kind.take(sums.node) != SINK)
    head = np.arange(nodes, dtype=np.int32)
    spliced = inner.compress(is_spliced)
    head[spliced] = owner.compress(is_spliced)
    head = jump_pointers(head, spliced)
    terms = np.flatnonzero(~is_spliced)
    owner = head.take(owner.take(terms))

    # Rule 2. terms: term -> the term that replaces it, or itself.
    count = np.bincount(owner, minlength=nodes + 1)
    only = np.empty(nodes + 1, np.int32)
    only[owner] = terms
    """Node of a sum with one term -> that term."""
    is_cheap_template = np.array([is_cheap(expr) for expr in sums.templates])
    inner = inner.take(terms)
    replaced = np.flatnonzero((inner != NONE) & (count.take(inner) == 1))
    replaced = replaced[is_cheap_template[template[only[inner[replaced]]]]]
    terms[replaced] = only[inner[replaced]]
    is_dropped = np.zeros(nodes, bool)
    is_dropped[inner[replaced]] = True
    # Python's `sum()` starts from 0. Adding that changes only the sign of a zero, which engines may choose.
    is_zero = np.zeros(nodes + 1, bool)  # the last entry is for NONE
    is_zero[: len(sums.number)] = (sums.kind[: len(sums.number)] == CONSTANT) & (sums.number == 0.0)
    is_zero = is_zero.take(operand.take(terms)) & (template.take(terms) == 0)
    is_zero &= np.bincount(owner[~is_zero], minlength=nodes + 1)[owner] > 0  # a sum of nothing but zeros keeps them
    kept = np.flatnonzero(~is_dropped.take(owner) & ~is_zero)
    # Numbers ascend along a chain, so a stable sort by head keeps the terms in order.
    kept = kept[np.argsort(owner.take(kept), kind="stable")]
    return _without_unused(replace(sums.with_terms(terms.take(kept)), owner=owner.take(kept)))


def _without_unused(sums: Sums) -> Sums:
    """Drop sums that nothing reads, such as gradients that no parameter needs, until each sum is read."""
    while True:
        is_used = np.append(sums.kind == SINK, False)  # the last entry is for NONE
        is_used[sums.slots.ravel()] = True
        is_used[[sums.loss, *sums.outputs]] = True
        is_kept = is_used.take(sums.owner)
        if is_kept.all():
            return sums
        sums = sums.with_terms(np.flatnonzero(is_kept))
