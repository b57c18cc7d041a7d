"""Engines are found from their files, in the ladder's order, without a third party."""

import subprocess
import sys

import pytest

import engines
from engines.api import UnknownName


def test_the_ladder():
    assert engines.names()[:6] == ("baseline", "tuple", "slots", "hoisted", "local-grads", "replay")
    for index, name in enumerate(engines.names()):
        engine = engines.load(name)
        assert engine.name == name
        assert engine.idea
        assert not engine.builds_on or engine.builds_on in engines.names()[:index]
        assert engine.strict == (engine.error_bound is None)


def test_an_unknown_engine_names_the_nearest():
    with pytest.raises(UnknownName) as error:
        engines.load("hoistd")
    assert str(error.value) == "there is no engine 'hoistd'\n  Did you mean hoisted?"


def test_listing_imports_no_third_party():
    code = (
        "import sys; before = set(sys.modules); import engines; engines.names();"
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before}"
        " & {'numpy', 'cffi', 'pyperf', 'torch', 'jax', 'rich', 'pydantic'}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
