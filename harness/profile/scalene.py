"""Scalene: CPU time and memory by source line, on CPython.

Known traps: after a run that is too short, it writes no file but exits with 0. It escapes source lines for HTML, so
lines are read from their files instead. Imports would be a third of its samples, so the worker signals when to begin.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zoomgrad.harness.profile.session import DRAW, WORKER, Session
from zoomgrad.harness.run import isolate
from zoomgrad.harness.run.replies import NoResult
from zoomgrad.results.places import IS_CHECKOUT, PACKAGE, ROOT
from zoomgrad.results.profile import Line

LOCK = "profile-worker"
SHOWN = ROOT if IS_CHECKOUT else PACKAGE
"""The folder whose lines are shown."""
PAGE = "scalene.html"
"""Scalene's own standalone page, stored beside the profile."""
PAGE_SECONDS = 120.0
MIB = 2**20


def profile(session: Session) -> dict[str, Any]:
    """CPU shares and allocations of every line with a sample. Also stores Scalene's page and stacks."""
    python = session.python(LOCK)
    scalene = (python, "-m", "scalene")
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as folder:
        file = Path(folder) / "scalene.json"
        options = (*scalene, "run", "--off", "-o", str(file), "--program-path", str(SHOWN))
        fields = session.work([*options, *WORKER, "---"])
        if not file.exists():
            raise NoResult("failed", "Scalene wrote no profile", "Give it longer with --seconds.")
        content = json.loads(file.read_text(encoding="utf-8"))
        settings = session.settings.model_copy(update={"timeout_seconds": PAGE_SECONDS})
        surroundings = isolate.worker_environment(DRAW)
        session.run([*scalene, "view", "--standalone", str(file)], surroundings, folder, settings)
        page = Path(folder) / "scalene-profile.html"
        if page.exists():  # the profile is valid without it
            (session.folder / PAGE).write_bytes(page.read_bytes())
        command = [python, "-c", "import importlib.metadata as m; print(m.version('scalene'))"]
        version = session.run(command, surroundings, folder, settings).output
    lines = tuple(_lines(content))
    if not lines:
        raise NoResult("failed", "Scalene saw no line of the project", "Give it longer with --seconds.")
    stacks = "".join(f"{stack} {weight:.6f}\n" for stack, weight in folded(content))
    (session.folder / "scalene.folded").write_text(stacks, encoding="utf-8")
    return {
        **fields,
        "tool": f"Scalene {version.split()[-1] if version else ''}".strip(),
        **{part: min(1.0, sum(getattr(line, part) for line in lines)) for part in ("python", "native", "system")},
        "peak_bytes": content["max_footprint_mb"] * MIB,
        "lines": lines,
    }


def _lines(content: dict[str, Any]) -> Iterator[Line]:
    """Lines of the project's files that have a sample."""
    for name, file in sorted(content["files"].items()):
        path = Path(name).resolve()  # a worker imports our package through a link
        if not path.is_relative_to(SHOWN):
            continue
        texts = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        for line in file["lines"]:
            number = line["lineno"]
            cpu = [max(0.0, line[key]) / 100 for key in ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")]
            if not any(cpu) and not line["n_malloc_mb"]:
                continue
            yield Line(
                file=path.relative_to(SHOWN).as_posix(),
                line=number,
                source=texts[number - 1].strip() if number <= len(texts) else line["line"].strip(),
                python=cpu[0],
                native=cpu[1],
                system=cpu[2],
                allocated_bytes=line["n_malloc_mb"] * MIB,
                peak_bytes=line["n_peak_mb"] * MIB,
            )


def folded(content: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Stacks with their seconds: frames as `function (file:line)`, outermost first. Native time is a leaf `C`."""
    for frames, weights in content.get("stacks", ()):
        names = [_frame(frame) for frame in frames]
        work = next((n for n, name in enumerate(names) if name.startswith("exercise")), 0)  # earlier frames are runpy
        stack = ";".join(names[work:])
        if weights["python_time"] > 0:
            yield stack, weights["python_time"]
        if weights["c_time"] > 0:
            yield f"{stack};C", weights["c_time"]


def _frame(text: str) -> str:
    """`/a/b.py Value.f:12;` -> `Value.f (b.py:12)`."""
    file, _, where = text.rstrip(";").partition(" ")
    function, _, line = where.rpartition(":")
    return f"{function.replace(';', ',')} ({Path(file).name}:{line})"
