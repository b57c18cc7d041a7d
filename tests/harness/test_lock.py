"""The lock that allows one timing run per machine: its holder, waiting runs, and a hostile /tmp."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.run import lock
from harness.run.lock import LOCK, Busy, lock_file, locked

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the lock needs POSIX")

HOLDER = (
    "import time; from harness.run.lock import locked\n"
    "with locked(['zoomgrad', 'run', '--preset', 'full']):\n    print('held', flush=True); time.sleep(600)"
)


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCK, str(tmp_path / "measuring.lock"))
    return tmp_path / "measuring.lock"


@pytest.fixture
def holder(file):
    """Another process, which holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_without_the_variable_the_file_is_the_same_for_every_checkout_and_user(monkeypatch):
    monkeypatch.delenv(LOCK)
    before = lock_file()
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    monkeypatch.setenv("HOME", "/elsewhere")
    monkeypatch.chdir("/")
    assert lock_file() == before
    assert before.is_absolute()
    assert not before.is_relative_to(ROOT)


def test_a_second_run_learns_who_holds_the_lock(holder):
    with pytest.raises(Busy) as busy, locked(["zoomgrad"]):
        pass
    said = str(busy.value)
    assert said.startswith(f"pid {holder.pid} (")
    assert f"`zoomgrad run --preset full` in {ROOT})" in said
    assert ", since " in said


def test_the_lock_is_released_when_its_holder_is_killed(holder):
    holder.kill()
    holder.wait()
    with locked(["zoomgrad"]):
        pass


def test_a_waiting_run_is_notified_once_and_gets_the_lock(holder):
    told = []

    def waiting(who):
        told.append(who)
        holder.kill()

    with locked(["zoomgrad"], waiting=waiting):
        pass
    assert len(told) == 1
    assert f"pid {holder.pid}" in told[0]


def test_the_file_stays_and_is_empty_when_the_lock_is_free(file):
    with locked(["zoomgrad", "check"]):
        assert json.loads(file.read_text())["pid"] == os.getpid()
        inode = file.stat().st_ino
    assert file.read_text() == ""
    with locked(["zoomgrad"]):
        assert file.stat().st_ino == inode


def test_every_user_may_lock_the_file(file):
    before = os.umask(0o077)
    try:
        with locked(["zoomgrad"]):
            pass
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o666


def test_a_read_only_file_can_be_locked(file, monkeypatch):
    """Another user may have created it with a strict umask."""
    file.write_text("old")
    file.chmod(0o444)
    opened, open_ = [], os.open

    def as_another_user(path, flags, *mode):  # root may write anything
        if path == file and flags & os.O_RDWR:
            raise PermissionError
        opened.append(flags)
        return open_(path, flags, *mode)

    monkeypatch.setattr(lock.os, "open", as_another_user)
    with locked(["zoomgrad"]), pytest.raises(Busy), locked(["zoomgrad"]):
        pass
    assert file.read_text() == "old"


def test_workers_do_not_inherit_the_lock(file):
    with locked(["zoomgrad"]):
        ours = [
            int(entry.name)
            for entry in Path("/dev/fd").iterdir()
            if entry.exists() and entry.name.isdigit() and os.path.samestat(entry.stat(), file.stat())
        ]
        assert ours
        assert not any(os.get_inheritable(number) for number in ours)


def test_a_link_is_not_followed(file, tmp_path):
    (tmp_path / "precious").write_text("precious")
    file.symlink_to(tmp_path / "precious")
    with pytest.raises(OSError), locked(["zoomgrad"]):
        pass
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_file_with_two_names_is_not_written(file, tmp_path):
    (tmp_path / "precious").write_text("precious")
    file.hardlink_to(tmp_path / "precious")
    with locked(["zoomgrad"]):
        pass
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "folder"])
def test_a_special_file_is_neither_waited_for_nor_locked(file, make):
    make(file)
    with pytest.raises(OSError), locked(["zoomgrad"]):
        pass


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[" * 4096,
        "{}",
        '{"pid": 1}',
        "\x00" * 4096,
        '"text"',
        json.dumps(dict.fromkeys(("pid", "user", "since", "command", "folder"), "\x1b[2J\n" + "x" * 10_000)),
    ],
)
def test_malformed_facts_of_a_holder_are_ignored(file, holder, text):
    file.write_text(text)
    with pytest.raises(Busy) as busy, locked(["zoomgrad"]):
        pass
    assert str(busy.value) == ""


def test_facts_of_a_holder_are_shown_as_plain_text(file, holder):
    facts = dict.fromkeys(("pid", "user", "since", "command", "folder"), "\x1b[2J[red]\n‮" + "x" * 300)
    file.write_text(json.dumps(facts))
    with pytest.raises(Busy) as busy, locked(["zoomgrad"]):
        pass
    assert str(busy.value).isprintable()
    assert len(str(busy.value)) < 1200


def test_a_waiting_run_locks_the_new_file_if_the_old_one_was_removed(file, holder):
    def waiting(who):
        file.unlink()
        holder.kill()

    with locked(["zoomgrad"], waiting=waiting):
        assert json.loads(file.read_text())["pid"] == os.getpid()
        with pytest.raises(Busy), locked(["zoomgrad"]):
            pass
