"""Folded stacks of all profiles in one file for speedscope, whose list of threads shows a cell and profiler each.

Schema: https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json
from typing import Any

from zoomgrad.reports.exports.material import Export, Material, NoExport
from zoomgrad.reports.profiling.stacks import folded

FILE = "speedscope.json"
USE = "Open {path} at https://www.speedscope.app, which reads it in the browser and uploads nothing"


def export(material: Material) -> Export:
    """Make the file. Profilers count samples, or shares of them, so weights have no unit."""
    frames: dict[str, int] = {}
    profiles = [_profile(name, text, frames) for name, text in material.stacks.items()]
    if not profiles:
        run = material.view.run.id
        raise NoExport(f"{run} has no stacks", "Make some with `zoomgrad profile --profilers scalene,perf`.")
    content = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": material.view.run.id,
        "exporter": "zoomgrad",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": profiles,
    }
    return Export(json.dumps(content))


def _profile(name: str, text: str, frames: dict[str, int]) -> dict[str, Any]:
    """One profile. frames: numbers of the names so far; new names are added."""
    try:
        stacks = folded(text)
    except ValueError as error:
        raise NoExport(f"the stacks of {name} are damaged: {error}", "Profile the cell again.") from error
    return {
        "type": "sampled",
        "name": name,
        "unit": "none",
        "startValue": 0,
        "endValue": sum(stacks.values()),
        "samples": [[frames.setdefault(frame, len(frames)) for frame in stack.split(";")] for stack in stacks],
        "weights": list(stacks.values()),
    }
