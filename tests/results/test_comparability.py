"""Whether two runs have the same machine, settings and tools."""

import pytest

from tests.harness.runs import run as made
from zoomgrad.results.comparability import same_machine, unlike_settings, unlike_tools
from zoomgrad.results.record import InterpreterFacts, Settings

HERE = {"processor": "a", "cores": "2", "architecture": "x86_64", "system": "Linux 6.1"}


def run(machine=HERE, interpreters=(), **settings):
    facts = {name: InterpreterFacts(version=version) for name, version in interpreters}
    return made("run", machine=machine, interpreters=facts, settings=Settings(**settings))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({}, True),
        ({"system": "Linux 6.2"}, True),
        ({"gcc": "13.1.0"}, True),
        ({"system": "Darwin 23.1"}, False),
        ({"processor": "b"}, False),
        ({"cores": "4"}, False),
    ],
)
def test_a_different_kernel_does_not_make_a_different_machine(other, same):
    assert same_machine(HERE, HERE | other) is same


def test_machines_without_facts_are_not_the_same():
    assert not same_machine({}, {})


def test_settings_that_change_figures_are_named():
    assert unlike_settings(run(values=3), run(values=3, timeout_seconds=9.0)) == []
    assert unlike_settings(run(values=3), run(values=8)) == ["values 3, not 8"]


def test_tools_whose_versions_differ_are_named():
    ours = run(machine=HERE | {"gcc": "12.2.0", "tcc": "0.9.27"}, interpreters=[("cpython-3.13", "3.13.1")])
    theirs = run(machine=HERE | {"gcc": "13.1.0", "clang": "19"}, interpreters=[("cpython-3.13", "3.13.2")])
    assert unlike_tools(ours, theirs) == ["cpython-3.13 3.13.1, not 3.13.2", "gcc 12.2.0, not 13.1.0"]
    assert unlike_tools(ours, ours) == []
