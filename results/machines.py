"""Which runs were made on one machine."""

from __future__ import annotations

from collections.abc import Mapping

SAME = ("processor", "cores", "architecture", "system")
"""Facts of a machine. Where two runs have them in common they count as made on one."""


def same_machine(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two runs' facts are of one machine. Of a machine without facts nothing is known: it is no other."""
    facts, others = ([machine.get(name, "") for name in SAME] for machine in (one, other))
    return any(facts) and facts == others
