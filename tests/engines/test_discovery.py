"""Engines of the table and of files, in the ladder's order; broken files are left out and named."""

import os

import pytest

from zoomgrad import engines
from zoomgrad.engines import discovery
from zoomgrad.engines.api import UnknownName

pytestmark = pytest.mark.host


def test_the_ladder():
    oldest = ["baseline", "tuple", "slots", "hoisted", "cython", "mypyc", "local-grads", "replay"]
    assert [name for name in engines.names() if name in oldest] == oldest
    for index, name in enumerate(engines.names()):
        engine = engines.load(name)
        assert engine.name == name
        assert engine.idea
        assert not engine.builds_on or engine.builds_on in engines.names()[:index]
        assert engine.strict == (engine.error_bound is None)


# --- broken files ------------------------------------------------------------------------------------------------

PLAIN = """
from zoomgrad.engines.row import Row

def engine(name, builds_on="", **facts):
    return Row(name, "none", builds_on, **facts)


"""
GOOD = f"{PLAIN}ENGINES = (engine('good'), engine('better', 'good'))\n"


@pytest.fixture
def found(tmp_path, monkeypatch):
    """`found(text)` names a file with that text beside a good one, and returns what discovery finds in both."""
    files = tmp_path / "good.py", tmp_path / "zz.py"
    monkeypatch.setenv(discovery.ENGINE_FILES, os.pathsep.join(map(str, files)))

    def discover(text):
        for file, content in zip(files, (GOOD, text)):
            file.write_text(content, encoding="utf-8")
        return discovery.discover()

    discover.file = str(files[1])
    return discover


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("def broken(:\n", "can't be imported: SyntaxError: "),
        ("import sys; sys.exit(3)", "can't be imported: SystemExit: 3"),
        ("raise type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})", "can't be imported: Odd"),
        ("raise Exception('\\x1b[2J' + 'x' * 10_000)", "can't be imported: Exception: \N{REPLACEMENT CHARACTER}[2Jxxx"),
        ("ENGINES = 3", "its ENGINES are not a tuple of engines: int"),
        ("ENGINES = (type('E', (), {'name': property(lambda self: 1 / 0)})(),)", "an object of E is not an engine"),
        (f"{PLAIN}ENGINES = (engine('twice'), engine('twice'))", "a second engine named 'twice'; the first one is in"),
        (f"{PLAIN}ENGINES = (engine('a', 'b'), engine('b', 'a'))", "a builds on 'b', and no engine before it"),
        (f"{PLAIN}ENGINES = (engine('x', error_bound=float('nan')),)", "x: its error bound is not"),
        (f"{PLAIN}ENGINES = (engine('x', typical_row_seconds=(-1.0, 0.0)),)", "x: its typical_row_seconds are not"),
        (f"{PLAIN}ENGINES = (engine('x', environment=None),)", "x: its environment is not text"),
        (
            f"{PLAIN}class R(Row): idea = property(lambda self: 1 / 0)\nENGINES = R.__new__(R),",
            "None is not an engine's name",
        ),
        (f"{PLAIN}ENGINES = (engine('a/b'),)", "'a/b' is not an engine's name"),
    ],
)
def test_a_broken_file_is_left_out_and_named(found, text, what):
    """The engines of other files stay."""
    names, left_out = found(text)
    assert [name for name in names if name != "twice"] == ["good", "better"]
    problems = [problem for problem in left_out if problem.where == found.file]
    assert len(problems) == len(left_out) >= 1
    assert problems[0].what.startswith(what)
    assert all(problem.what.isprintable() and len(problem.what) < 400 for problem in problems)


def test_a_file_that_is_a_package_runs_once(tmp_path, monkeypatch):
    package = tmp_path / "ofapackage"
    package.mkdir()
    once = f"import builtins\nbuiltins.runs = getattr(builtins, 'runs', 0) + 1\n{GOOD}"
    (package / "__init__.py").write_text(once, encoding="utf-8")
    monkeypatch.setenv(discovery.ENGINE_FILES, str(package / "__init__.py"))
    monkeypatch.setattr("builtins.runs", 0, raising=False)
    assert list(discovery.discover()[0]) == ["good", "better"]
    assert __import__("builtins").runs == 1


def test_an_unknown_name_lists_the_files_left_out(found, monkeypatch):
    monkeypatch.setattr(engines, "_discovered", lambda: found("def ("))
    with pytest.raises(UnknownName) as error:
        engines.load("broken")
    assert f"\n  Left out: {found.file}: can't be imported: SyntaxError" in str(error.value)
    assert engines.load("better").builds_on == "good"
