"""Code -> Python: the tape as straight-line functions, compiled by the interpreter that runs them."""

from __future__ import annotations

import hashlib
import math
import os
from pathlib import Path
from typing import Any, Callable, NamedTuple

from zoomgrad.engines.graph.expr import PYTHON
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.kernel.python_kernel import PythonKernel
from zoomgrad.engines.straight.lower import Code
from zoomgrad.engines.straight.pieces import Language, Piece, Pieces, cut

LANGUAGE = Language(PYTHON, local="    %s = %s", store="    %s = %s", accumulate="    q[%d] += %s")

PIECE = 400
"""Primitives of a function. Its size does not matter on CPython; PyPy runs larger ones faster (docs/results.md)."""

BETWEEN = "\n\n"
"""Separates two functions in the complete text."""


class PythonText(NamedTuple):
    """The functions of both passes, and their texts. The last text is that of the loss."""

    pieces: Pieces
    functions: list[str]

    @property
    def size(self) -> int:
        """Total bytes."""
        return sum(map(len, self.functions))

    def __str__(self) -> str:
        return BETWEEN.join(self.functions)


def python_source(code: Code) -> PythonText:
    """The Python of both passes."""
    pieces = cut(code, LANGUAGE, piece=PIECE)
    functions = [_define(piece, "y") for piece in pieces.forward] + [_define(piece, "q") for piece in pieces.backward]
    return PythonText(pieces, [*functions, f"def loss(x, p, w):\n    return {pieces.loss}\n"])


class PythonSource(PythonKernel):
    """Kernel over compiled functions, called in order."""

    def __init__(self, source: PythonText) -> None:
        super().__init__(source.pieces.workspace)
        namespace: dict[str, Any] = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
        file = _shown(source)
        before = 0
        for text in source.functions:  # one by one, as the syntax tree of a whole graph takes kilobytes per row
            # Safe: the text consists of numbers and the op table's primitives, and contains nothing of the caller's.
            exec(compile("\n" * before + text, file or "<python-source>", "exec"), namespace)  # noqa: S102
            before += text.count("\n") + len(BETWEEN) if file else 0
        self._forward: list[Callable[..., None]] = [namespace[piece.name] for piece in source.pieces.forward]
        self._backward: list[Callable[..., None]] = [namespace[piece.name] for piece in source.pieces.backward]
        self._loss: Callable[..., float] = namespace["loss"]

    def values(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        for piece in self._forward:
            piece(x, p, w, y)
        return self._loss(x, p, w)

    def gradients(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        for piece in self._backward:
            piece(x, p, w, q)


def _shown(source: PythonText) -> str:
    """Write the code to a file in $ZOOMGRAD_GENERATED, for profilers that show only real files. Empty if not set."""
    folder = os.environ.get("ZOOMGRAD_GENERATED")
    if not folder:
        return ""
    text = str(source)
    file = Path(folder) / f"python_source_{hashlib.sha256(text.encode()).hexdigest()[:12]}.py"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return str(file)


def _define(piece: Piece, last: str) -> str:
    return f"def {piece.name}(x, p, w, {last}):\n" + "\n".join(piece.lines) + "\n"
