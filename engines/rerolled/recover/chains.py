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

from engines.rerolled.recover.sums import COMPUTED, CONSTANT, SINK, Sums, is_cheap, jump_pointers


def chain(found: Sums) -> Sums:
    """Apply rule 1 and rule 2, and remove added zeros and sums that nothing reads."""
    import numpy as np

    owner, template, slots = found.owner, found.template, found.slots
    nodes = found.nodes
    uses = np.bincount(slots.ravel() + 1, minlength=nodes + 1)[1:]
    uses[[found.loss, *found.outputs]] += 1
    once = np.append((found.kind >= COMPUTED) & (uses == 1), False)  # the last entry is for NONE
    first_term = np.ones(len(owner), bool)
    first_term[1:] = owner[1:] != owner[:-1]
    passes_on = (template == 0) & once[slots[:, 0]]
    """Term -> whether it is an inner sum."""

    # Rule 1. head: node -> the sum that its terms end up in.
    head = np.arange(nodes, dtype=np.int32)
    # A sink starts from its target's value, and adding another sum's terms to that one by one would change the bits.
    spliced = passes_on & first_term & (found.kind[owner] != SINK)
    head[slots[spliced, 0]] = owner[spliced]
    head = jump_pointers(head, slots[spliced, 0])
    kept = ~spliced
    owner, template, slots, passes_on = head[owner[kept]], template[kept], slots[kept], passes_on[kept]
    # Numbers ascend along a chain, so a stable sort by head keeps the terms in order.
    order = np.argsort(owner, kind="stable")
    owner, template, slots, passes_on = owner[order], template[order], slots[order], passes_on[order]

    # Rule 2.
    cheap = np.array([is_cheap(expr) for expr in found.templates])
    count = np.bincount(owner, minlength=nodes)
    first = np.cumsum(count) - count
    operand = slots[:, 0].copy()
    given = passes_on & (count[operand] == 1)
    given[given] = cheap[template[first[operand[given]]]]
    source = first[operand[given]]
    template[given], slots[given] = template[source], slots[source]
    dropped = np.zeros(nodes, bool)
    dropped[operand[given]] = True
    kept = ~dropped[owner]
    # Python's `sum()` starts from 0. Adding that changes only the sign of a zero, which engines may choose.
    zero = np.append((found.kind == CONSTANT) & (found.number == 0.0), False)
    kept &= ~((template == 0) & zero[slots[:, 0]] & (count[owner] > 1))
    return _without_unused(replace(found, owner=owner[kept], template=template[kept], slots=slots[kept]))


def _without_unused(found: Sums) -> Sums:
    """Drop sums that nothing reads, such as gradients that no parameter needs, until each sum is read."""
    import numpy as np

    while True:
        used = np.zeros(found.nodes + 1, bool)  # the last entry is for NONE
        used[found.slots.ravel()] = True
        used[[found.loss, *found.outputs]] = True
        used[:-1] |= found.kind == SINK
        kept = used[found.owner]
        if kept.all():
            return found
        found = replace(found, owner=found.owner[kept], template=found.template[kept], slots=found.slots[kept])
