"""Time of a step by engine, with one mark for each interpreter."""

from __future__ import annotations

import pandas as pd

from zoomgrad.reports.measured.table import each, in_order
from zoomgrad.reports.plot import LEFT, RIGHT, WIDTH, Drawing, Plot, Scale, times
from zoomgrad.results import units

_ROW = 22.0


def interpreters(name: str, title: str, rows: pd.DataFrame) -> Drawing:
    """Draw the measured rows of one workload: engines from top to bottom, time to the right."""
    engines, hosts = in_order(rows, "engine"), in_order(rows, "interpreter")
    low, high = rows["step_seconds"].min(), rows["step_seconds"].max()
    # To the left of the marks is room for names.
    scale = times(low / (high / low) ** 0.45 / 2, high * 2, "time of a step")
    scale = Scale(scale.low, scale.high, [tick for tick in scale.ticks if tick[0] >= low / 2], scale.label)
    legend = 18.0 * -(-len(hosts) // 4)
    vertical = Scale(len(engines) - 0.5, -0.5 - legend / _ROW, (), "", log=False)
    plot = Plot(scale, vertical, height=68.0 + _ROW * len(engines) + legend)
    for number, host in enumerate(hosts):
        at = LEFT - 40 + (WIDTH - RIGHT - LEFT + 40) / 4 * (number % 4), 20.0 + 18.0 * (number // 4)
        plot.mark(at, f"s{number % 8 + 1}", host)
        plot.text((at[0] + 8, at[1] + 4), host, "start")
    for place, engine in enumerate(engines):
        of_engine = rows[rows["engine"] == engine]
        plot.line([plot.place(of_engine["step_seconds"].min(), place), (plot.x.end, plot.y.at(place))], "grid")
        plot.text((LEFT - 54, plot.y.at(place) + 4), engine, "start", "name")
        for row in each(of_engine):
            kind = f"s{hosts.index(row.interpreter) % 8 + 1}"
            tip = f"{engine} on {row.interpreter}: {units.duration(row.step_seconds)} a step"
            plot.mark(plot.place(row.step_seconds, place), kind, tip, radius=4.5)
    return plot.drawn(name, title)
