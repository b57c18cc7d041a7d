"""The published claims about micrograd's profile, each with the rule that decides it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reports.profiling.claim_rules.accounts import counting_frees_the_graph, generated_python_is_compiled
from reports.profiling.claim_rules.compiling import (
    ARRAYS,
    FEW,
    FUSING,
    LONG,
    arrays_are_slow_by_sroa,
    fusing_is_unlikely,
)
from reports.profiling.claim_rules.finding import ABOUT, LADDER, MARGIN, REMAINS, TOLERANCE, Finding, of_skybison
from reports.profiling.claim_rules.lines import (
    adding_and_multiplying_allocate,
    allocation_is_hottest,
    tuples_spread_the_profile,
    zip_in_the_neuron_is_hot,
)
from reports.profiling.claim_rules.memory import GROWS, memory_goes_up
from reports.profiling.claim_rules.steps import (
    COUPLE,
    MASSIVE,
    MOST,
    ON_TOP,
    PAINFUL,
    SECOND,
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
from reports.profiling.hottest import HOTTEST
from reports.profiling.jit import is_generated
from reports.profiling.profile_index import Pair, ProfileIndex
from reports.profiling.published_symbols import COLLECTING, COLLECTOR_TOTAL, published_share
from reports.text.figures import share

PUBLISHED_WORKLOAD = "mnist"
"""Workload of the published figures."""


def is_variant(engine: str) -> bool:
    """Whether the engine is one of micrograd's published variants."""
    return engine in LADDER


@dataclass(frozen=True)
class Claim:
    """A published statement, the rule that decides it, and the interpreters, engines and workload that it concerns."""

    text: str
    criterion: str
    rule: Callable[[ProfileIndex, Pair], Finding]
    interpreters: Literal["cpython", "pypy", "all", "Skybison"] = "cpython"
    engines: Callable[[str], bool] = is_variant
    workload: str = ""
    """The only workload on which the claim can be tested; empty: any."""


def _percent(part: float) -> str:
    return f"{100 * part:.2f} %"


_WITHIN = f"within {100 * TOLERANCE:.0f} points"
_TOGETHER = sum(map(published_share, COLLECTING))

CLAIMS = (
    Claim(
        "On CPython a forward pass of one image takes about a second.",
        f"Holds if baseline takes {SECOND:g} s, within a factor of {ABOUT:g}, to build and compute its graph, "
        "including collections meanwhile.",
        forward_pass_takes_a_second,
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "A backward pass comes on top.",
        "Holds if ordering the graph and computing gradients, including collections meanwhile, takes at least "
        f"{share(ON_TOP)} of the time of the forward pass.",
        backward_pass_comes_on_top,
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "On PyPy, a couple of images per second.",
        f"Holds if warmed-up baseline processes {COUPLE:g} images per second, within a factor of {ABOUT:g}, forward "
        "and backward.",
        pypy_takes_a_couple_per_second,
        "pypy",
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "Hoisting the backward functions massively speeds up PyPy.",
        f"Holds if a warmed-up step of hoisted is at least {MASSIVE:g} times as fast as one of baseline, both by the "
        "same profiler.",
        hoisting_speeds_up_pypy,
        "pypy",
    ),
    Claim(
        "Skybison is way faster than both CPython and PyPy.",
        "Needs Skybison.",
        of_skybison,
        "Skybison",
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "On Skybison creating functions is the major pain point, and hoisting the backward functions removes it.",
        "Needs Skybison.",
        of_skybison,
        "Skybison",
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "With hoisted functions PyPy becomes faster than Skybison.",
        "Needs Skybison.",
        of_skybison,
        "Skybison",
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "Once functions are hoisted, the set lookup of the topological sort is the slowest bit. (Said of Skybison.)",
        "Tested on CPython: holds if ordering the graph is the largest part of a step of hoisted.",
        ordering_is_slowest_once_hoisted,
    ),
    Claim(
        "After that it is garbage collection from all the transient Values. (Said of Skybison.)",
        "Tested on CPython: holds if the collector and freeing by reference counting are together the largest part of "
        "a step of hoisted after ordering. Skybison has no reference counting: its collector does both.",
        collecting_values_comes_next,
    ),
    Claim(
        "For all runtimes the pain points are recreating the graph, the topological sort, and interpreter overhead. "
        "(Published as a hypothesis.)",
        "Holds if recreating baseline's graph (building, collecting and freeing it) and ordering it each take at least "
        f"{share(PAINFUL)} of a step, and together at least {share(MOST)}. The rest is computing in the interpreter.",
        graph_and_order_are_the_pain_points,
        "all",
    ),
    Claim(
        "There is a ton of overhead with the zip in Neuron.__call__. (Part of the same hypothesis.)",
        f"Holds if Scalene ranks its line among the {HOTTEST} hottest of baseline. Time in called functions counts for "
        "their own lines.",
        zip_in_the_neuron_is_hot,
    ),
    Claim(
        "Memory goes up and to the right.",
        f"Holds if baseline's memory floor (the least memory) is more than {share(GROWS)} higher in the last third of "
        "the time after the warm-up than in the first. Memory that rises only between collections is a sawtooth with a "
        "constant floor.",
        memory_goes_up,
    ),
    Claim(
        "Scalene shows the allocation of Values and the set of children as the hottest lines of baseline.",
        f"Holds if the line with the most CPU time makes a Value or the set, and both are among the {HOTTEST} hottest.",
        allocation_is_hottest,
    ),
    Claim(
        "Scalene shows a lot of + and * operations, because __add__ and __mul__ allocate a lot.",
        f"Holds if the two lines of baseline that make their Values are among the {HOTTEST} that allocate most.",
        adding_and_multiplying_allocate,
    ),
    Claim(
        f"perf shows {COLLECTING[0]} at {_percent(published_share(COLLECTING[0]))} of baseline.",
        f"Holds if the share of this one symbol is {_WITHIN}.",
        collecting_function,
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        f"perf shows {', '.join(COLLECTING[:-1])} and {COLLECTING[-1]} at {_percent(_TOGETHER)} of baseline, together.",
        f"Holds if the sum of these symbols is {_WITHIN}. In some builds compilers inline the other two into "
        f"{COLLECTING[0]}.",
        collecting_functions,
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        f"perf shows the garbage collector at {_percent(COLLECTOR_TOTAL)} of baseline: all symbols of the published "
        "table that belong to it.",
        f"Holds if our group of the collector's symbols is {_WITHIN}.",
        collector_takes_its_share,
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "Children in a tuple spread the profile.",
        f"Holds if the largest line's share falls from baseline to tuple by {100 * MARGIN:.0f} point or more.",
        tuples_spread_the_profile,
    ),
    Claim(
        "Slots remove dict_traverse.",
        "Holds if the functions that walk attribute dictionaries (dict_traverse, PyObject_VisitManagedDict) have "
        f"samples in tuple, and in slots at most {share(REMAINS)} of that share.",
        slots_remove_dictionaries,
    ),
    Claim(
        "Hoisting the backward functions removes func_traverse.",
        f"Holds if func_traverse has samples in slots, and in hoisted at most {share(REMAINS)} of that share. A "
        "profile keeps its most frequent functions; a function not among them counts as 0 %.",
        hoisting_removes_functions,
    ),
    Claim(
        "None of it changes the architecture: collecting garbage and evaluating bytecode stay dominant.",
        "Holds if the collector and the evaluation loop together are larger than any other group, in every variant.",
        architecture_stays,
    ),
    Claim(
        "Without closures, reference counting frees the graph. (Our own: a closure and its Value are a cycle.)",
        f"Holds if hoisted leaves at most {share(REMAINS)} as many objects to the collector as baseline does.",
        counting_frees_the_graph,
    ),
    Claim(
        "PyPy compiles the generated Python. (Published as a question: or does it blow the trace limit?)",
        "Holds if loops or bridges were compiled and no trace reached the length limit.",
        generated_python_is_compiled,
        "pypy",
        is_generated,
    ),
    Claim(
        "Clang -O1 over the arrays takes forever, and it looks like SROA. (A note in the post's source.)",
        f"Holds if passes named SROA take at least {share(LONG)} of Clang's time on the published form.",
        arrays_are_slow_by_sroa,
        engines=ARRAYS.__eq__,
    ),
    Claim(
        "The code of x * y is not often next to that of xy + z, so a C compiler is unlikely to fuse them.",
        "Holds if Clang, when allowed to fuse, generates fewer multiply-add instructions for the published form than "
        f"{share(FEW)} of the sums with a product among their operands.",
        fusing_is_unlikely,
        engines=FUSING.__eq__,
    ),
)
