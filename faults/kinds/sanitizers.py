"""Generated C under AddressSanitizer and UndefinedBehaviorSanitizer, on buffers of exactly the promised sizes.

Each form of C is compiled with a small `main` that allocates every buffer separately and runs both passes and training:
whole and ragged batches, wrap-around, calls that begin within a batch. A second Python, with the sanitizers' libraries
preloaded, loads the extension. The results are compared with `bytecode`, bit for bit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import engines
from engines.api import Unavailable
from engines.columns import Column
from engines.handwritten.engine import HandwrittenEngine
from engines.handwritten.mlp_source import workspace
from engines.kernel import building, toolchains
from engines.kernel.c_text import read
from engines.kernel.engine import Clock
from engines.kernel.extension import Extension, include_flags
from engines.kernel.program import Program
from engines.straight.extension import ExtensionEngine
from faults.kinds import Batch
from faults.tally import Tally
from harness import workloads
from results.places import ROOT
from tests.engines.graphs import NAMED, bits, classifier, side_by_side

NAME = "sanitizers"
FAULTS = "every form of generated C, and the extension, under AddressSanitizer and UndefinedBehaviorSanitizer"
UNIT = "a form of C for a graph, by a compiler"
BATCHES = 16
SECONDS = 1200.0

FLAGS = ("-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMPILE_SECONDS, RUN_SECONDS = 600, 120
COMPILERS = ("gcc", "clang")

EXTENSION = "tcc-extension"
FORMS = (
    *("tcc", "tcc-whole", "gcc-O2", "tcc-published"),
    *("rerolled-tcc", "rerolled-gcc", "rerolled-gcc-generic", "rerolled-clang", "rerolled-clang-sparse"),
    *("rerolled-clang-fast", "handwritten", "handwritten-sparse", "handwritten-generic"),
)
"""Engines that generate the C. Each compiler of COMPILERS compiles it, whichever the engine would use."""
SUBJECTS = ("programs", "classifier", "xor", "tour", "moons", "digits", "mlp-64x48x10", "conv-2d", "random-dag")
LARGE = ("digits", "mlp-64x48x10", "conv-2d", "random-dag")
"""Thousands of rows: only the SPARING straight-line forms take them, unoptimised, because optimising takes minutes."""
SPARING = ("tcc", "tcc-published", EXTENSION)
TOO_LARGE = ("moons",)
"""For forms with loops only."""


def lacks() -> str:
    """Why it can't run here; empty if it can."""
    return "" if any(map(sanitized, COMPILERS)) else "neither gcc nor Clang has the sanitizers' libraries here"


@cache
def sanitized(compiler: str) -> tuple[str, ...]:
    """Command of the compiler; empty if it cannot link a sanitized program."""
    try:
        tool = toolchains.find(compiler)
    except Unavailable:
        return ()
    found = subprocess.run(  # noqa: S603  (a compiler that was found)
        [*tool.command, *FLAGS, "-x", "c", "-o", os.devnull, "-"],
        input="int main(void) { return 0; }",
        text=True,
        capture_output=True,
        timeout=COMPILE_SECONDS,
        check=False,
    )
    return () if found.returncode else tool.command


def run(batch: Batch, tally: Tally) -> None:
    """Check every BATCHES-th pair of form and subject, starting at the batch's number."""
    absent = [compiler for compiler in COMPILERS if not sanitized(compiler)]
    tally.remarks += [f"{compiler} or its sanitizers' libraries are missing here" for compiler in absent]
    for number, (name, about) in enumerate(list(pairs())[batch.index :: BATCHES]):
        for compiler in filter(sanitized, COMPILERS):
            folder = batch.folder / f"{number}-{compiler}"
            folder.mkdir()
            if _check(name, about, compiler, folder, tally):
                tally.tries += 1


def pairs() -> Iterator[tuple[str, str]]:
    """Pairs (form, subject). `_check` skips a form that does not support the subject."""
    for about in SUBJECTS:
        for name in (*FORMS, EXTENSION):
            if not is_straight(name) or about not in (*LARGE, *TOO_LARGE) or (about in LARGE and name in SPARING):
                yield name, about


def is_straight(name: str) -> bool:
    """Whether the form has one line per row of the tape."""
    return not name.startswith(("rerolled", "handwritten"))


def _engine(name: str) -> Any:
    """The engine of that name, as Any: the forms have more methods than the protocol."""
    return engines.load(name)


# --- input: subjects and their C -------------------------------------------------------------------------------------


class Call(NamedTuple):
    """Arguments of one call of `train`."""

    first_row: int
    steps: int
    batch: int


CALLS = (Call(0, 1, 1), Call(1, 7, 2), Call(0, 9, 4), Call(2, 5, 4), Call(3, 23, 8), Call(0, 3, 8), Call(1, 2, 1))
"""One program makes all of these calls. The next call continues a partial batch if it has the same batch size."""
RATE = 0.01
MOST_ROWS = 11


class Subject(NamedTuple):
    """A graph, its data, and its workload if it has one."""

    loss: Any
    inputs: list[Any]
    parameters: list[Any]
    outputs: list[Any]
    columns: tuple[Column, ...]
    workload: Any


def subject(about: str) -> Subject:
    """Build the graph of that name from new Values. Raises datasets.Unavailable."""
    Value = _engine("bytecode").Value  # noqa: N806  (a class)
    if about in ("programs", "classifier"):
        graph, kinds = classifier()
        if about == "programs":
            graph = side_by_side(NAMED)
            kinds = [("input", "parameter")[index % 2] for index in range(len(graph.numbers))]
        leaves = [Value(x) for x in graph.numbers]
        values = graph.build(Value, leaves)
        inputs = [v for v, kind in zip(leaves, kinds, strict=True) if kind == "input"]
        parameters = [v for v, kind in zip(leaves, kinds, strict=True) if kind == "parameter"]
        row = [v.data for v in inputs]
        rows = array("d", [x * scale for scale in (1.0, 0.5, -0.25, 0.0, 2.0) for x in row])
        return Subject(values[-1], inputs, parameters, values[:3], (Column(rows, len(inputs)),), None)
    workload = workloads.load(about)
    model = workload.model(_engine("bytecode").nn)
    inputs = [Value(x) for x in workload.row(0)]
    outputs = workload.outputs(model, inputs)
    loss = workload.loss(model, inputs, outputs)
    there: tuple[Column, ...] = workload.columns()
    count = min(MOST_ROWS, there[0].rows)
    return Subject(loss, inputs, model.parameters(), outputs, tuple(c.first(count) for c in there), workload)


class Text(NamedTuple):
    """Generated C and what it needs."""

    units: list[str]
    workspace: int
    flags: tuple[str, ...]
    strict: bool


def text(name: str, found: Subject) -> Text | None:
    """The form's C for the subject; None if it does not support it."""
    engine = _engine(name)
    if isinstance(engine, HandwrittenEngine):
        if found.workload is None or engine.supports(found.workload):
            return None
        return Text([engine.source(found.workload)], workspace(found.workload.network), engine.flags, engine.strict)
    source = engine.generate(engine.lower(_tape(engine, found)))
    return Text(source.units, source.workspace, engine.flags, engine.strict)


def _tape(engine: Any, found: Subject) -> Any:
    return engine.tape(found.loss, inputs=found.inputs, parameters=found.parameters, outputs=found.outputs)


def _flags(flags: Sequence[str], name: str, about: str) -> list[str]:
    """The form's flags with another optimisation level, and those of the sanitizers."""
    level = "-O0" if is_straight(name) and about in LARGE else "-O1"
    return [*(flag for flag in flags if not flag.startswith("-O")), level, *FLAGS]


# --- output: results and their comparison ----------------------------------------------------------------------------


def results(program: Program, columns: Sequence[Column]) -> list[float]:
    """A program's loss, outputs and gradients, then the losses, parameters and gradients of each call."""
    found = [program.forward()]
    program.backward()
    found += [*program.outputs, *program.gradients]
    program.reset()
    for call in CALLS:
        rows = columns[0].rows
        losses, failed = program.run(columns, RATE, call.batch, call.steps, call.first_row % rows, update=0)
        found += [*losses, *([] if failed is None else [failed]), *program.parameters, *program.gradients]
    return found


def _check(name: str, about: str, compiler: str, folder: Path, tally: Tally) -> bool:
    """Compile, run and compare. Return False if the form does not support the subject."""
    found = subject(about)
    where = f"{name} by {compiler}, {about}"
    if name == EXTENSION:
        strict, made = True, _extension(found, about, compiler, folder, tally, where)
    else:
        c = text(name, found)
        if c is None:
            return False
        strict, made = c.strict, _program(c, _flags(c.flags, name, about), found, compiler, folder, tally, where)
    reference = _engine("bytecode").compile(
        found.loss, inputs=found.inputs, parameters=found.parameters, outputs=found.outputs
    )
    wanted = results(reference, found.columns)
    if made is not None and strict and bits(made) != bits(wanted):
        first = next(
            (n for n, pair in enumerate(zip(made, wanted, strict=False)) if bits(pair[:1]) != bits(pair[1:])), -1
        )
        tally.count("mismatches", f"{where}: result {first} of {len(made)} and {len(wanted)} differs")
    return True


def _run(command: Sequence[str], tally: Tally, where: str, seconds: float, **how: Any) -> str | None:
    """Output of the command. If it fails, count that and return None."""
    try:
        done: subprocess.CompletedProcess[str] = subprocess.run(  # noqa: S603  (a compiler, or what it made)
            command, capture_output=True, text=True, timeout=seconds, check=False, **how
        )
    except subprocess.TimeoutExpired:
        tally.count("hangs", f"{where}: {Path(command[0]).name} took longer than {seconds} s")
        return None
    if done.returncode:
        report = [line for line in done.stderr.splitlines() if "rror" in line or "SUMMARY" in line]
        tally.count("crashes", f"{where}: {' '.join(report or done.stderr.splitlines()[-3:])[:600]}")
        return None
    return done.stdout


def _program(
    c: Text, flags: Sequence[str], found: Subject, compiler: str, folder: Path, tally: Tally, where: str
) -> list[float] | None:
    files = []
    for index, unit in enumerate([*c.units, driver(c, found)]):
        files.append(folder / f"unit_{index}.c")
        files[-1].write_text(unit, encoding="ascii")
    made = folder / "program"
    command = [*sanitized(compiler), *flags, "-o", str(made), *map(str, files), "-lm"]
    if _run(command, tally, where, COMPILE_SECONDS) is None:
        return None
    said = _run([str(made)], tally, where, RUN_SECONDS, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    return None if said is None else [float.fromhex(line) for line in said.split()]


def _extension(found: Subject, about: str, compiler: str, folder: Path, tally: Tally, where: str) -> list[float] | None:
    """Build the extension here and run it in another Python."""
    plain = _engine(EXTENSION)
    flags = (*include_flags(), *_flags((), EXTENSION, about))
    engine = ExtensionEngine(EXTENSION, compiler, flags, plain.form, idea="", builds_on="", typical_row_seconds=0.0)
    source = engine.generate(engine.lower(_tape(engine, found)))
    made = folder / "program.so"
    with building.build(engine.toolchain(), source.units, engine.flags) as built:
        made.write_bytes(built.path.read_bytes())
    job = {
        "path": str(made),
        "workspace": source.workspace,
        "inputs": [v.data for v in found.inputs],
        "parameters": [v.data for v in found.parameters],
        "outputs": len(found.outputs),
        "columns": [[list(c.data), c.kind, c.width, c.divisor, c.one_hot] for c in found.columns],
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    libraries = [_library(compiler, name) for name in ("libasan.so", "libubsan.so")]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        # Python leaks at exit, and its allocator would hide the end of a buffer.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    command = [sys.executable, "-m", "faults.sanitized_host", str(folder / "job.json")]
    said = _run(command, tally, where, RUN_SECONDS, env=environment, cwd=ROOT)
    return None if said is None else [float.fromhex(line) for line in said.split()]


def _library(compiler: str, name: str) -> str:
    command = [*sanitized(compiler), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()  # noqa: S603


def host(job_file: str) -> None:
    """Load the extension, print its results, then pass it arguments that it must refuse. Runs in the other Python."""
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    built = building.Built(Path(job["path"]), 0)
    plain = _engine(EXTENSION)
    kernel = plain.load(built, _Room(job["workspace"]))
    assert isinstance(kernel, Extension)
    columns = [
        Column(array("d", data) if kind == 0 else bytes(data), width, divisor, one_hot)
        for data, kind, width, divisor, one_hot in job["columns"]
    ]
    clock = Clock()
    program = Program(
        kernel,
        inputs=job["inputs"],
        parameters=job["parameters"],
        outputs=job["outputs"],
        phases=clock.phases,
        sizes=clock.sizes,
    )
    for number in results(program, columns):
        sys.stdout.write(f"{number.hex()}\n")
    _refuses(kernel, job)


class _Room(NamedTuple):
    """The part of a source that loading needs."""

    workspace: int


def _refuses(kernel: Any, job: dict[str, Any]) -> None:
    """Check that short buffers, and arguments that are not buffers, raise an exception."""
    lengths = (len(job["inputs"]), len(job["parameters"]), job["workspace"], job["outputs"])
    for short in range(4):
        buffers: list[Any] = [
            array("d", bytes(8 * (n - (at == short)))) for at, n in enumerate(lengths) if n or at != short
        ]
        if len(buffers) == 4:
            _must_raise(kernel.forward, *buffers)
    for wrong in (None, 3, "x", b"", [1.0], array("f", [1.0]), memoryview(b"12345678")):
        _must_raise(kernel.forward, wrong, wrong, wrong, wrong)
        _must_raise(kernel.update, wrong, wrong, 0.1, 1)
        _must_raise(kernel.forward, wrong)


def _must_raise(call: Callable[..., Any], *arguments: Any) -> None:
    try:
        call(*arguments)
    except (TypeError, ValueError, BufferError):
        return
    raise SystemExit(f"{call} accepted {arguments!r}")


# --- the driver ------------------------------------------------------------------------------------------------------


DRIVER = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
{interface}
enum {{ X = {x}, P = {p}, W = {w}, Y = {y}, COLUMNS = {count}, ROWS = {rows} }};
{data}
/* Allocate each buffer separately, so that the sanitizer sees an access past its end. */
static void *room(size_t bytes, const void *from)
{{
    char *made = calloc(bytes + 8, 1);
    if (!made)
        exit(3);
    if (from && bytes)
        memcpy(made + SHIFT, from, bytes);
    return made + SHIFT;
}}

static void print(const double *numbers, long long count)
{{
    for (long long i = 0; i < count; i++)
        printf("%a\\n", numbers[i] != numbers[i] ? (double)NAN_ : numbers[i]);
}}

int main(void)
{{
    double *x = room(8 * X, start_x), *p = room(8 * P, start_p), *w = room(8 * W, 0), *y = room(8 * Y, 0);
    double *q = room(8 * P, 0);
    struct column *columns = room(COLUMNS * sizeof *columns, 0);
    double loss = forward(x, p, w, y);
    long long taken = 0;
    struct buffers buffers = {{x, p, w, y, q}};
{columns}
    print(&loss, 1);
    backward(x, p, w, q);
    print(y, Y);
    print(q, P);
    zero_grad(q);
    for (int c = 0; c < (int)(sizeof calls / sizeof *calls); c++) {{
        long long steps = calls[c][1], batch = calls[c][2], updates = (taken % batch + steps) / batch, done;
        double *rates = room(8 * updates, 0), *losses = room(8 * steps, 0);
        struct stretch stretch = {{
            columns, COLUMNS, ROWS, calls[c][0] % ROWS, steps, batch, taken % batch, rates, losses, 1,
        }};
        for (long long i = 0; i < updates; i++)
            rates[i] = {rate};
        done = train(&buffers, &stretch);
        taken = (taken % batch + done) % batch;
        print(losses, done < steps ? done + 1 : done);
        print(p, P);
        print(q, P);
        free((char *)rates - SHIFT);
        free((char *)losses - SHIFT);
    }}
    set_input(x, columns, COLUMNS, ROWS - 1);
    update(p, q, 0.5, 3.0);
    return 0;
}}
"""
"""Its `room` leaves no gap after a buffer if SHIFT is 8, and none before it if SHIFT is 0."""


def driver(c: Text, found: Subject) -> str:
    """Return the `main` for the subject, with buffers of exactly the sizes promised to the C."""
    data, columns = [], []
    for index, column in enumerate(found.columns):
        is_doubles = column.kind == 0
        kind = "double" if is_doubles else "unsigned char"
        data.append(_array(kind, f"cells_{index}", list(column.data)))
        bytes_ = f"sizeof cells_{index}"
        columns.append(
            f"    columns[{index}] = (struct column){{room({bytes_}, cells_{index}), {column.width}, "
            f"{float(column.divisor).hex()}, {column.kind}}};"
        )
    data.append(_array("double", "start_x", [v.data for v in found.inputs]))
    data.append(_array("double", "start_p", [v.data for v in found.parameters]))
    calls = ", ".join(f"{{{', '.join(map(str, call))}}}" for call in CALLS)
    data.append(f"static const long long calls[][3] = {{{calls}}};")
    # An array from Python is aligned to 8 bytes, not always to 16.
    data.append('#define SHIFT 8\n#define NAN_ __builtin_nan("")')
    return DRIVER.format(
        interface=read("kernel/kernel.h"),
        x=len(found.inputs),
        p=len(found.parameters),
        w=c.workspace,
        y=len(found.outputs),
        count=len(found.columns),
        rows=found.columns[0].rows,
        rate=RATE.hex(),
        data="\n".join(data),
        columns="\n".join(columns),
    )


def _array(kind: str, name: str, values: Sequence[float]) -> str:
    spelled = [_spelled(x) if kind == "double" else str(x) for x in values] or ["0"]
    return f"static const {kind} {name}[] = {{{', '.join(spelled)}}};"


def _spelled(x: float) -> str:
    if x != x:
        return '__builtin_nan("")'
    if x in (float("inf"), float("-inf")):
        return f"{'-' if x < 0 else ''}__builtin_inf()"
    return float(x).hex()
