"""Which runs may be set against each other, and which were made on one machine."""

from __future__ import annotations

from collections.abc import Mapping

from results.record import Run

MACHINE = ("processor", "cores", "architecture", "system")
"""Facts of a machine. Where two runs have them in common they count as made on one."""

SETTINGS = ("values", "warmups", "jit_warmups", "value_seconds")
"""A value that is longer, or comes later, is another figure."""


def same_machine(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two runs' facts are of one machine. Of a machine without facts nothing is known: it is no other."""
    facts, others = ([machine.get(name, "") for name in MACHINE] for machine in (one, other))
    return any(facts) and facts == others


def unlike_settings(one: Run, other: Run) -> list[str]:
    """`value_seconds 0.05, not 0.25` for each setting that makes a time of the one another figure than the other's."""
    pairs = ((name, getattr(one.settings, name), getattr(other.settings, name)) for name in SETTINGS)
    return [f"{name} {here:g}, not {there:g}" for name, here, there in pairs if here != there]
