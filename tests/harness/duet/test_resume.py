"""A duet that was killed goes on: every block is on the disk, half a line is cut off, and no id is used twice."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from harness.run.lock import LOCK
from results.duet.blocks import Absence
from results.duet.log import FILE, Log
from results.files import Unreadable
from results.places import ROOT
from tests.results.test_duet import CELLS, blocks, duet

# The developer's uncommitted changes do not matter here.
SCRIPT = """
import sys
from harness.cli import main
from harness.duet import commits

commits.refuse_changes = lambda both: None
main()
"""


@pytest.fixture
def ab(tmp_path):
    """`ab(*arguments)`: options of `subprocess` that start `zoomgrad ab`."""
    environment = {
        **os.environ,
        "ZOOMGRAD_RUNS": str(tmp_path / "runs"),
        LOCK: str(tmp_path / "lock"),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "200",
    }
    return lambda *arguments: {"args": [sys.executable, "-c", SCRIPT, "ab", *arguments], "env": environment}


def test_a_killed_duet_goes_on_with_its_blocks(ab, tmp_path):
    plan = ("HEAD", "HEAD", "--engines", "tuple", "--workloads", "xor", "--no-instructions", "--no-compile-times")

    def stopped(number, lines, *arguments):
        """Send the signal when there are that many lines; return the duet's folder, its lines and the output."""
        process = subprocess.Popen(**ab(*arguments), stdout=subprocess.PIPE, text=True)
        while not (found := [*tmp_path.glob(f"runs/*/{FILE}")]) or found[0].read_bytes().count(b"\n") < lines:
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.02)
        process.send_signal(number)
        output = process.communicate(timeout=60)[0]
        return found[0].parent, found[0].read_bytes(), output

    folder, before, _ = stopped(signal.SIGKILL, 2, *plan, "--seed", "1")
    with (folder / FILE).open("ab") as file:
        file.write(b'{"block":{"cell":{"eng')
    folder, after, output = stopped(signal.SIGTERM, before.count(b"\n") + 1, "--resume", folder.name)
    assert f"Resume with: zoomgrad ab --resume {folder}" in output
    assert after.startswith(before)
    result = Log(folder).result()
    assert [block.block for block in result.blocks] == list(range(after.count(b"\n") - 1))
    assert len({block.steps for block in result.blocks}) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["main", "--resume", "x", "--no-instructions"], "BASE, --no-instructions: a duet that goes on keeps its plan"),
        (["--resume", "nowhere"], "nowhere: no duet of this name"),
        (["main"], "two commits are compared: BASE and HEAD"),
    ],
)
def test_what_would_have_no_effect_is_refused(arguments, said, ab):
    ended = subprocess.run(**ab(*arguments), capture_output=True, text=True, timeout=60)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 2)
    assert said in ended.stderr


def test_duets_of_one_second_have_folders_of_their_own(tmp_path):
    plan = duet().model_copy(update={"id": "2026-01-01T000000-ab"})
    made = [Log.create(plan, tmp_path) for _ in range(3)]
    assert [each.id for _, each in made] == [f"2026-01-01T000000-{rest}" for rest in ("ab", "2-ab", "3-ab")]
    assert [log.result().duet for log, _ in made] == [each for _, each in made]


def filled(folder, *more):
    log, _ = Log.create(duet(*CELLS), folder)
    for one in more:
        log.append(one)
    return log


def test_what_was_measured_is_read_back(tmp_path):
    three = blocks([1.0, 1.1, 1.2])
    lost = Absence(cell=CELLS[1], side="head", reason="no such engine")
    log = filled(tmp_path, *three, lost)
    (log.folder / FILE).open("ab").write(b"{half a line")
    found = Log.find(log.folder.name, tmp_path).result()
    assert (found.blocks, found.absences, found.spent_seconds) == (tuple(three), (lost,), 6.0)
    log.cut()
    log.append(blocks([1.0] * 4)[3])
    assert len(log.result().blocks) == 4


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[]", "line 2: not a line of a duet"),
        (b'{"run":{}}', "line 2: not a line of a duet"),
        (b"[" * 100_000, "line 2: not a line of a duet"),
        (b"\xff", "line 2: not a line of a duet"),
        (b'{"block":{}}', "line 2: cell: Field required"),
        ("the plan", "line 2: a duet's plan is on its first line"),
        ("a stranger's block", "not a cell of this duet"),
        ("a block twice", "there 2 times"),
        ("values without a partner", "line 2: the file as a whole: .* 3 values of base and 1 of head"),
    ],
)
def test_a_file_that_was_edited_is_refused(tmp_path, line, said):
    log = filled(tmp_path)
    (one,) = blocks([1.0])
    short = one.head.model_copy(update={"step_seconds": (1.0,)})
    lines = {
        "the plan": [duet()],
        "a stranger's block": blocks([1.0], CELLS[0].model_copy(update={"engine": "other"})),
        "a block twice": blocks([1.0]) * 2,
        "values without a partner": [one.model_copy(update={"head": short})],
    }
    for one in lines.get(line, ()):
        log.append(one)
    if isinstance(line, bytes):
        (log.folder / FILE).open("ab").write(line + b"\n")
    with pytest.raises(Unreadable, match=said) as refused:
        log.result()
    assert len(str(refused.value)) < 1000


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "stranger").mkdir()
    (tmp_path / "secret").write_text(json.dumps({}))
    (tmp_path / "stranger" / FILE).symlink_to(tmp_path / "secret")
    with pytest.raises(Unreadable, match="leads out of"):
        Log.find("stranger", tmp_path)
    with pytest.raises(Unreadable, match="no duet of this name"):
        Log.find("nowhere", tmp_path)
