"""C as a small tree, and its printer.

statement = declaration | assignment | call | return | block | loop | choice | comment | text
function  = comment? result name parameters statement*

Expressions are strings. `engines.graph.expr` spells those of the op table, with their precedence. Example:

    unit([Function("void", "twice", ("double *x",), (For("i", 3, (Assign("x[i]", "2.0 * x[i]"),)),))])

gives

    void twice(double *x)
    {
        for (long long i = 0; i < 3; i++)
            x[i] = 2.0 * x[i];
    }
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, Optional, Union

FOLDER = Path(__file__).parent.parent
COLUMNS = 120
INDENT = "    "


class Comment(NamedTuple):
    """A comment on separate lines."""

    text: str


class Declare(NamedTuple):
    """A variable with its initial value."""

    type: str
    name: str
    value: str


class Assign(NamedTuple):
    """operator: `=`, `+=` or `-=`."""

    target: str
    value: str
    operator: str = "="


class Call(NamedTuple):
    """A call that ignores the result."""

    function: str
    arguments: tuple[str, ...] = ()


class Return(NamedTuple):
    """value: empty in a function without a result."""

    value: str = ""


class Block(NamedTuple):
    """Statements in their own scope."""

    body: Sequence[Statement]


class For(NamedTuple):
    """A loop in which `name` counts from `start` up to, but not including, `stop`."""

    name: str
    stop: Union[int, str]
    body: Sequence[Statement]
    step: int = 1
    start: Union[int, str] = 0


class If(NamedTuple):
    """A choice; `otherwise` may be empty."""

    condition: str
    then: Sequence[Statement]
    otherwise: Sequence[Statement] = ()


class Text(NamedTuple):
    """Lines of C without indentation. Straight-line code has too many for a tree."""

    lines: Sequence[str]


Statement = Union[Comment, Declare, Assign, Call, Return, Block, For, If, Text]


class Function(NamedTuple):
    """A function, or its prototype."""

    result: str
    """The result type, after `static` and attributes."""
    name: str
    parameters: tuple[str, ...]
    body: Sequence[Statement]
    comment: str = ""

    @property
    def signature(self) -> str:
        return _wrapped(f"{self.result} {self.name}(", self.parameters or ("void",), ")")

    @property
    def prototype(self) -> str:
        """The declaration of the function."""
        return f"{self.signature};"


class Define(NamedTuple):
    """A macro without parameters."""

    name: str
    value: object


class Include(NamedTuple):
    """A C file that is the same for every graph."""

    file: str
    """Path below `engines/`, such as `kernel/kernel.h`."""


class Declarations(NamedTuple):
    """Lines of C outside functions: prototypes, constants, tables."""

    lines: Sequence[str]


Item = Union[Function, Define, Include, Declarations, Comment]


@cache
def read(file: str) -> str:
    """The text of a C file. file: its path below `engines/`, such as `kernel/kernel.h`."""
    return (FOLDER / file).read_text(encoding="ascii")


def unit(items: Iterable[Item]) -> str:
    """Print a translation unit, with the text of each included file in place of its `#include`.

    So `show` prints exactly the text that is compiled, and a compiler needs no search path. Blank lines separate items,
    except between macros, between declarations, and between a comment and the lines that it describes. The first
    comment is the unit's title.
    """
    parts: list[str] = []
    before: Optional[Item] = None
    for item in items:
        text = "".join(f"{line}\n" for line in _item(item))
        if not text:
            continue
        is_below_title = len(parts) == 1 and isinstance(before, Comment)
        if parts and (is_below_title or not _follows(item, before)):
            parts.append("\n")
        parts.append(text)
        before = item
    return "".join(parts)


def _follows(item: Item, before: Optional[Item]) -> bool:
    """Whether no blank line separates an item from the one before it."""
    return isinstance(item, (Define, Declarations)) and isinstance(before, (type(item), Comment))


def _item(item: Item) -> Iterator[str]:
    if isinstance(item, Function):
        if item.comment:
            yield from _comment(item.comment, "")
        yield from item.signature.split("\n")
        yield from _braced(item.body, "")
    elif isinstance(item, Define):
        yield f"#define {item.name} {item.value}"
    elif isinstance(item, Include):
        yield read(item.file).rstrip("\n")
    elif isinstance(item, Comment):
        yield from _comment(item.text, "")
    else:
        yield from item.lines


def print_statements(statements: Iterable[Statement], indent: str = INDENT) -> list[str]:
    """The lines of a function's body."""
    lines: list[str] = []
    for statement in statements:
        if isinstance(statement, Assign):
            target, value, operator = statement
            lines.append(f"{indent}{target} {operator} {value};")
        elif isinstance(statement, Declare):
            type_, name, value = statement
            lines.append(
                f"{indent}{type_}{name} = {value};" if type_[-1] == "*" else f"{indent}{type_} {name} = {value};"
            )
        else:
            lines += _statement(statement, indent)
    return lines


def _statement(statement: Statement, indent: str) -> list[str]:
    if isinstance(statement, Text):
        # One string, because a large graph has hundreds of thousands of lines.
        return [indent + f"\n{indent}".join(statement.lines)] if statement.lines else []
    if isinstance(statement, Comment):
        return _comment(statement.text, indent)
    if isinstance(statement, Call):
        return _wrapped(f"{indent}{statement.function}(", statement.arguments, ");").split("\n")
    if isinstance(statement, Return):
        return [f"{indent}return {statement.value};" if statement.value else f"{indent}return;"]
    if isinstance(statement, Block):
        return _braced(statement.body, indent)
    if isinstance(statement, For):
        onwards = f"{statement.name}++" if statement.step == 1 else f"{statement.name} += {statement.step}"
        counts = f"long long {statement.name} = {statement.start}; {statement.name} < {statement.stop}; {onwards}"
        head = f"{indent}for ({counts})"
        body = print_statements(statement.body, indent + INDENT)
        return [head, *body] if _is_simple(statement.body) else [f"{head} {{", *body, f"{indent}}}"]
    assert isinstance(statement, If)
    return _choice(statement, indent)


def _choice(choice: If, indent: str) -> list[str]:
    """Both branches. If one needs braces, both get them."""
    head = f"{indent}if ({choice.condition})"
    then, otherwise = (print_statements(body, indent + INDENT) for body in (choice.then, choice.otherwise))
    if _is_simple(choice.then) and (not choice.otherwise or _is_simple(choice.otherwise)):
        return [head, *then, *([f"{indent}else", *otherwise] if otherwise else [])]
    return [f"{head} {{", *then, *([f"{indent}}} else {{", *otherwise] if otherwise else []), f"{indent}}}"]


def _is_simple(body: Sequence[Statement]) -> bool:
    """Whether a body needs no braces."""
    return len(body) == 1 and isinstance(body[0], (Assign, Call, Return))


def _braced(body: Iterable[Statement], indent: str) -> list[str]:
    return [f"{indent}{{", *print_statements(body, indent + INDENT), f"{indent}}}"]


def _comment(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        f"/* {text} */", COLUMNS, initial_indent=indent, subsequent_indent=f"{indent}   ", break_long_words=False
    )


def _wrapped(head: str, parts: Sequence[str], tail: str) -> str:
    """A list in parentheses, with continuation lines aligned below its first element."""
    lines = [head]
    for number, part in enumerate(parts):
        text = part + (", " if number < len(parts) - 1 else tail)
        if len(lines[-1]) + len(text.rstrip()) > COLUMNS and lines[-1].strip() and number:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * len(head))
        lines[-1] += text
    return "\n".join(lines) if parts else head + tail
