"""Reading the gate's limits from [tool.zoomgrad.gate]."""

from pathlib import Path

import pytest

from zoomgrad.reports.gate.limits import Limits, read_limits
from zoomgrad.results.files import Unreadable


def limits(tmp_path, text):
    file = tmp_path / "pyproject.toml"
    file.write_text(text)
    return read_limits(file)


def test_missing_settings_have_defaults(tmp_path):
    assert limits(tmp_path, "") == limits(tmp_path, "[tool.zoomgrad.gate]\n") == Limits()
    assert read_limits(tmp_path / "none.toml") == Limits()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.zoomgrad.gate]\nslow-down = 0.2", "slow-down"),
        ("[tool.zoomgrad.gate]\nslowdown = 0", "slowdown"),
        ("[tool.zoomgrad.gate]\nslowdown = 'much'", "slowdown"),
        ("[tool", "pyproject.toml"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, text, said):
    with pytest.raises(Unreadable, match=said):
        limits(tmp_path, text)


def test_the_projects_own_limits_are_read():
    assert read_limits(Path("pyproject.toml")).slowdown > 0
