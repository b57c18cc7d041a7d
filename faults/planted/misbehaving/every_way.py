"""`tuple`, and one thing that no engine should do: at `prepare`, after some steps of training, or in what it tells.

An engine's name says what it does: `bad-segv-prepare` crashes while it is prepared, `bad-segv-train` after the first
steps. Each ends in one record that says so; none may disturb the cell beside it, or leave a process behind.

Left out are the ways of which only trust protects: an engine is code that runs as the user does. It could replace the
clock, write pyperf's file, or remove the user's files.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Optional

from engines.api import Workload
from engines.interpreted.engine import InterpretedEngine
from engines.interpreted.trainer import RebuildingTrainer, ScalarTrainer
from engines.interpreted.tuple import Value

SLEEP = "import time; time.sleep(600)"
MOST_CHILDREN = 200
OUTPUT_BYTES = 1 << 30
MEMORY_BYTES = 4 << 30
"""Each more than a run of the campaign permits."""


# --- what goes wrong at a moment -------------------------------------------------------------------------------------


def segv() -> None:
    ctypes.string_at(0)


def abort() -> None:
    os.abort()


def exit_0() -> None:
    os._exit(0)


def exit_3() -> None:
    os._exit(3)


def system_exit() -> None:
    raise SystemExit("no reason")


def keyboard_interrupt() -> None:
    raise KeyboardInterrupt


def memory_error() -> None:
    raise MemoryError


def recursion() -> None:
    recursion()


def odd_exception() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError("its text can't be had")

    raise Odd


def loop() -> None:
    while True:
        pass


def sleep() -> None:
    time.sleep(600)


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def deaf_loop() -> None:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    loop()


def kill_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def fork_bomb() -> None:
    """Bounded: every child forks again until there are enough."""
    until = time.monotonic() + 2.0
    children = 0
    while children < MOST_CHILDREN and time.monotonic() < until:
        if not os.fork():
            time.sleep(600)
        children += 1
    time.sleep(600)


def child() -> None:
    subprocess.Popen([sys.executable, "-c", SLEEP])


def setsid_child() -> None:
    subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True)


def daemon() -> None:
    """A double fork, in a session of its own, without a sign of where it came from."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    os.execve(sys.executable, [sys.executable, "-c", SLEEP], {})


def output() -> None:
    piece = b"x" * 65536
    for _ in range(OUTPUT_BYTES // len(piece)):
        os.write(1, piece)
    os._exit(3)


def memory() -> None:
    held: list[bytes] = []
    while len(held) << 26 < MEMORY_BYTES:
        held.append(b"x" * (1 << 26))
    raise ValueError("nothing stopped it")


def close_output() -> None:
    for descriptor in (0, 1, 2):
        os.close(descriptor)


def close_everything() -> None:
    os.closerange(0, 256)


def change_folder() -> None:
    os.chdir("/")


def remove_folder() -> None:
    shutil.rmtree(Path.cwd())


def flush_to_zero() -> None:
    """As an object that was built with -ffast-math does when it is loaded."""
    text = "void set(void) { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); }"
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as folder:
        source, made = Path(folder) / "set.c", Path(folder) / "set.so"
        source.write_text(text)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
        ctypes.CDLL(str(made)).set()


def _job() -> Any:
    return json.loads(Path(sys.argv[-1]).read_text())


def lying_outcome() -> None:
    lie = {"status": "measured", "phases": {}, "step_seconds": [1e-9], "losses": [], "stretch_steps": 1}
    Path(_job()["outcome_file"]).write_text(json.dumps({**lie, "steps_per_value": 1}))
    os._exit(0)


def garbage_outcome() -> None:
    Path(_job()["outcome_file"]).write_bytes(os.urandom(1000))
    os._exit(0)


def half_outcome() -> None:
    Path(_job()["outcome_file"]).write_text('{"status": "measured", "phases": {"tra')
    os._exit(0)


def list_outcome() -> None:
    Path(_job()["outcome_file"]).write_text("[1, 2, 3]")
    os._exit(0)


def deep_outcome() -> None:
    Path(_job()["outcome_file"]).write_text("[" * 100_000)
    os._exit(0)


def huge_outcome() -> None:
    with Path(_job()["outcome_file"]).open("w") as file:
        file.write('{"status": "')
        for _ in range(200):
            file.write("x" * (1 << 20))
        file.write('"}')
    os._exit(0)


def folder_as_outcome() -> None:
    Path(_job()["outcome_file"]).mkdir()
    os._exit(0)


def pipe_as_outcome() -> None:
    os.mkfifo(_job()["outcome_file"])
    os._exit(0)


ACTS: tuple[Callable[[], None], ...] = (
    *(segv, abort, exit_0, exit_3, system_exit, keyboard_interrupt, memory_error, recursion, odd_exception),
    *(loop, sleep, stop, deaf_loop, kill_parent, fork_bomb, output, memory),
    *(child, setsid_child, daemon, close_output, close_everything, change_folder, remove_folder, flush_to_zero),
    *(lying_outcome, garbage_outcome, half_outcome, list_outcome, deep_outcome, huge_outcome, folder_as_outcome),
    pipe_as_outcome,
)
TIMES_OUT = {loop, sleep, stop, deaf_loop, fork_bomb, kill_parent}
HARMLESS = {child, setsid_child, daemon, close_output, change_folder, remove_folder, close_everything}
"""The numbers stay right: such a cell may be measured, or wait in vain for a pipe that its child holds open. What
counts is that nothing of it is left."""


# --- what is wrong in what it tells or computes ----------------------------------------------------------------------

STEPS_BEFORE = 5
"""That are taken rightly: in all before an act, and in each stretch before a wrong result."""


class Trainer(RebuildingTrainer):
    """`tuple`'s, with one change that its engine makes."""

    wrong = ""

    def train(self, steps: int) -> None:
        if self.wrong == "skips" and steps > STEPS_BEFORE:
            # Looks as long as it should: the losses of a few steps again and again.
            super().train(max(1, steps // 50))
            while len(self.losses) < steps:
                self.losses.append(self.losses[-1])
            return
        super().train(steps)
        if self.wrong == "numbers" and len(self.losses) > STEPS_BEFORE:
            self.losses[-1] *= 1.0 + 2**-52

    def parameters(self) -> Any:
        found = super().parameters()
        if self.wrong == "parameters" and len(self.losses) > STEPS_BEFORE:
            found[0] += 1e-9
        return found


TOLD: dict[str, dict[str, Any]] = {
    "nan-phases": {"phases": {"trace": float("nan")}},
    "negative-phases": {"phases": {"trace": -1.0}},
    "infinite-phases": {"phases": {"trace": float("inf")}},
    "text-phases": {"phases": {"trace": "long"}},
    "no-phases": {"phases": None},
    "unknown-size": {"sizes": {"elephants": 3}},
    "negative-size": {"sizes": {"tape_rows": -3}},
    "huge-size": {"sizes": {"tape_rows": 10**30}},
    "size-that-is-ours": {"sizes": {"status": "measured", "cell": 3, "step_seconds": [1e-12]}},
    "no-losses": {"losses": None},
}
WRONG = ("skips", "numbers", "parameters")
SUPPORTS: dict[str, Any] = {"supports-3": 3, "supports-empty": "", "supports-list": ["no"]}


class Misbehaving(InterpretedEngine):
    """`tuple` under another name, and its one deed."""

    def __init__(
        self,
        name: str,
        *,
        act: Callable[[], None] = lambda: None,
        training: bool = False,
        told: Optional[dict[str, Any]] = None,
        wrong: str = "",
        answer: Any = None,
    ) -> None:
        super().__init__(name, Value, idea="misbehaves", typical_row_seconds=1e-6)
        self._act, self._in_training, self._told, self._wrong = act, training, told or {}, wrong
        self._answer = answer

    def supports(self, workload: Workload) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def prepare(self, workload: Workload, *, objects: Optional[Path] = None) -> ScalarTrainer:
        trainer = Trainer(self.nn, workload)
        trainer.wrong = self._wrong
        for name, value in self._told.items():
            setattr(trainer, name, value)
        if not self._in_training:
            self._act()
            return trainer
        train, act = trainer.train, self._act

        taken = 0

        def train_and_act(steps: int) -> None:
            nonlocal taken
            train(steps)
            taken += steps
            if taken > STEPS_BEFORE:
                act()

        trainer.train = train_and_act  # type: ignore[method-assign]
        return trainer


def _name(act: Callable[[], None], moment: str) -> str:
    return f"bad-{act.__name__.replace('_', '-')}-{moment}"


ENGINES = (
    *(Misbehaving(_name(act, "prepare"), act=act) for act in ACTS),
    *(Misbehaving(_name(act, "train"), act=act, training=True) for act in ACTS),
    *(Misbehaving(f"bad-{name}", told=told) for name, told in TOLD.items()),
    *(Misbehaving(f"bad-{wrong}", wrong=wrong) for wrong in WRONG),
    *(Misbehaving(f"bad-{name}", answer=answer) for name, answer in SUPPORTS.items()),
    Misbehaving("bad-supports-raises", answer=ValueError("no answer")),
)

EXPECTED: dict[str, set[str]] = {
    **{engine.name: {"failed"} for engine in ENGINES},
    **{_name(act, moment): {"failed", "timed-out"} for act in TIMES_OUT for moment in ("prepare", "train")},
    **{_name(act, moment): {"failed", "timed-out", "measured"} for act in HARMLESS for moment in ("prepare", "train")},
    # A busy machine may take longer than a worker has until so much memory is touched.
    **{_name(memory, moment): {"failed", "timed-out"} for moment in ("prepare", "train")},
    # A restart makes the losses anew, before anybody reads them.
    "bad-no-losses": {"failed", "measured"},
    # An empty reason is none: it is skipped, or failed, but not measured.
    **{f"bad-{name}": {"failed", "skipped"} for name in SUPPORTS},
}
"""Engine -> what its record may say."""

LATE = {f"bad-{wrong}" for wrong in WRONG}
"""Engines whose first steps of a stretch are right."""

LIMITS: dict[str, set[str]] = {
    _name(act, moment): limits
    for act, limits in (
        *((act, {"time"}) for act in (loop, sleep, stop, deaf_loop)),
        (output, {"output"}),
        (memory, {"memory", "time"}),
        (memory_error, {"memory"}),
        # A process that may not be made is an error of the engine's own, where a cgroup counts processes.
        (fork_bomb, {"processes", ""}),
    )
    for moment in ("prepare", "train")
}
"""Engine -> the limit that its record may name."""
