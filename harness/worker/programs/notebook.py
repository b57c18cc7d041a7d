"""Notebook -> the code of each code cell, with a name such as `book.ipynb, cell 3` for errors.

What only Jupyter runs is left out: `%matplotlib inline`, `!pip install …`, `name?`, and cells such as `%%html`. The
last expression of a cell is shown, as in Jupyter.
"""

from __future__ import annotations
import __future__

import ast
import json
import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from zoomgrad.harness.worker.programs.classes import WrongScript

OF_PYTHON = ("%%time", "%%capture", "%%prun")
"""Magics of a cell that holds Python."""
FUTURE = __future__.annotations.compiler_flag
QUESTION = re.compile(r"\?{1,2}[\w.]+|[\w.]+\?{1,2}")
SHOW = "__import__('sys').displayhook"


def parse(path: Path) -> tuple[str, list[CodeType], list[str]]:
    """The Python text, each cell's code, and what was left out. Raises SyntaxError and WrongScript."""
    try:
        sources = list(cells(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WrongScript(
            f"{path}: not a notebook of format 4 ({type(error).__name__}: {error})\n"
            "  Save it again with Jupyter, or export it as a Python program."
        ) from error
    codes: list[CodeType] = []
    left_out: list[str] = []
    flags = 0  # `from __future__ import annotations` holds for all later cells
    for number, source in enumerate(sources, 1):
        name = f"{path}, cell {number}"
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name  # for tracebacks
        python, magics = without_magics(source)
        left_out += magics
        tree = ast.parse(python, name)
        shown = tree if python.rstrip().endswith(";") else _showing(tree)
        codes.append(compile(shown, name, "exec", flags, dont_inherit=True))
        flags |= codes[-1].co_flags & FUTURE
    return "\n".join(sources), codes, left_out


def cells(text: str) -> Iterator[str]:
    """The code cells of a notebook's JSON. Raises ValueError, KeyError or TypeError if it is none."""
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def without_magics(source: str) -> tuple[str, list[str]]:
    """The cell's Python, with a line for each line, and the lines that only Jupyter runs."""
    try:
        ast.parse(source)
        return source, []
    except (SyntaxError, ValueError):
        lines = source.splitlines()
    magic = next((line.split()[0] for line in lines if line.strip()), "")
    if magic.startswith("%%") and magic not in OF_PYTHON:
        return "", [magic]
    left_out = []
    for i, line in enumerate(lines):
        code = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        if code.startswith("%time "):
            lines[i] = f"{indent}{code[len('%time ') :]}"
        elif code.startswith(("%", "!")) or QUESTION.fullmatch(code):
            lines[i] = f"{indent}pass" if indent else ""  # `from __future__ import` may follow
            left_out.append(code)
    return "\n".join(lines), left_out


def _showing(cell: ast.Module) -> ast.Module:
    last = cell.body[-1] if cell.body else None
    if isinstance(last, ast.Expr):
        last.value = ast.Call(ast.parse(SHOW, mode="eval").body, [last.value], [])
        ast.fix_missing_locations(last)
    return cell
