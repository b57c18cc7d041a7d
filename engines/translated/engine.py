"""The engines `cython` and `mypyc`."""

from __future__ import annotations

from functools import partial

from zoomgrad.engines.interpreted.built import BuiltEngine
from zoomgrad.engines.translated import build
from zoomgrad.engines.translated.translators import CYTHON, MYPYC

ENGINES = (
    BuiltEngine(
        "cython",
        partial(build.value, CYTHON),
        idea="the text of slots, compiled by Cython",
        builds_on="slots",
        typical_row_seconds=6e-6,
    ),
    BuiltEngine(
        "mypyc",
        partial(build.value, MYPYC),
        extensible=False,
        idea="the text of slots, compiled by mypyc",
        builds_on="slots",
        typical_row_seconds=4e-6,
    ),
)
