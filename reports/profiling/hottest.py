"""Line profiles -> the hottest lines of each cell, and each line's share across the variants of the ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from zoomgrad.reports.profiling.profile_index import SCALENE_PAGE, STACKS, Pair, ProfileIndex, flame_name
from zoomgrad.reports.text.figures import Bar, Figure, Link, Section, Sheet, share, share_figure
from zoomgrad.results import units
from zoomgrad.results.profile import Line, LineProfile
from zoomgrad.results.record import Cell

HOTTEST = 5
"""Lines shown per cell and measure."""
_QUOTED = 60
CALLERS = ("engines/kernel/library.py", "engines/straight/published.py")
"""Files whose hottest line calls compiled C, where Scalene sees no lines."""
RUNGS = 12
"""Lines shown per ladder."""
KINDS = ("python", "native", "system")
PROFILERS = ("scalene", "perf")
"""Profilers that may leave stacks or pages."""

_LEAD = (
    f"What Scalene saw, line by line: for each cell, the {HOTTEST} lines with the most CPU time and the {HOTTEST} that "
    "allocate most, with their rank by each (“1st”, “2nd”). In the HTML report, a bar splits CPU time into Python, "
    "native code that the line called (including garbage collections on the way), and the system. A profiled step is "
    "slower than a timed one: shares are of the profile's own samples and cannot be compared with any time above. "
    "Engines whose hottest line calls compiled C are left out, because Scalene sees no lines there."
)
_LADDER_LEAD = (
    "The same source line across variants, each of which differs from the previous one by one idea. Shares are of each "
    "variant's own CPU time and show where a cost appears and vanishes. Lines are matched by their text, and equal "
    "lines are added up. An empty cell means that the variant has no such line, or that no sample fell on it."
)


@dataclass(frozen=True)
class Rung:
    """The text of a source line, and its share of CPU time in each engine that has it."""

    source: str
    shares: Mapping[str, float]

    @property
    def largest(self) -> float:
        return max(self.shares.values())


def hottest(index: ProfileIndex) -> Section | None:
    """One folded sheet per cell, with links to its pages; None if there is none. Cells that call C are left out."""
    profiles = [profile for profile in index.of(LineProfile) if profile.lines]
    sheets = [_of_cell(index, each) for each in profiles if not _calls_c(each)]
    return Section("hottest-lines", "Hottest lines", _LEAD, tuple(sheets)) if sheets else None


def _calls_c(profile: LineProfile) -> bool:
    """Whether most time is in a call of compiled C."""
    return any(line.file in CALLERS for line in by_cpu(profile)[:1])


def pages(index: ProfileIndex) -> Section | None:
    """Links to flame graphs and Scalene's own pages, one row per cell that has any; None if no cell does."""
    rows = []
    for cell in dict.fromkeys(profile.cell for profile in index.profiles):
        columns = [links_of(index, cell, name) for name in PROFILERS]
        if any(columns):
            names = (Figure(cell.engine), Figure(cell.interpreter), Figure(cell.workload))
            rows.append((*names, *(Figure("" if links else units.ABSENT, links=links) for links in columns)))
    if not rows:
        return None
    lead = (
        "Whole stacks, as files beside this page. A wider frame means more samples in the function and in what it "
        "called. Point at a frame to read its name and share."
    )
    sheet = Sheet("", 3, ("engine", "interpreter", "workload", "Scalene", "perf"), tuple(rows))
    return Section("flame-graphs", "Flame graphs", lead, (sheet,))


def links_of(index: ProfileIndex, cell: Cell, profiler: str) -> tuple[Link, ...]:
    """Return links to a profiler's files on a cell: its flame graph and its page."""
    found = []
    if index.has(cell, f"{profiler}{STACKS}"):
        found.append(Link("flame graph", index.path(cell, flame_name(profiler))))
    if profiler == "scalene" and index.has(cell, SCALENE_PAGE):
        found.append(Link("Scalene's page", index.path(cell, SCALENE_PAGE)))
    return tuple(found)


def ladders(index: ProfileIndex) -> Section | None:
    """One sheet per interpreter and workload with two profiled variants or more; None if there is none."""
    sheets = [_ladder(pair, profiles) for pair, profiles in variants(index).items() if len(profiles) > 1]
    return Section("line-ladder", "The ladder, line by line", _LADDER_LEAD, tuple(sheets)) if sheets else None


def top_lines(index: ProfileIndex) -> Section | None:
    """The hottest line of every variant of the ladder, as a short form of both sections."""
    rows = tuple(
        (Figure(interpreter), Figure(workload), Figure(engine), Figure(top.source), Figure(share(top.cpu)))
        for (interpreter, workload), profiles in variants(index).items()
        for engine, profile in profiles.items()
        for top in by_cpu(profile)[:1]
    )
    if not rows:
        return None
    headings = ("interpreter", "workload", "engine", "hottest line", "of its CPU time")
    return Section(
        "top-lines", "Hottest line of each variant", "Shares are of Scalene's samples.", (Sheet("", 4, headings, rows),)
    )


def variants(index: ProfileIndex) -> dict[Pair, dict[str, LineProfile]]:
    """Return line profiles of the ladder's engines, in its order, by interpreter and workload."""
    found = {
        pair: {engine: profile for engine, profile in profiles.items() if index.is_variant(profile) and profile.lines}
        for pair, profiles in index.by_pair(LineProfile).items()
    }
    return {pair: profiles for pair, profiles in found.items() if profiles}


def by_cpu(profile: LineProfile) -> list[Line]:
    """Sort the profile's lines by CPU time, largest first; omit lines without any."""
    return sorted((line for line in profile.lines if line.cpu > 0), key=lambda line: -line.cpu)


def by_allocation(profile: LineProfile) -> list[Line]:
    """Sort the profile's lines by allocated bytes, largest first; omit lines without any."""
    return sorted((line for line in profile.lines if line.allocated_bytes > 0), key=lambda line: -line.allocated_bytes)


def rungs(profiles: Mapping[str, LineProfile]) -> list[Rung]:
    """Merge the lines of the profiles by their text; the line with the largest share in any engine comes first."""
    shares: dict[str, dict[str, float]] = {}
    for engine, profile in profiles.items():
        for line in profile.lines:
            if line.cpu > 0:
                of_line = shares.setdefault(" ".join(line.source.split()), {})
                of_line[engine] = of_line.get(engine, 0.0) + line.cpu
    return sorted((Rung(source, found) for source, found in shares.items()), key=lambda rung: -rung.largest)


def place(line: Line) -> str:
    """Format a line's place: `baseline.py:25`."""
    return f"{PurePosixPath(line.file).name}:{line.line}"


def quoted(source: str) -> str:
    """Quote a source line within a sentence; cut it if it is long."""
    return f"“{source if len(source) <= _QUOTED else f'{source[: _QUOTED - 1]}…'}”"


def ordinal(number: int) -> str:
    """Format an ordinal: 1st, 2nd, 3rd, 4th, 11th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _of_cell(index: ProfileIndex, profile: LineProfile) -> Sheet:
    hot, large = by_cpu(profile), by_allocation(profile)
    shown = list(dict.fromkeys((*hot[:HOTTEST], *large[:HOTTEST])))
    longest = max((line.cpu for line in shown), default=0.0)
    allocated = sum(line.allocated_bytes for line in profile.lines)
    most = large[0].allocated_bytes if large else 0.0
    rows = tuple(
        (
            Figure(place(line), str(PurePosixPath(line.file).parent)),
            Figure(line.source, mark="code"),
            Figure(
                share(line.cpu),
                _rank(line, hot),
                bars=tuple(Bar(kind, getattr(line, kind) / longest) for kind in KINDS) if longest else (),
            ),
            Figure(
                units.size(line.allocated_bytes),
                _rank(line, large),
                bars=(Bar("memory", line.allocated_bytes / most),) if most else (),
            ),
        )
        for line in shown
    )
    cell = profile.cell
    top = f": {share(hot[0].cpu)} in {place(hot[0])}" if hot else ""
    parts = ", ".join(f"{share(getattr(profile, kind))} {kind}" for kind in KINDS)
    return Sheet(
        title=f"{cell.engine} on {cell.interpreter}, {cell.workload}{top}",
        names=2,
        headings=("line", "source", "CPU time", "allocated"),
        rows=rows,
        notes=(
            f"{profile.tool or 'Scalene'}, {units.count(profile.steps, 'step')} in {units.duration(profile.seconds)}: "
            f"{parts}; {units.size(allocated)} allocated in total, including what was freed at once, and at most "
            f"{units.size(profile.peak_bytes)} in use.",
        ),
        folded=True,
        links=tuple(
            Link(f"{link.text} ({name})" if link.text == "flame graph" else link.text, link.path)
            for name in PROFILERS
            for link in links_of(index, cell, name)
        ),
    )


def _rank(line: Line, ranked: Sequence[Line]) -> str:
    rank = ranked.index(line) + 1 if line in ranked else 0
    return ordinal(rank) if 0 < rank <= HOTTEST else ""


def _ladder(pair: Pair, profiles: Mapping[str, LineProfile]) -> Sheet:
    interpreter, workload = pair
    shown = rungs(profiles)[:RUNGS]
    longest = shown[0].largest if shown else 1.0
    rows = tuple(
        (
            Figure(rung.source, mark="code"),
            *(
                share_figure(rung.shares[engine], "cpu", longest) if engine in rung.shares else Figure("")
                for engine in profiles
            ),
        )
        for rung in shown
    )
    return Sheet(
        title=f"{workload} on {interpreter}: {_finding(profiles)}",
        names=1,
        headings=("source", *profiles),
        rows=rows,
    )


def _finding(profiles: Mapping[str, LineProfile]) -> str:
    """Follow the first variant's hottest line through the later variants, in one sentence."""
    first, *others = profiles
    ranked = sorted((rung for rung in rungs(profiles) if first in rung.shares), key=lambda rung: -rung.shares[first])
    if not ranked:
        return f"no sample fell in {first}"
    top = ranked[0]
    gone = next((engine for engine in others if engine not in top.shares), "")
    if gone:
        return f"{share(top.shares[first])} of {first} is in {quoted(top.source)}, where no sample of {gone} fell"
    last = others[-1]
    return f"{quoted(top.source)} takes {share(top.shares[first])} of {first} and {share(top.shares[last])} of {last}"
