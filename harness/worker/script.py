"""Analyse a program's syntax tree, and replace one of its classes with the engine's Value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from engines.api import Engine

IDS = {"_id", "compile", "backward_compile", "counter", "getgrad", "var"}
"""Attributes that only Values with identifiers have."""


class WrongScript(Exception):
    """A program that can't be run as asked: the problem, and what to do."""


def parse(path: Path) -> ast.Module:
    """Read and parse a program. Raises SyntaxError, as Python does, and WrongScript if the file can't be read."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:
        raise WrongScript(f"{path}: can't be read ({error})\n  Name a Python program.") from error


def uses_ids(tree: ast.Module, path: Path) -> bool:
    """Whether the program, or a module beside it that it imports, uses what only Values with identifiers have."""
    todo, seen = [tree], set()
    while todo:
        for node in ast.walk(todo.pop()):
            if isinstance(node, ast.Attribute) and node.attr in IDS:
                return True
            for name in _imports(node):
                beside = path.with_name(f"{name}.py")
                if name not in seen and beside.is_file():
                    todo.append(parse(beside))
                seen.add(name)
    return False


def _imports(node: ast.AST) -> Iterator[str]:
    """The top-level modules that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.partition(".")[0]


def replace(tree: ast.Module, name: str, engine: Engine, path: Path) -> ast.Module:
    """Replace a class that the program defines with the engine's Value, but keep the program's `__repr__`.

    Raises WrongScript if the program defines no such class, or if the class has methods that the engine's Value lacks.
    """
    replacing = _Replacing(name)
    tree = ast.fix_missing_locations(replacing.visit(tree))
    if not replacing.found:
        raise WrongScript(f"{path}: defines no class {name!r}\n  Its classes: {', '.join(_classes(tree)) or 'none'}.")
    lacking = sorted(method for method in replacing.methods if not hasattr(engine.Value, method))
    if lacking:
        raise WrongScript(
            f"{path}: the Value of {engine.name} can't replace {name}, because it lacks {', '.join(lacking)}\n"
            "  Write these as functions of a Value, or run the program without --replace."
        )
    return tree


class _Replacing(ast.NodeTransformer):
    """Class definition -> `from micrograd.engine import Value as NAME`, outside functions and other classes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found = False
        self.methods: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> object:
        if node.name != self.name:
            return node
        self.found = True
        methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
        self.methods |= {method.name for method in methods}
        lines: list[ast.stmt] = [
            ast.ImportFrom("micrograd.engine", [ast.alias("Value", None if self.name == "Value" else self.name)], 0)
        ]
        for method in methods:
            if method.name == "__repr__":
                target = ast.Attribute(ast.Name(self.name, ast.Load()), "__repr__", ast.Store())
                lines += [method, ast.Assign([target], ast.Name("__repr__", ast.Load()))]
                lines += [ast.Delete([ast.Name("__repr__", ast.Del())])]
        return [ast.copy_location(line, node) for line in lines]


def never_imported(tree: ast.Module, path: Path, engine_name: str) -> str:
    """A warning that the program ran without the engine, and what to do about it."""
    own = [
        node.name for node in _class_nodes(tree) if any(getattr(item, "name", "") == "backward" for item in node.body)
    ]
    remedy = (
        f"It defines its own {own[0]}: `--replace {own[0]}` puts the engine's in its place."
        if own
        else "A program uses the engine through `from micrograd.engine import Value`."
    )
    return f"{path.name} ran without {engine_name}, because it never imported micrograd\n  {remedy}"


def _class_nodes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _classes(tree: ast.Module) -> list[str]:
    return [node.name for node in _class_nodes(tree)]
