"""The published claims: each rule on figures for which it must hold, must not hold, or can't be decided."""

import re

import pytest

from reports.pages.analysis import analysis
from reports.profiling.claim_rules.accounts import counting_frees_the_graph, generated_python_is_compiled
from reports.profiling.claim_rules.compiling import (
    ARRAYS,
    FUSING,
    arrays_are_slow_by_sroa,
    fusing_is_unlikely,
)
from reports.profiling.claim_rules.finding import of_skybison
from reports.profiling.claim_rules.lines import (
    adding_and_multiplying_allocate,
    allocation_is_hottest,
    tuples_spread_the_profile,
    zip_in_the_neuron_is_hot,
)
from reports.profiling.claim_rules.memory import memory_goes_up
from reports.profiling.claim_rules.steps import (
    backward_pass_comes_on_top,
    collecting_values_comes_next,
    forward_pass_takes_a_second,
    graph_and_order_are_the_pain_points,
    hoisting_speeds_up_pypy,
    ordering_is_slowest_once_hoisted,
    pypy_takes_a_couple_per_second,
)
from reports.profiling.claim_rules.symbols import (
    architecture_stays,
    collecting_function,
    collecting_functions,
    collector_takes_its_share,
    hoisting_removes_functions,
    slots_remove_dictionaries,
)
from reports.profiling.claims import check_claims, claims
from reports.profiling.profile_index import profile_index
from reports.profiling.published_claims import CLAIMS
from reports.profiling.published_symbols import PUBLISHED
from results.profile import (
    AnatomyProfile,
    CollectorProfile,
    CompilerProfile,
    JitProfile,
    LineProfile,
    MemoryProfile,
    SymbolProfile,
)
from tests.reports import example_profiles
from tests.reports.example_profiles import CHILDREN, CREATION, GRADIENT, LADDER, NASTY, NEW, OLD, PYPY, WORKLOAD, cell

PAIR = (NEW, WORKLOAD)


def finding_of(claim, *profiles, pair=PAIR):
    return claim(profile_index(example_profiles.run(), profiles), pair)


def lined(engine, *found):
    return example_profiles.lines(cell(engine), *(example_profiles.line(source, cpu) for source, cpu in found))


def perf(engine, groups=None, interpreter=NEW, **shares):
    return example_profiles.symbols(cell(engine, interpreter), groups or {"evaluation loop": 1.0}, shares)


OTHERS = [(f"other {n}", 0.05) for n in range(5)]


@pytest.mark.parametrize(
    ("lines", "conclusion", "said"),
    [
        ([(CREATION, 0.3), (CHILDREN, 0.2), (GRADIENT, 0.1)], "holds", "the set of children is 2nd, 20 %"),
        ([(CHILDREN, 0.3), ("def __init__(self, data):", 0.2)], "holds", "making a Value is 2nd, 20 %"),
        ([(GRADIENT, 0.3), (CREATION, 0.2), (CHILDREN, 0.2)], "does not hold", f"a different one: “{GRADIENT}”"),
        ([(CREATION, 0.3), *OTHERS, (CHILDREN, 0.01)], "does not hold", "the set of children is not among the 5"),
        ([(CHILDREN, 0.3), (GRADIENT, 0.2)], "does not hold", "making a Value is not among the 5"),
        ([("class Value(Derived):", 0.3), (CHILDREN, 0.2)], "does not hold", "different one: “class Value(Derived):”"),
        ([(CREATION, 0.0)], "not seen", "no sample of CPU time"),
    ],
)
def test_allocation_is_hottest(lines, conclusion, said):
    finding = finding_of(allocation_is_hottest, lined("baseline", *lines))
    assert finding.conclusion == conclusion
    assert said in finding.figures + finding.reason


@pytest.mark.parametrize(
    ("share", "conclusion", "reason"),
    [
        (0.88, "holds", ""),
        (0.83, "holds", ""),
        (0.6, "does not hold", "27 points less than published; the largest other group is “sets” with 10 %; a step"),
        (0.93, "does not hold", "6 points more than published"),
    ],
)
def test_the_collectors_share(share, conclusion, reason):
    groups = {"garbage collector": share, "sets": (1 - share) / 4, "others": (1 - share) / 8}
    finding = finding_of(
        collector_takes_its_share, perf("baseline", groups), example_profiles.collector(cell("baseline"), 0.5)
    )
    assert finding.conclusion == conclusion
    assert reason in finding.reason
    assert bool(finding.reason) == (conclusion != "holds")
    assert "the interpreter reports 50 % of wall time" in finding.figures


THREE = {"gc_collect_main.lto_priv.0": 0.37, "deduce_unreachable": 0.28, "visit_reachable": 0.1}


@pytest.mark.parametrize(
    ("claim", "shares", "conclusion", "said"),
    [
        (collecting_function, THREE, "holds", "gc_collect_main 37 %"),
        (collecting_function, {**THREE, "gc_collect_main": 0.08}, "does not hold", "8 points more than published"),
        (collecting_function, {"collect.constprop.0": 0.35}, "holds", "collect 35 %"),
        (
            collecting_function,
            {"gc_collect_main": 0.6},
            "does not hold",
            "no samples in deduce_unreachable and visit_re",
        ),
        (collecting_function, {"gc_collect_young": 0.5}, "not seen", "largest function is gc_collect_young, 50 %"),
        (collecting_function, {}, "not seen", "gc_collect_main has too few samples"),
        (collecting_functions, THREE, "holds", "visit_reachable 10 % = 75 %"),
        (
            collecting_functions,
            {"gc_collect_main": 0.6, "visit_reachable": 0.12, "visit_decref": 0.1},
            "holds",
            "no samples in deduce_unreachable, which some builds inline into gc_collect_main; "
            "not counted, because the published build had inlined it: visit_decref 10 %",
        ),
        (collecting_functions, {"gc_collect_main": 0.4}, "does not hold", "35 points less than published"),
        (collecting_functions, {"visit_reachable": 0.1}, "not seen", "gc_collect_main has too few samples"),
    ],
)
def test_symbols_are_compared_with_symbols(claim, shares, conclusion, said):
    """The share of our own collector group does not matter."""
    finding = finding_of(claim, perf("baseline", {"garbage collector": 0.9, "others": 0.1}, **shares))
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


def test_the_published_symbols_are_sorted_and_add_up():
    assert [symbol.share for symbol in PUBLISHED] == sorted((symbol.share for symbol in PUBLISHED), reverse=True)
    assert sum(symbol.share for symbol in PUBLISHED) == pytest.approx(0.9135)


FORWARD = {"build": 0.2, "forward": 0.1, "collector": 0.7, "pauses": {"build": 0.6, "order": 0.1}}


@pytest.mark.parametrize(
    ("seconds", "conclusion", "said"),
    [
        (FORWARD, "holds", "takes 900 ms: building the graph 200 ms, forward 100 ms, collections meanwhile 600 ms"),
        ({"build": 0.1, "forward": 0.1}, "does not hold", "that is 0.20 times as long as published"),
        ({"build": 3.0}, "does not hold", "that is 3.0 times as long as published"),
    ],
)
def test_a_forward_pass_takes_a_second(seconds, conclusion, said):
    finding = finding_of(forward_pass_takes_a_second, example_profiles.anatomy(cell("baseline"), **seconds))
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


@pytest.mark.parametrize(
    ("seconds", "conclusion", "said"),
    [
        ({"order": 0.1, "backward": 0.1}, "holds", "200 ms, 22 % of the forward pass's time"),
        ({"order": 0.01}, "does not hold", "negligible"),
    ],
)
def test_a_backward_pass_comes_on_top(seconds, conclusion, said):
    parts = {**FORWARD, "pauses": {"build": 0.6}}
    finding = finding_of(backward_pass_comes_on_top, example_profiles.anatomy(cell("baseline"), **parts, **seconds))
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


ON_PYPY = (PYPY, WORKLOAD)


def steady(engine, seconds):
    return example_profiles.anatomy(cell(engine, PYPY), build=9.0, plain=seconds)


@pytest.mark.parametrize(
    ("profile", "conclusion", "said"),
    [
        (steady("baseline", 0.4), "holds", "2.50 images per second, 400 ms each, by anatomy"),
        (steady("baseline", 0.1), "does not hold", "that is 5.0 times as many as published"),
        (steady("baseline", 2.0), "does not hold", "that is 0.25 times as many as published"),
        (example_profiles.jit(cell("baseline", PYPY), last=0.5), "holds", "500 ms each, by jit"),
        (steady("hoisted", 0.4), "not seen", "anatomy did not run on baseline"),
    ],
)
def test_pypy_takes_a_couple_of_images_per_second(profile, conclusion, said):
    finding = finding_of(pypy_takes_a_couple_per_second, profile, pair=ON_PYPY)
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


@pytest.mark.parametrize(
    ("profiles", "conclusion", "said"),
    [
        ([steady("baseline", 0.4), steady("hoisted", 0.1)], "holds", "hoisted is 4.0 times as fast"),
        ([steady("baseline", 0.4), steady("hoisted", 0.3)], "does not hold", "less than 2 times as fast"),
        ([steady("baseline", 0.4)], "not seen", "anatomy did not run on hoisted"),
        (
            [steady("baseline", 0.4), example_profiles.jit(cell("hoisted", PYPY), last=0.01)],
            "not seen",
            "anatomy did not run on hoisted",
        ),
        (
            [
                example_profiles.jit(cell("baseline", PYPY), last=0.4),
                example_profiles.jit(cell("hoisted", PYPY), last=0.1),
            ],
            "holds",
            "by jit, a step of baseline takes 400 ms",
        ),
    ],
)
def test_hoisting_speeds_up_pypy_according_to_one_profiler(profiles, conclusion, said):
    finding = finding_of(hoisting_speeds_up_pypy, *profiles, pair=ON_PYPY)
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


@pytest.mark.parametrize(
    ("seconds", "slowest", "next_", "said"),
    [
        ({"order": 0.5, "collector": 0.2, "free": 0.2, "forward": 0.3}, "holds", "holds", "40 % of perf's samples"),
        ({"order": 0.3, "build": 0.4, "free": 0.1}, "does not hold", "does not hold", "building the graph takes more"),
        ({"order": 0.3, "rest": 0.4, "collector": 0.1}, "holds", "holds", "ordering takes 37 % of a step"),
    ],
)
def test_the_slowest_bits_of_hoisted(seconds, slowest, next_, said):
    profiles = example_profiles.anatomy(cell("hoisted"), **seconds), perf("hoisted", {"sets": 0.4, "others": 0.6})
    finding = finding_of(ordering_is_slowest_once_hoisted, *profiles)
    assert finding.conclusion == slowest
    assert said in f"{finding.figures} {finding.reason}"
    assert finding_of(collecting_values_comes_next, *profiles).conclusion == next_


@pytest.mark.parametrize(
    ("seconds", "conclusion", "said"),
    [
        ({"build": 0.2, "collector": 0.3, "order": 0.2, "backward": 0.3}, "holds", "recreating the graph takes 50 %"),
        ({"build": 0.9, "order": 0.05, "rest": 0.05}, "does not hold", "ordering the graph takes less than 10 %"),
        ({"build": 0.2, "order": 0.2, "backward": 0.6}, "does not hold", "takes more than both"),
    ],
)
def test_graph_and_order_are_the_pain_points(seconds, conclusion, said):
    finding = finding_of(graph_and_order_are_the_pain_points, example_profiles.anatomy(cell("baseline"), **seconds))
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


@pytest.mark.parametrize(
    ("profile", "conclusion", "said"),
    [
        (
            example_profiles.memory(cell("baseline"), *example_profiles.RISING),
            "holds",
            "from 70.0 MB in the first third to 130 MB",
        ),
        (example_profiles.memory(cell("baseline"), *example_profiles.SAW), "does not hold", "changes by +0.0 %"),
        (example_profiles.memory(cell("baseline"), 100, 100, 109, 109, 109, warm_up=0.0), "does not hold", "+9.0 %"),
        (example_profiles.memory(cell("baseline"), 100, 100, 112, 112, 112, warm_up=0.0), "holds", "112 B"),
        (
            example_profiles.memory(cell("baseline"), *example_profiles.RISING, steps=11),
            "not seen",
            "11 steps are too few",
        ),
        (example_profiles.memory(cell("baseline"), 5, warm_up=3.0), "not seen", "too few"),
    ],
)
def test_memory_goes_up(profile, conclusion, said):
    """Only a rising floor is a leak. A saw-tooth also rises all the time, but it falls again."""
    finding = finding_of(memory_goes_up, profile)
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


ZIP = "act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)"


@pytest.mark.parametrize(
    ("lines", "conclusion", "said"),
    [
        ([(CREATION, 0.3), (ZIP, 0.2)], "holds", "is 2nd, 20 %"),
        ([*OTHERS, (ZIP, 0.01)], "does not hold", "not among the 5 hottest"),
        ([(CREATION, 0.3)], "does not hold", "has no sample"),
        ([(CREATION, 0.0)], "not seen", "no sample of CPU time"),
    ],
)
def test_the_zip_in_the_neuron(lines, conclusion, said):
    finding = finding_of(zip_in_the_neuron_is_hot, lined("baseline", *lines))
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


PRODUCT = CREATION.replace("+", "*")


@pytest.mark.parametrize(
    ("sizes", "conclusion", "said"),
    [
        (
            {CREATION: 5.0, PRODUCT: 3.0, "x": 2.0},
            "holds",
            "+ is 1st of all, 50 %; the line that makes the Value of * is 2nd",
        ),
        ({CREATION: 5.0, "x": 3.0}, "does not hold", "no line that makes a Value of * is among the 5"),
        ({}, "not seen", "no allocation"),
    ],
)
def test_adding_and_multiplying_allocate(sizes, conclusion, said):
    lines = (example_profiles.line(source, 0.1, size) for source, size in sizes.items())
    finding = finding_of(adding_and_multiplying_allocate, example_profiles.lines(cell("baseline"), *lines))
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


@pytest.mark.parametrize(
    ("before", "after", "conclusion", "reason"),
    [
        ((CHILDREN, 0.3), (CREATION, 0.2), "holds", ""),
        ((CHILDREN, 0.3), (CREATION, 0.295), "does not hold", "another line takes the lead"),
        ((CREATION, 0.3), (CREATION, 0.5), "does not hold", "the same line leads both"),
    ],
)
def test_tuples_spread_the_profile(before, after, conclusion, reason):
    finding = finding_of(tuples_spread_the_profile, lined("baseline", before), lined("tuple", after))
    assert finding.conclusion == conclusion
    assert reason in finding.reason


@pytest.mark.parametrize(
    ("tuples", "slots", "conclusion", "said"),
    [
        ({"dict_traverse.lto_priv.0": 0.05}, {}, "holds", "dict_traverse: tuple 5.0 %, slots 0 %"),
        ({"PyObject_VisitManagedDict": 0.05}, {"PyObject_VisitManagedDict": 0.004}, "holds", "slots 0.4 %"),
        ({"dict_traverse": 0.04}, {"dict_traverse": 0.02}, "does not hold", "50 % of it is left in slots, 20 samples"),
        ({}, {}, "not seen", "in every variant. This CPython stores attributes in the object itself"),
        ({}, {"dict_traverse": 0.02}, "not seen", "in tuple, enough only in slots"),
    ],
)
def test_slots_remove_dictionaries(tuples, slots, conclusion, said):
    finding = finding_of(slots_remove_dictionaries, perf("tuple", **tuples), perf("slots", **slots))
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


def test_an_old_interpreter_still_has_dictionaries():
    profiles = (perf(engine, interpreter=OLD) for engine in LADDER)
    finding = finding_of(slots_remove_dictionaries, *profiles, pair=(OLD, WORKLOAD))
    assert finding.conclusion == "not seen"
    assert "in the object itself" not in finding.reason


@pytest.mark.parametrize(
    ("slots", "hoisted", "conclusion"),
    [(0.03, 0.001, "holds"), (0.03, 0.02, "does not hold"), (0.0, 0.0, "not seen")],
)
def test_hoisting_removes_functions(slots, hoisted, conclusion):
    profiles = perf("slots", func_traverse=slots), perf("hoisted", func_traverse=hoisted)
    assert finding_of(hoisting_removes_functions, *profiles).conclusion == conclusion


@pytest.mark.parametrize(
    ("last", "conclusion", "said"),
    [
        (
            {"garbage collector": 0.1, "evaluation loop": 0.4, "sets": 0.4},
            "holds",
            "-30 points from baseline",
        ),
        (
            {"garbage collector": 0.1, "evaluation loop": 0.2, "sets": 0.7},
            "does not hold",
            "in hoisted the group “sets”",
        ),
    ],
)
def test_the_architecture_stays(last, conclusion, said):
    first = perf("baseline", {"garbage collector": 0.5, "evaluation loop": 0.3, "others": 0.2})
    finding = finding_of(architecture_stays, first, perf("hoisted", last))
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


@pytest.mark.parametrize(
    ("profile", "conclusion", "said"),
    [
        ({}, "holds", "compiles python-source"),
        ({"aborts": {"trace too long": 44}}, "does not hold", "(trace too long 44)"),
        ({"loops": 0}, "does not hold", "no loop or bridge"),
    ],
)
def test_generated_python_is_compiled(profile, conclusion, said):
    found = example_profiles.jit(cell("python-source", PYPY), **profile)
    finding = finding_of(generated_python_is_compiled, found, pair=(PYPY, WORKLOAD))
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


def compiled(engine, fused=None, **passes):
    fields = {"fusable_forward": 40, "fusable_backward": 60, "fused_instructions": fused}
    return example_profiles.compiler(cell(engine), 9.0, 3, **passes).model_copy(update=fields)


@pytest.mark.parametrize(
    ("claim", "profile", "conclusion", "said"),
    [
        (arrays_are_slow_by_sroa, compiled(ARRAYS, SROAPass=0.7, GVN=0.2), "holds", "SROA takes 70 % of 9.00 s"),
        (
            arrays_are_slow_by_sroa,
            compiled(ARRAYS, DSEPass=0.6, SROAPass=0.1),
            "does not hold",
            "the largest pass is DSEPass, with 60 %",
        ),
        (fusing_is_unlikely, compiled(FUSING, 49), "holds", "40 sums forward and 60 backward"),
        (fusing_is_unlikely, compiled(FUSING, 50), "does not hold", "Clang fuses 50 % of them"),
        (fusing_is_unlikely, compiled(FUSING), "not seen", "an older profile counted nothing"),
    ],
)
def test_compiling_the_published_form(claim, profile, conclusion, said):
    finding = finding_of(claim, profile)
    assert finding.conclusion == conclusion
    assert said in f"{finding.figures} {finding.reason}"


@pytest.mark.parametrize(
    ("before", "after", "conclusion"),
    [(500, 0, "holds"), (500, 50, "holds"), (500, 200, "does not hold"), (0, 0, "not seen")],
)
def test_counting_frees_the_graph(before, after, conclusion):
    found = [
        example_profiles.collector(cell(name), 0.5, collected=n)
        for name, n in (("baseline", before), ("hoisted", after))
    ]
    finding = finding_of(counting_frees_the_graph, *found)
    assert finding.conclusion == conclusion
    assert "takes 50 % of wall time in baseline" in finding.figures


@pytest.mark.parametrize(
    "claim", [claim for claim in CLAIMS if claim.rule is not of_skybison], ids=lambda claim: claim.rule.__name__
)
def test_a_claim_without_profiles_gives_the_reason(claim):
    where = PYPY if claim.interpreters == "pypy" else NEW
    models = (LineProfile, SymbolProfile, CollectorProfile, JitProfile, AnatomyProfile, MemoryProfile, CompilerProfile)
    engines = (*example_profiles.run().engines, ARRAYS, FUSING)
    missing = [example_profiles.missing(model, cell(engine, where)) for model in models for engine in engines]
    finding = finding_of(claim.rule, *missing, pair=(where, WORKLOAD))
    assert (finding.conclusion, finding.figures) == ("not seen", "")
    assert finding.reason == "skipped: perf is not installed"
    nobody = finding_of(claim.rule, pair=(where, WORKLOAD))
    assert nobody.conclusion == "not seen"
    assert "did not run on" in nobody.reason


def test_each_claim_is_checked_on_its_own_interpreters(index):
    where = {one.claim.rule: [pair for pair, _ in one.findings] for one in check_claims(index)}
    assert where[allocation_is_hottest] == [(OLD, WORKLOAD), PAIR]
    assert where[generated_python_is_compiled] == [(PYPY, WORKLOAD)]
    assert where[graph_and_order_are_the_pain_points] == [(OLD, WORKLOAD), PAIR, (PYPY, WORKLOAD)]
    assert where[of_skybison] == [("Skybison", "mnist")]


def test_a_published_figure_applies_only_to_its_workload():
    where = example_profiles.cell("baseline", workload="xor")
    found = {
        one.claim.rule: one.findings
        for one in check_claims(profile_index(example_profiles.run(), [example_profiles.anatomy(where, build=1.0)]))
    }
    assert found[forward_pass_takes_a_second] == ()
    assert [pair for pair, _ in found[graph_and_order_are_the_pain_points]] == [(NEW, "xor")]


def test_the_summary_names_the_interpreters(index):
    text = analysis(index.run, index.profiles)
    assert text.startswith("# Do the published claims hold?\n\nFrom the profiles of run profiled")
    rows = re.findall(r"^\| (\d+)\. .* \| (.*) \|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(CLAIMS) + 1))
    summaries = {claim.rule: summary for claim, (_, summary) in zip(CLAIMS, rows, strict=True)}
    assert summaries[collecting_function] == f"not seen on {OLD}; holds on {NEW}"
    assert summaries[graph_and_order_are_the_pain_points] == f"not seen on {OLD}; holds on {NEW}, {PYPY}"
    assert summaries[generated_python_is_compiled] == f"does not hold on {PYPY}"
    assert summaries[of_skybison] == "cannot be tested here"
    assert text.count(f"\n- **{NEW}, {WORKLOAD}: holds**. Figures") == sum(f"holds on {NEW}" in one for _, one in rows)


def test_every_finding_has_its_own_line(index):
    lines = analysis(index.run, index.profiles).splitlines()
    assert sum(line.startswith("- **") for line in lines) == sum(len(one.findings) for one in check_claims(index))
    assert all(line.endswith(".") for line in lines if line.startswith("- **"))


def test_a_run_without_profiles():
    text = analysis(example_profiles.run(), [])
    of_others = [claim for claim in CLAIMS if claim.rule is of_skybison]
    assert text.count("No profile.") == len(CLAIMS) - len(of_others)
    assert text.count(": cannot be tested here**: Skybison is no longer maintained") == len(of_others) == 3
    assert not re.search(r"\*\*.*: (holds|does not hold|not seen)", text)
    assert claims(profile_index(example_profiles.run(), [])) is None


def test_a_hostile_reason_stays_text():
    text = analysis(example_profiles.run(), [example_profiles.missing(SymbolProfile, cell("baseline"), reason=NASTY)])
    assert "<script" not in text
    assert r"\`x\` \*y\*" in text
