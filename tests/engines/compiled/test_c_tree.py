"""Printing of the C tree."""

from __future__ import annotations

import textwrap

import pytest

from engines.kernel.c_tree import (
    COLUMNS,
    Assign,
    Block,
    Call,
    Comment,
    Declare,
    For,
    Function,
    If,
    Return,
    Text,
    print_c,
    print_statements,
)

ONE, TWO = Assign("a", "1.0"), Assign("b", "a", "+=")


def printed(*statements):
    """The lines of these statements without the indentation of a function's body."""
    return textwrap.dedent("\n".join(print_statements(statements))).splitlines()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (Declare("const double *", "x", "w + 8"), ["const double *x = w + 8;"]),
        (Return(), ["return;"]),
        (Block([Text(["a = 1.0;", "b = 2.0;"])]), ["{", "    a = 1.0;", "    b = 2.0;", "}"]),
        (For("i", 8, [ONE]), ["for (long long i = 0; i < 8; i++)", "    a = 1.0;"]),
        (If("a < b", [ONE], [TWO]), ["if (a < b)", "    a = 1.0;", "else", "    b += a;"]),
        (If("a", [ONE], [TWO, TWO]), ["if (a) {", "    a = 1.0;", "} else {", "    b += a;", "    b += a;", "}"]),
        # Without braces, C would attach the else to the inner if.
        (
            If("a", [If("b", [ONE])], [TWO]),
            ["if (a) {", "    if (b)", "        a = 1.0;", "} else {", "    b += a;", "}"],
        ),
    ],
    ids=repr,
)
def test_a_statement(statement, expected):
    assert printed(statement) == expected


def test_long_lines_are_wrapped():
    parameters = tuple(f"const double *restrict parameter_{number}" for number in range(7))
    head = print_c([Function("static void", "f", parameters, [])]).partition("{")[0].splitlines()
    assert {line.index("const") for line in head} == {len("static void f(")}
    assert " ".join(line.strip() for line in head) == f"static void f({', '.join(parameters)})"
    call = printed(Call("f", tuple(f"argument_{number}" for number in range(20))))
    assert call[1].startswith("  argument_")
    comment = Comment(" ".join(f"word{number}" for number in range(40)))
    words = print_c([comment]).splitlines()
    assert " ".join(" ".join(words).split()) == f"/* {comment.text} */"
    for lines in (head, call, words):
        assert len(lines) > 2
        assert all(len(line) <= COLUMNS for line in lines)
    single = f"double {'x' * COLUMNS}"
    assert Function("void", "f", (single,), []).prototype == f"void f({single});"
