"""Notebook -> one syntax tree of its code cells, with the line numbers of the file.

What only Jupyter runs is left out: `%matplotlib inline`, `!pip install …`, `name?`, and cells such as `%%html`. The
last expression of a cell is shown, as Jupyter does.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from zoomgrad.harness.worker.programs.classes import WrongScript

OF_PYTHON = ("%%time", "%%capture", "%%prun")
"""Magics of a cell that holds Python."""
QUESTION = re.compile(r"\?{1,2}[\w.]+|[\w.]+\?{1,2}")
SHOW = "__import__('sys').displayhook"


def parse(path: Path) -> tuple[str, ast.Module, list[str]]:
    """The Python text, its tree, and what was left out. Raises SyntaxError, and WrongScript for another file."""
    try:
        text = path.read_text(encoding="utf-8")
        sources = list(cells(text))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WrongScript(
            f"{path}: not a notebook of format 4 ({type(error).__name__}: {error})\n"
            "  Save it again with Jupyter, or export it as a Python program."
        ) from error
    body: list[ast.stmt] = []
    left_out: list[str] = []
    above = 0
    for source in sources:
        above = _lines_above(source, text, above)
        python, magics = without_magics(source)
        left_out += magics
        try:
            cell = ast.parse(python, str(path))
        except SyntaxError as error:
            line = error.lineno or 1
            error.lineno, error.text = above + line, "".join(source.splitlines(keepends=True)[line - 1 : line])
            raise
        body += ast.increment_lineno(cell if python.rstrip().endswith(";") else _showing(cell), above).body
    # Such an import holds for all later cells, and would be an error below other statements.
    body.sort(key=lambda item: not (isinstance(item, ast.ImportFrom) and item.module == "__future__"))
    return "\n".join(sources), ast.Module(body, []), left_out


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
            lines[i] = f"{indent}pass"
            left_out.append(code)
    return "\n".join(lines), left_out


def _lines_above(source: str, text: str, begin: int) -> int:
    """How many lines of the file are above a cell's first line, which is a JSON string in a line of the file."""
    first = json.dumps(source.splitlines(keepends=True)[:1], ensure_ascii=False)[1:-1]
    lines = text.splitlines()
    return next((i for i in range(begin, len(lines)) if lines[i].strip().rstrip(",") == first), begin)


def _showing(cell: ast.Module) -> ast.Module:
    last = cell.body[-1] if cell.body else None
    if isinstance(last, ast.Expr):
        last.value = ast.Call(ast.parse(SHOW, mode="eval").body, [last.value], [])
        ast.fix_missing_locations(last)
    return cell
