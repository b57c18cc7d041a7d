"""Whether the published claims hold: each rule, on figures that decide it."""

import re

import pytest

from reports.analysis import analysis
from reports.claims import CLAIMS, judge
from reports.judges import (
    allocation_is_hottest,
    architecture_stays,
    collector_takes_its_share,
    counting_frees_the_graph,
    generated_python_is_compiled,
    hoisting_removes_functions,
    slots_remove_dictionaries,
    tuples_spread_the_profile,
)
from reports.seen import seen
from results.profile import CollectorProfile, JitProfile, LineProfile, SymbolProfile
from tests.reports import looked
from tests.reports.looked import CHILDREN, CREATION, GRADIENT, LADDER, NASTY, NEW, OLD, PYPY, WORKLOAD, cell

PAIR = (NEW, WORKLOAD)


def judged(claim, *profiles, pair=PAIR):
    return claim(seen(looked.run(), profiles), pair)


def lined(engine, *found):
    return looked.lines(cell(engine), *(looked.line(source, cpu) for source, cpu in found))


def perf(engine, groups=None, interpreter=NEW, **shares):
    return looked.symbols(cell(engine, interpreter), groups or {"evaluation loop": 1.0}, shares)


OTHERS = [(f"other {n}", 0.05) for n in range(5)]


@pytest.mark.parametrize(
    ("lines", "verdict", "said"),
    [
        ([(CREATION, 0.3), (CHILDREN, 0.2), (GRADIENT, 0.1)], "holds", "the set of children is 2nd, 20 %"),
        ([(CHILDREN, 0.3), ("def __init__(self, data):", 0.2)], "holds", "making a Value is 2nd, 20 %"),
        ([(GRADIENT, 0.3), (CREATION, 0.2), (CHILDREN, 0.2)], "does not hold", f"another one: “{GRADIENT}”"),
        ([(CREATION, 0.3), *OTHERS, (CHILDREN, 0.01)], "does not hold", "the set of children is not among the 5"),
        ([(CHILDREN, 0.3), (GRADIENT, 0.2)], "does not hold", "making a Value is not among the 5"),
        ([("class Value(Derived):", 0.3), (CHILDREN, 0.2)], "does not hold", "another one: “class Value(Derived):”"),
        ([(CREATION, 0.0)], "not seen", "no sample of CPU time"),
    ],
)
def test_allocation_is_hottest(lines, verdict, said):
    finding = judged(allocation_is_hottest, lined("baseline", *lines))
    assert finding.verdict == verdict
    assert said in finding.figures + finding.reason


@pytest.mark.parametrize(
    ("share", "verdict", "reason"),
    [
        (0.37, "holds", ""),
        (0.41, "holds", ""),
        (0.6, "does not hold", "23 points more than published; next to it stands sets with 30 %; a step leaves 2,000"),
        (0.1, "does not hold", "27 points less than published"),
    ],
)
def test_the_collectors_share(share, verdict, reason):
    groups = {"garbage collector": share, "sets": 0.3, "others": 0.7 - share}
    finding = judged(collector_takes_its_share, perf("baseline", groups), looked.collector(cell("baseline"), 0.5))
    assert finding.verdict == verdict
    assert reason in finding.reason
    assert bool(finding.reason) == (verdict != "holds")
    assert "by the interpreter's own account 50 % of wall time" in finding.figures


@pytest.mark.parametrize(
    ("before", "after", "verdict", "reason"),
    [
        ((CHILDREN, 0.3), (CREATION, 0.2), "holds", ""),
        ((CHILDREN, 0.3), (CREATION, 0.295), "does not hold", "another line takes the lead"),
        ((CREATION, 0.3), (CREATION, 0.5), "does not hold", "the same line leads both"),
    ],
)
def test_tuples_spread_the_profile(before, after, verdict, reason):
    finding = judged(tuples_spread_the_profile, lined("baseline", before), lined("tuple", after))
    assert finding.verdict == verdict
    assert reason in finding.reason


@pytest.mark.parametrize(
    ("tuples", "slots", "verdict", "said"),
    [
        ({"dict_traverse.lto_priv.0": 0.05}, {}, "holds", "dict_traverse: tuple 5.0 %, slots 0 %"),
        ({"PyObject_VisitManagedDict": 0.05}, {"PyObject_VisitManagedDict": 0.004}, "holds", "slots 0.4 %"),
        ({"dict_traverse": 0.04}, {"dict_traverse": 0.02}, "does not hold", "50 % of it is left in slots, 20 samples"),
        ({}, {}, "not seen", "in none of the variants. Attributes lie in the object itself"),
        ({}, {"dict_traverse": 0.02}, "not seen", "none in tuple, only in slots"),
    ],
)
def test_slots_remove_dictionaries(tuples, slots, verdict, said):
    finding = judged(slots_remove_dictionaries, perf("tuple", **tuples), perf("slots", **slots))
    assert finding.verdict == verdict
    assert said in f"{finding.figures} {finding.reason}"


def test_an_old_interpreter_keeps_dictionaries():
    profiles = (perf(engine, interpreter=OLD) for engine in LADDER)
    finding = judged(slots_remove_dictionaries, *profiles, pair=(OLD, WORKLOAD))
    assert finding.verdict == "not seen"
    assert "in the object itself" not in finding.reason


@pytest.mark.parametrize(
    ("slots", "hoisted", "verdict"),
    [(0.03, 0.001, "holds"), (0.03, 0.02, "does not hold"), (0.0, 0.0, "not seen")],
)
def test_hoisting_removes_functions(slots, hoisted, verdict):
    profiles = perf("slots", func_traverse=slots), perf("hoisted", func_traverse=hoisted)
    assert judged(hoisting_removes_functions, *profiles).verdict == verdict


@pytest.mark.parametrize(
    ("last", "verdict", "said"),
    [
        (
            {"garbage collector": 0.1, "evaluation loop": 0.4, "sets": 0.4},
            "holds",
            "-30 points from baseline",
        ),
        ({"garbage collector": 0.1, "evaluation loop": 0.2, "sets": 0.7}, "does not hold", "in hoisted the group sets"),
    ],
)
def test_the_architecture_stays(last, verdict, said):
    first = perf("baseline", {"garbage collector": 0.5, "evaluation loop": 0.3, "others": 0.2})
    finding = judged(architecture_stays, first, perf("hoisted", last))
    assert finding.verdict == verdict
    assert said in f"{finding.figures} {finding.reason}"


@pytest.mark.parametrize(
    ("profile", "verdict", "said"),
    [
        ({}, "holds", "compiles python-source"),
        ({"aborts": {"trace too long": 44}}, "does not hold", "(trace too long 44)"),
        ({"loops": 0}, "does not hold", "neither a loop nor a bridge"),
    ],
)
def test_generated_python_is_compiled(profile, verdict, said):
    found = looked.jit(cell("python-source", PYPY), **profile)
    finding = judged(generated_python_is_compiled, found, pair=(PYPY, WORKLOAD))
    assert finding.verdict == verdict
    assert said in f"{finding.figures} {finding.reason}"


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(500, 0, "holds"), (500, 50, "holds"), (500, 200, "does not hold"), (0, 0, "not seen")],
)
def test_counting_frees_the_graph(before, after, verdict):
    found = [looked.collector(cell(name), 0.5, collected=n) for name, n in (("baseline", before), ("hoisted", after))]
    finding = judged(counting_frees_the_graph, *found)
    assert finding.verdict == verdict
    assert "takes 50 % of wall time in baseline" in finding.figures


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.judge.__name__)
def test_what_was_not_seen_says_why(claim):
    where = NEW if claim.interpreters == "cpython" else PYPY
    models = (LineProfile, SymbolProfile, CollectorProfile, JitProfile)
    missing = [looked.missing(model, cell(engine, where)) for model in models for engine in looked.run().engines]
    finding = judged(claim.judge, *missing, pair=(where, WORKLOAD))
    assert (finding.verdict, finding.figures) == ("not seen", "")
    assert finding.reason == "skipped: perf is not installed"
    nobody = judged(claim.judge, pair=(where, WORKLOAD))
    assert nobody.verdict == "not seen"
    assert "did not look at" in nobody.reason


def test_each_claim_is_judged_on_the_interpreters_that_it_is_about(looks):
    where = {judged.claim.judge: [pair for pair, _ in judged.findings] for judged in judge(looks)}
    assert where[allocation_is_hottest] == [(OLD, WORKLOAD), PAIR]
    assert where[generated_python_is_compiled] == [(PYPY, WORKLOAD)]


def test_the_summary_names_the_interpreters(looks):
    text = analysis(looks.run, looks.profiles)
    assert text.startswith("# Do the published claims hold?\n\nFrom the profiles of run looked")
    assert re.findall(r"^\| (\d)\. .* \| (.*) \|$", text, re.MULTILINE) == [
        *((str(number), f"not seen on {OLD}; holds on {NEW}") for number in range(1, 8)),
        ("8", f"does not hold on {PYPY}"),
    ]
    assert text.count(f"\n- **{NEW}, {WORKLOAD}: holds**. Seen: ") == 7


def test_every_finding_is_a_line_of_its_own(looks):
    lines = analysis(looks.run, looks.profiles).splitlines()
    assert sum(line.startswith("- **") for line in lines) == sum(len(one.findings) for one in judge(looks))
    assert all(line.endswith(".") for line in lines if line.startswith("- **"))


def test_nobody_looked():
    text = analysis(looked.run(), [])
    assert text.count("Nobody looked.") == len(CLAIMS)
    assert not re.search(r"\*\*.*: (holds|does not hold|not seen)", text)


def test_a_hostile_reason_stays_text():
    text = analysis(looked.run(), [looked.missing(SymbolProfile, cell("baseline"), reason=NASTY)])
    assert "<script" not in text
    assert r"\`x\` \*y\*" in text
