"""Profiles -> a conclusion for each published claim, on each of this run's interpreters.

A claim holds if its metric is between two limits. Limits are generous where a machine or a build may differ: a factor
of two for times, five points for shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from zoomgrad.reports.profiling import claim_metrics as metrics
from zoomgrad.reports.profiling.claim_metrics import Metric
from zoomgrad.reports.profiling.hottest import HOTTEST
from zoomgrad.reports.profiling.profile_index import Pair, ProfileIndex
from zoomgrad.reports.profiling.published_symbols import COLLECTING, COLLECTOR_TOTAL, published_share
from zoomgrad.reports.text.figures import Figure, Section, Sheet
from zoomgrad.results import units
from zoomgrad.results.record import Cell

PUBLISHED_WORKLOAD = "mnist"
"""Workload of the published figures."""
TOLERANCE = 0.05
REMAINS = 0.1
"""Fraction of a symbol's previous share; with more left, the symbol was not removed."""
POST, HYPOTHESIS, NOTE = "the post", "the post, as a hypothesis", "a note in the post's source"
OF_SKYBISON = "the post, of Skybison"
SKYBISON: Pair = ("Skybison", PUBLISHED_WORKLOAD)

Conclusion = Literal["holds", "does not hold", "not seen", "cannot be tested here"]
HOLDS: Final = "holds"
DOES_NOT: Final = "does not hold"
NOT_SEEN: Final = "not seen"
CANNOT: Final = "cannot be tested here"
"""Only for an interpreter that cannot be installed, so no profiler can run."""


@dataclass(frozen=True)
class Claim:
    """A published statement: its metric must be between `low` and `high`. No metric: Skybison would be needed."""

    text: str
    source: str
    metric: Metric | None
    low: float = -math.inf
    high: float = math.inf
    interpreters: Literal["cpython", "pypy", "all", "Skybison"] = "cpython"
    workload: str = ""
    """The only workload on which the claim can be tested; empty: any."""

    @property
    def criterion(self) -> str:
        """The rule, in words."""
        if self.metric is None:
            return "needs Skybison"
        low, high = (self.metric.text(limit) if math.isfinite(limit) else "" for limit in (self.low, self.high))
        limits = f"from {low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
        engines = " and ".join(filter(None, (", ".join(self.metric.engines[:-1]), self.metric.engines[-1])))
        profiler = self.metric.kind.model_fields["profiler"].default
        return f"{self.metric.what}, by {profiler} on {engines}: {limits}"


@dataclass(frozen=True)
class Finding:
    """The conclusion about a claim on one interpreter and workload, with the figure or the reason behind it."""

    conclusion: Conclusion
    figure: str = ""
    reason: str = ""


def _published(text: str, metric: Metric, share: float) -> Claim:
    """A share in the published table, which holds within the tolerance."""
    text = f"perf shows {text} at {100 * share:.2f} % of baseline."
    return Claim(text, POST, metric, share - TOLERANCE, share + TOLERANCE, workload=PUBLISHED_WORKLOAD)


def _skybison(text: str) -> Claim:
    return Claim(text, OF_SKYBISON, None, interpreters="Skybison", workload=PUBLISHED_WORKLOAD)


CLAIMS = (
    Claim(
        "On CPython a forward pass of one image takes about a second.",
        *(POST, metrics.forward_seconds, 0.5, 2.0),
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim("A backward pass comes on top.", POST, metrics.backward_share, low=0.1, workload=PUBLISHED_WORKLOAD),
    Claim(
        "On PyPy, a couple of images per second.",
        *(POST, metrics.images_per_second, 1.0, 4.0, "pypy"),
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "Hoisting the backward functions massively speeds up PyPy.",
        *(POST, metrics.gain_of_hoisting),
        low=2.0,
        interpreters="pypy",
    ),
    _skybison("Skybison is way faster than both CPython and PyPy."),
    _skybison("On Skybison creating functions is the major pain point, and hoisting backward functions removes it."),
    _skybison("With hoisted functions PyPy becomes faster than Skybison."),
    Claim(
        "Once functions are hoisted, the set lookup of the topological sort is the slowest bit. (Tested on CPython.)",
        *(OF_SKYBISON, metrics.ordering),
        low=1.0,
    ),
    Claim(
        "After that it is garbage collection from all the transient Values. (Tested on CPython.)",
        *(OF_SKYBISON, metrics.collecting_and_freeing),
        low=1.0,
    ),
    Claim(
        "For all runtimes the pain points are recreating the graph, the topological sort, and interpreter overhead.",
        *(HYPOTHESIS, metrics.recreating_and_ordering),
        low=0.5,
        interpreters="all",
    ),
    Claim(
        "There is a ton of overhead with the zip in Neuron.__call__.",
        *(HYPOTHESIS, metrics.rank_of_the_zip),
        high=HOTTEST,
    ),
    Claim("Memory goes up and to the right.", POST, metrics.growth, low=1.1),
    Claim(
        "Scalene shows the allocation of Values and the set of children among the hottest lines of baseline.",
        *(POST, metrics.rank_of_allocation),
        high=HOTTEST,
    ),
    Claim(
        "Scalene shows a lot of + and * operations, because __add__ and __mul__ allocate a lot.",
        *(POST, metrics.rank_of_adding),
        high=HOTTEST,
    ),
    _published(COLLECTING[0], metrics.collecting_function, published_share(COLLECTING[0])),
    _published(
        f"{', '.join(COLLECTING[:-1])} and {COLLECTING[-1]} together",
        metrics.collecting_functions,
        sum(map(published_share, COLLECTING)),
    ),
    _published("the garbage collector", metrics.collector_group, COLLECTOR_TOTAL),
    Claim("Children in a tuple spread the profile.", POST, metrics.spread, low=0.01),
    Claim("Slots remove dict_traverse.", POST, metrics.dictionaries_left, high=REMAINS),
    Claim("Hoisting the backward functions removes func_traverse.", POST, metrics.functions_left, high=REMAINS),
    Claim(
        "None of it changes the architecture: collecting garbage and evaluating bytecode stay dominant.",
        *(POST, metrics.architecture),
        low=1.0,
    ),
    Claim(
        "PyPy compiles the generated Python. (Or does it blow the trace limit?)",
        *(HYPOTHESIS, metrics.is_compiled),
        low=1.0,
        interpreters="pypy",
    ),
    Claim("Clang -O1 over the arrays takes forever, and it looks like SROA.", NOTE, metrics.sroa, low=0.25),
)


@dataclass(frozen=True)
class CheckedClaim:
    """A claim and its findings by interpreter and workload."""

    claim: Claim
    findings: tuple[tuple[Pair, Finding], ...]

    @property
    def summary(self) -> str:
        """`cpython-3.13: holds, 528 ms; pypy-3.9: not seen, perf is not installed`; names workloads if several."""
        several = len({workload for (_, workload), _ in self.findings}) > 1
        return (
            "; ".join(
                f"{interpreter}{f' ({workload})' if several else ''}: {finding.conclusion}, "
                f"{finding.figure or finding.reason}"
                for (interpreter, workload), finding in self.findings
            )
            or "no profile"
        )


def check_claims(index: ProfileIndex) -> list[CheckedClaim]:
    """Check every claim on every interpreter and workload that it concerns."""
    return [
        CheckedClaim(claim, tuple((pair, check(claim, index, pair)) for pair in _pairs(index, claim)))
        for claim in CLAIMS
    ]


def check(claim: Claim, index: ProfileIndex, pair: Pair) -> Finding:
    """Compute the claim's metric on one interpreter and workload, and compare it with its limits."""
    metric = claim.metric
    if metric is None:
        return Finding(CANNOT, reason="Skybison is no longer maintained and cannot be installed")
    profiles = index.by_pair(metric.kind).get(pair, {})
    for engine in metric.engines:
        if engine not in profiles:
            cell = Cell(engine=engine, interpreter=pair[0], workload=pair[1])
            profiler = metric.kind.model_fields["profiler"].default
            return Finding(NOT_SEEN, reason=index.why_not(cell, profiler))
    value = metric.of(*(profiles[engine] for engine in metric.engines))
    if value is None:
        return Finding(NOT_SEEN, reason="too few samples or steps; profile longer with --seconds")
    return Finding(HOLDS if claim.low <= value <= claim.high else DOES_NOT, metric.text(value))


_LEAD = (
    "These claims were published about micrograd under CPython, PyPy and Skybison. Each is tested on this run's "
    "profiles by one figure and its limits; analysis.md, beside this page, gives both."
)
_MARKS = {DOES_NOT: "different", NOT_SEEN: "missing", CANNOT: "missing"}


def claims(index: ProfileIndex) -> Section | None:
    """Table of conclusions, one column per interpreter and workload; None if no profile concerns a claim."""
    checked = check_claims(index)
    profiled = {pair for one in checked for pair, _ in one.findings}
    if not profiled - {SKYBISON}:
        return None
    cells = (profile.cell for profile in index.profiles)
    in_order = dict.fromkeys([*((cell.interpreter, cell.workload) for cell in cells), SKYBISON])
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
    if claim.metric is None:
        return [SKYBISON]
    cells = (profile.cell for profile in index.profiles)
    return list(
        dict.fromkeys(
            (cell.interpreter, cell.workload)
            for cell in cells
            if cell.engine in claim.metric.engines
            and claim.workload in ("", cell.workload)
            and (claim.interpreters == "all" or cell.interpreter.startswith(claim.interpreters))
        )
    )
