"""The published claims: figures for which each must hold, must not hold, or can't be decided."""

import pytest

from tests.reports import example_profiles
from tests.reports.example_profiles import CHILDREN, CREATION, GRADIENT, NEW, PYPY, WORKLOAD, cell
from zoomgrad.reports.profiling.claims import CLAIMS, DOES_NOT, HOLDS, NOT_SEEN, check
from zoomgrad.reports.profiling.profile_index import profile_index

REMOVED = "Hoisting the backward functions removes"
PAIR = (NEW, WORKLOAD)
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


def anatomy(engine="baseline", **figures):
    return [example_profiles.anatomy(cell(engine), **figures)]


def steady(baseline, hoisted=None):
    both = {"baseline": baseline, "hoisted": hoisted}
    return [example_profiles.anatomy(cell(e, PYPY), build=9.0, plain=s) for e, s in both.items() if s]


@pytest.mark.parametrize(
    ("start", "profiles", "conclusion"),
    [
        # Collections during a pass count for it.
        ("On CPython a forward pass", anatomy(build=0.2, forward=0.1, collector=0.7, pauses={"build": 0.6}), HOLDS),
        ("On CPython a forward pass", anatomy(build=0.1, forward=0.1), DOES_NOT),
        ("A backward pass", anatomy(build=0.9, order=0.1, backward=0.1), HOLDS),
        ("A backward pass", anatomy(build=0.9, order=0.01), DOES_NOT),
        ("On PyPy, a couple", steady(0.4), HOLDS),
        ("On PyPy, a couple", steady(0.1), DOES_NOT),
        ("Hoisting the backward functions massively", steady(0.4, 0.1), HOLDS),
        ("Hoisting the backward functions massively", steady(0.4, 0.3), DOES_NOT),
        ("Once functions are hoisted", anatomy("hoisted", order=0.5, collector=0.2, free=0.2, forward=0.3), HOLDS),
        ("Once functions are hoisted", anatomy("hoisted", order=0.3, build=0.4, free=0.1), DOES_NOT),
        ("After that", anatomy("hoisted", order=0.5, collector=0.2, free=0.2, forward=0.3), HOLDS),
        ("After that", anatomy("hoisted", order=0.3, build=0.4, free=0.1), DOES_NOT),
        ("For all runtimes", anatomy(build=0.2, collector=0.3, order=0.2, backward=0.3), HOLDS),
        ("For all runtimes", anatomy(build=0.2, order=0.2, backward=0.6), DOES_NOT),
        ("There is a ton", lined("baseline", (CREATION, 0.3), (ZIP, 0.2)), HOLDS),
        ("There is a ton", lined("baseline", *OTHERS, (ZIP, 0.01)), DOES_NOT),
        ("There is a ton", lined("baseline", (CREATION, 0.0)), NOT_SEEN),
        ("Scalene shows the allocation", lined("baseline", (CREATION, 0.3), (CHILDREN, 0.2), (GRADIENT, 0.1)), HOLDS),
        ("Scalene shows the allocation", lined("baseline", (CREATION, 0.3), *OTHERS, (CHILDREN, 0.01)), DOES_NOT),
        ("Scalene shows the allocation", lined("baseline", ("class Value(Derived):", 0.3), (CHILDREN, 0.2)), DOES_NOT),
        ("Scalene shows a lot", allocating(add=5.0, mul=3.0), HOLDS),
        ("Scalene shows a lot", allocating(add=5.0), DOES_NOT),
        ("Children in a tuple", lined("baseline", (CHILDREN, 0.3)) + lined("tuple", (CREATION, 0.2)), HOLDS),
        ("Children in a tuple", lined("baseline", (CHILDREN, 0.3)) + lined("tuple", (CREATION, 0.295)), DOES_NOT),
        ("Memory goes up", anatomy(build=1.0, floors=(10, 12)), HOLDS),
        ("Memory goes up", anatomy(build=1.0, floors=(10, 10)), DOES_NOT),
        ("Memory goes up", anatomy(build=1.0), NOT_SEEN),
        ("perf shows gc_collect_main at", [perf("baseline", **THREE)], HOLDS),
        ("perf shows gc_collect_main at", [perf("baseline", **{**THREE, "gc_collect_main": 0.08})], DOES_NOT),
        ("perf shows gc_collect_main at", [perf("baseline", **{"collect.constprop.0": 0.35})], HOLDS),
        ("perf shows gc_collect_main at", [perf("baseline", gc_collect_young=0.5)], NOT_SEEN),
        ("perf shows gc_collect_main, ", [perf("baseline", **THREE)], HOLDS),
        ("perf shows gc_collect_main, ", [perf("baseline", gc_collect_main=0.4)], DOES_NOT),
        ("perf shows the garbage", [perf("baseline", {"garbage collector": 0.83, "sets": 0.17})], HOLDS),
        ("perf shows the garbage", [perf("baseline", {"garbage collector": 0.93, "sets": 0.07})], DOES_NOT),
        ("Slots remove", [perf("tuple", dict_traverse=0.05), perf("slots")], HOLDS),
        ("Slots remove", [perf("tuple", dict_traverse=0.04), perf("slots", dict_traverse=0.02)], DOES_NOT),
        ("Slots remove", [perf("tuple"), perf("slots", dict_traverse=0.02)], NOT_SEEN),
        (REMOVED, [perf("slots", func_traverse=0.03), perf("hoisted", func_traverse=0.001)], HOLDS),
        (REMOVED, [perf("slots", func_traverse=0.03), perf("hoisted", func_traverse=0.02)], DOES_NOT),
        ("None of it", grouped((0.5, 0.3, 0.2), (0.1, 0.4, 0.4)), HOLDS),
        ("None of it", grouped((0.5, 0.3, 0.2), (0.1, 0.2, 0.7)), DOES_NOT),
    ],
)
def test_a_claim_on_profiles(start, profiles, conclusion):
    claim = named(start)
    pair = (PYPY if claim.interpreters == "pypy" else NEW, WORKLOAD)
    finding = check(claim, profile_index(example_profiles.run(), profiles), pair)
    assert finding.conclusion == conclusion
    assert finding.because


def named(start):
    """Return the claim whose text starts like this."""
    (claim,) = (one for one in CLAIMS if one.text.startswith(start))
    return claim


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.what)
def test_a_claim_without_profiles_gives_the_reason(claim):
    pair = (PYPY if claim.interpreters == "pypy" else NEW, WORKLOAD)
    missing = [example_profiles.missing(claim.kind, cell(engine, pair[0])) for engine in claim.engines]
    finding = check(claim, profile_index(example_profiles.run(), missing), pair)
    assert (finding.conclusion, finding.because) == (NOT_SEEN, "skipped: perf is not installed")
    assert "did not run on" in check(claim, profile_index(example_profiles.run(), []), pair).because
