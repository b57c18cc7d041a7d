"""Profiles -> a conclusion for each published claim, on each of this run's interpreters."""

from __future__ import annotations

from dataclasses import dataclass

from reports.profiling.claim_rules.finding import CANNOT, DOES_NOT, NOT_SEEN, Finding
from reports.profiling.profile_index import Pair, ProfileIndex
from reports.profiling.published_claims import CLAIMS, PUBLISHED_WORKLOAD, Claim
from reports.text.figures import Figure, Section, Sheet
from results import units

_LEAD = (
    "These claims were published about micrograd under CPython, PyPy and Skybison. Rules test them here on this run's "
    "profiles and compare like with like: symbols with symbols, groups with groups. analysis.md, beside this page, "
    "gives each rule, its figures, and the reason if a claim does not hold."
)
_MARKS = {DOES_NOT: "different", NOT_SEEN: "missing", CANNOT: "missing"}
_SKYBISON = ("Skybison", PUBLISHED_WORKLOAD)


@dataclass(frozen=True)
class CheckedClaim:
    """A claim and its findings by interpreter and workload."""

    claim: Claim
    findings: tuple[tuple[Pair, Finding], ...]

    @property
    def summary(self) -> str:
        """`holds on cpython-3.13, not seen on cpython-3.9`; names the workloads if there are several."""
        several = len({workload for (_, workload), _ in self.findings}) > 1
        where: dict[str, list[str]] = {}
        for (interpreter, workload), finding in self.findings:
            name = f"{interpreter} ({workload})" if several else interpreter
            where.setdefault(finding.conclusion, []).append(name)
        told = (v if v == CANNOT else f"{v} on {', '.join(names)}" for v, names in where.items())
        return "; ".join(told) or "no profile"


def check_claims(index: ProfileIndex) -> list[CheckedClaim]:
    """Check every claim on every interpreter and workload that it concerns."""
    return [
        CheckedClaim(claim, tuple((pair, claim.rule(index, pair)) for pair in _pairs(index, claim))) for claim in CLAIMS
    ]


def claims(index: ProfileIndex) -> Section | None:
    """Table of conclusions, one column per interpreter and workload; None if no profile concerns a claim."""
    checked = check_claims(index)
    profiled = {pair for one in checked for pair, _ in one.findings}
    if not profiled - {_SKYBISON}:
        return None
    cells = (profile.cell for profile in index.profiles)
    in_order = dict.fromkeys([*((cell.interpreter, cell.workload) for cell in cells), _SKYBISON])
    pairs = [pair for pair in in_order if pair in profiled]
    rows = []
    for one in checked:
        conclusions = {pair: finding.conclusion for pair, finding in one.findings}
        entries = [
            Figure(conclusions.get(pair, units.ABSENT), mark=_MARKS.get(conclusions.get(pair, ""), ""))
            for pair in pairs
        ]
        rows.append((Figure(one.claim.text, mark="sentence"), *entries))
    headings = ("claim", *(f"{interpreter}, {workload}" for interpreter, workload in pairs))
    return Section("claims", "Do the published claims hold?", _LEAD, (Sheet("", 1, headings, tuple(rows)),))


def _pairs(index: ProfileIndex, claim: Claim) -> list[Pair]:
    """Return interpreters and workloads on which a profiler ran, or tried to run, on an engine the claim concerns."""
    if claim.interpreters == _SKYBISON[0]:
        return [_SKYBISON]
    cells = (profile.cell for profile in index.profiles)
    return list(
        dict.fromkeys(
            (cell.interpreter, cell.workload)
            for cell in cells
            if claim.engines(cell.engine)
            and claim.workload in ("", cell.workload)
            and (claim.interpreters == "all" or cell.interpreter.startswith(claim.interpreters))
        )
    )
