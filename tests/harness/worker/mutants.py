"""Seeded mutants: forms of kernels with one mistake each, which no timing would show and the proof must catch.

`python -m tests.harness.worker.mutants` prints the table form × mistake, with the drill or stretch that found each.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import engines
from engines.interpreted.trainer import ScalarTrainer
from engines.kernel import building
from engines.kernel.python_kernel import PythonKernel, Training
from engines.peers.models.with_numpy import NumpyModel
from engines.peers.peer import PeerTrainer
from engines.rerolled.emit.numpy_runs import Runs
from engines.rerolled.emit.numpy_step import _Bound
from harness import workloads
from harness.procedure import DRILLS
from harness.worker.evidence import Witness
from harness.worker.job import Mismatch
from harness.worker.proof import prepare_proof
from harness.worker.vouch import vouch

STEPS = 64
"""Steps of the stretch that is compared after the drills."""

MISTAKES = (
    "a lost gradient",
    "a doubled loss",
    "a skipped row",
    "an update one row late",
    "a wrong row after wrap-around",
)

DENSE, WITH_ZEROS, FORWARD = "mlp-64x48x10", "digits", "digits-forward"
"""Models large enough to be rearranged; inputs of the second one have zeros, which can be skipped. The third one has a
forward pass only."""


class Form(NamedTuple):
    """A form of kernel: engines that have it, and the text of each mistake in it, as (pattern, replacement)."""

    name: str
    engines: tuple[str, ...]
    mistakes: dict[str, tuple[str, str]]
    workload: str = DENSE
    methods: tuple = ()
    """(class, name) of each method whose source may be changed. If there is none, the C is changed."""


IN_TRAINING = {
    "an update one row late": (
        r"t->taken < t->stretch->batch\)(\s+return 0;\s+)t->taken = 0;",
        r"t->taken <= t->stretch->batch)\1t->taken = 1;",
    ),
    "a skipped row": (r"(long long row = [^;]*): t->row;", r"\1: (t->row + (t->step > 2)) % s->rows;"),
    "a wrong row after wrap-around": (r"t->row = 0;", "t->row = t->stretch->rows > 1;"),
}
"""Mistakes in `training.h`, which every kernel in C includes."""

STRAIGHT_LINE = {
    "a lost gradient": (r"\n    q\[\d+\] \+= [^;]*;", ""),
    "a doubled loss": (r"record\(t, forward", "record(t, 2.0 * forward"),
    **IN_TRAINING,
}

PUBLISHED = {
    "a lost gradient": (r"\n    grad\[\d+\] \+= [^;]*;", ""),
    "a doubled loss": (r"record\(t, data", "record(t, 2.0 * data"),
    **IN_TRAINING,
}

IN_TURN = r"(static int turn.*?)"
"""Matches everything from the beginning of `turn` to the rest of a pattern."""

REROLLED = {
    "a lost gradient": (rf"{IN_TURN}\n +sinks\(w[^;]*;", r"\1\n;"),
    "a doubled loss": (r"(static int turn.*)record\(t, w(?=.*static int evaluate)", r"\1record(t, 2.0 * w"),
    **IN_TRAINING,
}

SINKS_IN_PLACE = r"sinks_in_place\(w(, live)?, t->state\.rate\);"

IN_PLACE = {
    "a lost gradient": (
        r"(void loops?_\w*in_place\(number \*restrict w[^)]*number rate\)\n\{.*?)\n +AT\d\([^;]*?\) -= [^;]*;",
        r"\1",
    ),
    "an update one row late": (rf"({SINKS_IN_PLACE})", r"if (t->step > 2) \1"),
}

DEFERRED = {
    "a lost gradient": (SINKS_IN_PLACE, ";"),
    "an update one row late": (
        r"(t->state\.gradients_are_zero\) \{\s+/\*[^*]*\*/\s+t->state\.rate =) \*t->rates\+\+;",
        r"\1 t->step > 2 ? *t->rates++ : 0.0;",
    ),
    "a skipped row": (r"memcpy\(w \+ BEFORE, w \+ X\b", "memcpy(w + BEFORE, w + X + 1"),
}

TOGETHER = {
    "a lost gradient": (
        r"(w \+ FACTORS[^;]*;\s+\}\s+(?:if \(all_listed[^{]*\{\s+)?)sinks_of_\d+_rows\(w[^;]*;",
        r"\1;",
    ),
    "a doubled loss": (r"(values_of_\d+_rows\(w[^;]*;.*?)record\(t, w", r"\1record(t, 2.0 * w"),
    "a skipped row": (r"take_row\(t, (w \+ ROWS[^,]*), row\)", r"take_row(t, \1, row + (row > 2))"),
    "an update one row late": (r"batch_ends\(t, count\)", "batch_ends(t, 1)"),
    "a wrong row after wrap-around": (
        r"\(t->row \+ ahead\) % s->rows",
        "(t->row + ahead + (t->row + ahead >= s->rows)) % s->rows",
    ),
}

SPARSE = {**REROLLED, "an update one row late": TOGETHER["an update one row late"]}
"""With the mistake of `training.h`, a turn would take no row of a complete batch, and the training would not end."""

HANDWRITTEN = {
    "a lost gradient": (r"    add\(n->q\.b1,[^;]*;", ""),
    "a doubled loss": (r"record\(t, forward_pass", "record(t, 2.0 * forward_pass"),
    **IN_TRAINING,
}

HANDWRITTEN_SINGLE = {
    "a lost gradient": (r"    descend\(p->b1,[^;]*;", ""),
    "an update one row late": (r"(descend_all\(n, \*t->rates\+\+\))", r"if (t->step > 1) \1"),
}

PYTHON = {
    "a lost gradient": (r"(self\.gradients\([^)]*\))", r"\1; t.q[-1] = 0.0"),
    "a doubled loss": (r"t\.record\(self", "t.record(2.0 * self"),
    "an update one row late": (
        r"self\.taken < self\.stretch\.batch:(\s+return False\s+)self\.taken = 0",
        r"self.taken <= self.stretch.batch:\1self.taken = 1",
    ),
    "a skipped row": (r"\(self\.row \+ ahead\)", "(self.row + ahead + (self.step > 2))"),
    "a wrong row after wrap-around": (r"self\._rows else 0", "self._rows else self._rows > 1"),
}
"""Mistakes in the training loop that all kernels in Python share."""

NUMPY = {
    "a lost gradient": (r"adds = loop\.phase == Phase\.SINK and not run\.in_place", "adds = False"),
    "a doubled loss": (r"record\(self\.loss\(\)\)", "record(2.0 * self.loss())"),
    "an update one row late": PYTHON["an update one row late"],
    "a skipped row": PYTHON["a skipped row"],
    "a wrong row after wrap-around": PYTHON["a wrong row after wrap-around"],
}

EVALUATING = {
    "a doubled loss": (r"(static int evaluate.*?)record\(t, ", r"\1record(t, 2.0 * "),
    "a skipped row": IN_TRAINING["a skipped row"],
    "a wrong row after wrap-around": IN_TRAINING["a wrong row after wrap-around"],
    "the row before": (r"(static int evaluate.*?)take_row\(([^;]*), 0\);", r"\1take_row(\2, t->step ? -1 : 0);"),
}
"""Mistakes in the loop of workloads that do not learn."""

LEARNING = {
    "a step that learns": (
        r"(static int evaluate.*?)return (record[^;]*);",
        r"\1int is_finite = \2; backward(t->x, t->p, t->w, t->q); return is_finite;",
    ),
}

# Pixel 20. Pixel 0 is always 0, so its weight does not count.
CONSTANT_WEIGHTS = {"a wrong weight": (r"(\d\.\d+ \* x\[20\])", r"2.0 * \1")}
WEIGHTS_IN_A_TABLE = {"a wrong weight": (r"(double weights\[[^=]*= \{\n(?:[^\n]*\n){5})", r"\g<1>2.0 * ")}
LISTED = {
    "a list of inputs from another row": (r"(static int evaluate.*?)list_inputs\(", r"\1if (!t->step) list_inputs(")
}

PYTHON_EVALUATING = {
    "a doubled loss": (r"t\.record\(self", "t.record(2.0 * self"),
    "a skipped row": PYTHON["a skipped row"],
    "a wrong row after wrap-around": PYTHON["a wrong row after wrap-around"],
    "a step that learns": (r"(return t\.record[^\n]*)", r"self.gradients(t.x, t.p, t.w, t.q); \1"),
}

INTERPRETED = {
    "a lost gradient": (r"self\.losses\.append\(loss\)", "self.losses.append(loss); self._parameters[-1].grad = 0.0"),
    "a doubled loss": (r"self\.losses\.append\(loss\)", "self.losses.append(2.0 * loss)"),
    "a skipped row": (r"else step\)", "else step + (step > 2))"),
    "an update one row late": (r"\(step \+ 1\) % self\._batch == 0", "step % self._batch == 0 and step"),
    "a wrong row after wrap-around": (r"else step\)", "else step + (step >= 4))"),
}

PEER = {
    "a lost gradient": (r"d\.sum\(axis=0\)", "0.0 * d.sum(axis=0)"),
    "a doubled loss": (r"np\.square\(d\)", "2.0 * np.square(d)"),
    "a skipped row": (r"row, update, within = step", "row, update, within = (step + (step > 2))"),
    "an update one row late": (r"if step % self\._batch == 0", "if step % self._batch == 1"),
    "a wrong row after wrap-around": (r"= step % self\._rows", "= (step + (step >= self._rows)) % self._rows"),
}

PYTHON_LOOP = (
    (PythonKernel, "turn"),
    (Training, "index"),
    (Training, "record"),
    (Training, "batch_ends"),
)

PEER_TRAINING = ((PeerTrainer, "train"), (NumpyModel, "forward_backward"), (NumpyModel, "loss"))

PYTHON_EVALUATION = ((PythonKernel, "evaluate"), (Training, "index"), (Training, "record"))

NUMPY_STEP = (
    (Runs, "of"),
    (_Bound, "_guard"),
    (Training, "index"),
    (Training, "record"),
    (Training, "batch_ends"),
)

FORMS = (
    Form("straight-line C", ("tcc", "clang-O0", "gcc-O1", "clang-O1-whole"), STRAIGHT_LINE),
    Form("straight-line C as an extension module", ("tcc-extension",), STRAIGHT_LINE),
    Form("the published C", ("tcc-published", "clang-O0-published"), PUBLISHED),
    Form("loops, an update after a batch", ("rerolled-tcc", "rerolled-gcc", "rerolled-clang"), REROLLED),
    Form("loops, an update in place", ("rerolled-clang",), IN_PLACE, "mlp-40x16x4"),
    Form("loops, an update deferred", ("rerolled-gcc", "rerolled-clang"), DEFERRED),
    Form("loops, rows together", ("rerolled-gcc", "rerolled-clang", "rerolled-clang-sparse"), TOGETHER),
    Form("loops, zeros skipped", ("rerolled-clang-sparse",), SPARSE, WITH_ZEROS),
    Form("loops, zeros skipped, an update deferred", ("rerolled-clang-sparse",), DEFERRED),
    Form("loops, fast", ("rerolled-clang-fast",), TOGETHER),
    Form("C by hand, an update after a batch", ("handwritten", "handwritten-sparse"), HANDWRITTEN, WITH_ZEROS),
    Form("C by hand, an update each row", ("handwritten", "handwritten-sparse"), HANDWRITTEN_SINGLE, WITH_ZEROS),
    Form("Python", ("python-source", "bytecode"), PYTHON, DENSE, PYTHON_LOOP),
    Form("NumPy", ("rerolled-numpy",), NUMPY, DENSE, NUMPY_STEP),
    Form("forward only: straight-line C", ("tcc", "gcc-O1"), {**EVALUATING, **LEARNING}, FORWARD),
    Form("forward only: the published C", ("tcc-published",), EVALUATING, FORWARD),
    Form("forward only: loops", ("rerolled-tcc", "rerolled-gcc", "rerolled-clang"), EVALUATING, FORWARD),
    Form("forward only: loops, zeros skipped", ("rerolled-clang-sparse",), {**EVALUATING, **LISTED}, FORWARD),
    Form("forward only: C by hand", ("handwritten", "handwritten-sparse"), EVALUATING, FORWARD),
    Form("forward only: Python", ("python-source", "bytecode"), PYTHON_EVALUATING, FORWARD, PYTHON_EVALUATION),
    Form("frozen: straight-line C", ("tcc-frozen", "gcc-O1-frozen"), {**EVALUATING, **CONSTANT_WEIGHTS}, FORWARD),
    Form(
        "frozen: loops", ("rerolled-tcc-frozen", "rerolled-gcc-frozen"), {**EVALUATING, **WEIGHTS_IN_A_TABLE}, FORWARD
    ),
    Form("a peer", ("numpy",), PEER, DENSE, PEER_TRAINING),
    Form("interpreted", ("slots", "replay", "native", "cython"), INTERPRETED, "xor", ((ScalarTrainer, "train"),)),
)


def mutants():
    """Every (form, engine, mistake)."""
    return [(form, engine, mistake) for form in FORMS for engine in form.engines for mistake in form.mistakes]


@contextlib.contextmanager
def mistaken(form, mistake):
    """Inside the block, build kernels of the form with that mistake. Raises ValueError if its pattern never matches.

    If C is changed, that is known at the end of the block only: drills may build variants that `prepare` did not.
    """
    pattern, replacement = form.mistakes[mistake]

    def change(text):
        changed, count = re.subn(pattern, replacement, text, count=1, flags=re.DOTALL)
        return changed, count

    if form.methods:
        for owner, name in form.methods:
            function = getattr(owner, name)
            source, count = change(textwrap.dedent(inspect.getsource(function)))
            if count:
                break
        else:
            raise ValueError(f"{form.name}: nothing to change for {mistake}")
        made = {}
        exec(source, function.__globals__, made)
        with mock.patch.object(owner, name, made[name]):
            yield
        return

    build, changed = building.build, []

    def changed_build(tool, units, flags, **limits):
        # A kernel with variants has a build for each of them, and a mistake may be possible in one variant only.
        found = [change(unit) for unit in units]
        where = next((index for index, (_, count) in enumerate(found) if count), None)
        if where is not None:
            changed.append(where)
        units = [found[where][0] if index == where else unit for index, unit in enumerate(units)]
        return build(tool, units, flags, **limits)

    with mock.patch.object(building, "build", changed_build):
        try:
            yield
        finally:
            if not changed:
                raise ValueError(f"{form.name}: nothing to change for {mistake}")


def witness_of(workload, folder):
    """Write the workload's evidence by an engine that needs no compiler, and return its folder."""
    job = {
        "engine": "python-source",
        "workload": workload,
        "reply_file": "",
        "witnesses": {},
        "folder": str(folder),
        "seconds": 60.0,
        "steps": STEPS,
    }
    reply = vouch(job)
    assert reply["status"] == "measured", reply
    assert Witness(folder).steps == STEPS
    return folder


def job_of(folder):
    """The part of a measuring worker's job that describes that evidence."""
    return {
        "reference_folder": str(folder),
        "reference_cell": "python-source",
        "reference_steps": STEPS,
        "reference_drills": [how.name for how in DRILLS],
    }


def prove(engine, workload, folder):
    """Prove the engine as a measuring worker does: the drills, then the stretch. Raises Mismatch."""
    engine, workload = engines.load(engine), workloads.load(workload)
    trainer = engine.prepare(workload)
    proof = prepare_proof(engine, trainer, workload, job_of(folder))
    trainer.restart(batch=workload.batch)
    trainer.train(STEPS)
    proof.stretch(trainer, STEPS)
    return proof


def main():
    """Print the table."""
    folders, escaped = {}, 0
    with tempfile.TemporaryDirectory() as name:
        for form, engine, mistake in mutants():
            if form.workload not in folders:
                folders[form.workload] = witness_of(form.workload, Path(name) / form.workload)
            try:
                with mistaken(form, mistake):
                    prove(engine, form.workload, folders[form.workload])
                found, escaped = "ESCAPED", escaped + 1
            except Mismatch as mismatch:
                found = "caught " + re.search(r"(in the drill|within) .*", str(mismatch))[0]
            print(f"| {form.name} | {engine} | {mistake} | {found} |", flush=True)
    sys.exit(bool(escaped))


if __name__ == "__main__":
    main()
