"""`zoomgrad noise`: by how much speedups differ here although nothing changed."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from harness.cli import display
from harness.cli.app import app, out, say_next, short
from harness.cli.measuring import discover, measuring
from harness.cli.options import Wait
from harness.cli.stores import store_of
from harness.plan import planning, presets
from reports.gate.noise_floor import keep_noise, noise
from results.files import Unreadable
from results.store import Store


@app.command("noise")
def noise_(
    runs_: Annotated[
        Optional[list[str]], typer.Argument(metavar="RUN", help="Runs of one preset; else new ones are made.")
    ] = None,
    preset: Annotated[str, typer.Option(help=f"What new runs measure: {', '.join(presets.PRESETS)}.")] = "smoke",
    runs: Annotated[int, typer.Option(min=2, help="How many runs to make.")] = 4,
    wait: Wait = False,
) -> None:
    """Measure this machine's noise floor: the same run several times, for the gate to know what a change is worth."""
    stores = [store_of(name) for name in runs_ or ()]
    if not stores:
        stores = [_measured(preset, f"{number} of {runs}", wait) for number in range(1, runs + 1)]
    try:
        floors = noise([(store.run, store.records()) for store in stores])
    except ValueError as error:
        raise Unreadable(f"{error}\n  Make new runs: `zoomgrad noise`.") from error
    path = keep_noise(stores[0].run.preset, floors)
    rows = [(key, f"{100 * floor:.1f} %") for key, floor in sorted(floors.floors.items(), key=lambda item: -item[1])]
    title = f"change of a speedup that two runs exceed by chance once in twenty times, from {len(stores)} runs"
    out.print(display.table(title, ("cell", "noise floor"), rows), "")
    say_next(f"The gate knows it from {short(path)}: `zoomgrad check`.")


def _measured(preset: str, which: str, wait: bool) -> Store:
    plan = planning.plan(preset, discover(), command=["zoomgrad", *sys.argv[1:]])
    out.print(f"run {which}: about {display.seconds_text(plan.total_seconds)}")
    with measuring(plan, wait=wait) as schedule:
        schedule.execute()
    return schedule.store
