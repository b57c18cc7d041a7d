"""Folder -> programs: scripts and notebooks that use a class like micrograd's Value.

Every folder in FOLDER is one project. A file is a program if it calls `backward`, directly or through its own modules,
and does something: its top level has more than definitions. Tests for pytest are not programs, and neither are files in
hidden folders or environments.
"""

import ast
import warnings
from dataclasses import dataclass
from pathlib import Path

from tests.strangers import notebook

NOT_THEIRS = {"site-packages", "node_modules", "venv", "env", "__pycache__", "build", "dist"}
LARGEST = 4_000_000
"""Bytes of a program; a larger file is data."""
OF_ARRAYS = {"shape", "reshape", "ndarray", "asarray", "array", "transpose", "ndim", "zeros_like", "matmul"}
"""Attributes that betray a class of arrays, which no engine can stand in for."""


@dataclass(frozen=True)
class Program:
    """A program of a project."""

    project: Path
    path: Path  # in the project
    source: str  # a notebook's is converted
    defines: bool  # whether it has a class like Value of its own, in any file of the project

    @property
    def name(self):
        return f"{self.project.name}/{self.path}"


def programs(folder):
    """The programs below a folder, in order."""
    files = sorted(file.relative_to(folder) for file in folder.rglob("*") if file.suffix in (".py", ".ipynb"))
    found = (_program(folder / path.parts[0], Path(*path.parts[1:])) for path in files if not _left_out(folder, path))
    return [program for program in found if program]


def _left_out(folder, path):
    hidden = any(part.startswith(".") or part in NOT_THEIRS for part in path.parts)
    return len(path.parts) == 1 or hidden or not (folder / path).is_file() or (folder / path).is_symlink()


def _program(project, path):
    if path.name.startswith(("test_", "setup.py", "conftest")) or path.stem.endswith("_test"):
        return None
    file = project / path
    if file.stat().st_size > LARGEST:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            source = file.read_text(encoding="utf-8")
            source = notebook.script(source) if path.suffix == ".ipynb" else source
            tree = ast.parse(source)
            modules = [tree, *_own_modules(tree, (file.parent, project))]
    except (SyntaxError, ValueError, RecursionError, OSError):
        return None
    nodes = [node for module in modules for node in ast.walk(module)]
    if not _acts(tree) or not any(_calls_backward(node) for node in nodes):
        return None
    defines = any(_like_value(node) for node in nodes if isinstance(node, ast.ClassDef))
    if not defines and not any(_imports_micrograd(node) for node in nodes):
        return None
    return Program(project, path, source, defines)


def _own_modules(tree, folders):
    """The modules of the project that a program imports, directly or through others."""
    todo, seen = [tree], set()
    while todo:
        for name in _imported(todo.pop()):
            places = [folder.joinpath(*name.split(".")) for folder in folders]
            for file in (each for place in places for each in (place.with_suffix(".py"), place / "__init__.py")):
                if file not in seen and file.is_file():
                    seen.add(file)
                    todo.append(ast.parse(file.read_bytes()))
                    yield todo[-1]


def _imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def _acts(tree):
    quiet = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    return not all(
        isinstance(node, quiet) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in tree.body
    )


def _like_value(node):
    methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return {"__add__", "__mul__"} <= methods and not (attributes | methods) & OF_ARRAYS


def _calls_backward(node):
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "backward"


def _imports_micrograd(node):
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == "micrograd" for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "micrograd"
