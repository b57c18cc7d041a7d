"""`exec` runs the code cells of a notebook."""

import json

import pytest

from tests.harness.worker import test_execute
from tests.harness.worker.own_classes import CLOSURES, USE


def execute(tmp_path, *cells, engine="hoisted", text=None):
    """Run a notebook of these code cells, after a cell of text."""
    written = [{"cell_type": "markdown", "metadata": {}, "source": ["# No `code` %here"]}]
    written += [{"cell_type": "code", "metadata": {}, "source": cell.splitlines(keepends=True)} for cell in cells]
    content = {"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    text = json.dumps(content, indent=1, ensure_ascii=False) if text is None else text
    return test_execute.execute(engine, tmp_path, text, name="book.ipynb")


def test_what_only_jupyter_runs_is_left_out_with_a_line(tmp_path):
    ran = execute(
        tmp_path,
        "%matplotlib inline\nfrom __future__ import annotations\nimport micrograd  # why?\n!pip install x",
        "x: absent = 0\nif True:\n    !ls\n    %time print(1)",
        "%%html\n<b>",
        "%%time\nprint(2)",
        "print?\nprint('% of\\n!')",
        "x = 7 \\\n% 4\nx",
    )
    assert ran.stdout == "1\n2\n% of\n!\n3\n"
    assert ran.stderr == (
        "zoomgrad: book.ipynb: left out 6 lines that only Jupyter runs, such as `%matplotlib inline`\n"
    )


def test_errors_name_the_cell_and_its_line(tmp_path):
    for cell, error in (("x = 1\nx.y", "AttributeError"), ("x = 1\ny = = 2", "SyntaxError")):
        ran = execute(tmp_path, "import micrograd", cell)
        assert ran.returncode == 1
        assert error in ran.stderr
        assert 'book.ipynb, cell 2", line 2' in ran.stderr


@pytest.mark.host
def test_each_class_of_a_notebook_is_replaced(tmp_path):
    ran = execute(tmp_path, CLOSURES, USE, CLOSURES, USE, engine="")
    lines = ran.stdout.splitlines()
    assert (len(lines), lines[0], ran.stderr.count("Value runs in C")) == (2, lines[1], 2)


@pytest.mark.parametrize("text", ["print(1)", "[]", "{}", '{"cells": [{}]}', '{"cells": 3}', '"text"', "\ufeff"])
def test_what_is_no_notebook_is_refused(tmp_path, text):
    ran = execute(tmp_path, text=text)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "not a notebook of format 4" in ran.stderr
    assert "Save it again with Jupyter" in ran.stderr
