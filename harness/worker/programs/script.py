"""Analyse a program's syntax tree, and replace one of its classes with the engine's Value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.worker.programs.literature import ADOPT

SHOWN = ("__repr__", "__str__", "__format__")
"""Methods of a replaced class that stay, because a program's output depends on them."""


class WrongScript(Exception):
    """The program can't run as requested. The message gives the cause and the remedy."""


def parse(path: Path) -> ast.Module:
    """Read and parse a program. Raises SyntaxError, and WrongScript if the file can't be read."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:
        raise WrongScript(f"{path}: can't be read ({error})\n  Name a Python program.") from error


# --- identifiers -----------------------------------------------------------------------------------------------------


def uses_ids(tree: ast.Module, path: Path) -> bool:
    """Whether the program uses what only Values with identifiers have, as in "Compiling ML models to C for fun".

    Modules and packages beside the program are followed if it imports them by name.
    """
    todo, seen = [tree], set()
    while todo:
        module = todo.pop()
        engine_names = {name for node in ast.walk(module) for name in _names_of_the_engine(node)}
        for node in ast.walk(module):
            if _uses_id(node, engine_names):
                return True
            for file in _imported_files(node, path.parent):
                if file not in seen and file.is_file():
                    seen.add(file)
                    try:
                        todo.append(parse(file))
                    except (SyntaxError, WrongScript):
                        continue  # the program may be able to do without it
    return False


def _uses_id(node: ast.AST, engine_names: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        if node.attr == "counter":
            return ast.unparse(node.value) in engine_names
        return node.attr in ("_id", "getgrad", "backward_compile")
    if isinstance(node, ast.ImportFrom) and node.module == "micrograd.engine":
        return any(alias.name == "counter" for alias in node.names)
    # `re.compile` has arguments; the post's methods have none.
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("compile", "var")
        and not (node.args or node.keywords)
    )


def _names_of_the_engine(node: ast.AST) -> Iterator[str]:
    """What a program calls the module `micrograd.engine` after this import."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name == "micrograd.engine" and alias.asname:
                yield alias.asname
            elif alias.name.partition(".")[0] == "micrograd":
                yield f"{alias.asname or 'micrograd'}.engine"
    elif isinstance(node, ast.ImportFrom) and node.module == "micrograd":
        yield from (alias.asname or alias.name for alias in node.names if alias.name == "engine")


def _imported_files(node: ast.AST, folder: Path) -> Iterator[Path]:
    """Files below the folder that an import may load."""
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    for name in names:
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:count])
            yield place.with_name(f"{place.name}.py")
            yield place / "__init__.py"


# --- replacing a class -----------------------------------------------------------------------------------------------


def replace(tree: ast.Module, name: str, value: Any, path: Path) -> ast.Module:
    """Replace a class of the program with the engine's Value. Its `__repr__`, `__str__` and `__format__` stay.

    Raises WrongScript if the program does not define the class, or if a Value can't stand in for it.
    """
    found = [node for node in replaceable(tree) if node.name == name]
    if not found:
        classes = ", ".join(dict.fromkeys(node.name for node in replaceable(tree))) or "none"
        raise WrongScript(f"{path}: defines no class {name!r} outside functions\n  Its classes: {classes}.")
    for node in found:
        missing = sorted(_missing(node, value))
        if missing:
            raise WrongScript(
                f"{path}:{node.lineno}: a Value can't replace {name}, because it lacks {', '.join(missing)}\n"
                "  Move these out of the class, or run the program without --replace."
            )
    replaced: ast.Module = _Replacing(name).visit(tree)
    return ast.fix_missing_locations(replaced)


def replaceable(tree: ast.Module) -> list[ast.ClassDef]:
    """The classes that a program defines outside functions and other classes."""
    found: list[ast.ClassDef] = []
    todo: list[ast.AST] = [*tree.body]
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.ClassDef):
            found.append(node)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            todo += [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.ExceptHandler))]
    return found


def _missing(node: ast.ClassDef, value: Any) -> Iterator[str]:
    """What the class has and a Value lacks: methods, attributes, bases, decorators."""
    yield from (f"the base {ast.unparse(base)}" for base in node.bases if ast.unparse(base) != "object")
    yield from (f"the decorator {ast.unparse(decorator)}" for decorator in node.decorator_list)
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = [item.name]
        elif isinstance(item, ast.Assign):
            names = [ast.unparse(target) for target in item.targets]
        elif isinstance(item, ast.AnnAssign) and item.value:
            names = [ast.unparse(item.target)]
        else:
            continue
        for name in names:
            inherited = getattr(value, name, None) is getattr(object, name, None)
            if inherited and name not in (*SHOWN, "__slots__"):
                yield name


class _Replacing(ast.NodeTransformer):
    """Class definition -> an import of the engine's Value under its name, and a subclass with the methods that stay."""

    def __init__(self, name: str) -> None:
        self.name = name

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        if node.name != self.name:
            return node
        names = [ast.alias("Value", self.name), ast.alias(ADOPT, ADOPT)]
        lines: list[ast.stmt] = [ast.ImportFrom("micrograd.engine", names, 0)]
        kept = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name in SHOWN]
        if kept:
            slots = ast.parse("__slots__ = ()").body
            node.bases, node.keywords, node.body = [ast.Name(self.name, ast.Load())], [], [*slots, *kept]
            node.decorator_list = [ast.Name(ADOPT, ast.Load())]
            lines.append(node)
        return [ast.copy_location(line, node) for line in lines]


def never_imported(tree: ast.Module, path: Path, engine_name: str) -> str:
    """A warning that the engine had no effect on the program, and the remedy."""
    classes = replaceable(tree)
    own = [node.name for node in classes if any(getattr(item, "name", "") == "backward" for item in node.body)]
    remedy = (
        f"It defines its own {own[0]}: `--replace {own[0]}` puts the engine's in its place."
        if own
        else "A program uses the engine through `from micrograd.engine import Value`."
    )
    return f"{path.name} ended without importing micrograd, so {engine_name} had no effect\n  {remedy}"
