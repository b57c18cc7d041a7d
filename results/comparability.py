"""Which runs may be set against each other, which were made on one machine, and which with the same tools."""

from __future__ import annotations

from collections.abc import Mapping

from results.record import Run

MACHINE = ("processor", "cores", "architecture")
"""Facts of a machine. Where two runs have them, and the kind of system, in common they count as made on one."""

COMPILERS = ("tcc", "gcc", "clang")
"""Of a machine's facts, those that give the version of a C compiler."""

SETTINGS = ("values", "warmups", "jit_warmups", "value_seconds")
"""A value that is longer, or comes later, is another figure."""


def same_machine(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two runs' facts are of one machine. Of a machine without facts nothing is known: it is no other."""
    facts, others = ([machine.get(name, "") for name in MACHINE] + [_system(machine)] for machine in (one, other))
    return any(facts) and facts == others


def _system(machine: Mapping[str, str]) -> str:
    """Without its release: a machine stays itself when its kernel is updated."""
    return machine.get("system", "").partition(" ")[0]


def unlike_tools(one: Run, other: Run) -> list[str]:
    """`gcc 12.2.0, not 13.1.0` for each interpreter and C compiler that both runs had, in two versions."""
    here, there = ({name: facts.version for name, facts in run.interpreters.items()} for run in (one, other))
    for versions, run in ((here, one), (there, other)):
        versions.update((name, run.machine[name]) for name in COMPILERS if name in run.machine)
    return [f"{name} {here[name]}, not {there[name]}" for name in here if there.get(name, here[name]) != here[name]]


def unlike_settings(one: Run, other: Run) -> list[str]:
    """`value_seconds 0.05, not 0.25` for each setting that makes a time of the one another figure than the other's."""
    pairs = ((name, getattr(one.settings, name), getattr(other.settings, name)) for name in SETTINGS)
    return [f"{name} {here:g}, not {there:g}" for name, here, there in pairs if here != there]
