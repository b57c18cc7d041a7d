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

from zoomgrad.engines.rerolled.recover.sums import (
    COMPUTED,
    CONSTANT,
    SINK,
    Sums,
    gather,
    is_cheap,
    jump_pointers,
    read_once,
    starts_of,
)


def chain(sums: Sums) -> Sums:
    """Apply rule 1 and rule 2, and remove added zeros and sums that nothing reads."""
    import numpy as np

    nodes, template = sums.nodes, sums.template
    operand = np.ascontiguousarray(sums.slots[:, 0])
    once = read_once(sums)
    once[:-1] &= sums.kind >= COMPUTED
    first_term = np.zeros(len(operand), bool)
    first_term[starts_of(sums.owner)] = True
    passes_on = (template == 0) & gather(once, operand)
    """Term -> whether it is an inner sum."""

    # Rule 1. head: node -> the sum that its terms end up in.
    head = np.arange(nodes, dtype=np.int32)
    # A sink starts from its target's value, and adding another sum's terms to that one by one would change the bits.
    spliced = passes_on & first_term
    spliced[spliced] = sums.kind[sums.owner[spliced]] != SINK
    inner = operand[spliced]
    head[inner] = sums.owner[spliced]
    head = jump_pointers(head, inner)
    terms = np.flatnonzero(~spliced)
    owner = gather(head, sums.owner, terms)

    # Rule 2. terms: term -> the term that replaces it, or itself.
    only = np.empty(nodes, np.int32)
    only[owner] = terms
    """Node -> its last term."""
    is_long = np.zeros(nodes, bool)
    is_long[owner[gather(only, owner) != terms]] = True
    """Node -> whether it has several terms."""
    passed = np.flatnonzero(passes_on[terms])
    inner = operand[terms[passed]]
    is_single = ~is_long[inner]
    passed, inner = passed[is_single], inner[is_single]
    source = only[inner]
    cheap = np.array([is_cheap(expr) for expr in sums.templates])[template[source]]
    terms[passed[cheap]] = source[cheap]
    dropped = np.zeros(nodes, bool)
    dropped[inner[cheap]] = True
    kept = ~gather(dropped, owner)
    # Python's `sum()` starts from 0. Adding that changes only the sign of a zero, which engines may choose.
    constants = np.flatnonzero(sums.kind == CONSTANT)
    zero = np.zeros(nodes + 1, bool)  # the last entry is for NONE
    zero[constants[sums.number[constants] == 0.0]] = True
    if zero.any():
        zeros = np.flatnonzero(gather(zero, operand, terms))
        zeros = zeros[(template[terms[zeros]] == 0) & is_long[owner[zeros]]]
        kept[zeros] = False
    terms, owner = terms[kept], owner[kept]
    # Numbers ascend along a chain, so a stable sort by head keeps the terms in order.
    if (owner[1:] < owner[:-1]).any():
        order = np.argsort(owner, kind="stable")
        terms, owner = terms[order], owner[order]
    chained = replace(sums, owner=owner, template=template[terms], slots=sums.slots.take(terms, axis=0))
    return _without_unused(chained)


def _without_unused(sums: Sums) -> Sums:
    """Drop sums that nothing reads, such as gradients that no parameter needs, until each sum is read."""
    import numpy as np

    is_sink = sums.kind == SINK
    while True:
        used = np.append(is_sink, False)  # the last entry is for NONE
        for column in sums.slots.T:
            used[column] = True
        used[[sums.loss, *sums.outputs]] = True
        kept = gather(used, sums.owner)
        if kept.all():
            return sums
        sums = replace(sums, owner=sums.owner[kept], template=sums.template[kept], slots=sums.slots[kept])
