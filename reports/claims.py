"""What was published about micrograd's profile, and what becomes of each claim on this run's interpreters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reports.figures import Figure, Section, Sheet, share
from reports.hottest import HOTTEST
from reports.jit import is_generated
from reports.judges import (
    DOES_NOT,
    LADDER,
    MARGIN,
    NOT_SEEN,
    PUBLISHED_COLLECTOR,
    REMAINS,
    TOLERANCE,
    Finding,
    allocation_is_hottest,
    architecture_stays,
    collector_takes_its_share,
    counting_frees_the_graph,
    generated_python_is_compiled,
    hoisting_removes_functions,
    slots_remove_dictionaries,
    tuples_spread_the_profile,
)
from reports.seen import Pair, Seen
from results import units

_LEAD = (
    "Published of micrograd under CPython, and judged here by rules over this run's profiles: analysis.md, beside this "
    "page, gives each rule, the figures, and the reason where a claim does not hold."
)
_MARKS = {DOES_NOT: "different", NOT_SEEN: "missing"}


@dataclass(frozen=True)
class Claim:
    """A published statement, the rule that decides it, and the interpreters that it is about."""

    text: str
    rule: str
    judge: Callable[[Seen, Pair], Finding]
    interpreters: Literal["cpython", "pypy"] = "cpython"


CLAIMS = (
    Claim(
        "Scalene shows the allocation of Values and the set of children as the hottest lines of baseline.",
        f"Holds where the line with most CPU time makes a Value or the set, and both are among the {HOTTEST} hottest.",
        allocation_is_hottest,
    ),
    Claim(
        f"perf shows the garbage collector at {share(PUBLISHED_COLLECTOR)} of baseline.",
        f"Holds within {100 * TOLERANCE:.0f} points.",
        collector_takes_its_share,
    ),
    Claim(
        "Children in a tuple spread the profile.",
        f"Holds where the largest line's share goes down from baseline to tuple, by {100 * MARGIN:.0f} point or more.",
        tuples_spread_the_profile,
    ),
    Claim(
        "Slots remove dict_traverse.",
        "Holds where what walks attributes' dictionaries (dict_traverse, PyObject_VisitManagedDict) has samples in "
        f"tuple and at most {share(REMAINS)} of that share in slots.",
        slots_remove_dictionaries,
    ),
    Claim(
        "Hoisting the backward functions removes func_traverse.",
        f"Holds where func_traverse has samples in slots and at most {share(REMAINS)} of that share in hoisted. "
        "A profile keeps its most frequent functions; one that is not among them counts as 0 %.",
        hoisting_removes_functions,
    ),
    Claim(
        "None of it changes the architecture: collecting garbage and evaluating bytecode stay dominant.",
        "Holds where the collector and the evaluation loop together are more than any other group, in every variant.",
        architecture_stays,
    ),
    Claim(
        "Without closures, reference counting frees the graph. (Our own: a closure and its Value are a cycle.)",
        f"Holds where hoisted leaves the collector at most {share(REMAINS)} of the objects that baseline leaves it.",
        counting_frees_the_graph,
    ),
    Claim(
        "PyPy compiles the generated Python. (Published as a question: or does it blow the trace limit?)",
        "Holds where loops or bridges were compiled and no trace met the limit of length.",
        generated_python_is_compiled,
        "pypy",
    ),
)


@dataclass(frozen=True)
class Judged:
    """A claim and what becomes of it, by interpreter and workload."""

    claim: Claim
    findings: tuple[tuple[Pair, Finding], ...]

    @property
    def summary(self) -> str:
        """`holds on cpython-3.13, not seen on cpython-3.9`; a workload is told where there are several."""
        several = len({workload for (_, workload), _ in self.findings}) > 1
        where: dict[str, list[str]] = {}
        for (interpreter, workload), finding in self.findings:
            name = f"{interpreter} ({workload})" if several else interpreter
            where.setdefault(finding.verdict, []).append(name)
        return "; ".join(f"{verdict} on {', '.join(names)}" for verdict, names in where.items()) or "nobody looked"


def judge(looks: Seen) -> list[Judged]:
    """Every claim on every interpreter that it is about."""
    return [
        Judged(claim, tuple((pair, claim.judge(looks, pair)) for pair in _pairs(looks, claim.interpreters)))
        for claim in CLAIMS
    ]


def claims(looks: Seen) -> Section | None:
    """Verdicts as a table, a column an interpreter and workload; None where no claim was looked at."""
    judged = judge(looks)
    pairs = list(dict.fromkeys(pair for one in judged for pair, _ in one.findings))
    if not pairs:
        return None
    rows = []
    for one in judged:
        verdicts = {pair: finding.verdict for pair, finding in one.findings}
        entries = [
            Figure(verdicts.get(pair, units.ABSENT), mark=_MARKS.get(verdicts.get(pair, ""), "")) for pair in pairs
        ]
        rows.append((Figure(one.claim.text, mark="sentence"), *entries))
    headings = ("claim", *(f"{interpreter}, {workload}" for interpreter, workload in pairs))
    return Section("claims", "Do the published claims hold?", _LEAD, (Sheet("", 1, headings, tuple(rows)),))


def _pairs(looks: Seen, family: str) -> list[Pair]:
    """Interpreters of a family and workloads, on which somebody looked, or tried to, at what a claim speaks of."""
    cells = (profile.cell for profile in looks.profiles)
    return list(
        dict.fromkeys(
            (cell.interpreter, cell.workload)
            for cell in cells
            if cell.interpreter.startswith(family)
            and (cell.engine in LADDER if family == "cpython" else is_generated(cell.engine))
        )
    )
