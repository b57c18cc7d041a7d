"""The command line as users start it: real processes and real workers, on a short selection."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyperf
import pytest
from typer.testing import CliRunner

from tests.engines.compiled.compiling import usable
from tests.harness import runs as made
from tests.harness.answering import Answering
from tests.harness.processes import obey_signals, processes_of
from zoomgrad import engines
from zoomgrad.engines.kernel.extension import check_python
from zoomgrad.harness.cli import command_line
from zoomgrad.harness.machine import interpreters
from zoomgrad.harness.run.lock import LOCK, locked
from zoomgrad.results.store import RunFile, Store

ROOT = Path(__file__).parent.parent.parent
RUNNING = f"cpython-{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


def kept_in(folder):
    """Return options of `subprocess` that keep runs and baseline runs in that folder."""
    environment = {
        **os.environ,
        "ZOOMGRAD_RUNS": str(folder / "runs"),
        "ZOOMGRAD_BASELINE_RUNS": str(folder / "baseline_runs"),
        LOCK: str(folder / "measuring.lock"),  # a real run and these tests must not block each other
        "COLUMNS": "200",
        "PYTHONPATH": str(ROOT),
    }
    return {"env": environment, "cwd": folder}


@pytest.fixture
def command(tmp_path):
    """`command(*arguments)`: options of `subprocess` that start `zoomgrad` with the test's own runs."""
    return lambda *arguments: {"args": [sys.executable, "-m", "zoomgrad", *map(str, arguments)], **kept_in(tmp_path)}


@pytest.fixture
def zoomgrad(command):
    """`zoomgrad(*arguments)`: the finished process of a command."""
    return lambda *arguments: subprocess.run(**command(*arguments), capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """`asked(*arguments)`: like `zoomgrad`, but in one shared process, for commands that leave nothing behind."""
    folder = tmp_path_factory.mktemp("asked")
    with Answering(**kept_in(folder)) as answering:
        answering.runs = folder / "runs"
        yield answering


@pytest.fixture
def asked_there(tmp_path):
    """`asked_there(*arguments)`: like `asked`, but sees the runs of `zoomgrad`; for tests that start many commands."""
    with Answering(**kept_in(tmp_path)) as answering:
        yield answering


def last_line(result):
    return result.stdout.splitlines()[-1]


# Listing, and usage errors


def test_list_shows_everything_there_is(asked):
    result = asked("list")
    assert result.returncode == 0, result.stderr
    for name in (*engines.names(), "xor", "mnist-b1000", "mlp-IxHxO", RUNNING, "smoke", "quick", "full"):
        assert re.search(rf"(?m)^{re.escape(name)} ", result.stdout), name
    assert last_line(result).startswith("Measure some of them: `zoomgrad run")
    told = json.loads(asked("list", "--json").stdout)
    assert [each["name"] for each in told["engines"]] == list(engines.names())
    assert told["left out"] == []


def test_doctor_says_what_is_there_and_how_to_get_the_rest(asked):
    result = asked("doctor", "--json")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    ready = {each["what"] for each in told["ready"]}
    assert {f"interpreter {RUNNING}", "engine replay", "data of xor"} <= ready
    for each in told["not ready"]:
        assert each["what"] not in ready
        if each["what"].startswith("interpreter "):
            assert "uv python install" in each["how to get it"]


@pytest.mark.parametrize(
    ("words", "name"),
    [("run -e tuple,tc", "tuple,tcc"), ("compare a b -w xo", "xor"), ("check -p smo", "smoke"), ("exp", "export")],
)
def test_a_shell_completes_commands_and_names(words, name):
    typed = {"COMP_WORDS": f"zoomgrad {words}", "COMP_CWORD": str(len(words.split()))}
    typed["_ZOOMGRAD_COMPLETE"] = "complete_bash"
    assert name in CliRunner().invoke(command_line, [], prog_name="zoomgrad", env=typed).stdout.split()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "-e", "hoistd", "-i", RUNNING], "no engine 'hoistd'\n  Did you mean hoisted"),
        (["run", "-w", "moon", "-i", RUNNING], "no workload 'moon'\n  Did you mean moons"),
        (["report", "2025-01-01"], "no run '2025-01-01'"),
        (["report"], "no run yet\n  Make one with `zoomgrad run"),
        (["show", "xor", "--stage", "tape"], "tuple compiles nothing, so it has no stage tape\n  Use --stage graph"),
        (["show", ""], "there is no workload ''"),
        (["exec", "-e", "", __file__], "'' is an empty name"),
        (["build", "xor", "--into", "/dev/null"], "/dev/null exists\n  Name another folder"),
        (["run", "-i", "=x"], "(no name)=x: not NAME=PATH of an interpreter\n  Write NAME=PATH"),
        (["profile", "--profilers", "scalen"], "Did you mean scalene"),
        (["compare", "absent", "HEAD"], "absent: not a run, an interpreter or a commit of this repository\n  Name two"),
        (["compare", str(ROOT / "results/baseline_runs/full.jsonl.xz"), "HEAD"], "HEAD: not a run, but the other one"),
        (["export", "--format", "xls"], "'xls' is not one of 'csv'"),
        (["run", "--timeout", "1e8"], "timeout_seconds"),
        (["compare", "a", "b", "--within", "5"], "Input should be less than or equal to 0.99"),
        (["rnu"], "rnu"),
        # An empty name is not the same as none.
        (["run", "-e", ""], "'' has an empty name; write names like"),
        (["profile", "--profilers", "jit,"], "'jit,' has an empty name; write names like"),
        (["check", "--preset", "  "], "'  ' is an empty name; give a name, or leave it out"),
        (["export", "-f", "csv", ""], "'' is an empty name; give a name, or leave it out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_usage_error_names_the_mistake_and_the_remedy(arguments, message, asked):
    if arguments[0] == "build":
        check_python("tcc")
    result = asked(*arguments)
    assert result.returncode == 2, result.stdout
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not asked.runs.exists()


def test_two_runs_are_compared_without_measuring_anything(asked_there, runs):
    for name, seconds in (("one", 0.5), ("another", 1.0)):
        store = Store.create(made.run(name, cells=tuple(made.cell(each) for each in ("baseline", "tuple"))), under=runs)
        for block in range(3):
            store.write(made.measured("baseline", block))
            store.write(made.measured("tuple", block, step_seconds=(seconds,) * 3))
    result = asked_there("compare", "one", "another")
    assert "another against one" in result.stdout
    assert result.returncode == 1
    assert last_line(result).startswith("FAILED against one: ")
    told = json.loads(asked_there("compare", "one", "another", "--json").stdout)
    slower = next(each for each in told["verdicts"] if each["figure"] == "speedup")
    assert (told["failed"], slower["word"], round(slower["ratio"]["value"], 3)) == (True, "slower", 2.0)
    assert asked_there("compare", "one", "another", "-q").stdout.count("\n") == 1
    assert "--budget would have no effect" in asked_there("compare", "one", "another", "--budget", "60").stderr
    assert "--engines, --blocks would" in asked_there("check", "one", "--blocks", "3", "-e", "nope").stderr
    assert "the same run" in asked_there("compare", "one", "one").stderr


def test_show_prints_the_graph_as_text(asked, golden):
    result = asked("show", "xor", "--stage", "graph")
    assert result.returncode == 0, result.stderr
    golden("show-xor.txt", result.stdout)


@pytest.mark.parametrize(
    ("engine", "stage", "line"),
    [("tcc", "tape", "%0 = parameter "), ("tcc", "source", "double "), ("rerolled-numpy", "source", "forward:")],
)
def test_show_prints_the_output_of_a_stage(engine, stage, line, asked):
    usable(engine)
    assert re.search(rf"(?m)^{line}", asked("show", "xor", "--engine", engine, "--stage", stage).stdout)


def test_a_run_leaves_a_folder_that_report_and_pyperf_can_read(zoomgrad, runs):
    places = [RUNNING, *[found.name for found in interpreters.discover() if found.has_jit][:1]]
    result = zoomgrad("run", "-p", "smoke", "-e", "baseline,tuple", "-w", "xor", "-i", ",".join(places), "--blocks", 1)
    assert result.returncode == 0, result.stdout + result.stderr
    (folder,) = runs.iterdir()
    store = Store(folder)
    assert (store.run.blocks, store.run.preset, *store.run.command[:2]) == (1, "smoke", "zoomgrad", "run")
    assert {(record.cell.engine, record.cell.interpreter, record.status) for record in store.records()} == {
        (engine, place, "measured") for engine in ("baseline", "tuple") for place in places
    }
    assert all(record.proof.identical for record in store.records() if record.cell.engine == "tuple")
    assert {record.proof.reference for record in store.records()} == {store.vouching("xor").reference.key}
    lines = result.stdout.splitlines()
    assert f"block 1: {2 * len(places)} measured, 0 s left" in lines
    assert lines[-1].startswith("Open ") and lines[-1].endswith("report.html")

    suites = [str(folder / "pyperf" / f"{engine}--{RUNNING}--xor.json") for engine in ("baseline", "tuple")]
    told = subprocess.run([sys.executable, "-m", "pyperf", "compare_to", *suites], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    written = (folder / "report.md").read_text()
    (folder / "report.html").unlink()
    (folder / "report.md").unlink()
    assert zoomgrad("report", folder.name).returncode == 0
    assert (folder / "report.html").exists()
    assert (folder / "report.md").read_text() == written


def test_an_interrupted_run_loses_nothing_and_can_be_resumed(command, zoomgrad, runs):
    """Interrupt the run with three signals in quick succession and the resumed run with Ctrl-C, then let it finish."""
    names = ["baseline", "tuple"]

    def interrupted(numbers, records, *arguments):
        """Send the signals once there are that many records; return the store and its record files."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen(**command("run", *arguments), **pipes, preexec_fn=obey_signals)
        while len(list(runs.glob("*/records/[!.]*.json"))) < records:
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.02)
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.005)
        output = process.communicate(timeout=60)[0]
        assert process.returncode == 130, output
        assert "Traceback" not in output
        store = Store(next(runs.iterdir()))
        assert output.splitlines()[-1].endswith(f"Resume with: zoomgrad run --resume {store.run.id}")
        assert {record.status for record in store.records()} == {"measured"}
        assert not processes_of(process.pid)
        return store, {path: path.read_bytes() for path in store.folder.glob("records/[!.]*.json")}

    several = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    selection = ("-e", ",".join(names), "-w", "xor", "-i", RUNNING)
    store, first = interrupted(several, 2, "--preset", "smoke", *selection, "--blocks", 3)
    store, before = interrupted([signal.SIGINT], len(first) + 1, "--resume", store.run.id)
    assert 2 <= len(first) < len(before) < 6
    assert first.items() <= before.items()

    result = zoomgrad("run", "--resume", store.run.id)
    assert result.returncode == 0, result.stdout + result.stderr
    assert Counter(record.cell.engine for record in store.records()) == dict.fromkeys(names, 3)
    assert {path: path.read_bytes() for path in before} == before
    for cell in store.run.cells:
        assert len(pyperf.Benchmark.load(str(store.pyperf_file(cell))).get_runs()) == 3


ONE_CELL = ("--engines", "tuple", "--workloads", "xor", "--interpreters", RUNNING, "--blocks", 1)


def test_a_second_run_does_not_measure_during_the_first(zoomgrad, tmp_path, monkeypatch):
    monkeypatch.setenv(LOCK, str(tmp_path / "measuring.lock"))
    with locked(wait=False):
        result = zoomgrad("run", *ONE_CELL)
    assert result.returncode == 2
    assert "another run is measuring" in result.stderr
    assert not (tmp_path / "runs").exists()


# Profiling and checking


def test_profile_makes_a_run_and_later_profiles_join_it(zoomgrad, runs):
    chosen = ("-e", "tuple", "-w", "xor", "-i", RUNNING, "--seconds", "0.5")
    result = zoomgrad("profile", *chosen, "--profilers", "anatomy")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[1/1] anatomy on tuple/" in result.stdout
    assert "report.html#profiles" in last_line(result)
    again = zoomgrad("profile", *chosen, "--seconds", "2", "--profilers", "anatomy,perf")
    assert again.returncode == 0, again.stdout + again.stderr
    (folder,) = runs.iterdir()
    assert {seen.profiler for seen in Store(folder).profiles()} == {"anatomy", "perf"}
    assert not Store(folder).records(), "a profile must not time anything"


def test_the_gate_makes_a_baseline_run_only_on_request_and_compares_runs_with_it(zoomgrad, asked_there, runs, tmp_path):
    def refused(message, *arguments):
        result = asked_there("check", *arguments)
        assert result.returncode == 2, result.stdout
        assert message in result.stdout + result.stderr

    refused("no baseline run for preset smoke")
    refused("no run yet", "--update")
    chosen = ("-e", "baseline,tcc", "-w", "xor", "-i", RUNNING, "--blocks", 3)
    assert zoomgrad("run", "--preset", "smoke", *chosen).returncode == 0
    (run,) = [path.name for path in runs.iterdir() if path.is_dir()]
    made = asked_there("check", run, "--update")
    assert last_line(made) == f"{run} is now the baseline run. Commit baseline_runs/smoke.jsonl.xz"
    assert RunFile(tmp_path / "baseline_runs" / "smoke.jsonl.xz").records() == Store(runs / run).records()

    again = zoomgrad("check", run)  # a run is never worse than itself
    assert again.returncode == 0, again.stdout + again.stderr
    assert f"Passed against {run}" in last_line(again)
    assert "### Gate" in (runs / run / "check.md").read_text()

    for path in (runs / run / "records").glob("tcc*"):
        path.unlink()
    refused("can't be a baseline run: 1 cell without a proven result", run, "--update")
    lost = asked_there("check", run)
    assert lost.returncode == 1
    assert last_line(lost).endswith(f"If the change is intended: zoomgrad check {run} --update")
