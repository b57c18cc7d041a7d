"""`zoomgrad doctor`."""

from __future__ import annotations

import datasets
import engines
from datasets.idx import CorruptData
from engines.api import Unavailable
from harness import display, interpreters, machine, workloads
from harness.cli.app import app, out, say_next
from harness.profile import instructions, perf
from harness.profile.look import NoProfile


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
    for profiler, find in (("perf", perf.find), ("instructions", lambda: instructions.find()[0])):
        try:
            rows.append((f"profiler {profiler}", "ready", find()))
        except NoProfile as none:
            rows.append((f"profiler {profiler}", "missing", f"{none.reason}. {none.remedy}"))
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
    say_next(f"{lacking} not ready: a run skips them, with the reason." if lacking else "All there: `zoomgrad run`.")
