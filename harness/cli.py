"""The command line. Each command is a straight line from its arguments to what it prints.

Exit 0: done, nothing failed (a skip with a reason is no failure); 1: a cell or a check failed; 2: wrong use;
130: interrupted, with the line that resumes. The last line always says what to do next.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer
from filelock import FileLock, Timeout
from rich.console import Console

import datasets
import engines
from datasets import fetch, mnist
from datasets.idx import CorruptData
from engines.api import Unavailable, UnknownName
from engines.graph.draw import draw_dot
from harness import display, interpreters, machine, matrix, planning, stages, workloads
from harness.interpreters import ROOT, NoEnvironment
from harness.isolate import isolate
from harness.profile import PROFILERS, look_at, perf, planned
from harness.profile.look import NoProfile
from harness.schedule import Plan, Schedule
from harness.stages import Stage
from harness.worker.train import Settings
from reports import build
from reports.headline import UNPLANNED
from reports.table import BASELINE
from results import units
from results.store import RUNS, Store, Unreadable, latest

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="How fast can the same micrograd Value program run, at what compile cost, and is the answer still right?",
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

WRONG_USE = 2
INTERRUPTED = 130

MEASURING = ROOT / ".zoomgrad" / "measuring.lock"


LOOK_SECONDS = 6.0
"""What a profile takes beside its look: start, preparation, reading what was seen."""


ENGINE_COLUMNS, CELL_COLUMNS = 24, 18
"""Characters of a terminal that the headline takes for names, and for a time with its speedup."""


class Form(StrEnum):
    """How `show` prints a graph."""

    text = "text"
    dot = "dot"
    svg = "svg"


def _names(text: Optional[str]) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


Engine = Annotated[str, typer.Option("--engine", "-e", help="Name of an engine, as `zoomgrad list` shows them.")]
OnInterpreter = Annotated[
    Optional[str], typer.Option(help="Name of an interpreter; the one that runs zoomgrad unless told.")
]


@app.command("list")
def list_() -> None:
    """The engines, workloads, interpreters and presets there are."""
    ladder = [engines.load(name) for name in engines.names()]
    for part in (
        display.table(
            "engines",
            ("name", "the one idea", "builds on", "bits"),
            [(e.name, e.idea, e.builds_on, "identical" if e.strict else f"within {e.error_bound:g}") for e in ladder],
        ),
        display.table(
            "workloads",
            ("name", "model and loss", "steps an epoch"),
            [(w.name, w.description, f"{w.steps_per_epoch:,}") for w in workloads.WORKLOADS.values()]
            + [("mlp-IxHxO", "an MLP of any shape, squared error, synthetic rows", "1,000")],
        ),
        display.table(
            "interpreters",
            ("name", "version", "path"),
            [(i.name, i.version, str(i.path)) for i in interpreters.discover()],
        ),
        display.table(
            "presets",
            ("name", "what it measures"),
            [(name, preset.description) for name, preset in matrix.PRESETS.items()],
        ),
    ):
        out.print(part, "")
    _next("Race them: `zoomgrad run --preset smoke`.")


@app.command()
def doctor() -> None:
    """What is installed, what is missing, and how to get it."""
    found = interpreters.discover()
    rows = [(f"interpreter {i.name}", "ready", str(i.path)) for i in found]
    rows += [(f"interpreter {m.name}", "missing", m.remedy) for m in interpreters.missing(found)]
    for name in engines.names():
        try:
            engines.load(name).check()
            rows.append((f"engine {name}", "ready", ""))
        except Unavailable as missing:
            rows.append((f"engine {name}", "missing", f"{missing.reason}. {missing.remedy}"))
    try:
        rows.append(("profiler perf", "ready", perf.find()))
    except NoProfile as none:
        rows.append(("profiler perf", "missing", f"{none.reason}. {none.remedy}"))
    for name, workload in workloads.WORKLOADS.items():
        try:
            workload.data()
            rows.append((f"data of {name}", "ready", ""))
        except datasets.Unavailable as missing:
            rows.append((f"data of {name}", "missing", f"{missing.reason}. {missing.remedy}"))
        except CorruptData as error:
            rows.append((f"data of {name}", "wrong", str(error)))
    out.print(display.table("zoomgrad doctor", ("what", "state", "where, or how to get it"), rows), "")
    out.print(display.table("machine", ("fact", "value"), machine.facts().items()), "")
    lacking = sum(state != "ready" for _, state, _ in rows)
    _next(f"{lacking} not ready: a run skips them, with the reason." if lacking else "All there: `zoomgrad run`.")


@app.command()
def run(
    preset: Annotated[str, typer.Option(help=f"Which cells: {', '.join(matrix.PRESETS)}.")] = "quick",
    engines_: Annotated[Optional[str], typer.Option("--engines", help="Only these, separated by commas.")] = None,
    workloads_: Annotated[Optional[str], typer.Option("--workloads", help="Only these.")] = None,
    interpreters_: Annotated[Optional[str], typer.Option("--interpreters", help="Only these.")] = None,
    blocks: Annotated[Optional[int], typer.Option(min=1, help="Processes a cell; three make an interval.")] = None,
    seed: Annotated[
        Optional[int], typer.Option(help="Seed of the shuffled order; drawn and recorded if absent.")
    ] = None,
    timeout: Annotated[Optional[float], typer.Option(min=1, help="Seconds a worker may take.")] = None,
    proof_steps: Annotated[
        Optional[int], typer.Option(min=2, help="Steps that must give the reference's bits before timing.")
    ] = None,
    resume: Annotated[Optional[str], typer.Option(help="Go on with this run: its id or its folder.")] = None,
) -> None:
    """Measure cells in fresh processes; ends with the headline table and the report."""
    if resume:
        plan = planning.resume(_store(resume).run)
    else:
        only_interpreters = _names(interpreters_)
        plan = planning.plan(
            preset,
            _discover(with_pypy=not only_interpreters or any("pypy" in name for name in only_interpreters)),
            command=["zoomgrad", *sys.argv[1:]],
            only_engines=_names(engines_),
            only_workloads=_names(workloads_),
            only_interpreters=only_interpreters,
            blocks=blocks,
            seed=seed,
            timeout_seconds=timeout,
            proof_steps=proof_steps,
        )
    out.print(display.plan_table(plan))
    out.print(f"estimate: {display.seconds_text(plan.total_seconds)}, without making environments", "")
    with _alone():
        store = _store(resume) if resume else Store.create(plan.run)
        try:
            _get_ready(plan)
            with display.RunProgress(out, len(plan.run.cells) * plan.run.blocks) as progress:
                Schedule(plan, store, isolate, interpreters.environment, progress).execute()
        except KeyboardInterrupt:
            _next(f"Interrupted; what was measured is on disk. Resume with: zoomgrad run --resume {store.run.id}")
            raise typer.Exit(INTERRUPTED) from None
    _conclude(store)
    if any(record.status in ("failed", "timed-out") for record in store.records()):
        raise typer.Exit(1)


@app.command()
def profile(
    engines_: Annotated[Optional[str], typer.Option("--engines", help="Only these, separated by commas.")] = None,
    workloads_: Annotated[Optional[str], typer.Option("--workloads", help="Only these.")] = None,
    interpreters_: Annotated[Optional[str], typer.Option("--interpreters", help="Only these.")] = None,
    profilers: Annotated[Optional[str], typer.Option(help=f"Only these of {', '.join(PROFILERS)}.")] = None,
    seconds: Annotated[float, typer.Option(min=0.5, help="How long each profiler looks at a cell.")] = 6.0,
    timeout: Annotated[Optional[float], typer.Option(min=1, help="Seconds a worker may take.")] = None,
    join: Annotated[
        Optional[str], typer.Option("--run", help="The run whose report shows it: id or folder; the newest.")
    ] = None,
) -> None:
    """Show where time and memory go: Scalene, perf, the collector, PyPy's JIT, the compilers. Never beside a timing."""
    chosen = _names(profilers) or list(PROFILERS)
    for name in chosen:
        if name not in PROFILERS:
            raise UnknownName("profiler", name, PROFILERS)
    found = _discover(with_pypy=not interpreters_)
    plan = planning.plan(
        "profile",
        found,
        command=["zoomgrad", *sys.argv[1:]],
        only_engines=_names(engines_),
        only_workloads=_names(workloads_),
        only_interpreters=_names(interpreters_),
        everywhere=planning.looked_at(found),
        blocks=0,
        timeout_seconds=timeout,
    )
    todo = planned(plan, chosen)
    estimate = display.seconds_text(len(todo) * (seconds + LOOK_SECONDS))
    out.print(
        f"{units.count(len(todo), 'profile')} of {units.count(len(plan.run.cells), 'cell')}, about {estimate}", ""
    )
    with _alone():
        store = _store(join) if join else _newest_or(plan)
        _get_ready(plan)
        failed = False
        try:
            with display.ProfileProgress(out, todo) as progress:
                for cell, name, seen in look_at(plan, store, chosen, seconds):
                    progress.show(cell, name, seen)
                    failed = failed or (seen is not None and seen.status in ("failed", "timed-out"))
        except KeyboardInterrupt:
            _next("Interrupted; the profiles that were finished are on disk. The same command makes all of them again.")
            raise typer.Exit(INTERRUPTED) from None
    page = build.build(store)
    _next(f"Open {_short(page)}#profiles, and read {_short(store.folder / 'analysis.md')}")
    if failed:
        raise typer.Exit(1)


@app.command()
def report(
    run_: Annotated[Optional[str], typer.Argument(metavar="[RUN]", help="Id or folder; the newest.")] = None,
    compare: Annotated[Optional[str], typer.Option(help="Another run, to set its speedups against.")] = None,
) -> None:
    """Build a run's report again, from its records alone; beside another run's speedups, if one is named."""
    _conclude(_store(run_) if run_ else latest(), _store(compare) if compare else None)


@app.command()
def train(
    workload: Annotated[str, typer.Argument(help="Name of a workload.")],
    engine: Engine = "replay",
    epochs: Annotated[Optional[int], typer.Option(min=1, help="At most so many; the workload's own number.")] = None,
    tolerance: Annotated[Optional[float], typer.Option(help="Stop once an epoch's mean loss is below.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Trainings, each from other starting parameters.")] = 1,
    interpreter: OnInterpreter = None,
) -> None:
    """Train by hand: live loss and accuracy, until a tolerance, repeated over seeds for a distribution."""
    engines.load(engine)
    workloads.load(workload)
    settings: Settings = {
        "engine": engine,
        "workload": workload,
        "epochs": epochs,
        "tolerance": tolerance,
        "repeats": repeats,
    }
    _fetch_data([workload])
    command = [str(_python(interpreter)), "-m", "harness.worker.train", json.dumps(settings)]
    progress = display.TrainingProgress(out)
    with subprocess.Popen(  # noqa: S603  (a list of arguments)
        command, stdout=subprocess.PIPE, text=True, env=_with_project(), start_new_session=True
    ) as worker:
        try:
            for line in worker.stdout or ():
                progress.show(json.loads(line))
        except KeyboardInterrupt:
            worker.terminate()
            raise typer.Exit(INTERRUPTED) from None
        finally:
            progress.close()
    for failure in progress.failures:
        err.print(f"zoomgrad: {failure}", markup=False, soft_wrap=True)
    if repeats > 1 and progress.ends:
        out.print(*display.distribution_lines(progress.ends), sep="\n")
    if progress.failures or worker.returncode:
        raise typer.Exit(1)
    _next(f"Race the engines on it: `zoomgrad run --workloads {workload}`.")


@app.command("exec", context_settings={"allow_interspersed_args": False})
def exec_(
    script: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Anybody's micrograd program.")],
    arguments: Annotated[Optional[list[str]], typer.Argument(metavar="[ARG]...", help="Its arguments.")] = None,
    engine: Engine = "replay",
    interpreter: OnInterpreter = None,
) -> None:
    """Run a micrograd program, unchanged, on an engine: its `micrograd` is that engine."""
    engines.load(engine)
    command = [str(_python(interpreter)), "-m", "harness.worker.execute", engine, str(script), *(arguments or [])]
    try:
        code = subprocess.run(command, env=_with_project(), check=False).returncode  # noqa: S603  (a list)
    except KeyboardInterrupt:
        code = INTERRUPTED
    # A shell reports the death by a signal in this way too.
    raise typer.Exit(128 - code if code < 0 else code)


@app.command()
def show(
    workload: Annotated[str, typer.Argument(help="Name of a workload.")],
    engine: Engine = "tuple",
    stage: Annotated[Stage, typer.Option(help="What to print.")] = Stage.graph,
    form: Annotated[Form, typer.Option("--format", help="Rows of text, Graphviz DOT, or the picture.")] = Form.text,
) -> None:
    """Print one step of a workload as the engine sees it, after a stage."""
    chosen, task = engines.load(engine), workloads.load(workload)
    if stage is Stage.graph and form is not Form.text:
        drawing = draw_dot(stages.trace(chosen, task).loss)
        sys.stdout.write(drawing.svg() if form is Form.svg else drawing)
    else:
        sys.stdout.write(stages.text(chosen, task, stage))


def _discover(*, with_pypy: bool) -> list[interpreters.Interpreter]:
    found = interpreters.discover()
    if with_pypy and not any(interpreter.has_jit for interpreter in found):
        with out.status("no PyPy here: asking uv for one"):
            if interpreters.fetch_pypy():
                found = interpreters.discover()
    return found


def _get_ready(plan: Plan) -> None:
    """Data and environments, before the clock matters; what can't be had becomes a record later, with the reason."""
    _fetch_data(plan.run.workloads)
    for name in dict.fromkeys(cell.interpreter for cell in plan.run.cells):
        if name in plan.interpreters:
            with out.status(f"environment for {name}"), contextlib.suppress(NoEnvironment):
                interpreters.environment(plan.interpreters[name])


def _fetch_data(names: Iterable[str]) -> None:
    """Have MNIST in the cache where it is wanted: it is all that is ever downloaded. A worker tells what is wrong."""
    if any(workloads.load(name).reader is mnist.load for name in names):
        with out.status("looking for MNIST"), contextlib.suppress(datasets.Unavailable, CorruptData):
            fetch.fetch_mnist()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Keep a second run from measuring at the same time: each would time the other's load."""
    try:
        with FileLock(MEASURING, timeout=0):
            yield
    except Timeout:
        err.print("zoomgrad: another run is measuring\n  Wait for its end: two at a time would time each other's load.")
        raise typer.Exit(WRONG_USE) from None


def _conclude(store: Store, against: Store | None = None) -> None:
    """Write the report, print the headline, and say where to look."""
    told = build.tell(store, against)
    page = build.write(store, told)
    if against and not told.comparison:
        err.print(f"zoomgrad: {against.run.id} has no speedup in common with {told.run.id}", markup=False)
        err.print(f"  Both need {BASELINE} beside other engines, on the same interpreter and workload.", markup=False)
    top = told.headline
    if top:
        # Where there is no room for a time and its speedup side by side, they stand below each other.
        apart = " " if out.width > ENGINE_COLUMNS + CELL_COLUMNS * len(top.interpreters) else "\n"
        rows = [
            (
                rung.engine,
                *("" if e.status == UNPLANNED else f"{e.text}{apart}{e.speedup}".strip() for e in rung.entries),
            )
            for rung in top.rows
        ]
        names = [name if apart == " " else name.replace("-", apart, 1) for name in top.interpreters]
        title = f"{top.workload}: time a step, and speedup over baseline on the same interpreter"
        out.print("", display.table(title, ("engine", *names), rows), "")
    for sentence in told.verdict:
        out.print(sentence, markup=False)
    _next(f"Open {_short(page)}")


def _newest_or(plan: Plan) -> Store:
    """The newest run's store, or a new one where nothing was ever measured."""
    try:
        return latest()
    except Unreadable:
        return Store.create(plan.run)


def _store(run_: str) -> Store:
    folder = Path(run_) if Path(run_).is_dir() else RUNS / run_
    if not (folder / "run.json").is_file():
        raise UnknownName("run", run_, [path.parent.name for path in RUNS.glob("*/run.json")])
    return Store(folder)


def _python(name: Optional[str]) -> Path:
    """The Python to run a worker with: the named interpreter's environment, else the one that runs this."""
    if name is None:
        return Path(sys.executable)
    return interpreters.environment(interpreters.choose(name, interpreters.discover()))


def _with_project() -> dict[str, str]:
    """The caller's environment, where a worker also finds this project, whichever interpreter it runs on."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _short(path: Path) -> str:
    with contextlib.suppress(ValueError):
        return str(path.absolute().relative_to(Path.cwd()))
    return str(path)


def _next(line: str) -> None:
    out.print(line, markup=False, soft_wrap=True)


def main() -> None:
    """Entry point of `zoomgrad`."""
    signal.signal(signal.SIGTERM, _interrupt)  # ends as Ctrl-C does: with the workers, and with the line that resumes
    try:
        app()
    except (UnknownName, Unreadable, Unavailable, datasets.Unavailable, CorruptData, NoEnvironment) as error:
        err.print(f"zoomgrad: {error}", markup=False, soft_wrap=True)
        sys.exit(WRONG_USE)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
