"""Layouts of a block's programs: what is linked, in which order, and what is not compiled again."""

import random

from zoomgrad.harness.compare import layout
from zoomgrad.harness.worker.player import MOST_PADDINGS, Layout


def test_a_link_gets_padding_first_and_its_objects_shuffled():
    made = Layout({"link_seed": 5, "code_padding": "/pad.o", "heap_objects": 3})
    objects = [f"/b/unit_{n}.o" for n in range(8)]
    changed = made.command(["ld", "-shared", "-o", "/b/program.so", *objects])
    paddings = changed.count("/pad.o")
    assert changed[: 4 + paddings] == ["ld", "-shared", "-o", "/b/program.so", *["/pad.o"] * paddings]
    assert 1 <= paddings <= MOST_PADDINGS
    assert sorted(changed[4 + paddings :]) == objects != changed[4 + paddings :]
    compiling = ["gcc", "-c", "-o", "/b/unit_0.o", "/b/unit_0.c"]
    assert made.command(compiling) is compiling
    assert made.command("gcc -o x.so y.o") == "gcc -o x.so y.o"


def test_another_layout_copies_what_was_linked_before(tmp_path):
    (tmp_path / "build").mkdir()
    (tmp_path / "kept").mkdir()
    linked = tmp_path / "build/unit_0.o"
    linked.write_bytes(b"object")
    made = Layout(drawn_job(tmp_path / "kept"))
    compiling = ["gcc", "-c", "-x", "c", "-", "-o", "/b/unit_0.o"]
    assert made._copying(compiling) is compiling
    made.command(["ld", "-o", "/b/program.so", str(linked)], keeps=True)
    kept = tmp_path / "kept/unit_0.o"
    assert kept.read_bytes() == b"object"
    assert made._copying(compiling) == ["cp", str(kept), "/b/unit_0.o"]


def drawn_job(folder):
    return {"link_seed": 5, "code_padding": "", "heap_objects": 3, "objects": str(folder)}


def test_layouts_differ_and_pad_code():
    one, other = (layout.draw(random.Random(seed)) for seed in (1, 2))
    assert one != other
    with layout.padding(one.code_bytes) as made:
        assert made is None or made.stat().st_size > one.code_bytes
