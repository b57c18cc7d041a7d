"""The engine of docs/using.md is proved and refused as the page shows, in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import usable
from tests.test_additions import LEFT_OUT

pytestmark = pytest.mark.host

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "using.md").read_text(encoding="utf-8").partition("## Your own engine\n")[2]
LISTINGS = dict(re.findall(r"(?ms)^<!-- listing: (\w+) -->\n```\w*\n(.*?)^```$", PAGE))
PROOF, *_ = re.findall(r"(?m)^zoomgrad (run .*)$", PAGE)
(ENGINE,) = re.findall(r'(?ms)^```python\n(""".*?)^```$', PAGE)
SHOWN, RUNNING = "cpython-3.13", f"cpython-{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with the page's engine."""
    usable("tcc")
    folder = tmp_path_factory.mktemp("tutorial") / "project"
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True)
    (ROOT / ".zoomgrad").mkdir(exist_ok=True)
    (folder / ".zoomgrad").symlink_to(ROOT / ".zoomgrad")  # environments of interpreters
    write(folder, ENGINE)
    return folder


def write(project, text):
    """Save the engine where the page says."""
    (project / re.search(r"Save it as\s`(\S+)`", PAGE)[1]).write_text(text, encoding="utf-8")


def zoomgrad(project, command):
    """Run the command of the page in the copy, on this interpreter."""
    words = command.replace(SHOWN, RUNNING).split()
    environment = {**os.environ, "ZOOMGRAD_LOCK": str(project / "lock"), "COLUMNS": "120"}
    started = [sys.executable, "-m", "zoomgrad", *words]
    return subprocess.run(started, cwd=project, env=environment, capture_output=True, text=True, timeout=300)


def untimed(text):
    """The lines of a text, without durations, and with one space where there are several."""
    text = re.sub(r"\b[\d.]+ (ns|µs|ms|s)\b", "TIME", text.replace(SHOWN, RUNNING))
    return [" ".join(line.split()) for line in text.splitlines()]


def check_shown(listing, printed):
    """Every line of the listing was printed, in its order."""
    lines = iter(untimed(printed))
    for line in untimed(LISTINGS[listing]):
        assert line in lines, printed


def test_the_engine_is_proved(project):
    done = zoomgrad(project, PROOF)
    assert done.returncode == 0, done.stderr
    check_shown("proved", done.stdout)


def test_the_broken_engine_is_refused(project):
    right, wrong = (line[1:] for line in LISTINGS["mistake"].splitlines())
    assert ENGINE.count(right) == 1
    write(project, ENGINE.replace(right, wrong))
    done = zoomgrad(project, PROOF)
    write(project, ENGINE)
    assert done.returncode == 1
    check_shown("refused", done.stdout)
    assert "0 of 1 cell measured." in done.stdout
