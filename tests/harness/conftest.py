"""Fixtures for tests of the process boundary, and a git repository."""

import subprocess
import sys

import pytest

from zoomgrad.harness.worker.vouch import vouch


@pytest.fixture
def stand_in(tmp_path):
    """`stand_in(text)`: a program that can be started as an interpreter but always runs this Python script."""

    def make(text):
        program = tmp_path / "stand-in"
        program.write_text(f"#!{sys.executable}\nimport json, os, signal, subprocess, sys, time\n{text}\n")
        program.chmod(0o755)
        return program

    return make


@pytest.fixture(scope="session")
def evidence(tmp_path_factory):
    """Folder of `tuple`'s evidence on xor: stretches of at most 64 steps from three starts."""
    folder = tmp_path_factory.mktemp("evidence")
    job = {"engine": "tuple", "workload": "xor", "witnesses": {}, "folder": str(folder)}
    assert vouch({**job, "seconds": 1e9, "steps": 64, "starts": 3})["status"] == "measured"
    return folder


@pytest.fixture
def git(tmp_path):
    """`git(*arguments)`: run git in `git.folder`, a repository whose branch `main` has two commits of `git.file`."""

    def run(*arguments):
        identity = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=run.folder, check=True, capture_output=True, text=True).stdout

    run.folder = tmp_path / "clone"
    run.file = run.folder / "zoomgrad/engines/__init__.py"
    run.file.parent.mkdir(parents=True)
    run("init", "--quiet", "--initial-branch=main")
    for text in ("first", "second"):
        run.file.write_text(f"{text}\n")
        run("add", ".")
        run("commit", "--quiet", f"--message={text}")
    return run
