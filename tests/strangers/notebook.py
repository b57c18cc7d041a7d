"""Notebook -> script: every code cell in a `try`, because a reader of a notebook goes on after a failing cell.

The last expression of a cell is printed, as Jupyter shows it. Magics and cells that are not Python are dropped.
"""

import ast

from zoomgrad.harness.worker.programs import notebook

# Without the word zoomgrad, which says to `exec` that the program compiles, so that last digits may differ.
GUARD = "_stranger_cell"
SHOW = "_stranger_show"


def script(text):
    """The script for a notebook's JSON. Raises ValueError if it is not a notebook."""
    try:
        sources = list(notebook.cells(text))
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
    try:
        return ast.parse(notebook.without_magics(source)[0])
    except (SyntaxError, ValueError):
        return None


def _guarded(number, cell):
    """`with _stranger_cell(number): cell`. A `from __future__` import in it would be a syntax error."""
    body = [s for s in cell.body if not (isinstance(s, ast.ImportFrom) and s.module == "__future__")]
    if body and isinstance(body[-1], ast.Expr):
        shown = ast.Call(ast.Name(SHOW, ast.Load()), [body[-1].value], [])
        body[-1] = ast.Expr(shown)
    backward = "backward" in {node.attr for node in ast.walk(cell) if isinstance(node, ast.Attribute)}
    guard = ast.Call(ast.Name(GUARD, ast.Load()), [ast.Constant(number), ast.Constant(backward)], [])
    return ast.With([ast.withitem(guard)], body or [ast.Pass()])
