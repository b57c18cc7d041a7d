"""Facts of the machine and its checkout, even if git is absent or misbehaves."""

import os

import pytest

from tests.engines.test_asking import script
from zoomgrad.harness.machine import facts


def test_the_commit_is_marked_if_files_differ(git, tmp_path):
    assert facts.commit(git.folder) == git("rev-parse", "--short=12", "HEAD").strip()
    git.file.write_text("changed")
    assert facts.commit(git.folder).endswith("+")
    assert facts.commit(tmp_path) == ""


def test_reading_the_commit_runs_no_program_of_the_checkouts_settings(git, tmp_path):
    script(tmp_path / "watcher", f'touch "{tmp_path}/ran"')
    git("config", "core.fsmonitor", str(tmp_path / "watcher"))
    (tmp_path / "ran").unlink(missing_ok=True)
    assert facts.commit(git.folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["exit 1", "exec sleep 1000", r"printf '\377\376'", "exec yes", "echo '<b>'"])
def test_a_git_that_misbehaves_gives_no_commit(git, tmp_path, monkeypatch, text):
    monkeypatch.setattr(facts, "GIT_SECONDS", 0.5)
    monkeypatch.setattr(facts, "GIT_BYTES", 1 << 20)
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin" / "git", text)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), "/usr/bin", "/bin"]))
    assert facts.commit(git.folder) == ""
