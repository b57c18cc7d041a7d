"""A run -> its report, as files in the run's folder; a folder of runs -> their history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from zoomgrad.reports.measured.races import NEEDED, Race, race, same_run, speedups
from zoomgrad.reports.pages import html, markdown
from zoomgrad.reports.plot import Drawing, standalone
from zoomgrad.reports.profiling.profile_index import SCALENE_PAGE, ProfileIndex, profile_index
from zoomgrad.reports.sections.history import History, history
from zoomgrad.reports.story import Story, story
from zoomgrad.results import units
from zoomgrad.results.files import Unreadable, inside, write_atomically
from zoomgrad.results.printable import printable
from zoomgrad.results.run_file import SUFFIX
from zoomgrad.results.store import Store, stored

CHARTS = "charts"


def build(store: Store) -> Path:
    """Write the report of a run beside its records; return its page's path. Raises Unreadable."""
    return write(store, tell(store))


def tell(store: Store, *, elsewhere: bool = False) -> Story:
    """Return a run's story. Raises Unreadable.

    elsewhere: the report goes to another folder than the records, so it can't link to the files that profilers left.
    """
    return story(store.run, store.records(), _profile_index(store, linked=not elsewhere), store.vouchings())


def write(store: Store, story: Story, into: Path | None = None) -> Path:
    """Write the report beside the records, or into a folder with `index.html` as its page; return the page's path.

    Files: the page, report.md and the headline workload's charts as SVG. Raises Unreadable.
    """
    folder = into or store.pages_folder()
    inside(folder, CHARTS).mkdir(parents=True, exist_ok=True)
    for name, drawing in charts(story):
        write_atomically(inside(folder, CHARTS, f"{name}.svg"), standalone(drawing))
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


def write_history(folder: Path) -> tuple[History, list[str], Path]:
    """Write history.html, and history.md for a job's summary, into a folder of runs.

    Returns the history, a line for each run that is left out, and the page's path. Raises Unreadable.
    """
    races, left_out = gather(folder)
    past = history(races, left_out)
    if past is None:
        what = f"{units.count(len(races), 'run')} with speedups; no cell was measured twice on the same machine"
        needs = "A history needs two runs of one cell: make another with `zoomgrad run`, or name another folder."
        raise Unreadable("\n  ".join([f"{folder}: {what}", needs, *left_out]))
    write_atomically(inside(folder, "history.md"), markdown.history_page(past))
    page = inside(folder, "history.html")
    write_atomically(page, html.history_page(past))
    return past, left_out, page


def _profile_index(store: Store, *, linked: bool) -> ProfileIndex:
    profiles = store.profiles()
    cells = {profile.cell for profile in profiles if linked}
    pages = {cell for cell in cells if (store.profile_folder(cell) / SCALENE_PAGE).is_file()}
    return profile_index(store.run, profiles, pages)
