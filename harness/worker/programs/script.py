"""Analyse a program's syntax tree, and replace one of its classes with the engine's Value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zoomgrad.harness.worker.programs.literature import ADOPT, CHECK, REPLACEMENT, STANDING_IN
from zoomgrad.harness.worker.programs.own_modules import WrongScript, followed
from zoomgrad.harness.worker.programs.stand_in import ROLES, names_of

SHOWN = ("__repr__", "__str__", "__format__")
"""Methods of a replaced class that stay, because a program's output depends on them."""


# --- identifiers -----------------------------------------------------------------------------------------------------


def uses_ids(tree: ast.Module, path: Path) -> bool:
    """Whether the program uses what only Values with identifiers have, as in "Compiling ML models to C for fun".

    Modules and packages beside the program are followed if it imports them by name.
    """
    for module, _ in followed(tree, path):
        engine_names = {name for node in ast.walk(module) for name in _names_of_the_engine(node)}
        if any(_uses_id(node, engine_names) for node in ast.walk(module)):
            return True
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


# --- replacing a class -----------------------------------------------------------------------------------------------


def replace(tree: ast.Module, name: str, value: Any, path: Path) -> dict[Path, ast.Module]:
    """Replace a class of the program, or of its own modules, with the engine's Value. Return the changed files.

    What a Value lacks stays: the class's other methods, which may add operations by setting `_backward`. Its
    `__repr__`, `__str__` and `__format__` stay, too, and so do its bases, behind Value. Raises WrongScript if the class
    is not found, or if a Value can't stand in for it.
    """
    changed, classes = {}, []
    modules = list(followed(tree, path))
    slotted = not any(_adds_attributes(module) for module, _ in modules)
    for module, file in modules:
        found = replaceable(module)
        classes += [node.name for node in found]
        found = [node for node in found if node.name == name]
        for node in found:
            if node.decorator_list:
                raise WrongScript(
                    f"{file}:{node.lineno}: a Value can't replace {name}, because it has the decorator "
                    f"{ast.unparse(node.decorator_list[0])}\n"
                    "  Make it a plain class, or run the program without --replace."
                )
        if found:
            changed[file] = ast.fix_missing_locations(_Replacing(name, value, slotted, file, module).visit(module))
    if not changed:
        raise WrongScript(
            f"{path}: defines no class {name!r} outside functions, and neither do the modules beside it\n"
            f"  Its classes: {', '.join(dict.fromkeys(classes)) or 'none'}."
        )
    return changed


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


def _adds_attributes(module: ast.Module) -> bool:
    """Whether a program may set attributes that a Value lacks. Objects that can hold them take more memory."""
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr not in (*ROLES, "_backward")
        and ast.unparse(node.value) != "self"
        for node in ast.walk(module)
    )


def _stays(item: ast.stmt, value: Any) -> bool:
    """Whether a part of the class stays, because a Value lacks it or the program's output depends on it."""
    if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        names = [item.name]
    elif isinstance(item, ast.Assign):
        names = [ast.unparse(target) for target in item.targets]
    elif isinstance(item, ast.AnnAssign) and item.value:
        names = [ast.unparse(item.target)]
    else:
        return False
    lacking = (getattr(value, name, None) is getattr(object, name, None) for name in names)
    return "__slots__" not in names and (names[0] in SHOWN or all(lacking))


def _helpers(module: ast.Module) -> list[str]:
    """Functions and constants of a module, which the methods of a class may use."""
    return [
        ast.unparse(item)
        for item in module.body
        if (isinstance(item, ast.FunctionDef) and not item.decorator_list)
        or (isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant))
    ]


class _Replacing(ast.NodeTransformer):
    """Class definition -> an import of the engine's Value under its name, and a subclass with the methods that stay.

    Before the subclass, the program calls `probe.check` with the text of the class as it was.
    """

    def __init__(self, name: str, value: Any, slotted: bool, file: Path, module: ast.Module) -> None:
        self.name = name
        self.value = value
        self.slotted = slotted
        self.file = file
        self.future = [
            ast.unparse(item)
            for item in module.body
            if isinstance(item, ast.ImportFrom) and item.module == "__future__"
        ]
        self.helpers = _helpers(module)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        if node.name != self.name:
            return node
        names = [ast.alias("Value", self.name), *(ast.alias(name, name) for name in (ADOPT, STANDING_IN, CHECK))]
        calls = names_of(node)
        definition = "\n".join([*self.future, ast.unparse(node), *self.helpers])
        arguments = (self.name, definition, dict(calls.attributes), f"{self.file}:{node.lineno}")
        lines: list[ast.stmt] = [ast.ImportFrom(REPLACEMENT, names, 0), *ast.parse(f"{CHECK}{arguments!r}").body]
        kept = [item for item in node.body if _stays(item, self.value)]
        bases = [base for base in node.bases if ast.unparse(base) != "object"]
        if kept or bases or any(calls) or not self.slotted:
            decorators = [ADOPT]
            if any(calls):
                plain = (tuple(map(tuple, calls.parameters)), dict(calls.attributes), calls.rules)
                decorators.append(f"{STANDING_IN}({plain!r})")
            slots = ast.parse("__slots__ = ()" if self.slotted else "pass").body
            node.bases, node.keywords = [ast.Name(self.name, ast.Load()), *bases], []
            node.body = [*slots, *kept]
            node.decorator_list = [ast.parse(text, mode="eval").body for text in decorators]
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
