"""Value graph -> Graphviz DOT, as in micrograd's notebooks: a record for each Value, an ellipse for each operation."""

from __future__ import annotations

import subprocess
from typing import Any

from engines.api import Unavailable
from engines.asking import surroundings, which

RENDER_SECONDS = 60


class Drawing(str):
    """DOT source. A notebook shows it as a picture if the `dot` program is installed, else as text."""

    def svg(self) -> str:
        """Render the graph as SVG. Raises Unavailable if Graphviz is missing or fails."""
        program = which("dot")
        if program is None:
            raise Unavailable(
                "the `dot` program is not on PATH", "Install Graphviz, for example `apt install graphviz`."
            )
        try:
            result = subprocess.run(  # noqa: S603  (an absolute path and a constant option; the source goes to stdin)
                [program, "-Tsvg"],
                input=self.encode(),
                env=surroundings(),
                capture_output=True,
                check=True,
                timeout=RENDER_SECONDS,
            )
        except (subprocess.SubprocessError, OSError) as error:
            raise Unavailable(
                f"Graphviz could not draw the {self.count(chr(10)):,} lines of this graph ({type(error).__name__})",
                "Use the text or DOT form, or a smaller graph.",
            ) from error
        return result.stdout.decode(errors="replace")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        try:
            return {"image/svg+xml": self.svg(), "text/plain": str(self)}
        except Unavailable:
            return {"text/plain": str(self)}


def draw_dot(root: Any) -> Drawing:
    """Draw the graph below `root` from left to right."""
    lines = ["digraph {", "  graph [rankdir=LR]"]
    number: dict[Any, int] = {}
    for v in root.topo():
        n = number[v] = len(number)
        fields = ([_escape(v.label)] if v.label else []) + [f"data {v.data:.4f}", f"grad {v.grad:.4f}"]
        lines.append(f'  v{n} [label="{{ {" | ".join(fields)} }}" shape=record]')
        if v._op:
            lines.append(f'  op{n} [label="{_escape(v._op)}"]')
            lines.append(f"  op{n} -> v{n}")
            lines.extend(f"  v{number[child]} -> op{n}" for child in v._prev)
    lines.append("}")
    return Drawing("\n".join(lines) + "\n")


def _escape(text: str) -> str:
    """Escape a record's structural characters, and quotes, with backslashes."""
    for character in '\\{}|<>"':
        text = text.replace(character, "\\" + character)
    return text.replace("\n", " ")
