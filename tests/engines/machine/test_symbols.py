"""Symbols for perf go into its map file, and into no other."""

import os

import pytest

from zoomgrad import engines
from zoomgrad.engines.machine import memory

pytestmark = pytest.mark.host


@pytest.fixture
def map_file(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "PERF_FOLDER", tmp_path)
    monkeypatch.setenv(memory.PERF_CONTROL, "on")
    return tmp_path / f"perf-{os.getpid()}.map"


def test_each_routine_has_a_symbol(map_file):
    engine = engines.load("rerolled-machine")
    engine.check()
    x, w = engine.Value(1.0), engine.Value(0.5)
    engine.compile((w * x - 1.0) ** 2, inputs=[x], parameters=[w])
    lines = [line.split(" ", 2) for line in map_file.read_text(encoding="ascii").splitlines()]
    assert {"machine code: values", "machine code: turn", "machine code: train()"} <= {name for *_, name in lines}
    places = [(int(start, 16), int(size, 16)) for start, size, _ in lines]
    assert all(start + size == after for (start, size), (after, _) in zip(places, places[1:]))


def test_no_link_is_followed(map_file, tmp_path):
    other = tmp_path / "other"
    other.write_text("", encoding="ascii")
    map_file.symlink_to(other)
    memory.write_symbols(4096, {"values": 0}, 8)
    map_file.unlink()
    os.link(other, map_file)
    memory.write_symbols(4096, {"values": 0}, 8)
    assert other.read_text(encoding="ascii") == ""
