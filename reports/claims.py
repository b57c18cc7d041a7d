"""What becomes of each published claim on this run's interpreters."""

from __future__ import annotations

from dataclasses import dataclass

from reports.claimed import CLAIMS, PUBLISHED_WORKLOAD, Claim
from reports.figures import Figure, Section, Sheet
from reports.judges.finding import CANNOT, DOES_NOT, NOT_SEEN, Finding
from reports.seen import Pair, Seen
from results import units

_LEAD = (
    "Published of micrograd under CPython, PyPy and Skybison, and judged here by rules over this run's profiles, each "
    "like for like: a symbol against a symbol, a group against a group. analysis.md, beside this page, gives each "
    "rule, the figures, and the reason where a claim does not hold."
)
_MARKS = {DOES_NOT: "different", NOT_SEEN: "missing", CANNOT: "missing"}
_SKYBISON = ("Skybison", PUBLISHED_WORKLOAD)


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
        told = (v if v == CANNOT else f"{v} on {', '.join(names)}" for v, names in where.items())
        return "; ".join(told) or "nobody looked"


def judge(looks: Seen) -> list[Judged]:
    """Every claim on every interpreter that it is about."""
    return [Judged(claim, tuple((pair, claim.judge(looks, pair)) for pair in _pairs(looks, claim))) for claim in CLAIMS]


def claims(looks: Seen) -> Section | None:
    """Verdicts as a table, a column an interpreter and workload; None where no claim was looked at."""
    judged = judge(looks)
    looked_at = {pair for one in judged for pair, _ in one.findings}
    if not looked_at - {_SKYBISON}:
        return None
    cells = (profile.cell for profile in looks.profiles)
    in_order = dict.fromkeys([*((cell.interpreter, cell.workload) for cell in cells), _SKYBISON])
    pairs = [pair for pair in in_order if pair in looked_at]
    rows = []
    for one in judged:
        verdicts = {pair: finding.verdict for pair, finding in one.findings}
        entries = [
            Figure(verdicts.get(pair, units.ABSENT), mark=_MARKS.get(verdicts.get(pair, ""), "")) for pair in pairs
        ]
        rows.append((Figure(one.claim.text, mark="sentence"), *entries))
    headings = ("claim", *(f"{interpreter}, {workload}" for interpreter, workload in pairs))
    return Section("claims", "Do the published claims hold?", _LEAD, (Sheet("", 1, headings, tuple(rows)),))


def _pairs(looks: Seen, claim: Claim) -> list[Pair]:
    """Interpreters and workloads on which somebody looked, or tried to, at what the claim is about."""
    if claim.interpreters == _SKYBISON[0]:
        return [_SKYBISON]
    cells = (profile.cell for profile in looks.profiles)
    return list(
        dict.fromkeys(
            (cell.interpreter, cell.workload)
            for cell in cells
            if claim.engines(cell.engine)
            and claim.workload in ("", cell.workload)
            and (claim.interpreters == "all" or cell.interpreter.startswith(claim.interpreters))
        )
    )
