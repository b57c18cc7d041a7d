"""A small share of each fault kind finds no failures, and each kind finds the faults that are planted for it."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from datasets.idx import CorruptData
from faults.kinds import Batch, disks, engines, graphs, inputs, kills, sanitizers
from faults.mutate import damage_bytes, damage_json
from faults.planted.misbehaving.every_way import ENGINES, EXPECTED
from faults.tally import Tally
from harness.machine.environments import NoEnvironment
from tests.engines.compiled.compiling import usable

ROOT = Path(__file__).parents[2]


@pytest.fixture
def batch(tmp_path):
    return Batch(0, 1, tmp_path)


def alone(text, *arguments):
    """Run the text in a separate process that adopts orphans, which the tests' process must not do."""
    command = [
        sys.executable,
        "-c",
        f"from harness.containment.descendants import adopt_orphans; adopt_orphans(); {text}",
        *arguments,
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def environment():
    """Make the harness's environment, in which victims run; skip the tests where that is impossible."""
    made = alone("from faults.sandbox import interpreter; print(interpreter())")
    if NoEnvironment.__name__ in made.stderr:
        pytest.skip("no worker environment can be made here")
    assert made.returncode == 0, made.stderr


TRY = """
import sys; from pathlib import Path; from random import Random
from faults.kinds import kills; from faults.tally import Tally
kills.TARGETS, kills.ENGINES, kills.AGAIN = ("harness",), ("tuple",), 0.0
tally = Tally(); kills._try(Path(sys.argv[1]), Random(3), 3.0, tally, "kill"); print(tally.failures, tally.notes)
"""


@pytest.mark.skipif(bool(kills.lacks()), reason=kills.lacks())
def test_a_killed_run_is_completed(environment, tmp_path):
    said = alone(f"exec({TRY!r})", str(tmp_path))
    assert said.stdout.startswith("0 "), said.stdout + said.stderr


MISBEHAVE = """
import sys; from pathlib import Path
from faults.kinds import engines; from faults.sandbox import Sandbox; from faults.tally import Tally
tally = Tally()
engines._try(Sandbox(Path(sys.argv[1])), "bad-segv-train", {"failed"}, 1, tally)
print(tally.failures, tally.notes)
"""


@pytest.mark.skipif(bool(engines.lacks()), reason=engines.lacks())
def test_an_engine_that_crashes_is_one_failed_record(environment, tmp_path):
    said = alone(f"exec({MISBEHAVE!r})", str(tmp_path / "box"))
    assert said.stdout.startswith("0 "), said.stdout + said.stderr


def test_every_engine_has_a_unique_name_and_an_expectation():
    names = [engine.name for engine in ENGINES]
    assert len({*names}) == len(names)
    assert {*names} == {*EXPECTED}
    assert all(EXPECTED.values())


FILL = """
import os; from pathlib import Path; from faults.kinds import disks
print(disks._unshare(), flush=True)
folder = Path(os.sys.argv[1]); disks._mount("-t", "tmpfs", "-o", "size=1m", "none", str(folder))
disks._fill(folder / "ballast", 10_000)
free = os.statvfs(folder); print(free.f_bavail * free.f_frsize <= 12_288)
disks._mount("-o", "remount,ro", str(folder))
try:
    (folder / "x").write_text("")
except OSError as error:
    print(error.errno)
"""


@pytest.mark.skipif(bool(disks.lacks()), reason=disks.lacks())
def test_a_disk_is_filled_and_made_read_only_in_a_private_mount(tmp_path):
    said = alone(f"exec({FILL!r})", str(tmp_path))
    refused, *rest = said.stdout.split("\n")
    if refused or "permission" in said.stderr:
        pytest.skip(f"mounting is not permitted: {refused or said.stderr}")
    assert rest == ["True", "30", ""], said.stderr
    assert list(tmp_path.iterdir()) == []


# --- inputs ----------------------------------------------------------------------------------------------------------


def test_damaged_files_are_accepted_or_refused(batch, monkeypatch):
    monkeypatch.setattr(inputs, "TRIES", 300)
    monkeypatch.setattr(inputs, "_limit_memory", lambda: None)  # the limit would also apply to later tests
    tally = Tally()
    inputs.run(batch, tally)
    assert (tally.tries, tally.notes) == (300, [])


def fails(path):
    raise ZeroDivisionError


def hangs(path):
    while True:
        pass


def refuses(path):
    raise CorruptData


@pytest.mark.skipif(bool(inputs.lacks()), reason=inputs.lacks())
@pytest.mark.parametrize(("reader", "count"), [(fails, "crashes"), (hangs, "hangs"), (refuses, ""), (str, "")])
def test_unexpected_errors_and_hangs_are_counted(reader, count, monkeypatch):
    inputs.signal.signal(inputs.signal.SIGALRM, inputs._too_late)
    tally = Tally()
    inputs._check(tally, "here", 0.2, reader, Path("x"))
    assert tally.failures == bool(count)
    assert not count or getattr(tally, count) == 1


def test_the_same_seed_does_the_same_damage():
    text = '{"a": [1, 2.5, "x"], "b": {"c": null}}'
    for damage, whole in ((damage_bytes, text.encode()), (damage_json, text)):
        damaged = [damage(whole, random.Random(seed)) for seed in range(200)]
        assert damaged == [damage(whole, random.Random(seed)) for seed in range(200)]
        assert sum(one != whole for one in damaged) > 150
        assert len(set(damaged)) > 100


# --- compiled code ---------------------------------------------------------------------------------------------------


def some_graphs(monkeypatch, name="tcc"):
    engine = usable(name)
    monkeypatch.setattr(graphs, "TRIES", 40)
    monkeypatch.setattr(graphs, "ALONE", 3)
    monkeypatch.setattr(graphs, "_engines", lambda: [engine])
    return engine


@pytest.mark.parametrize("name", ["tcc", "python-source", "tcc-published", "rerolled-tcc"])
def test_extreme_graphs_keep_the_reference_bits(name, batch, monkeypatch):
    some_graphs(monkeypatch, name)
    tally = Tally()
    graphs.run(batch, tally)
    assert (tally.tries, tally.notes) == (40, [])


@pytest.mark.parametrize(("right", "wrong"), [("< 0.0 ? 0.0", "<= 0.0 ? 1e-300"), ("-1.0", "-1.0000000000000002")])
def test_extreme_graphs_find_a_mistake_in_the_c(right, wrong, batch, monkeypatch):
    engine = some_graphs(monkeypatch)
    generate = engine.generate

    def mistaken(code):
        source = generate(code)
        return source._replace(units=[unit.replace(right, wrong) for unit in source.units])

    monkeypatch.setattr(engine, "generate", mistaken, raising=False)
    tally = Tally()
    graphs.run(batch, tally)
    assert tally.mismatches


needs_sanitizers = pytest.mark.skipif(bool(sanitizers.lacks()), reason=sanitizers.lacks())


def sanitize(name, about, folder):
    tally = Tally()
    compiler = next(filter(sanitizers.sanitized, sanitizers.COMPILERS))
    assert sanitizers._check(name, about, compiler, folder, tally)
    return tally


@needs_sanitizers
@pytest.mark.parametrize(("name", "about"), [("tcc", "classifier"), ("rerolled-tcc", "xor"), ("handwritten", "xor")])
def test_sanitizers_find_nothing(name, about, tmp_path):
    usable(name)
    assert sanitize(name, about, tmp_path).notes == []


@needs_sanitizers
def test_a_workspace_that_is_too_small_is_found(tmp_path, monkeypatch):
    right = sanitizers.text

    def smaller(name, found):
        made = right(name, found)
        return made._replace(workspace=made.workspace - 1)

    monkeypatch.setattr(sanitizers, "text", smaller)
    tally = sanitize("tcc", "classifier", tmp_path)
    assert tally.crashes == 1
    assert "heap-buffer-overflow" in tally.notes[0]


@needs_sanitizers
def test_c_that_computes_something_else_is_found(tmp_path, monkeypatch):
    right = sanitizers.text

    def other(name, found):
        made = right(name, found)
        return made._replace(units=[unit.replace("[t->step] = ", "[t->step] = 2.0 * ") for unit in made.units])

    monkeypatch.setattr(sanitizers, "text", other)
    tally = sanitize("tcc", "classifier", tmp_path)
    assert (tally.crashes, tally.mismatches) == (0, 1)


def test_every_form_is_in_a_batch():
    pairs = list(sanitizers.pairs())
    assert {name for name, _ in pairs} == {*sanitizers.FORMS, sanitizers.EXTENSION}
    assert {about for _, about in pairs} == {*sanitizers.SUBJECTS}
    assert len(pairs) > sanitizers.BATCHES
