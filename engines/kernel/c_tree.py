"""C as a small tree, and its printer.

statement = declaration | assignment | call | return | block | loop | choice | comment | text
function  = comment? result name parameters statement*

Expressions are strings: `engines.graph.expr` spells those that come from the op table, with their precedence. Example:

    print_c([Function("void", "twice", ("double *x",), (For("i", 3, (Assign("x[i]", "2.0 * x[i]"),)),))])

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
from typing import Callable, NamedTuple, Optional, Union

COLUMNS = 120
INDENT = "    "


class Comment(NamedTuple):
    """A comment on lines of its own."""

    text: str


class Declare(NamedTuple):
    """A variable and its first value."""

    type: str
    name: str
    value: str


class Assign(NamedTuple):
    """operator: `=`, `+=` or `-=`."""

    target: str
    value: str
    operator: str = "="


class Call(NamedTuple):
    """A call whose result nobody needs."""

    function: str
    arguments: tuple[str, ...] = ()


class Return(NamedTuple):
    """value: empty for a function without a result."""

    value: str = ""


class Block(NamedTuple):
    """Statements with names of their own."""

    body: Sequence[Statement]


class For(NamedTuple):
    """A loop whose `name` counts from 0 to below `stop`."""

    name: str
    stop: Union[int, str]
    body: Sequence[Statement]
    step: int = 1


class If(NamedTuple):
    """A choice; `otherwise` may be empty."""

    condition: str
    then: Sequence[Statement]
    otherwise: Sequence[Statement] = ()


class Text(NamedTuple):
    """Lines that are spelled already, without their indentation: straight-line code has too many for a tree."""

    lines: Sequence[str]


Statement = Union[Comment, Declare, Assign, Call, Return, Block, For, If, Text]


class Function(NamedTuple):
    """A function; without its body, its prototype."""

    result: str
    """Its type, after `static`, attributes and the like."""
    name: str
    parameters: tuple[str, ...]
    body: Sequence[Statement]
    comment: str = ""

    @property
    def signature(self) -> str:
        return _wrapped(f"{self.result} {self.name}(", self.parameters or ("void",), ")")

    @property
    def prototype(self) -> str:
        """A line of C that declares it."""
        return f"{self.signature};"


class Struct(NamedTuple):
    """A structure. fields: declarations without their semicolon, each with what it means, or an empty string."""

    name: str
    fields: tuple[tuple[str, str], ...]
    comment: str = ""


class Define(NamedTuple):
    """A macro without parameters."""

    name: str
    value: object


class Include(NamedTuple):
    """A file of C that is the same for every graph."""

    file: str
    """Its path below `engines/`, such as `kernel/kernel.h`."""


class Declarations(NamedTuple):
    """Lines outside of functions that are spelled already: prototypes, constants, tables."""

    lines: Sequence[str]


Item = Union[Function, Struct, Define, Include, Declarations, Comment]


def _directive(file: str) -> str:
    return f'#include "{file}"'


def print_c(items: Iterable[Item], included: Callable[[str], str] = _directive) -> str:
    """A translation unit. included: what to print for an Include, given its file.

    Blank lines separate items, with two exceptions: macros follow macros and declarations follow declarations, and a
    comment stands directly above the lines that it is about. The first comment is the unit's title.
    """
    parts: list[str] = []
    before: Optional[Item] = None
    for item in items:
        text = "".join(f"{line}\n" for line in _item(item, included))
        if not text:
            continue
        is_below_title = len(parts) == 1 and isinstance(before, Comment)
        if parts and (is_below_title or not _follows(item, before)):
            parts.append("\n")
        parts.append(text)
        before = item
    return "".join(parts)


def _follows(item: Item, before: Optional[Item]) -> bool:
    """Whether an item's lines come directly after those of the item before it."""
    return isinstance(item, (Define, Declarations)) and isinstance(before, (type(item), Comment))


def _item(item: Item, included: Callable[[str], str]) -> Iterator[str]:
    if isinstance(item, Function):
        if item.comment:
            yield from _comment(item.comment, "")
        yield from item.signature.split("\n")
        yield from _braced(item.body, "")
    elif isinstance(item, Struct):
        if item.comment:
            yield from _comment(item.comment, "")
        yield f"struct {item.name} {{"
        for field, meaning in item.fields:
            yield f"{INDENT}{field};" + (f" /* {meaning} */" if meaning else "")
        yield "};"
    elif isinstance(item, Define):
        yield f"#define {item.name} {item.value}"
    elif isinstance(item, Include):
        yield included(item.file).rstrip("\n")
    elif isinstance(item, Comment):
        yield from _comment(item.text, "")
    else:
        yield from item.lines


def print_statements(statements: Iterable[Statement], indent: str = INDENT) -> Iterator[str]:
    """The lines of a function's body."""
    for statement in statements:
        yield from _statement(statement, indent)


def _statement(statement: Statement, indent: str) -> Iterator[str]:
    if isinstance(statement, Text):
        if statement.lines:  # all in one: a large graph has hundreds of thousands
            yield indent + f"\n{indent}".join(statement.lines)
    elif isinstance(statement, Comment):
        yield from _comment(statement.text, indent)
    elif isinstance(statement, Declare):
        yield f"{indent}{_declared(statement.type, statement.name)} = {statement.value};"
    elif isinstance(statement, Assign):
        yield f"{indent}{statement.target} {statement.operator} {statement.value};"
    elif isinstance(statement, Call):
        yield from _wrapped(f"{indent}{statement.function}(", statement.arguments, ");").split("\n")
    elif isinstance(statement, Return):
        yield f"{indent}return {statement.value};" if statement.value else f"{indent}return;"
    elif isinstance(statement, Block):
        yield from _braced(statement.body, indent)
    elif isinstance(statement, For):
        onwards = f"{statement.name}++" if statement.step == 1 else f"{statement.name} += {statement.step}"
        head = f"for (long long {statement.name} = 0; {statement.name} < {statement.stop}; {onwards})"
        yield from _under(f"{indent}{head}", statement.body, indent)
    else:
        yield from _choice(statement, indent)


def _choice(choice: If, indent: str) -> Iterator[str]:
    """Both branches; braces on both where one needs them."""
    needs_braces = not (_is_simple(choice.then) and (not choice.otherwise or _is_simple(choice.otherwise)))
    head = f"{indent}if ({choice.condition})"
    if not needs_braces:
        yield head
        yield from print_statements(choice.then, indent + INDENT)
        if choice.otherwise:
            yield f"{indent}else"
            yield from print_statements(choice.otherwise, indent + INDENT)
        return
    yield f"{head} {{"
    yield from print_statements(choice.then, indent + INDENT)
    if choice.otherwise:
        yield f"{indent}}} else {{"
        yield from print_statements(choice.otherwise, indent + INDENT)
    yield f"{indent}}}"


def _under(head: str, body: Sequence[Statement], indent: str) -> Iterator[str]:
    if _is_simple(body):
        yield head
        yield from print_statements(body, indent + INDENT)
    else:
        yield f"{head} {{"
        yield from print_statements(body, indent + INDENT)
        yield f"{indent}}}"


def _is_simple(body: Sequence[Statement]) -> bool:
    """Whether a body needs no braces."""
    return len(body) == 1 and isinstance(body[0], (Assign, Call, Return))


def _braced(body: Iterable[Statement], indent: str) -> Iterator[str]:
    yield f"{indent}{{"
    yield from print_statements(body, indent + INDENT)
    yield f"{indent}}}"


def _declared(type_: str, name: str) -> str:
    """A type and a name; a pointer's star stands by the name."""
    return f"{type_}{name}" if type_.endswith("*") else f"{type_} {name}"


def _comment(text: str, indent: str) -> Iterator[str]:
    lines = textwrap.wrap(text, COLUMNS - len(indent) - 6, break_long_words=False) or [""]
    for number, line in enumerate(lines):
        start = "/* " if number == 0 else "   "
        end = " */" if number == len(lines) - 1 else ""
        yield f"{indent}{start}{line}{end}"


def _wrapped(head: str, parts: Sequence[str], tail: str) -> str:
    """A list in parentheses, cut into lines below its first element."""
    lines = [head]
    for number, part in enumerate(parts):
        text = part + (", " if number < len(parts) - 1 else tail)
        if len(lines[-1]) + len(text.rstrip()) > COLUMNS and lines[-1].strip() and number:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * len(head))
        lines[-1] += text
    return "\n".join(lines) if parts else head + tail
