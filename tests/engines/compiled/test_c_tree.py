"""Printing of the C tree, node by node."""

from __future__ import annotations

import textwrap

import pytest

from engines.kernel.c_text import FOLDER, read, unit
from engines.kernel.c_tree import (
    COLUMNS,
    Assign,
    Block,
    Call,
    Comment,
    Declarations,
    Declare,
    Define,
    For,
    Function,
    If,
    Include,
    Return,
    Struct,
    Text,
    print_c,
    print_statements,
)


def statements(*given):
    """Return the printed statements without the indentation of a function's body."""
    return textwrap.dedent("\n".join(print_statements(given)) + "\n")


def dedented(text):
    return textwrap.dedent(text).lstrip("\n")


ONE, TWO = Assign("a", "1.0"), Assign("b", "a", "+=")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (Assign("x[i]", "y", "-="), "x[i] -= y;\n"),
        (Declare("double", "a", "0.0"), "double a = 0.0;\n"),
        (Declare("const double *", "x", "w + 8"), "const double *x = w + 8;\n"),
        (Call("forward_0", ("x", "w")), "forward_0(x, w);\n"),
        (Call("leave"), "leave();\n"),
        (Return("w[0]"), "return w[0];\n"),
        (Return(), "return;\n"),
        (Text(["a = 1.0;", "b = 2.0;"]), "a = 1.0;\nb = 2.0;\n"),
        (Comment("Why."), "/* Why. */\n"),
        (Block([ONE]), "{\n    a = 1.0;\n}\n"),
    ],
    ids=repr,
)
def test_a_statement(statement, expected):
    assert statements(statement) == expected


def test_empty_text_prints_no_line():
    assert list(print_statements([Text([]), ONE])) == ["    a = 1.0;"]


def test_a_loop_has_braces_where_its_body_needs_them():
    assert statements(For("i", 8, [ONE])) == dedented("""
        for (long long i = 0; i < 8; i++)
            a = 1.0;
    """)
    assert statements(For("i", "count", [ONE, TWO], step=4)) == dedented("""
        for (long long i = 0; i < count; i += 4) {
            a = 1.0;
            b += a;
        }
    """)
    assert statements(For("i", 8, [For("j", 4, [ONE])])) == dedented("""
        for (long long i = 0; i < 8; i++) {
            for (long long j = 0; j < 4; j++)
                a = 1.0;
        }
    """)


def test_an_if_without_an_else():
    assert statements(If("a < b", [ONE])) == "if (a < b)\n    a = 1.0;\n"
    assert statements(If("a < b", [ONE, TWO])) == "if (a < b) {\n    a = 1.0;\n    b += a;\n}\n"


def test_an_if_has_braces_on_both_branches_or_on_neither():
    assert statements(If("a < b", [ONE], [TWO])) == dedented("""
        if (a < b)
            a = 1.0;
        else
            b += a;
    """)
    for then, otherwise in (([ONE], [TWO, TWO]), ([ONE, ONE], [TWO])):
        lines = statements(If("a < b", then, otherwise)).splitlines()
        assert (lines[0], lines[-1]) == ("if (a < b) {", "}")
        assert "} else {" in lines


def test_an_else_belongs_to_its_own_if():
    """Without braces, C would attach the else to the inner if."""
    assert statements(If("a", [If("b", [ONE])], [TWO])) == dedented("""
        if (a) {
            if (b)
                a = 1.0;
        } else {
            b += a;
        }
    """)


def test_a_long_parameter_list_is_wrapped_and_aligned():
    parameters = tuple(f"const double *restrict parameter_{number}" for number in range(7))
    text = print_c([Function("static void", "f", parameters, [Return()])])
    head = text[: text.index("{")].splitlines()
    assert len(head) > 2
    assert all(len(line) <= COLUMNS for line in head)
    assert {line.index("const") for line in head} == {len("static void f(")}
    assert " ".join(line.strip() for line in head) == f"static void f({', '.join(parameters)})"


def test_a_single_long_parameter_is_not_wrapped():
    parameter = f"double {'x' * COLUMNS}"
    assert Function("void", "f", (parameter,), []).prototype == f"void f({parameter});"


def test_a_long_call_is_wrapped():
    lines = statements(Call("f", tuple(f"argument_{number}" for number in range(20)))).splitlines()
    assert len(lines) == 3
    assert all(len(line) <= COLUMNS for line in lines)
    assert lines[1].startswith("  argument_")


def test_a_long_comment_is_wrapped_between_words():
    comment = Comment(" ".join(f"word{number}" for number in range(40)))
    lines = print_c([comment]).splitlines()
    assert len(lines) == 3
    assert all(len(line) <= COLUMNS for line in lines)
    assert lines[0].startswith("/* word0 ")
    assert lines[-1].endswith(" word39 */")
    assert " ".join(" ".join(lines).split()) == f"/* {comment.text} */"


def test_a_function_without_parameters_prints_void():
    function = Function("static int", "f", (), [Return("1")], comment="Always.")
    assert function.prototype == "static int f(void);"
    assert print_c([function]) == dedented("""
        /* Always. */
        static int f(void)
        {
            return 1;
        }
    """)


def test_a_structure():
    struct = Struct("state", (("double rate", "of the update that is due"), ("long long count", "")), comment="Kept.")
    assert print_c([struct]) == dedented("""
        /* Kept. */
        struct state {
            double rate; /* of the update that is due */
            long long count;
        };
    """)


def test_blank_lines_in_a_unit():
    """A blank line separates all items, except macros, declarations, and a comment from the lines it describes."""
    items = [
        Comment("Title."),
        Declarations(["double exp(double);"]),
        Declarations([]),
        Declarations(["double log(double);"]),
        Define("A", 1),
        Define("B", 2.5),
        Comment("Tables."),
        Declarations(["static const int t[] = {", "    1,", "};"]),
        Include("kernel/kernel.h"),
        Function("void", "f", (), [Return()]),
        Function("void", "g", (), []),
        Define("C", 3),
    ]
    assert print_c(items) == dedented("""
        /* Title. */

        double exp(double);
        double log(double);

        #define A 1
        #define B 2.5

        /* Tables. */
        static const int t[] = {
            1,
        };

        #include "kernel/kernel.h"

        void f(void)
        {
            return;
        }

        void g(void)
        {
        }

        #define C 3
    """)


def test_a_unit_contains_the_text_of_included_files():
    text = unit([Define("A", 1), Include("kernel/kernel.h"), Define("B", 2)])
    assert text == f"#define A 1\n\n{read('kernel/kernel.h')}\n#define B 2\n"


def test_only_files_of_the_package_are_read():
    with pytest.raises(FileNotFoundError):
        read("kernel/absent.h")
    assert (FOLDER / "kernel" / "kernel.h").is_file()
