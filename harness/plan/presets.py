"""Presets, which `presets.toml` lists: named choices of cells, blocks and settings."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zoomgrad.engines.api import UnknownName


@dataclass(frozen=True)
class Part:
    """Cells of a preset. The file explains the fields."""

    workloads: Sequence[str]
    engines: Sequence[str] = ()
    everywhere: bool = False
    also: Sequence[str] = ()
    cpython_only: bool = False


@dataclass(frozen=True)
class Preset:
    """A named choice of cells and of how to measure them."""

    description: str
    blocks: int
    parts: Sequence[Part]
    settings: dict[str, Any] = field(default_factory=dict)
    """Fields of `results.record.Settings`."""


def _read() -> dict[str, Preset]:
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {
        name: Preset(**{**table, "parts": [Part(**part) for part in table["parts"]]}) for name, table in tables.items()
    }


PRESETS = _read()


@dataclass(frozen=True)
class Selection:
    """The names that a user chose instead of a preset's. An empty field keeps the preset's names."""

    engines: Sequence[str] = ()
    workloads: Sequence[str] = ()
    interpreters: Sequence[str] = ()


def preset(name: str) -> Preset:
    """Return the preset of that name. Raises UnknownName with the nearest names."""
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return PRESETS[name]
