"""The published claims: figures for which each must hold, must not hold, or can't be decided."""

import re

import pytest

from tests.reports import example_profiles
from tests.reports.example_profiles import CHILDREN, CREATION, GRADIENT, NASTY, NEW, OLD, PYPY, WORKLOAD, cell
from zoomgrad.reports.pages.analysis import analysis
from zoomgrad.reports.profiling import claim_metrics as metrics
from zoomgrad.reports.profiling.claim_metrics import ARRAYS
from zoomgrad.reports.profiling.claims import CLAIMS, check, check_claims, claims
from zoomgrad.reports.profiling.profile_index import profile_index
from zoomgrad.results.profile import SymbolProfile

PAIR = (NEW, WORKLOAD)
HOLDS, DOES_NOT, NOT_SEEN = "holds", "does not hold", "not seen"
ZIP = "act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)"
PRODUCT = CREATION.replace("+", "*")
OTHERS = [(f"other {n}", 0.05) for n in range(5)]
THREE = {"gc_collect_main.lto_priv.0": 0.37, "deduce_unreachable": 0.28, "visit_reachable": 0.1}


def lined(engine, *lines):
    return [example_profiles.lines(cell(engine), *(example_profiles.line(source, cpu) for source, cpu in lines))]


def allocating(**sizes):
    lines = (example_profiles.line({"add": CREATION, "mul": PRODUCT}[name], 0.1, n) for name, n in sizes.items())
    return [example_profiles.lines(cell("baseline"), *lines)]


def perf(engine, groups=None, **shares):
    """The group of the collector is not what a claim about symbols compares."""
    return example_profiles.symbols(cell(engine), groups or {"garbage collector": 0.9, "others": 0.1}, shares)


def grouped(baseline, hoisted):
    names = ("garbage collector", "evaluation loop", "sets")
    both = {"baseline": baseline, "hoisted": hoisted}
    return [perf(engine, dict(zip(names, shares, strict=True))) for engine, shares in both.items()]


def anatomy(engine="baseline", **seconds):
    return [example_profiles.anatomy(cell(engine), **seconds)]


def steady(baseline, hoisted=None):
    both = {"baseline": baseline, "hoisted": hoisted}
    return [example_profiles.anatomy(cell(e, PYPY), build=9.0, plain=s) for e, s in both.items() if s]


def memory(*floors, **settings):
    return [example_profiles.memory(cell("baseline"), *floors, **settings)]


def compiled(engine, **passes):
    return [example_profiles.compiler(cell(engine), 9.0, **passes)]


def jit(**fields):
    return [example_profiles.jit(cell("python-source", PYPY), **fields)]


@pytest.mark.parametrize(
    ("metric", "profiles", "conclusion"),
    [
        # Collections during a pass count for it.
        (metrics.forward_seconds, anatomy(build=0.2, forward=0.1, collector=0.7, pauses={"build": 0.6}), HOLDS),
        (metrics.forward_seconds, anatomy(build=0.1, forward=0.1), DOES_NOT),
        (metrics.forward_seconds, anatomy(build=3.0), DOES_NOT),
        (metrics.backward_share, anatomy(build=0.9, order=0.1, backward=0.1), HOLDS),
        (metrics.backward_share, anatomy(build=0.9, order=0.01), DOES_NOT),
        (metrics.images_per_second, steady(0.4), HOLDS),
        (metrics.images_per_second, steady(0.1), DOES_NOT),
        (metrics.images_per_second, steady(2.0), DOES_NOT),
        (metrics.images_per_second, steady(None, 0.4), NOT_SEEN),
        (metrics.gain_of_hoisting, steady(0.4, 0.1), HOLDS),
        (metrics.gain_of_hoisting, steady(0.4, 0.3), DOES_NOT),
        (metrics.gain_of_hoisting, steady(0.4), NOT_SEEN),
        (metrics.ordering, anatomy("hoisted", order=0.5, collector=0.2, free=0.2, forward=0.3), HOLDS),
        (metrics.ordering, anatomy("hoisted", order=0.3, build=0.4, free=0.1), DOES_NOT),
        (metrics.ordering, anatomy("hoisted", order=0.3, rest=0.4, collector=0.1), HOLDS),
        (metrics.collecting_and_freeing, anatomy("hoisted", order=0.5, collector=0.2, free=0.2, forward=0.3), HOLDS),
        (metrics.collecting_and_freeing, anatomy("hoisted", order=0.3, build=0.4, free=0.1), DOES_NOT),
        (metrics.recreating_and_ordering, anatomy(build=0.2, collector=0.3, order=0.2, backward=0.3), HOLDS),
        (metrics.recreating_and_ordering, anatomy(build=0.2, order=0.2, backward=0.6), DOES_NOT),
        (metrics.rank_of_the_zip, lined("baseline", (CREATION, 0.3), (ZIP, 0.2)), HOLDS),
        (metrics.rank_of_the_zip, lined("baseline", *OTHERS, (ZIP, 0.01)), DOES_NOT),
        (metrics.rank_of_the_zip, lined("baseline", (CREATION, 0.3)), DOES_NOT),
        (metrics.rank_of_the_zip, lined("baseline", (CREATION, 0.0)), NOT_SEEN),
        (metrics.rank_of_allocation, lined("baseline", (CREATION, 0.3), (CHILDREN, 0.2), (GRADIENT, 0.1)), HOLDS),
        (metrics.rank_of_allocation, lined("baseline", (CREATION, 0.3), *OTHERS, (CHILDREN, 0.01)), DOES_NOT),
        (metrics.rank_of_allocation, lined("baseline", (CHILDREN, 0.3), (GRADIENT, 0.2)), DOES_NOT),
        (metrics.rank_of_allocation, lined("baseline", ("class Value(Derived):", 0.3), (CHILDREN, 0.2)), DOES_NOT),
        (metrics.rank_of_adding, allocating(add=5.0, mul=3.0), HOLDS),
        (metrics.rank_of_adding, allocating(add=5.0), DOES_NOT),
        (metrics.rank_of_adding, allocating(), NOT_SEEN),
        (metrics.spread, lined("baseline", (CHILDREN, 0.3)) + lined("tuple", (CREATION, 0.2)), HOLDS),
        (metrics.spread, lined("baseline", (CHILDREN, 0.3)) + lined("tuple", (CREATION, 0.295)), DOES_NOT),
        # Only a rising floor is a leak. A sawtooth also rises all the time, but it falls again.
        (metrics.growth, memory(*example_profiles.RISING), HOLDS),
        (metrics.growth, memory(*example_profiles.SAW), DOES_NOT),
        (metrics.growth, memory(100, 100, 109, 109, 109, warm_up=0.0), DOES_NOT),
        (metrics.growth, memory(100, 100, 112, 112, 112, warm_up=0.0), HOLDS),
        (metrics.growth, memory(*example_profiles.RISING, steps=11), NOT_SEEN),
        (metrics.collecting_function, [perf("baseline", **THREE)], HOLDS),
        (metrics.collecting_function, [perf("baseline", **{**THREE, "gc_collect_main": 0.08})], DOES_NOT),
        (metrics.collecting_function, [perf("baseline", **{"collect.constprop.0": 0.35})], HOLDS),
        (metrics.collecting_function, [perf("baseline", gc_collect_young=0.5)], NOT_SEEN),
        (metrics.collecting_functions, [perf("baseline", **THREE)], HOLDS),
        (metrics.collecting_functions, [perf("baseline", gc_collect_main=0.6, visit_reachable=0.12)], HOLDS),
        (metrics.collecting_functions, [perf("baseline", gc_collect_main=0.4)], DOES_NOT),
        (metrics.collecting_functions, [perf("baseline", visit_reachable=0.1)], NOT_SEEN),
        (metrics.collector_group, [perf("baseline", {"garbage collector": 0.83, "sets": 0.17})], HOLDS),
        (metrics.collector_group, [perf("baseline", {"garbage collector": 0.6, "sets": 0.4})], DOES_NOT),
        (metrics.collector_group, [perf("baseline", {"garbage collector": 0.93, "sets": 0.07})], DOES_NOT),
        (metrics.dictionaries_left, [perf("tuple", dict_traverse=0.05), perf("slots")], HOLDS),
        (metrics.dictionaries_left, [perf("tuple", dict_traverse=0.04), perf("slots", dict_traverse=0.02)], DOES_NOT),
        (
            metrics.dictionaries_left,
            [perf("tuple", PyObject_VisitManagedDict=0.05), perf("slots", PyObject_VisitManagedDict=0.004)],
            HOLDS,
        ),
        (metrics.dictionaries_left, [perf("tuple"), perf("slots", dict_traverse=0.02)], NOT_SEEN),
        (metrics.functions_left, [perf("slots", func_traverse=0.03), perf("hoisted", func_traverse=0.001)], HOLDS),
        (metrics.functions_left, [perf("slots", func_traverse=0.03), perf("hoisted", func_traverse=0.02)], DOES_NOT),
        (metrics.architecture, grouped((0.5, 0.3, 0.2), (0.1, 0.4, 0.4)), HOLDS),
        (metrics.architecture, grouped((0.5, 0.3, 0.2), (0.1, 0.2, 0.7)), DOES_NOT),
        (metrics.is_compiled, jit(), HOLDS),
        (metrics.is_compiled, jit(aborts={"trace too long": 44}), DOES_NOT),
        (metrics.is_compiled, jit(loops=0), DOES_NOT),
        (metrics.sroa, compiled(ARRAYS, SROAPass=0.7, GVN=0.2), HOLDS),
        (metrics.sroa, compiled(ARRAYS, DSEPass=0.6, SROAPass=0.1), DOES_NOT),
    ],
)
def test_a_claim_on_profiles(metric, profiles, conclusion):
    (claim,) = (claim for claim in CLAIMS if claim.metric is metric)
    pair = (PYPY if claim.interpreters == "pypy" else NEW, WORKLOAD)
    finding = check(claim, profile_index(example_profiles.run(), profiles), pair)
    assert finding.conclusion == conclusion
    assert bool(finding.figure) == (conclusion != NOT_SEEN) != bool(finding.reason)


TESTABLE = [claim for claim in CLAIMS if claim.metric]


@pytest.mark.parametrize("claim", TESTABLE, ids=lambda claim: claim.metric.what)
def test_a_claim_without_profiles_gives_the_reason(claim):
    pair = (PYPY if claim.interpreters == "pypy" else NEW, WORKLOAD)
    kind, engines = claim.metric.kind, claim.metric.engines
    missing = [example_profiles.missing(kind, cell(engine, pair[0])) for engine in engines]
    finding = check(claim, profile_index(example_profiles.run(), missing), pair)
    assert (finding.conclusion, finding.reason) == (NOT_SEEN, "skipped: perf is not installed")
    assert "did not run on" in check(claim, profile_index(example_profiles.run(), []), pair).reason


def test_each_claim_is_checked_on_its_own_interpreters(index):
    where = {one.claim.metric: [pair for pair, _ in one.findings] for one in check_claims(index)}
    assert where[metrics.rank_of_allocation] == [(OLD, WORKLOAD), PAIR]
    assert where[metrics.is_compiled] == [(PYPY, WORKLOAD)]
    assert where[metrics.recreating_and_ordering] == [(OLD, WORKLOAD), PAIR, (PYPY, WORKLOAD)]
    assert where[None] == [("Skybison", "mnist")]


def test_the_table_has_each_claim_with_its_findings(index):
    text = analysis(index.run, index.profiles)
    assert text.startswith("# Do the published claims hold?\n\nFrom the profiles of run profiled")
    rows = re.findall(r"^\| (\d+)\. .* \| (.*) \|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(CLAIMS) + 1))
    summaries = {claim.metric: summary for claim, (_, summary) in zip(CLAIMS, rows, strict=True)}
    assert re.fullmatch(rf"{OLD}: not seen, .+; {NEW}: holds, 3\d %", summaries[metrics.collecting_function])
    assert f"{PYPY}: holds" in summaries[metrics.recreating_and_ordering]
    assert summaries[metrics.is_compiled] == f"{PYPY}: does not hold, 0"
    assert summaries[None].startswith("Skybison: cannot be tested here, Skybison is no longer maintained")


def test_a_run_without_profiles():
    text = analysis(example_profiles.run(), [])
    assert text.count("| no profile |") == len(TESTABLE)
    assert text.count("Skybison: cannot be tested here") == len(CLAIMS) - len(TESTABLE) == 3
    assert not re.search(r": (holds|does not hold|not seen),", text)
    assert claims(profile_index(example_profiles.run(), [])) is None


def test_a_hostile_reason_stays_text():
    text = analysis(example_profiles.run(), [example_profiles.missing(SymbolProfile, cell("baseline"), reason=NASTY)])
    assert "<script" not in text
    assert r"\`x\` \*y\*" in text
