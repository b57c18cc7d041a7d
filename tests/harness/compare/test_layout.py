"""How a player links."""

from zoomgrad.harness.compare import block
from zoomgrad.harness.worker.player import MOST_PADDINGS, Layout


def made(**draw):
    return Layout({"link_seed": 5, "code_padding": "", **draw})


def test_a_link_gets_padding_first_and_its_objects_shuffled():
    padded = made(code_padding="/pad.o")
    objects = [f"/b/unit_{n}.o" for n in range(8)]
    changed = padded.changed(["ld", "-shared", "-o", "/b/program.so", *objects])
    paddings = changed.count("/pad.o")
    assert changed[: 4 + paddings] == ["ld", "-shared", "-o", "/b/program.so", *["/pad.o"] * paddings]
    assert 1 <= paddings <= MOST_PADDINGS
    assert sorted(changed[4 + paddings :]) == objects != changed[4 + paddings :]
    compiling = ["gcc", "-c", "-o", "/b/unit_0.o", "/b/unit_0.c"]
    assert padded.changed(compiling) is compiling
    assert padded.changed("gcc -o x.so y.o") == "gcc -o x.so y.o"


def test_padding_is_code():
    with block.padding(block.CODE_ALIGNMENT) as made:
        assert made is None or made.stat().st_size > block.CODE_ALIGNMENT
