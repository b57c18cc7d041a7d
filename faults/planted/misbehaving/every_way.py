"""`tuple` with one fault: in `prepare`, after some steps of training, or in its answers and results.

An engine's name says what it does: `bad-segv-prepare` crashes in `prepare`, `bad-segv-train` after the first steps.
Each must end in one record that says so. None may disturb the cell beside it or leave a process behind.

Some attacks are left out, because workers can't contain them. An engine runs with the user's rights, so it could
replace the clock, write pyperf's file, or remove the user's files.
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

from engines.api import Store, Workload
from engines.interpreted.engine import InterpretedEngine
from engines.interpreted.trainer import RebuildingTrainer, ScalarTrainer
from engines.interpreted.tuple import Value

SLEEP = "import time; time.sleep(600)"
MOST_CHILDREN = 200
OUTPUT_BYTES = 1 << 30
MEMORY_BYTES = 4 << 30
"""Each exceeds the campaign's limit."""


# --- acts at one moment ----------------------------------------------------------------------------------------------


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
            raise ValueError("no text")

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
    """Fork up to MOST_CHILDREN children."""
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
    """Fork twice, in a new session and with an empty environment."""
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
    raise ValueError("nothing stopped the allocations")


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
    """Flush subnormals to zero, as an object built with -ffast-math does when it is loaded."""
    text = "void set(void) { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); }"
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as folder:
        source, made = Path(folder) / "set.c", Path(folder) / "set.so"
        source.write_text(text)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
        ctypes.CDLL(str(made)).set()


def _job() -> Any:
    return json.loads(Path(sys.argv[-1]).read_text())


def lying_reply() -> None:
    lie = {"status": "measured", "phases": {}, "step_seconds": [1e-9], "losses": [], "stretch_steps": 1}
    Path(_job()["reply_file"]).write_text(json.dumps({**lie, "steps_per_value": 1}))
    os._exit(0)


def garbage_reply() -> None:
    Path(_job()["reply_file"]).write_bytes(os.urandom(1000))
    os._exit(0)


def half_reply() -> None:
    Path(_job()["reply_file"]).write_text('{"status": "measured", "phases": {"tra')
    os._exit(0)


def list_reply() -> None:
    Path(_job()["reply_file"]).write_text("[1, 2, 3]")
    os._exit(0)


def deep_reply() -> None:
    Path(_job()["reply_file"]).write_text("[" * 100_000)
    os._exit(0)


def huge_reply() -> None:
    with Path(_job()["reply_file"]).open("w") as file:
        file.write('{"status": "')
        for _ in range(200):
            file.write("x" * (1 << 20))
        file.write('"}')
    os._exit(0)


def folder_as_reply() -> None:
    Path(_job()["reply_file"]).mkdir()
    os._exit(0)


def pipe_as_reply() -> None:
    os.mkfifo(_job()["reply_file"])
    os._exit(0)


ACTS: tuple[Callable[[], None], ...] = (
    *(segv, abort, exit_0, exit_3, system_exit, keyboard_interrupt, memory_error, recursion, odd_exception),
    *(loop, sleep, stop, deaf_loop, kill_parent, fork_bomb, output, memory),
    *(child, setsid_child, daemon, close_output, close_everything, change_folder, remove_folder, flush_to_zero),
    *(lying_reply, garbage_reply, half_reply, list_reply, deep_reply, huge_reply, folder_as_reply),
    pipe_as_reply,
)
TIMES_OUT = {loop, sleep, stop, deaf_loop, fork_bomb, kill_parent}
HARMLESS = {child, setsid_child, daemon, close_output, change_folder, remove_folder, close_everything}
"""The numbers stay right: such a cell may be measured, or may time out on a pipe that its child holds open. It must
leave no process behind."""


# --- wrong answers and results ---------------------------------------------------------------------------------------

STEPS_BEFORE = 5
"""Correct steps: in total before an act, and in each stretch before a wrong result."""


class Trainer(RebuildingTrainer):
    """Trainer of `tuple` with one fault, named by `wrong`."""

    wrong = ""

    def train(self, steps: int) -> None:
        if self.wrong == "skips" and steps > STEPS_BEFORE:
            # Return the right number of losses by repeating the last one.
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
    """`tuple` under another name, with one fault."""

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

    def prepare(self, workload: Workload, *, objects: Optional[Store] = None) -> ScalarTrainer:
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
    # On a busy machine the worker's time may be up before the memory is touched.
    **{_name(memory, moment): {"failed", "timed-out"} for moment in ("prepare", "train")},
    # A restart replaces the losses before the worker reads them.
    "bad-no-losses": {"failed", "measured"},
    **{f"bad-{name}": {"failed", "skipped"} for name in SUPPORTS},
}
"""Engine -> the statuses that its record may have."""

LATE = {f"bad-{wrong}" for wrong in WRONG}
"""Engines whose stretches begin with correct steps."""

LIMITS: dict[str, set[str]] = {
    _name(act, moment): limits
    for act, limits in (
        *((act, {"time"}) for act in (loop, sleep, stop, deaf_loop)),
        (output, {"output"}),
        (memory, {"memory", "time"}),
        (memory_error, {"memory"}),
        # In a cgroup the fork fails, which the engine reports as its own error.
        (fork_bomb, {"processes", ""}),
    )
    for moment in ("prepare", "train")
}
"""Engine -> the limits that its record may name."""
