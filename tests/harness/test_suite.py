"""Suites: read whole, or refused with the file, the key, what is wrong and what is allowed; and one gates an engine."""

import os
import re
import subprocess
import sys

import pytest

from tests import own
from zoomgrad.harness.plan.suite import read_suite
from zoomgrad.reports.gate.limits import Limits
from zoomgrad.results.files import Unreadable

RUNNING = f"cpython-{sys.version_info[0]}.{sys.version_info[1]}"


def test_the_suite_of_the_page_is_read(tmp_path):
    own.write(tmp_path)
    suite = read_suite(tmp_path / "gate.toml")
    assert suite.values["engine-files"] == [tmp_path / "engine.py"]
    assert suite.values["time-limit"] == 60.0
    assert Limits(**suite.limits) == Limits()
    (tmp_path / "pyproject.toml").write_text("[tool.other]\n")
    assert read_suite(tmp_path / "pyproject.toml") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("engine = []", "there is no key engine\n  Allowed: preset, engines, "),
        ("engines = 'tcc'", 'engines = "tcc"\n  Allowed: a list of names'),
        ("engines = ['a,b']", "engines = "),
        ("engine-files = ['nowhere.py']", "engine-files = "),
        ("blocks = 0", "blocks = 0\n  Allowed: a whole number from 1 to 1000."),
        ("blocks = true", "blocks = true\n"),
        ("time-limit = nan", "time-limit = "),
        ("gate = 1", "gate = 1\n  Allowed: a table."),
        ("gate.slow-down = 1", "there is no key gate.slow-down\n  Allowed: slowdown, "),
        ("gate.slowdown = 0", "gate.slowdown = 0\n  Allowed: a share"),
        ("baseline-run = 'run.json'", "baseline-run = "),
        ("x" * 10**5 + " = 1", "there is no key xxx"),
        ("[", "not valid TOML"),
        ("\ud800", "not valid TOML"),
    ],
)
def test_a_bad_suite_is_refused(tmp_path, text, said):
    file = tmp_path / "bad.toml"
    file.write_text(text, errors="surrogatepass")
    with pytest.raises(Unreadable) as refused:
        read_suite(file)
    assert str(refused.value).startswith(f"{file}: {said}")
    assert len(str(refused.value)) < 1000


@pytest.mark.alone
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

    def check(*options):
        environment = {**os.environ, "ZOOMGRAD_RUNS": str(tmp_path / "runs"), "ZOOMGRAD_LOCK": str(tmp_path / "lock")}
        command = [sys.executable, "-m", "zoomgrad", "check", "--suite", "gate.toml", "--run", *options]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    missing = check()
    assert missing.returncode == 2
    assert "baseline.jsonl.xz: no baseline run" in missing.stderr
    made = check("--update")
    assert made.returncode == 0, made.stdout + made.stderr
    passed = check()
    assert passed.returncode == 0, passed.stdout + passed.stderr
    (tmp_path / "engine.py").write_text(own.SLOWED)
    failed = check()
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert re.search(r"(?m)^SLOWER +mine/", failed.stdout)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("baseline.jsonl.xz", "engine.py", "gate.toml", "lock", "runs")
    ]
