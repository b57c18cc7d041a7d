"""Code -> Python: the tape as straight-line functions, compiled by the interpreter that runs them."""

from __future__ import annotations

import hashlib
import math
import os
from pathlib import Path
from typing import Any, Callable

from zoomgrad.engines.graph.expr import PYTHON
from zoomgrad.engines.kernel.c_text import Source
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.kernel.python_kernel import PythonKernel
from zoomgrad.engines.straight.lower import Code
from zoomgrad.engines.straight.pieces import Form, Language, cut

LANGUAGE = Language(PYTHON, local="    %s = %s", store="    %s = %s", accumulate="    q[%d] += %s")


def python_source(code: Code) -> Source:
    """The Python of both passes: a unit for each function."""
    # The size of functions does not matter on CPython; PyPy runs larger ones faster (docs/results.md).
    pieces = cut(code, LANGUAGE, Form())
    functions = {"loss(x, p, w)": [f"    return {pieces.loss}"]}
    functions.update((f"{name}(x, p, w, y)", lines) for name, lines in pieces.forward.items())
    functions.update((f"{name}(x, p, w, q)", lines) for name, lines in pieces.backward.items())
    units = ["\n".join([f"def {head}:", *lines, "\n"]) for head, lines in functions.items()]
    return Source(units, pieces.workspace)


class PythonSource(PythonKernel):
    """Kernel over compiled functions, called in order."""

    def __init__(self, source: Source) -> None:
        super().__init__(source.workspace)
        namespace: dict[str, Any] = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
        file = _shown(source)
        before = 0
        for text in source.units:  # one by one, as the syntax tree of a whole graph takes kilobytes per row
            # Safe: the text consists of numbers and the op table's primitives, and contains nothing of the caller's.
            exec(compile("\n" * before + text, file or "<python-source>", "exec"), namespace)  # noqa: S102
            before += text.count("\n") + 1 if file else 0
        self._forward, self._backward = (
            [function for name, function in namespace.items() if name.startswith(pass_)]
            for pass_ in ("forward_", "backward_")
        )
        self._loss: Callable[..., float] = namespace["loss"]

    def values(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        for piece in self._forward:
            piece(x, p, w, y)
        return self._loss(x, p, w)

    def gradients(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        for piece in self._backward:
            piece(x, p, w, q)


def _shown(source: Source) -> str:
    """Write the code to a file in $ZOOMGRAD_GENERATED, for profilers that show only real files. Empty if not set."""
    folder = os.environ.get("ZOOMGRAD_GENERATED")
    if not folder:
        return ""
    file = Path(folder) / f"python_source_{hashlib.sha256(source.text.encode()).hexdigest()[:12]}.py"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(source.text, encoding="utf-8")
    return str(file)
