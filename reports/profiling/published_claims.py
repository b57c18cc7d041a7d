"""What was published about micrograd's profile, claim by claim, and which rule decides each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reports.profiling.claim_rules.accounts import counting_frees_the_graph, generated_python_is_compiled
from reports.profiling.claim_rules.compiling import (
    ARRAYS,
    FEW,
    FUSING,
    GLOBALS,
    LONG,
    arrays_are_slow_by_sroa,
    fusing_is_unlikely,
    globals_are_slow_by_registers,
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
"""What the published figures are about."""


def is_variant(engine: str) -> bool:
    """Whether a claim about micrograd's variants speaks of the engine."""
    return engine in LADDER


@dataclass(frozen=True)
class Claim:
    """A published statement, the rule that decides it, and what it is about."""

    text: str
    criterion: str
    rule: Callable[[ProfileIndex, Pair], Finding]
    interpreters: Literal["cpython", "pypy", "all", "Skybison"] = "cpython"
    engines: Callable[[str], bool] = is_variant
    workload: str = ""
    """The only one that it can be tested on; empty: any."""


def _percent(part: float) -> str:
    return f"{100 * part:.2f} %"


_WITHIN = f"within {100 * TOLERANCE:.0f} points"
_TOGETHER = sum(map(published_share, COLLECTING))

CLAIMS = (
    Claim(
        "On CPython a forward pass of one image takes about a second.",
        "Holds where building the graph of baseline and computing it, with the collections that happen meanwhile, take "
        f"{SECOND:g} s within a factor of {ABOUT:g}.",
        forward_pass_takes_a_second,
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "A backward pass comes on top.",
        "Holds where ordering and computing gradients, with the collections that happen meanwhile, take at least "
        f"{share(ON_TOP)} of the forward pass.",
        backward_pass_comes_on_top,
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "On PyPy, a couple of images per second.",
        f"Holds where baseline, warmed up, takes {COUPLE:g} images per second within a factor of {ABOUT:g}, forward "
        "and backward.",
        pypy_takes_a_couple_per_second,
        "pypy",
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        "Hoisting the backward functions massively speeds up PyPy.",
        f"Holds where a warmed-up step of hoisted is at least {MASSIVE:g} times as fast as one of baseline, both by "
        "the same profiler.",
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
        "Tested on CPython: holds where ordering the graph is the largest part of a step of hoisted.",
        ordering_is_slowest_once_hoisted,
    ),
    Claim(
        "After that it is garbage collection from all the transient Values. (Said of Skybison.)",
        "Tested on CPython: holds where the collector and freeing by reference counting, together, are the largest "
        "part of a step of hoisted beside ordering. Skybison counts no references: its collector does both.",
        collecting_values_comes_next,
    ),
    Claim(
        "For all runtimes the pain points are recreating the graph, the topological sort, and interpreter overhead. "
        "(Published as a hypothesis.)",
        "Holds where recreating the graph of baseline (building it, collecting it, freeing it) and ordering it each "
        f"take at least {share(PAINFUL)} of a step, and together at least {share(MOST)}. What remains is computing in "
        "the interpreter.",
        graph_and_order_are_the_pain_points,
        "all",
    ),
    Claim(
        "There is a ton of overhead with the zip in Neuron.__call__. (Part of the same hypothesis.)",
        f"Holds where Scalene has its line among the {HOTTEST} hottest of baseline. What the line calls counts for the "
        "lines that it calls.",
        zip_in_the_neuron_is_hot,
    ),
    Claim(
        "Memory goes up and to the right.",
        f"Holds where the floor of memory, its least, is more than {share(GROWS)} higher in the last third of the time "
        "than in the first third after the warm-up, in baseline. Memory that goes up between two collections only is a "
        "saw-tooth, with a floor that stays.",
        memory_goes_up,
    ),
    Claim(
        "Scalene shows the allocation of Values and the set of children as the hottest lines of baseline.",
        f"Holds where the line with most CPU time makes a Value or the set, and both are among the {HOTTEST} hottest.",
        allocation_is_hottest,
    ),
    Claim(
        "Scalene shows a lot of + and * operations, because __add__ and __mul__ allocate a lot.",
        f"Holds where the lines of baseline that make their Values are both among the {HOTTEST} that allocate most.",
        adding_and_multiplying_allocate,
    ),
    Claim(
        f"perf shows {COLLECTING[0]} at {_percent(published_share(COLLECTING[0]))} of baseline.",
        f"Holds where that one symbol is {_WITHIN}.",
        collecting_function,
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        f"perf shows {', '.join(COLLECTING[:-1])} and {COLLECTING[-1]} at {_percent(_TOGETHER)} of baseline, together.",
        f"Holds where these symbols add up to that {_WITHIN}. Compilers inline the other two into {COLLECTING[0]} in "
        "some builds.",
        collecting_functions,
        workload=PUBLISHED_WORKLOAD,
    ),
    Claim(
        f"perf shows the garbage collector at {_percent(COLLECTOR_TOTAL)} of baseline: all symbols of the published "
        "table that belong to it.",
        f"Holds where our group of the collector's symbols is {_WITHIN}.",
        collector_takes_its_share,
        workload=PUBLISHED_WORKLOAD,
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
        is_generated,
    ),
    Claim(
        "Clang -O1 over the arrays takes forever, and it looks like SROA. (A note in the post's source.)",
        f"Holds where passes named SROA take at least {share(LONG)} of Clang's time over the published form.",
        arrays_are_slow_by_sroa,
        engines=ARRAYS.__eq__,
    ),
    Claim(
        "With a global for each value, register allocation takes a long time, but not forever. (The same note.)",
        f"Holds where register allocation takes at least {share(LONG)} of Clang's time.",
        globals_are_slow_by_registers,
        engines=GLOBALS.__eq__,
    ),
    Claim(
        "The code of x * y and of xy + z does not often stand together, so a C compiler is unlikely to fuse them.",
        "Holds where Clang, allowed to fuse, makes fewer multiply-add instructions of the published form than "
        f"{share(FEW)} of the sums that have a product among their operands.",
        fusing_is_unlikely,
        engines=FUSING.__eq__,
    ),
)
