"""Start a program in a child process, in a private copy of its project, with limits on time, memory and output."""

import contextlib
import dataclasses
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.strangers.find import NOT_THEIRS

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("child.py")
MEMORY = 4 << 30
FILE = 32 << 20
"""Bytes of the largest file that a program may write, its output included."""


@dataclasses.dataclass(frozen=True)
class Run:
    """What a program did."""

    outcome: str  # "ran", or why not
    output: str = ""
    lines: tuple = ()  # what zoomgrad wrote on standard error
    cells: dict = dataclasses.field(default_factory=dict)  # a notebook's failing cells
    backward: int = 0  # a notebook's cells that called backward and ended

    @property
    def ran(self):
        return self.outcome == "ran"


def run(program, how, *, seconds, python=sys.executable):
    """Run a program. how: as in `child.py`."""
    with tempfile.TemporaryDirectory(prefix="stranger-") as place:
        project = Path(place, "project")
        shutil.copytree(program.project, project, ignore=_left_out)
        script = project / program.path.with_suffix(".py")
        if program.path.suffix == ".ipynb":
            script = script.with_name(f"notebook_{script.name}")
        script.write_text(program.source, encoding="utf-8")
        reply, output, errors = (Path(place, name) for name in ("reply.json", "output.txt", "errors.txt"))
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(project),
            "TMPDIR": str(project),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(project))),
            "PYTHONHASHSEED": "0",
            "PYTHONIOENCODING": "utf-8",
            "PYTHONWARNINGS": "ignore",
            "MPLBACKEND": "Agg",
            "OMP_NUM_THREADS": "1",
            "STRANGER_FOLDER": str(project),
            **{name: os.environ[name] for name in ("ZOOMGRAD_CACHE", "XDG_CACHE_HOME") if name in os.environ},
        }
        if "XDG_CACHE_HOME" not in environment:
            environment["XDG_CACHE_HOME"] = str(Path("~/.cache").expanduser())
        with output.open("wb") as sink, errors.open("wb") as complaints:
            child = subprocess.Popen(
                [str(python), str(CHILD), how, str(script), str(reply)],
                cwd=script.parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=complaints,
                start_new_session=True,
                preexec_fn=lambda: _limit(seconds),
            )
            try:
                code = child.wait(timeout=2 * seconds + 10)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(child)
        text = output.read_bytes()[:FILE].decode("utf-8", "replace")
        if code is None or code == -signal.SIGXCPU:
            return Run(f"did not end in {seconds} s", text)
        try:
            written = errors.read_bytes()[:FILE].decode("utf-8", "replace").splitlines()
            lines = tuple(line for line in written if line.startswith("zoomgrad: "))
            found = Run(output=text, lines=lines, **json.loads(reply.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return Run(f"died (code {code})", text)
        too_much = f"OSError: [Errno {errno.EFBIG}]"
        return dataclasses.replace(found, outcome="printed or wrote too much") if too_much in found.outcome else found


def _left_out(folder, names):
    """Links, hidden folders and environments, which a program needs no copy of."""
    return [name for name in names if name.startswith(".") or name in NOT_THEIRS or Path(folder, name).is_symlink()]


def _limit(seconds):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end(child):
    """End the child and the processes of its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
