"""Folded stacks of all profiles in one file for speedscope, whose list of threads shows a cell and profiler each.

Schema: https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json
import re
from typing import Any

from zoomgrad.reports.exports.material import Export, Material, NoExport

FILE = "speedscope.json"
USE = "Open {path} at https://www.speedscope.app, which reads it in the browser and uploads nothing"
MOST_SAMPLES = 1e15
"""Most samples on one line. A higher count is a mistake, and the sum might not be finite."""
_COUNT = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")


def export(material: Material) -> Export:
    """Make the file. Weights have no unit."""
    frames: dict[str, int] = {}
    profiles = [_profile(name, text, frames) for name, text in material.stacks.items()]
    if not profiles:
        run = material.view.run.id
        raise NoExport(f"{run} has no stacks", "Make some with `zoomgrad profile --profilers scalene`.")
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


def folded(text: str) -> dict[str, float]:
    """Parse lines of `outer;inner COUNT` into samples by stack. Raises ValueError with the line that has no count."""
    stacks: dict[str, float] = {}
    for line in filter(str.strip, text.splitlines()):
        stack, _, count = line.rpartition(" ")
        if not _COUNT.fullmatch(count) or float(count) > MOST_SAMPLES:
            raise ValueError(f"no count at the end of {line[-200:]!r}")
        stacks[stack] = stacks.get(stack, 0.0) + float(count)
    return stacks
