"""Fixture for tests of the process boundary: a script in place of a worker."""

import sys

import pytest


@pytest.fixture
def stand_in(tmp_path):
    """`stand_in(text)`: a program that can be started as an interpreter but always runs this Python script."""

    def make(text):
        program = tmp_path / "stand-in"
        program.write_text(f"#!{sys.executable}\nimport json, os, signal, subprocess, sys, time\n{text}\n")
        program.chmod(0o755)
        return program

    return make
