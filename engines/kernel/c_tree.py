"""C as a small tree, and its printer.

statement = simple | block | loop | choice | comment | text
function  = result name parameters statement*

A simple statement is a string: a declaration, an assignment, a call or a return. `engines.graph.expr` spells the
expressions of the op table, with their precedence. Example:

    unit([Function("void", "twice", ("double *x",), [For("i", 3, ["x[i] = 2.0 * x[i];"])])])

gives

    void twice(double *x)
    {
        for (long long i = 0; i < 3; i++)
            x[i] = 2.0 * x[i];
    }
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, Optional, Union

FOLDER = Path(__file__).parent.parent
COLUMNS = 120
INDENT = "    "


class Comment(NamedTuple):
    """A comment on separate lines."""

    text: str

    def printed(self, indent: str = "") -> list[str]:
        below = f"{indent}   "
        return textwrap.wrap(
            f"/* {self.text} */", COLUMNS, initial_indent=indent, subsequent_indent=below, break_long_words=False
        )


class Block(NamedTuple):
    """Statements in their own scope."""

    body: Sequence[Statement]

    def printed(self, indent: str) -> list[str]:
        return [f"{indent}{{", *print_statements(self.body, indent + INDENT), f"{indent}}}"]


class For(NamedTuple):
    """A loop in which `name` counts from `start` up to, but not including, `stop`."""

    name: str
    stop: Union[int, str]
    body: Sequence[Statement]
    step: int = 1
    start: Union[int, str] = 0

    def printed(self, indent: str) -> list[str]:
        onwards = f"{self.name}++" if self.step == 1 else f"{self.name} += {self.step}"
        head = f"{indent}for (long long {self.name} = {self.start}; {self.name} < {self.stop}; {onwards})"
        body = print_statements(self.body, indent + INDENT)
        return [head, *body] if _is_simple(self.body) else [f"{head} {{", *body, f"{indent}}}"]


class If(NamedTuple):
    """A choice; `otherwise` may be empty. If one branch needs braces, both get them."""

    condition: str
    then: Sequence[Statement]
    otherwise: Sequence[Statement] = ()

    def printed(self, indent: str) -> list[str]:
        head = f"{indent}if ({self.condition})"
        then, otherwise = (print_statements(body, indent + INDENT) for body in (self.then, self.otherwise))
        if _is_simple(self.then) and (not self.otherwise or _is_simple(self.otherwise)):
            return [head, *then, *([f"{indent}else", *otherwise] if otherwise else [])]
        return [f"{head} {{", *then, *([f"{indent}}} else {{", *otherwise] if otherwise else []), f"{indent}}}"]


class Text(NamedTuple):
    """Lines of C without indentation: prototypes, constants, tables, and straight-line code, too much for a tree."""

    lines: Sequence[str]

    def printed(self, indent: str = "") -> list[str]:
        # One string, because a large graph has hundreds of thousands of lines.
        return [indent + f"\n{indent}".join(self.lines)] if self.lines else []


Statement = Union[str, Comment, Block, For, If, Text]


def call(function: str, arguments: Iterable[str]) -> str:
    """A call that ignores the result."""
    return f"{function}({', '.join(arguments)});"


def print_statements(statements: Iterable[Statement], indent: str = INDENT) -> list[str]:
    """The lines of a function's body."""
    lines: list[str] = []
    for statement in statements:
        lines += [indent + statement] if isinstance(statement, str) else statement.printed(indent)
    return lines


def _is_simple(body: Sequence[Statement]) -> bool:
    """Whether a body needs no braces."""
    return len(body) == 1 and isinstance(body[0], str)


class Function(NamedTuple):
    """A function."""

    result: str
    """The result type, after `static` and attributes."""
    name: str
    parameters: tuple[str, ...]
    body: Sequence[Statement]

    @property
    def signature(self) -> str:
        declared = f"{self.name}({', '.join(self.parameters or ['void'])})"
        return f"{self.result} {declared}" if len(self.result + declared) < COLUMNS else f"{self.result}\n{declared}"

    def printed(self) -> list[str]:
        return [self.signature, *Block(self.body).printed("")]


def defines(**macros: object) -> Text:
    """Macros without parameters."""
    return Text([f"#define {name} {value}" for name, value in macros.items()])


class Include(NamedTuple):
    """A C file that is the same for every graph."""

    file: str
    """Path below `engines/`, such as `kernel/kernel.h`."""

    def printed(self) -> list[str]:
        return [read(self.file).rstrip("\n")]


Item = Union[Function, Include, Text, Comment]


@cache
def read(file: str) -> str:
    """The text of a C file. file: its path below `engines/`, such as `kernel/kernel.h`."""
    return (FOLDER / file).read_text(encoding="ascii")


def unit(items: Iterable[Item]) -> str:
    """Print a translation unit, with the text of each included file in place of its `#include`.

    So `show` prints exactly the text that is compiled, and a compiler needs no search path. Blank lines separate items,
    except between texts, and between a comment and the item that it describes. The first comment is the unit's title.
    """
    parts: list[str] = []
    before: Optional[Item] = None
    for item in items:
        text = "".join(f"{line}\n" for line in item.printed())
        if not text:
            continue
        is_described = isinstance(before, Comment) and len(parts) > 1
        if parts and not is_described and not (isinstance(item, Text) and isinstance(before, Text)):
            parts.append("\n")
        parts.append(text)
        before = item
    return "".join(parts)
