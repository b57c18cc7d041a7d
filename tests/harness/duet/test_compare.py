"""A duet in progress: real processes once, then a scripted play, failing sides, time limits, layouts. No durations."""

import contextlib
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest

from harness.duet import compare, layout
from harness.duet.compare import Comparison, Place
from harness.worker.player import MOST_PADDINGS, Layout
from reports.duet import duet_table, markdown
from results.duet.blocks import Commit, Duet, Result
from results.files import Unreadable
from results.places import ROOT
from results.record import Cell

CELLS = tuple(Cell(engine=engine, interpreter="mine", workload="xor") for engine in ("tuple", "tcc"))


def comparison(play=compare.play, cells=CELLS[:1], places=ROOT, **changes):
    commit = Commit(name="a | b", sha="1" * 40)
    plan = {"within": 0.02, "budget_seconds": 1000, "seed": 3, "figures": ("step",), **changes}
    duet = Duet(id="d", created_at=datetime.now(UTC), command=(), base=commit, head=commit, cells=cells, **plan)
    sides = dict.fromkeys(("base", "head"), Place(places, {"mine": (sys.executable, False)}))
    clock = count(0, 3)
    until = duet.budget_seconds
    return Comparison(duet, sides, lambda line, found: None, play=play, clock=lambda: next(clock), until=until)


def scripted(ratio=1.0, bits="b", failing=()):
    """A play in which HEAD takes `ratio` times as long."""
    rng = random.Random(1)

    def play(job, limits):
        engine = job["sides"]["head"]["engine"]
        if engine in failing:
            return {"failed": f"no {engine} | here", "side": "head"}

        def side(factor, bits):
            seconds = [factor * rng.uniform(0.99, 1.01)] * 4
            return {"step_seconds": seconds, "processor_seconds": seconds, "waits": 0, "bits": bits}

        return {"steps": 8, "base": side(1.0, "b"), "head": side(ratio, bits)}

    return play


@pytest.fixture
def uncompiled(monkeypatch):
    """No compiler makes paddings, which no scripted play links."""
    monkeypatch.setattr(layout, "padding", lambda size: contextlib.nullcontext())


def result(done):
    return Result(duet=done.duet, blocks=tuple(done.blocks), absences=tuple(done.absences))


def test_a_real_block_of_two_processes(monkeypatch):
    monkeypatch.setattr("harness.duet.block.TURNS", 2)
    done = comparison(budget_seconds=1)
    done.measure()
    assert not done.absences
    (block,) = done.blocks
    assert block.base.bits == block.head.bits
    assert len(block.base.step_seconds) == len(block.head.processor_seconds) > 1
    assert block.layouts > 1
    assert block.base.layout == block.head.layout
    compare.refuse_hopeless(done)


def test_a_duet_ends_when_everything_is_known(uncompiled):
    done = comparison(scripted(1.05), CELLS)
    done.measure()
    table = duet_table(result(done))
    assert [row[0] for row in table.rows] == ["slower"] * 3
    assert table.failed
    assert 10 < len(done.blocks) < 60
    assert r"a \| b" in markdown(table)


def test_equal_commits_pass(uncompiled):
    done = comparison(scripted())
    done.measure()
    table = duet_table(result(done))
    assert ([row[0] for row in table.rows], table.failed, table.next) == (
        ["same within 2 %"],
        False,
        "Nothing is slower.",
    )


def test_the_time_limit_ends_a_duet_without_a_verdict(uncompiled):
    done = comparison(scripted(1.05), budget_seconds=20)
    done.measure()
    table = duet_table(result(done))
    assert table.rows[0][0].startswith("not known yet: ")
    assert "--budget" in table.next
    assert not table.failed


def test_an_interrupted_duet_goes_on_within_its_round_with_the_same_layouts(uncompiled):
    drawn = {}

    def recorded(name):
        def play(job, limits):
            drawn.setdefault(name, []).append((job["seed"], job["sides"]["head"]["engine"], job["steps"]))
            return scripted(2.0)(job, limits)

        return play

    whole = comparison(recorded("whole"), CELLS)
    whole.measure()
    for stop in (1, 2, 5):
        rest = comparison(recorded(f"after {stop}"), CELLS)
        rest = replace(rest, blocks=whole.blocks[:stop])
        rest.measure()
        assert drawn["whole"][:stop] + drawn[f"after {stop}"] == drawn["whole"]
        assert [(block.cell, block.block) for block in rest.blocks] == [
            (block.cell, block.block) for block in whole.blocks
        ]


def test_a_cell_that_fails_on_head_fails_and_stops_no_other(uncompiled):
    done = comparison(scripted(failing=["tcc"]), CELLS)
    done.measure()
    table = duet_table(result(done))
    assert table.failed
    assert [absence.side for absence in done.absences] == ["head"]
    assert any("no tcc | here" in line for line in table.lines)
    assert {block.cell for block in done.blocks} == {CELLS[0]}


def test_a_cell_that_fails_on_both_sides_is_not_the_heads_fault():
    for seed in range(2):  # HEAD is asked first with one of them
        done = comparison(cells=(Cell(engine="torch", interpreter="mine", workload="moons"),), seed=seed)
        done.measure()
        assert [absence.side for absence in done.absences] == ["both"]
        assert not duet_table(result(done)).failed


def test_a_cell_that_fails_on_an_unknown_side_fails(uncompiled):
    done = comparison(lambda job, limits: {"failed": "took longer than 600 s", "side": ""})
    done.measure()
    assert duet_table(result(done)).failed


def test_other_bits_fail_if_the_engine_promises_them(uncompiled):
    done = comparison(scripted(bits="c"))
    done.measure()
    assert duet_table(result(done)).failed
    assert not duet_table(result(done), strict=()).failed


@pytest.mark.parametrize(
    ("steps", "seconds"), [(8, None), (-1, [1.0]), (1, []), (1, [0.0]), (1, [float("nan")]), (1, ["x"])]
)
def test_a_reply_that_is_out_of_range_is_an_absence(steps, seconds, uncompiled):
    side = {"step_seconds": seconds, "bits": "b"}
    done = comparison(lambda job, limits: {"steps": steps, **({"base": side, "head": side} if seconds else {})})
    done.measure()
    assert (len(done.blocks), len(done.absences)) == (0, 1)
    with pytest.raises(Unreadable, match="has no result"):
        compare.refuse_hopeless(done)


def test_a_commit_that_does_not_build_gives_its_reason(tmp_path):
    (tmp_path / "engines").mkdir()
    (tmp_path / "engines/__init__.py").write_text("def broken(:\n")
    done = comparison(places=tmp_path)
    done.measure()
    with pytest.raises(Unreadable, match="SyntaxError"):
        compare.refuse_hopeless(done)


# Layouts


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


def test_objects_of_several_programs_are_not_mixed_up(tmp_path):
    made = Layout(drawn_job(tmp_path))
    (tmp_path / "unit_0.o").write_bytes(b"the last program's")
    with made.linking():
        for name in "ab":
            made.command(["ld", "-o", f"/{name}/program.so", f"/{name}/unit_0.o"], keeps=True)
    assert made._links == 2
    with made.linking(again=True):
        done = subprocess.run([sys.executable, "-c", "print(1)", "-c", "-o", "unit_0.o"], capture_output=True)
    assert done.stdout == b"1\n"


def drawn_job(folder):
    return {"link_seed": 5, "code_padding": "", "heap_objects": 3, "objects": str(folder)}


def test_layouts_differ_and_pad_code():
    one, other = (layout.draw(random.Random(seed)) for seed in (1, 2))
    assert one != other
    with layout.padding(one.code_bytes) as made:
        assert made is None or made.stat().st_size > one.code_bytes
