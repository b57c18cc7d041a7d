"""Notebook -> script: every code cell in a `try`, because a reader of a notebook goes on after a failing cell.

The last expression of a cell is printed, as Jupyter shows it. Magics and cells that are not Python are dropped.
"""

import ast
import contextlib
import json
import re

OF_PYTHON = ("%%time", "%%capture", "%%prun")
"""Magics of a cell that holds Python."""
LEFT_OUT = re.compile(r"(?m)^([ \t]*)(?:[%!].*|\?{1,2}[\w.]+|[\w.]+\?{1,2})$")
# Without the word zoomgrad, which says to `exec` that the program compiles, so that last digits may differ.
GUARD = "_stranger_cell"
SHOW = "_stranger_show"


def script(text):
    """The script for a notebook's JSON. Raises ValueError if it is not a notebook."""
    try:
        sources = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    except (KeyError, TypeError, RecursionError) as wrong:
        raise ValueError(f"not a notebook: {wrong!r}") from wrong
    body = []
    for number, source in enumerate(sources, 1):
        cell = _parsed(source)
        if cell is not None and cell.body:
            body.append(_guarded(number, cell))
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, []))) + "\n"


def _parsed(source):
    """The cell without magics, or None if it is not Python."""
    if source.lstrip().startswith("%%") and not source.lstrip().startswith(OF_PYTHON):
        return None
    timed = re.sub(r"(?m)^([ \t]*)%time ", r"\1", source)
    for python in (source, LEFT_OUT.sub(_passed, timed)):
        with contextlib.suppress(SyntaxError, ValueError):
            return ast.parse(python)
    return None


def _passed(line):
    """What stands for a line that only Jupyter runs."""
    return f"{line[1]}pass" if line[1] else ""


def _guarded(number, cell):
    """`with _stranger_cell(number): cell`. A `from __future__` import in it would be a syntax error."""
    body = [s for s in cell.body if not (isinstance(s, ast.ImportFrom) and s.module == "__future__")]
    if body and isinstance(body[-1], ast.Expr):
        shown = ast.Call(ast.Name(SHOW, ast.Load()), [body[-1].value], [])
        body[-1] = ast.Expr(shown)
    backward = "backward" in {node.attr for node in ast.walk(cell) if isinstance(node, ast.Attribute)}
    guard = ast.Call(ast.Name(GUARD, ast.Load()), [ast.Constant(number), ast.Constant(backward)], [])
    return ast.With([ast.withitem(guard)], body or [ast.Pass()])
