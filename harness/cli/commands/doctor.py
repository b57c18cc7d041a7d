"""`zoomgrad doctor`: ask every interpreter, engine, profiler and dataset whether it is ready, and show the machine."""

from __future__ import annotations

from collections.abc import Callable

from zoomgrad import datasets, engines
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.asking import one_line
from zoomgrad.engines.discovery import said
from zoomgrad.engines.kernel import toolchains
from zoomgrad.harness import workloads
from zoomgrad.harness.cli import display
from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.console import say_next
from zoomgrad.harness.cli.display import Part
from zoomgrad.harness.cli.options import Json
from zoomgrad.harness.machine import facts, interpreters
from zoomgrad.harness.profile import perf
from zoomgrad.harness.run.replies import NoResult

Row = tuple[str, str, str]


@app.command()
def doctor(as_json: Json = False) -> None:
    """Show what is installed, what is missing, and how to get it."""
    installed = interpreters.discover()
    rows = [(f"interpreter {i.name}", "ready", str(i.path)) for i in installed]
    names = interpreters.missing(installed)
    rows += [(f"interpreter {name}", "missing", interpreters.remedy(name)) for name in names]
    rows += [state(f"engine {name}", engines.load(name).check) for name in engines.names()]
    rows += [(problem.where, "left out", problem.what) for problem in (*engines.problems(), *workloads.problems())]
    rows.append(state("profiler perf", perf.find))
    rows += [state(f"data of {name}", workloads.load(name).data) for name in workloads.names()]
    programs = dict.fromkeys(toolchains.skipped())
    skipped = [(f"program {one_line(program.path)}", "skipped", program.reason) for program in programs]
    lacking = [row for row in rows if row[1] != "ready"]
    parts = [
        # First, because ready rows are many.
        Part("not ready", ("what", "state", "how to get it"), [*lacking, *skipped]),
        Part("ready", ("what", "state", "path"), [row for row in rows if row[1] == "ready"]),
        Part("machine", ("fact", "value"), [*facts.gather().items()]),
    ]
    display.show(parts, as_json=as_json)
    if not as_json:
        count = f"{len(lacking)} not ready; a run skips them and records the reason."
        say_next(count if lacking else "All ready: `zoomgrad run`.")


def state(what: str, look: Callable[[], object]) -> Row:
    """Row of the table: the text that `look` returns, or the reason from whatever it raises."""
    try:
        path = look()
        return what, "ready", path if isinstance(path, str) else ""
    except (Unavailable, datasets.Unavailable, NoResult) as missing:
        return what, "missing", f"{missing.reason}. {missing.remedy}"
    except CorruptData as error:
        return what, "wrong", str(error)
    except (Exception, SystemExit) as error:
        return what, "broken", said(error)
