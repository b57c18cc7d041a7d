"""Compare two runs' machines, tool versions and settings, to decide which of their figures may be compared."""

from __future__ import annotations

from collections.abc import Mapping

from zoomgrad.results.record import Run

MACHINE = ("processor", "cores", "architecture")
"""Facts that identify a machine, together with the kind of system. Runs that agree on all of them count as runs of one
machine."""

COMPILERS = ("tcc", "gcc", "clang")
"""Names of the machine facts that hold a C compiler's version."""

SETTINGS = ("values", "warmups", "jit_warmups", "value_seconds")
"""Settings that change a figure: the length of a value, and how many values come before it."""


def same_machine(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two runs' facts describe one machine. False without facts, because nothing is known then."""
    facts, others = ([machine.get(name, "") for name in MACHINE] + [_system(machine)] for machine in (one, other))
    return any(facts) and facts == others


def _system(machine: Mapping[str, str]) -> str:
    """The kind of system without its release, because a kernel update does not make another machine."""
    return machine.get("system", "").partition(" ")[0]


def same_type(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two hosts' facts describe one machine type: their times may be combined. False without facts."""
    return same_machine(one, other) and all(one.get(name) == other.get(name) for name in COMPILERS)


def moved(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Return the first fact that differs, as `libc was glibc 2.36`; empty if a run may continue on this machine."""
    facts = ("processor", "cores", "system", "libc", *COMPILERS)
    return next((f"{fact} was {there.get(fact, 'unknown')}" for fact in facts if there.get(fact) != here.get(fact)), "")


def unlike_tools(one: Run, other: Run) -> list[str]:
    """`gcc 12.2.0, not 13.1.0` for each interpreter and C compiler that both runs had, in different versions."""
    here, there = ({name: facts.version for name, facts in run.interpreters.items()} for run in (one, other))
    for versions, run in ((here, one), (there, other)):
        versions.update((name, run.machine[name]) for name in COMPILERS if name in run.machine)
    return [f"{name} {here[name]}, not {there[name]}" for name in here if there.get(name, here[name]) != here[name]]


def unlike_settings(one: Run, other: Run) -> list[str]:
    """`value_seconds 0.05, not 0.25` for each of SETTINGS that differs between the runs."""
    pairs = ((name, getattr(one.settings, name), getattr(other.settings, name)) for name in SETTINGS)
    return [f"{name} {here:g}, not {there:g}" for name, here, there in pairs if here != there]
