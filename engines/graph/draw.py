"""Value graph -> Graphviz DOT, as in micrograd's notebooks, or lines of text, operands first.

In DOT, a Value is a record and an operation is an ellipse.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.asking import surroundings, which

RECORD = " shape=record"

LARGE = 500
"""From this many Values, Graphviz draws straight edges and stops improving early: 6 s for 2,300 Values, not 51."""
LARGEST = 2_500
"""Values in the largest graph that Graphviz is asked to lay out; 4,600 took it over a minute."""


ESCAPES = str.maketrans({"\n": " ", **{character: f"\\{character}" for character in '\\{}|<>"'}})
"""How to write the structural characters of a record, and quotes."""


class Drawing(str):
    """DOT source. A notebook shows it as a picture if the `dot` program is installed, else as text."""

    def svg(self) -> str:
        """Render the graph as SVG. Raises Unavailable if the graph is too large, or if Graphviz is missing or fails."""
        values = self.count(RECORD)
        if values > LARGEST:
            raise Unavailable(
                f"a graph of {values:,} Values is too large to lay out: Graphviz needs minutes above {LARGEST:,}",
                "Print it as text or DOT, or draw a smaller part: draw_dot takes any Value of the graph.",
            )
        program = which("dot")
        if program is None:
            raise Unavailable(
                "the `dot` program is not on PATH", "Install Graphviz, for example `apt install graphviz`."
            )
        try:
            result = subprocess.run(  # noqa: S603  (an absolute path and a constant option; the source goes to stdin)
                [program, "-Tsvg"], input=self.encode(), env=surroundings(), capture_output=True, check=True, timeout=60
            )
        except (subprocess.SubprocessError, OSError) as error:
            raise Unavailable(
                f"Graphviz could not draw the {self.count(chr(10)):,} lines of this graph ({type(error).__name__})",
                "Use the text or DOT form, or a smaller graph.",
            ) from error
        return result.stdout.decode(errors="replace")

    def render(self, filename: str = "graph") -> str:
        """Write the picture to `filename`.svg and return that name. Raises Unavailable and OSError."""
        path = Path(f"{filename}.svg")
        path.write_text(self.svg(), encoding="utf-8")
        return str(path)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        try:
            return {"image/svg+xml": self.svg(), "text/plain": str(self)}
        except Unavailable:
            return {"text/plain": str(self)}


def draw_dot(root: Any, format: str = "svg", rankdir: str = "LR") -> Drawing:  # noqa: A002  (micrograd's name)
    """Draw the graph below `root`, from left to right, or from top to bottom if `rankdir` is `TB`."""
    if format != "svg" or rankdir not in ("LR", "TB"):
        raise ValueError(
            f"no drawing with format={format!r} and rankdir={rankdir!r}\n  Use format='svg', and 'LR' or 'TB'."
        )
    number = {v: n for n, v in enumerate(root.topo())}
    quick = " splines=line nslimit=0.1 nslimit1=0.1 mclimit=0.05" if len(number) >= LARGE else ""
    lines = ["digraph {", f"  graph [rankdir={rankdir}{quick}]"]
    for v, n in number.items():
        fields = ([v.label.translate(ESCAPES)] if v.label else []) + [f"data {v.data:.4f}", f"grad {v.grad:.4f}"]
        lines.append(f'  v{n} [label="{{ {" | ".join(fields)} }}"{RECORD}]')
        if v._op:
            lines.append(f'  op{n} [label="{v._op.translate(ESCAPES)}"]')
            lines.append(f"  op{n} -> v{n}")
            lines.extend(f"  v{number[child]} -> op{n}" for child in v._prev)
    lines.append("}")
    return Drawing("\n".join(lines) + "\n")


def show(root: Any) -> Iterator[str]:
    """The lines for the graph below `root`, in the order of its `topo()`, such as `%2 = * %0 %1            ; -8.0`."""
    number = {v: n for n, v in enumerate(root.topo())}
    for v, n in number.items():
        label = f"  {v.label}" if v.label else ""
        if v._op:
            operands = " ".join(f"%{number[child]}" for child in v._prev)
            row = f"%{n} = {v._op} {operands}"
            yield f"{row:<24}; {v.data!r}{label}"
        else:
            yield f"%{n} = leaf {v.data!r}{label}"
