"""Reading the gate's limits from [tool.zoomgrad.gate]."""

from pathlib import Path

import pytest

from reports.gate.limits import Limits, read_limits
from results.files import Unreadable
from results.record import Cell

CELL = Cell(engine="clang-O1", interpreter="pypy-3.9", workload="xor")


def limits(tmp_path, text):
    file = tmp_path / "pyproject.toml"
    file.write_text(text)
    return read_limits(file)


def test_missing_settings_have_defaults(tmp_path):
    assert limits(tmp_path, "") == limits(tmp_path, "[tool.zoomgrad.gate]\n") == Limits()
    assert read_limits(tmp_path / "none.toml") == Limits()


def test_the_last_matching_exemption_wins(tmp_path):
    found = limits(
        tmp_path,
        """
        [tool.zoomgrad.gate]
        slowdown = 0.2
        compile-growth = 0.4
        [[tool.zoomgrad.gate.cells]]
        match = "clang-*/*/*"
        slowdown = 0.3
        [[tool.zoomgrad.gate.cells]]
        match = "*/pypy-*/xor"
        slowdown = 0.5
        [[tool.zoomgrad.gate.cells]]
        match = "clang-*/*/mnist"
        compile-growth = 9.0
        """,
    )
    assert found.slowdown_of(CELL) == 0.5
    assert found.slowdown_of(CELL.model_copy(update={"interpreter": "cpython-3.13"})) == 0.3
    assert found.slowdown_of(CELL.model_copy(update={"engine": "tcc", "workload": "digits"})) == 0.2
    assert found.compile_growth_of(CELL) == 0.4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.zoomgrad.gate]\nslow-down = 0.2", "slow-down"),
        ("[tool.zoomgrad.gate]\nslowdown = 0", "slowdown"),
        ("[tool.zoomgrad.gate]\nslowdown = 'much'", "slowdown"),
        ("[[tool.zoomgrad.gate.cells]]\nslowdown = 0.2", "match"),
        ("[tool", "pyproject.toml"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, text, said):
    with pytest.raises(Unreadable, match=said):
        limits(tmp_path, text)


def test_the_projects_own_limits_are_read():
    assert read_limits(Path("pyproject.toml")).slowdown > 0
