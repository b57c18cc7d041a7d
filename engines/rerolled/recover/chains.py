"""Sums -> Sums: additions that only wait for the next addition become one sum, in their order.

A neuron's `((b + w0*x0) + w1*x1) + …` is a thousand sums of two terms, and comes out as one of a thousand terms.
"""

from __future__ import annotations

from dataclasses import replace

from engines.rerolled.recover.sums import COMPUTED, CONSTANT, SINK, Sums, is_cheap, jump_pointers


def chain(found: Sums) -> Sums:
    """Two rules, both over sums that are used once, and nowhere but as a term unchanged:

    what comes first in another sum gives it all its terms (adding from the left is what that sum does, too);
    what comes later gives its term, where it has only one, which is cheap. Then what nothing uses is dropped.
    """
    import numpy as np

    owner, template, slots = found.owner, found.template, found.slots
    nodes = found.nodes
    uses = np.bincount(slots.ravel() + 1, minlength=nodes + 1)[1:]
    uses[[found.loss, *found.outputs]] += 1
    once = np.append((found.kind >= COMPUTED) & (uses == 1), False)  # the last one is NONE's
    first_term = np.ones(len(owner), bool)
    first_term[1:] = owner[1:] != owner[:-1]
    passes_on = (template == 0) & once[slots[:, 0]]

    # Rule 1. Follow each sum to the one that its terms end up in.
    head = np.arange(nodes, dtype=np.int32)
    # A sink begins with what its target holds: added to that one by one, another sum's terms give other bits.
    spliced = passes_on & first_term & (found.kind[owner] != SINK)
    head[slots[spliced, 0]] = owner[spliced]
    head = jump_pointers(head, slots[spliced, 0])
    kept = ~spliced
    owner, template, slots, passes_on = head[owner[kept]], template[kept], slots[kept], passes_on[kept]
    # Sums ascend along a chain: to sort by head alone keeps terms in order.
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
    # `sum()` begins with 0: adding it changes nothing but the sign of a zero, which is free.
    zero = np.append((found.kind == CONSTANT) & (found.number == 0.0), False)
    kept &= ~((template == 0) & zero[slots[:, 0]] & (count[owner] > 1))
    return _without_unused(replace(found, owner=owner[kept], template=template[kept], slots=slots[kept]))


def _without_unused(found: Sums) -> Sums:
    """Drop gradients of what no parameter reaches, until every sum is used."""
    import numpy as np

    while True:
        used = np.zeros(found.nodes + 1, bool)  # the last one is NONE's
        used[found.slots.ravel()] = True
        used[[found.loss, *found.outputs]] = True
        used[:-1] |= found.kind == SINK
        kept = used[found.owner]
        if kept.all():
            return found
        found = replace(found, owner=found.owner[kept], template=found.template[kept], slots=found.slots[kept])
