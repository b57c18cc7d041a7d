"""A C compiler's own timing of its passes: gcc's `-ftime-report`, Clang's `-ftime-trace`.

This process generates the engine's C, whatever the cell's interpreter, and compiles it with the engine's own flags, one
translation unit after the other; the profile is their sum. gcc's timing excludes its
assembler, a separate program. Clang's includes it. Timing slows both compilers down, and gcc's parser most, because gcc
times every token.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from zoomgrad import datasets
from zoomgrad.engines.api import Engine, Unavailable
from zoomgrad.engines.compiled.emit import emit
from zoomgrad.engines.compiled.lower import lower, variants_of
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.kernel.building import BuildFailed, Compiled, TookTooLong
from zoomgrad.engines.kernel.toolchains import Toolchain
from zoomgrad.engines.kernel.variants import variant_for
from zoomgrad.engines.row import Row
from zoomgrad.harness import workloads
from zoomgrad.harness.profile.profile_session import NoProfile, Session
from zoomgrad.harness.stages import trace

LEAST_SHARE = 0.005
"""Passes with a smaller share are combined under OTHERS."""
OTHERS = "others"


class Account(NamedTuple):
    """A compiler's timing of one translation unit."""

    seconds: float
    """Total time by the compiler's own clock."""
    passes: dict[str, float]
    """Pass -> seconds without nested passes. Their sum does not exceed the total."""


class NoAccount(Exception):
    """The compiler succeeded but reported no timing."""


NEWER = "Install a newer compiler: any gcc works, and Clang 9 or later."


def fits(engine: Engine) -> bool:
    """Whether the engine compiles whole steps with a compiler that times its passes."""
    if not isinstance(engine, Row) or not engine.compiles or engine.options.frozen:
        return False
    return engine.options.compiler in REPORTS


def profile(session: Session) -> dict[str, Any]:
    """Shares of a compiler's passes for one step of the workload, over all translation units.

    Compiles all units repeatedly for `session.seconds`, and at least once; `seconds` is the average of a round.
    """
    start = perf_counter()
    engine, workload = session.engine, workloads.load(session.cell.workload)
    assert isinstance(engine, Row)
    if refusal := engine.supports(workload):
        raise NoProfile("skipped", refusal, "Choose another engine.")
    try:
        engine.check()
        tool = toolchains.find(engine.options.compiler)
        graph = trace(engine, workload)
    except (Unavailable, datasets.Unavailable) as missing:
        raise NoProfile("skipped", missing.reason, missing.remedy) from None
    variants = variants_of(lower(graph.tape(), engine.options))
    source = emit(variant_for(workload.batch, variants).code, engine.options)
    limit = session.limits.timeout_seconds
    accounts: list[Account] = []
    preparations = 0
    # A round takes no longer than all before it together, so one that starts within half of the limit ends in time.
    while not preparations or perf_counter() - start < min(session.seconds, limit / 2):
        for unit in source.units:
            accounts.append(_account(tool, unit, engine.flags, limit - (perf_counter() - start)))
        preparations += 1
    total = sum(account.seconds for account in accounts)
    if total <= 0.0:
        raise NoProfile("skipped", f"{tool.family} finished within one tick of its clock", "Profile a larger workload.")
    return {
        "tool": str(tool),
        "flags": engine.flags,
        "units": len(source.units),
        "source_bytes": source.size,
        "seconds": total / preparations,
        "preparations": preparations,
        "worker_seconds": perf_counter() - start,
        "passes": shares(accounts),
    }


def _account(tool: Toolchain, unit: str, flags: Sequence[str], seconds: float) -> Account:
    """Compile one translation unit within `seconds`. Raises NoProfile."""
    asked, read = REPORTS[tool.family]
    try:
        with building.compile_unit(tool, unit, [*flags, *asked], seconds=max(seconds, 0.01)) as compiled:
            return read(compiled)
    except TookTooLong as late:
        remedy = "Give it longer with --timeout, or choose a smaller workload."
        raise NoProfile("timed-out", str(late.reason), remedy) from None
    except BuildFailed as failed:
        if asked[0] in failed.reason:
            raise NoProfile("skipped", f"{tool.family} {tool.version} does not support {asked[0]}", NEWER) from None
        raise NoProfile("failed", failed.reason, failed.remedy) from None
    except NoAccount as silent:
        raise NoProfile("skipped", f"{tool.family} {tool.version} {silent}", NEWER) from None


# --- the accounts ------------------------------------------------------------------------------------------------


def shares(accounts: Iterable[Account]) -> list[dict[str, Any]]:
    """Shares of the passes over all units, largest first. OTHERS comes last: small passes and unnamed time."""
    accounts = list(accounts)
    passes: defaultdict[str, float] = defaultdict(float)
    for account in accounts:
        for name, seconds in account.passes.items():
            passes[name] += seconds
    # Rows of gcc's table are rounded, so they may add up to slightly more than its total.
    total = max(sum(account.seconds for account in accounts), sum(passes.values()))
    large = {name: seconds / total for name, seconds in passes.items() if seconds >= LEAST_SHARE * total}
    rows = sorted(large.items(), key=lambda item: (-item[1], item[0]))
    rest = max(0.0, 1.0 - sum(large.values()))
    if rest > 1e-9:
        rows.append((OTHERS, rest))
    return [{"name": name, "share": share} for name, share in rows]


_ROW = re.compile(r"^ (?P<name>\S.*?) *: (?P<cells>[^:\n]*)$", re.MULTILINE)
_OVERLAPPING = re.compile(r"phase |callgraph (functions expansion|ipa passes)$|\|")
"""Rows that gcc times outside its stack of timers. Other rows include their time too."""


def gcc_account(table: str) -> Account:
    """Parse gcc's output under `-ftime-report`. Raises NoAccount.

    Its timers form a stack of which only the topmost runs, so a row excludes nested timers. The clock of version 12 has
    ticks of 10 ms, so the table is in effect sampled a hundred times per second.
    """
    header = re.search(r"^Time variable(?P<columns>.*)$", table, re.MULTILINE)
    if not header or "wall" not in header["columns"]:
        raise NoAccount("printed no table of its passes")
    column = header["columns"].split().index("wall")
    rows = {}
    for row in _ROW.finditer(table, header.end()):
        cells = re.sub(r"\([^)]*\)", "", row["cells"]).split()  # without the shares
        rows[row["name"]] = float(cells[column])
    if "TOTAL" not in rows:
        raise NoAccount("printed a table without a total")
    total = rows.pop("TOTAL")
    return Account(total, {name: seconds for name, seconds in rows.items() if not _OVERLAPPING.match(name)})


_PASS_IN_DETAIL = ("RunPass", "RunLoopPass")
"""Events of the old pass manager, which still generates machine code. They share these names; `detail` has the pass."""


def clang_account(document: Mapping[str, Any]) -> Account:
    """Parse the JSON that Clang writes under `-ftime-trace`. Raises NoAccount.

    Events nest within their thread. A pass gets the time of its events minus that of the events nested in them.
    """
    threads: defaultdict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    # Events are written when they end, so of two with equal times the later one contains the other.
    for event in reversed(document["traceEvents"]):
        # "Total" events are sums over all events of a name, including nested ones, so they overlap.
        if event["ph"] == "X" and not event["name"].startswith("Total "):
            threads[event["tid"]].append(event)
    microseconds: defaultdict[str, int] = defaultdict(int)
    total = 0
    for events in threads.values():
        open_events: list[tuple[int, str]] = []  # end and name
        for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
            name, duration = _pass_of(event), event["dur"]
            while open_events and open_events[-1][0] <= event["ts"]:
                open_events.pop()
            if open_events:
                microseconds[open_events[-1][1]] -= duration
            else:
                total += duration
            microseconds[name] += duration
            open_events.append((event["ts"] + duration, name))
    if not total:
        raise NoAccount("wrote a trace without events")
    # Start and duration are truncated to microseconds separately, so a pass may come out slightly below 0.
    return Account(total / 1e6, {name: max(0, own) / 1e6 for name, own in microseconds.items()})


def _pass_of(event: Mapping[str, Any]) -> str:
    name: str = event["name"]
    detail: str = event.get("args", {}).get("detail", "")
    return detail if detail and name in _PASS_IN_DETAIL else name


def _clang_account(compiled: Compiled) -> Account:
    file = compiled.path.with_suffix(".json")
    if not file.exists():
        raise NoAccount("wrote no trace")
    return clang_account(json.loads(file.read_text(encoding="utf-8", errors="replace")))


REPORTS: dict[str, tuple[tuple[str, ...], Callable[[Compiled], Account]]] = {
    "gcc": (("-ftime-report",), lambda compiled: gcc_account(compiled.output)),
    # Without the second flag, events below 0.5 ms are missing, and their time counts for those that enclose them.
    "clang": (("-ftime-trace", "-ftime-trace-granularity=0"), _clang_account),
}
"""Compiler family -> flags that request the timing, and the function that parses it."""
