"""The engines `cython` and `mypyc`."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any, Optional

from engines.api import Store, Unavailable, Workload
from engines.interpreted.trainer import RebuildingTrainer
from engines.translated import build
from engines.translated.translators import CYTHON, MYPYC, Translator
from engines.value_engine import ValueEngine


class TranslatedEngine(ValueEngine):
    """An engine whose class is compiled from that of `slots` when it is first used."""

    def __init__(self, name: str, translator: Translator, *, extensible: bool = True, **facts: Any) -> None:
        super().__init__(name, builds_on="slots", **facts)
        self.extensible = extensible
        self._translator = translator
        self._lock = threading.Lock()
        self._built: Any = None
        """The class, the reason why there is none, or None before the first use: a module can be loaded only once."""

    def check(self) -> None:
        """Raise Unavailable if Value can't be built or loaded here."""
        with self._lock:
            if self._built is None:
                try:
                    self._built = build.value(self._translator)
                except Unavailable as reason:
                    self._built = reason
            if isinstance(self._built, Unavailable):
                raise self._built

    @cached_property
    def Value(self) -> Any:  # noqa: N802  (a class)
        self.check()
        return self._built

    def prepare(self, workload: Workload, *, objects: Optional[Store] = None) -> RebuildingTrainer:
        return RebuildingTrainer(self.nn, workload)


ENGINES = (
    TranslatedEngine("cython", CYTHON, idea="the text of slots, compiled by Cython", typical_row_seconds=6e-6),
    TranslatedEngine(
        "mypyc", MYPYC, idea="the text of slots, compiled by mypyc", extensible=False, typical_row_seconds=4e-6
    ),
)
