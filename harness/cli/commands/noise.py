"""`zoomgrad noise`: how much speedups differ on this machine between runs of unchanged code."""

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
        Optional[list[str]],
        typer.Argument(metavar="RUN", help="Finished runs of one preset to use. Default: measure new ones."),
    ] = None,
    preset: Annotated[str, typer.Option(help=f"Preset of the new runs: {', '.join(presets.PRESETS)}.")] = "smoke",
    runs: Annotated[int, typer.Option(min=2, help="Number of new runs.")] = 4,
    wait: Wait = False,
) -> None:
    """Measure this machine's noise floor: how much speedups vary when the same run is repeated."""
    stores = [store_of(name) for name in runs_ or ()]
    if not stores:
        stores = [_measured(preset, f"{number} of {runs}", wait) for number in range(1, runs + 1)]
    try:
        floors = noise([(store.run, store.records()) for store in stores])
    except ValueError as error:
        raise Unreadable(f"{error}\n  Make new runs with `zoomgrad noise`.") from error
    path = keep_noise(stores[0].run.preset, floors)
    rows = [
        (
            key,
            f"{100 * floor:.1f} %",
            f"{100 * floors.compile_floors[key]:.1f} %" if key in floors.compile_floors else "",
        )
        for key, floor in sorted(floors.floors.items(), key=lambda item: -item[1])
    ]
    title = f"noise floor from {len(stores)} runs: two runs of the same code differ by more than this in 5 % of cases"
    out.print(display.table(title, ("cell", "noise floor", "of compile time"), rows), "")
    say_next(f"Stored in {short(path)}, where `zoomgrad check` reads it.")


def _measured(preset: str, which: str, wait: bool) -> Store:
    plan = planning.plan(preset, discover(), command=["zoomgrad", *sys.argv[1:]])
    out.print(f"run {which}: about {display.seconds_text(plan.total_seconds)}")
    with measuring(plan, wait=wait) as schedule:
        schedule.execute()
    return schedule.store
