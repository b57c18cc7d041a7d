"""Suites: read whole, or refused with the file, the key, what is wrong and what is allowed; and one gates an engine."""

import re
import subprocess
import sys

import pytest

from tests import own
from tests.harness.test_cli import RUNNING, kept_in
from zoomgrad.harness.cli.suites import table_of
from zoomgrad.harness.plan.suite import suite_of
from zoomgrad.results.compare import Limits
from zoomgrad.results.files import MOST_BYTES, Unreadable


def test_the_suite_of_the_page_is_read(tmp_path):
    own.write(tmp_path)
    file = tmp_path / "gate.toml"
    suite = suite_of(table_of(file), file)
    assert (suite.engine_file, suite.timeout, suite.gate) == (("engine.py",), 60.0, Limits())
    for other in ("[tool.other]", "tool = 3", "tool = [1]", "[tool]\nother = 1"):
        (tmp_path / "pyproject.toml").write_text(other)
        assert table_of(tmp_path / "pyproject.toml") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool]\nzoomgrad = {engine-file = ['absent.py']}", "absent.py: no such file\n  Correct the path"),
        ("#" + "x" * MOST_BYTES, "longer than"),
    ],
)
def test_a_project_with_a_bad_suite_fails(tmp_path, text, said):
    (tmp_path / "pyproject.toml").write_text(text)
    words = [sys.executable, "-m", "zoomgrad", "run"]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("engine = []", "engine: Extra inputs are not permitted"),
        ("engines = 'tcc'", "engines: Input should be a valid tuple"),
        ("engines = ['a,b']", "engines.0: "),
        ("blocks = 0", "blocks: Input should be greater than or equal to 1, not 0\n  docs/using.md shows"),
        ("blocks = true", "blocks: "),
        ("timeout = nan", "timeout: "),
        ("gate = 1", "gate: "),
        ("gate.slow-down = 1", "gate.slow_down: Extra"),
        ("gate.slowdown = 0", "gate.slowdown: Input should be greater"),
        ("x" * 10**5 + " = 1", "xxx"),
        ("[", "not valid TOML"),
        ("\ud800", "not valid TOML"),
    ],
)
def test_a_bad_suite_is_refused(tmp_path, text, said):
    file = tmp_path / "bad.toml"
    file.write_text(text, errors="surrogatepass")
    with pytest.raises(Unreadable) as refused:
        suite_of(table_of(file), file)
    assert str(refused.value).startswith(f"{file}: {said}")
    assert len(str(refused.value)) < 1000


def test_the_suite_of_the_page_gates_an_engine(tmp_path):
    """Limits are wider here: tests share their machine, and the slowed engine takes several times as long."""
    own.write(tmp_path)
    text = (
        own.suite()
        .replace("slowdown = 0.10", "slowdown = 0.50")
        .replace("reruns = 3", "reruns = 1")
        .replace("cpython-3.13", RUNNING)
    )
    (tmp_path / "gate.toml").write_text(text)

    def zoomgrad(command, *options):
        words = [sys.executable, "-m", "zoomgrad", command, "--suite", "gate.toml", *options]
        return subprocess.run(words, **kept_in(tmp_path), capture_output=True, text=True)

    missing = zoomgrad("check", "--run")
    assert missing.returncode == 2
    assert "baseline.jsonl.xz: no baseline run" in missing.stderr
    for made in zoomgrad("run"), zoomgrad("check", "--update"):
        assert made.returncode == 0, made.stdout + made.stderr
    passed = zoomgrad("check", "--run")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    (tmp_path / "engine.py").write_text(own.SLOWED)
    failed = zoomgrad("check", "--run")
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert re.search(r"(?m)^SLOWER +walk/", failed.stdout)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("baseline.jsonl.xz", "engine.py", "gate.toml", "measuring.lock", "runs")
    ]
