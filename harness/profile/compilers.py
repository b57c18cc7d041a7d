"""A C compiler's account of where its seconds go (gcc's `-ftime-report`, Clang's `-ftime-trace`), and what it fused.

The engine's C is made here, whatever the cell's interpreter, and compiled with the engine's own flags, one translation
unit after the other: their sum is the subject. gcc's account leaves its assembler out, which is a program of its own;
Clang's has it built in. Both accounts make a compiler slower: gcc's most where it parses, since it times every token.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import datasets
from datasets.idx import CorruptData
from engines.api import Engine, Unavailable
from engines.domain import DOMAIN_ERRORS
from engines.graph.tape import Tape
from engines.kernel import building, toolchains
from engines.kernel.building import BuildFailed, Compiled, TookTooLong
from engines.kernel.c_engine import CEngine
from engines.kernel.toolchains import Toolchain
from harness import workloads
from harness.profile.fused import Uncounted, fused
from harness.profile.profile_session import NoProfile, Session
from harness.stages import trace
from harness.workloads import Workload

LEAST_SHARE = 0.005
"""What takes less is among the others."""
OTHERS = "others"


class Account(NamedTuple):
    """What a compiler says of one translation unit."""

    seconds: float
    """In all, by its own clock."""
    passes: dict[str, float]
    """Pass -> seconds that went into nothing below it: they add up to no more than all."""


class NoAccount(Exception):
    """A compiler that did its work and told nothing of it."""


def profile(session: Session) -> dict[str, Any]:
    """Shares of a compiler's passes, for one step of the workload, over all translation units.

    They are compiled again and again for `session.seconds`, and once at least; `seconds` is a round's, on average.
    """
    start = perf_counter()
    engine = session.engine
    if not isinstance(engine, CEngine):
        raise NoProfile("skipped", f"{engine.name} compiles no C from a graph", "Profile gcc-O1 or clang-O1.")
    family = engine.compiler.partition("-")[0]
    if family not in REPORTS:
        raise NoProfile(
            "skipped", f"{engine.compiler} gives no account of its passes", "Profile an engine with gcc or Clang."
        )
    try:
        engine.check()
        tool = toolchains.find(engine.compiler)
        tape = _tape(engine, _workload(session, engine))
        source = engine.generate(engine.lower(tape))
    except (Unavailable, datasets.Unavailable) as missing:
        raise NoProfile("skipped", missing.reason, missing.remedy) from None
    accounts: list[Account] = []
    tally = Tally()
    preparations = 0
    # Another round takes no longer than what came before it: within half of the limit it ends within the limit.
    while not preparations or perf_counter() - start < min(session.seconds, session.limits.timeout_seconds / 2):
        for unit in source.units:
            left = session.limits.timeout_seconds - (perf_counter() - start)
            accounts.append(_account(session, tool, unit, engine.flags, left, None if preparations else tally))
        preparations += 1
    total = sum(account.seconds for account in accounts)
    if total <= 0.0:
        raise NoProfile("skipped", f"{tool.family} was done before its own clock went on", "Profile a larger workload.")
    return {
        "tool": str(tool),
        "flags": engine.flags,
        "units": len(source.units),
        "functions": sum(map(count_functions, source.units)),
        "source_bytes": source.size,
        "seconds": total / preparations,
        "preparations": preparations,
        "worker_seconds": perf_counter() - start,
        "passes": shares(accounts),
        **{f"fusable_{name}": count for name, count in engine.fusable(tape)._asdict().items()},
        "fused_instructions": None if tally.reason else tally.instructions,
        "fused_reason": tally.reason,
    }


@dataclass
class Tally:
    """Fused instructions of some objects."""

    instructions: int = 0
    reason: str = ""
    """Why there is no count."""

    def add(self, path: Path) -> None:
        """Count those of one more object."""
        try:
            self.instructions += fused(path)
        except Uncounted as uncounted:
            self.reason = str(uncounted)


def _account(
    session: Session, tool: Toolchain, unit: str, flags: Sequence[str], seconds: float, tally: Tally | None
) -> Account:
    """Of one translation unit, compiled in so many seconds at most; the tally gets its object. Raises NoProfile."""
    asked, read = REPORTS[tool.family]
    too_late = NoProfile(
        "timed-out",
        f"took longer than {session.limits.timeout_seconds:g} s",
        "Give it longer with --timeout, or choose a smaller workload.",
    )
    if seconds <= 0:
        raise too_late
    try:
        with building.compile_unit(tool, unit, [*flags, *asked], seconds=seconds) as compiled:
            account = read(compiled)
            if tally:
                tally.add(compiled.path)
            return account
    except TookTooLong:
        raise too_late from None
    except BuildFailed as failed:
        if asked[0] in failed.reason:
            raise NoProfile("skipped", f"{tool.family} {tool.version} knows no {asked[0]}", NEWER) from None
        raise NoProfile("failed", failed.reason, failed.remedy) from None
    except NoAccount as silent:
        raise NoProfile("skipped", f"{tool.family} {tool.version} {silent}", NEWER) from None


NEWER = "Install a newer compiler: any gcc will do, and Clang from version 9 on."


# --- the C -------------------------------------------------------------------------------------------------------


def _workload(session: Session, engine: Engine) -> Workload:
    workload = workloads.load(session.cell.workload)
    refusal = engine.supports(workload)
    if refusal:
        raise NoProfile("skipped", refusal, "Choose another engine.")
    return workload


def _tape(engine: CEngine, workload: Workload) -> Tape:
    """Of the workload's first step."""
    try:
        loss, inputs, parameters, outputs = trace(engine, workload)
    except CorruptData as error:
        reason, _, remedy = str(error).partition("\n  ")
        raise NoProfile("failed", reason, remedy) from None
    except DOMAIN_ERRORS as error:
        raise NoProfile("failed", f"the first step left the real numbers: {error}", "Lower the rate.") from None
    return engine.tape(loss, inputs=inputs, parameters=parameters, outputs=outputs)


_FUNCTION = re.compile(r"^\w[^;{}=]*\)\s*\{", re.MULTILINE)


def count_functions(unit: str) -> int:
    """C functions that the unit defines; our C indents what stands within one."""
    return len(_FUNCTION.findall(unit))


# --- the accounts ------------------------------------------------------------------------------------------------


def shares(accounts: Iterable[Account]) -> list[dict[str, Any]]:
    """Passes of all units with their shares, largest first; last what is small, or told under no name."""
    accounts = list(accounts)
    passes: defaultdict[str, float] = defaultdict(float)
    for account in accounts:
        for name, seconds in account.passes.items():
            passes[name] += seconds
    # A table's rows are rounded, and may add up to a little more than their total.
    total = max(sum(account.seconds for account in accounts), sum(passes.values()))
    large = {name: seconds / total for name, seconds in passes.items() if seconds >= LEAST_SHARE * total}
    rows = sorted(large.items(), key=lambda item: (-item[1], item[0]))
    rest = max(0.0, 1.0 - sum(large.values()))
    if rest > 1e-9:
        rows.append((OTHERS, rest))
    return [{"name": name, "share": share} for name, share in rows]


_ROW = re.compile(r"^ (?P<name>\S.*?) *: (?P<cells>[^:\n]*)$", re.MULTILINE)
_OVERLAPPING = re.compile(r"phase |callgraph (functions expansion|ipa passes)$|\|")
"""What gcc times besides its stack of timers: everything in these rows is in others too."""


def gcc_account(table: str) -> Account:
    """The account in what gcc says under `-ftime-report`. Raises NoAccount.

    Its timers form a stack of which only the topmost runs, so that rows are free of what is below them. The clock of
    version 12 has ticks of 10 ms: the table is a sample of a hundred points a second.
    """
    header = re.search(r"^Time variable(?P<columns>.*)$", table, re.MULTILINE)
    if not header or "wall" not in header["columns"]:
        raise NoAccount("gave no table of its passes")
    column = header["columns"].split().index("wall")
    rows = {}
    for row in _ROW.finditer(table, header.end()):
        cells = re.sub(r"\([^)]*\)", "", row["cells"]).split()  # without the shares
        rows[row["name"]] = float(cells[column])
    if "TOTAL" not in rows:
        raise NoAccount("gave a table without a total")
    total = rows.pop("TOTAL")
    return Account(total, {name: seconds for name, seconds in rows.items() if not _OVERLAPPING.match(name)})


_PASS_IN_DETAIL = ("RunPass", "RunLoopPass")
"""Events of the old pass manager, which still makes machine code: each is named alike, and tells its pass in detail."""


def clang_account(document: Mapping[str, Any]) -> Account:
    """The account in the JSON that Clang writes under `-ftime-trace`.

    Events lie within one another, each within its thread; a pass gets what its events leave to no event in them.
    """
    threads: defaultdict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    # They are written when they end: of two that are equal, the later one has the other within.
    for event in reversed(document["traceEvents"]):
        # The sums over events of a name count what is within, so that they overlap.
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
    # Start and duration are cut to whole microseconds, each for itself: a pass may come out a few of them below 0.
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
    # Without the second flag events below 0.5 ms are missing, and what they took seems to be what is around them.
    "clang": (("-ftime-trace", "-ftime-trace-granularity=0"), _clang_account),
}
"""Family of compilers -> the flags that ask for an account, and how it is read."""
