"""What tests of the process boundary share: a script that stands in for a worker."""

import sys

import pytest


@pytest.fixture
def stand_in(tmp_path):
    """`stand_in(text)`: a program that is started as the interpreter, and is this Python script."""

    def make(text):
        program = tmp_path / "stand-in"
        program.write_text(f"#!{sys.executable}\nimport json, os, signal, subprocess, sys, time\n{text}\n")
        program.chmod(0o755)
        return program

    return make
