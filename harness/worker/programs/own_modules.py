"""Find and change the modules that a program brings along: files beside it, or in a folder on PYTHONPATH."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, Optional

PROJECT = Path(__file__).resolve().parents[3]


class WrongScript(Exception):
    """The program can't run as requested. The message gives the cause and the remedy."""


def parse(path: Path) -> ast.Module:
    """Read and parse a program. Raises SyntaxError, and WrongScript if the file can't be read."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:
        raise WrongScript(f"{path}: can't be read ({error})\n  Name a Python program.") from error


def followed(tree: ast.Module, path: Path) -> Iterator[tuple[ast.Module, Path]]:
    """The program, then each of its own modules that it imports by name, directly or through others."""
    named = [Path(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    roots = [path.parent, *(folder for folder in named if folder.resolve() != PROJECT)]
    todo, seen = [(tree, path)], {path}
    while todo:
        module, place = todo.pop()
        yield module, place
        for node in ast.walk(module):
            for file in _files_of(node, place, roots):
                if file not in seen and file.is_file():
                    seen.add(file)
                    try:
                        todo.append((parse(file), file))
                    except (SyntaxError, WrongScript):
                        continue  # the program may be able to do without it


OURS = ("zoomgrad",)
"""Packages that a program can't replace, because the worker goes on using them."""


def check_names(tree: ast.Module, path: Path) -> None:
    """Raise WrongScript if the program brings a module with the name of one that the worker uses."""
    for _, place in followed(tree, path):
        for name in OURS:
            own = path.parent.resolve() / name
            if place != path and place.resolve() in (own.with_suffix(".py"), own / "__init__.py"):
                raise WrongScript(
                    f"{path} imports {place.name if place.stem == name else f'the package {name}'} beside it, and "
                    f"zoomgrad has a package `{name}`\n  Rename yours, or move it into a package."
                )


def _files_of(node: ast.AST, place: Path, roots: list[Path]) -> Iterator[Path]:
    """Files that an import may load."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = f"{node.module}." if node.module else ""
        names = [*filter(None, [node.module]), *(f"{base}{alias.name}" for alias in node.names)]
        if node.level and len(place.parents) >= node.level:
            roots = [place.parents[node.level - 1]]
    for name in names:
        parts = name.split(".")
        for root in roots:
            for count in range(1, len(parts) + 1):
                found = root.joinpath(*parts[:count])
                yield found.with_name(f"{found.name}.py")
                yield found / "__init__.py"


class Changed(MetaPathFinder):
    """Import some of a program's modules from changed syntax trees, and everything else as usual."""

    def __init__(self, trees: Mapping[Path, ast.Module]) -> None:
        self._trees = {path.resolve(): tree for path, tree in trees.items()}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not spec.origin:
            return None
        tree = self._trees.get(Path(spec.origin).resolve())
        if tree is None:
            return None
        spec.loader = _FromTree(name, spec.origin, tree)
        return spec


class _FromTree(SourceFileLoader):
    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self._tree = tree

    def get_code(self, fullname: str) -> CodeType:
        """Compile the tree. Python's cache of bytecode holds the file as it is, so it is not used."""
        code: CodeType = compile(self._tree, self.path, "exec", dont_inherit=True)
        return code


def import_changed(trees: Mapping[Path, ast.Module]) -> None:
    """For the rest of the process, these files are imported from their trees."""
    if trees:
        sys.meta_path.insert(0, Changed(trees))
