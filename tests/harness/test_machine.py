"""Facts of the machine and its checkout, even if git is absent or misbehaves."""

import os
import subprocess

import pytest

from tests.engines.test_asking import script
from zoomgrad.harness.machine import facts


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*arguments):
        identity = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
        ).stdout

    git("init", "--quiet")
    (folder / "file").write_text("one")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    return folder, git


def test_the_commit_is_marked_if_files_differ(repository, tmp_path):
    folder, git = repository
    assert facts.commit(folder) == git("rev-parse", "--short=12", "HEAD").strip()
    (folder / "file").write_text("two")
    assert facts.commit(folder).endswith("+")
    assert facts.commit(tmp_path) == ""


def test_reading_the_commit_runs_no_program_of_the_checkouts_settings(repository, tmp_path):
    folder, git = repository
    script(folder.parent / "watcher", f'touch "{tmp_path}/ran"')
    git("config", "core.fsmonitor", str(folder.parent / "watcher"))
    (tmp_path / "ran").unlink(missing_ok=True)
    assert facts.commit(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["exit 1", "exec sleep 1000", r"printf '\377\376'", "exec yes", "echo '<b>'"])
def test_a_git_that_misbehaves_gives_no_commit(repository, tmp_path, monkeypatch, text):
    monkeypatch.setattr(facts, "GIT_SECONDS", 0.5)
    monkeypatch.setattr(facts, "GIT_BYTES", 1 << 20)
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin" / "git", text)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), "/usr/bin", "/bin"]))
    assert facts.commit(repository[0]) == ""
