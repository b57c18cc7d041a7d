"""A run -> its report, as files in the run's folder; a folder of runs -> their history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from zoomgrad.reports.measured.races import NEEDED, Race, race, same_run, speedups
from zoomgrad.reports.pages import html, markdown
from zoomgrad.reports.plot import Drawing, standalone
from zoomgrad.reports.profiling.flame_graph import flame
from zoomgrad.reports.profiling.profile_index import STACKS, ProfileIndex, flame_name, profile_index
from zoomgrad.reports.profiling.stacks import folded
from zoomgrad.reports.sections.history import History
from zoomgrad.reports.story import Story, story
from zoomgrad.results.files import Unreadable, inside, read_text, write_atomically
from zoomgrad.results.printable import printable
from zoomgrad.results.run_file import SUFFIX
from zoomgrad.results.store import Store, stored

CHARTS = "charts"
MOST_STACK_BYTES = 64 * 2**20


def build(store: Store) -> Path:
    """Write the report of a run beside its records; return its page's path. Raises results.store.Unreadable."""
    return write(store, tell(store))


def tell(store: Store, *, elsewhere: bool = False) -> Story:
    """Return a run's story. Raises results.store.Unreadable.

    elsewhere: the report goes to another folder than the records, so it can't link to the files that profilers left.
    """
    return story(store.run, store.records(), _profile_index(store, linked=not elsewhere), store.vouchings())


def write(store: Store, story: Story, into: Path | None = None) -> Path:
    """Write the report beside the records, or into a folder with `index.html` as its page; return the page's path.

    Files: the page, report.md, the headline workload's charts as SVG and, if the run has profiles, flame graphs.
    Raises results.store.Unreadable.
    """
    folder = into or store.pages_folder()
    inside(folder, CHARTS).mkdir(parents=True, exist_ok=True)
    for name, drawing in charts(story):
        write_atomically(inside(folder, CHARTS, f"{name}.svg"), standalone(drawing))
    if story.profile_index:
        _draw_flames(store, story.profile_index)
    write_atomically(inside(folder, "report.md"), markdown.page(story))
    page = inside(folder, "index.html" if into else "report.html")
    write_atomically(page, html.page(story))
    return page


def charts(story: Story) -> Iterator[tuple[str, Drawing]]:
    """Yield the first panel's chart and those of the sections, with the names of their files."""
    yield from (("compile_against_epoch", panel.chart) for panel in story.panels[:1] if panel.chart)
    yield from ((drawing.name, drawing) for section in story.sections for drawing in section.charts)


def gather(folder: Path) -> tuple[list[Race], list[str]]:
    """Return the races of the runs in a folder, and one line with the reason for each run that is left out.

    A run is left out if it can't be read, repeats another run or has no speedup. Entries that are not runs are ignored.
    """
    races: list[Race] = []
    left_out: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.name.endswith(SUFFIX) or (path / "run.json").exists() or (path / "records").is_dir():
            try:
                store = stored(path) or Store(path)
                newest = race(store.run, store.records())
            except (Unreadable, OSError) as error:
                left_out.append(printable(f"{path.name} is left out: {error}"))
                continue
            if reason := _useless(newest, races):
                left_out.append(printable(f"{path.name} is left out: {reason}"))
            else:
                races.append(newest)
    return races, left_out


def _useless(newest: Race, before: Iterable[Race]) -> str:
    if any(same_run(one.run, newest.run) for one in before):
        return f"the same run as {newest.run.id}"
    return f"it has no speedup. {NEEDED}" if speedups(newest.table).empty else ""


def write_history(folder: Path, history: History) -> Path:
    """Write history.html, and history.md for a job's summary, into a folder of runs; return the page's path."""
    write_atomically(inside(folder, "history.md"), markdown.history_page(history))
    page = inside(folder, "history.html")
    write_atomically(page, html.history_page(history))
    return page


def _profile_index(store: Store, *, linked: bool) -> ProfileIndex:
    profiles = store.profiles()
    folders = {profile.cell: store.profile_folder(profile.cell) for profile in profiles}
    files = {
        cell: frozenset(path.name for path in folder.iterdir() if path.is_file())
        for cell, folder in folders.items()
        if linked and folder.is_dir()
    }
    return profile_index(store.run, profiles, files)


def _draw_flames(store: Store, index: ProfileIndex) -> None:
    for cell, names in index.files.items():
        for name in sorted(name for name in names if name.endswith(STACKS)):
            file = store.profile_folder(cell) / name
            profiler = name.removesuffix(STACKS)
            try:
                stacks = folded(read_text(file, MOST_STACK_BYTES))
            except ValueError as error:
                raise Unreadable(f"{file}: {error}\n  Remove the file, then profile the cell again.") from error
            write_atomically(file.with_name(flame_name(profiler)), flame(stacks, f"{cell}, by {profiler}"))
