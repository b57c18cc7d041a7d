"""Links in README.md and the other pages resolve, Python blocks run, and commands would be accepted.

Commands are parsed, never run. `EXCEPTIONS` lists the blocks that are neither Python nor commands, with the reason.
"""

import doctest
import io
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("typer")

from tests import own
from tests.engines.compiled.compiling import usable
from zoomgrad import engines
from zoomgrad.engines import discovery
from zoomgrad.harness import cli, workloads
from zoomgrad.harness.plan.presets import PRESETS

pytestmark = pytest.mark.host

ROOT = Path(__file__).parent.parent
PAGES = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md"),
    *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("docs/**/*.md"))),
)

FENCE = re.compile(r"(?ms)^(?:<!-- listing: (?P<listing>[^>]*) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"(?m)^#+ (.*)$")
INLINE = re.compile(r"`((?:zoomgrad|uvx|tox|python -m) [^`]*)`")
CHOICE = re.compile(r"\{(\w+),[^}]*\}")

EXCEPTIONS = {
    "graph -> Tape -> Code": "a diagram of the stages",
    "Value graph -> tape -> sums": "a diagram of the stages",
    "xor on cpython": "tests/test_readme.py compares it with what the terminal shows",
    'engines = ["baseline", "walk"]': "tests/harness/test_suite.py runs it",
    "forward:\n": "test_the_mnist_loops_match_the_code compares it with the loops",
}
"""First words of a block -> why it is not checked as a listing, as Python or as commands."""
OTHER_PROGRAMS = {
    "uv": "makes an environment",
    ".ci/run": "installs what it needs on a bare Debian",
    **dict.fromkeys(
        ("openssl", "cat", "chmod", "dask"), "tests/harness/fleet starts a scheduler and a worker like these"
    ),
}
"""Program of a command -> why its arguments are not checked."""
PLACEHOLDERS = {"your_program.py": __file__, "script.py": __file__, "WORKLOAD": "xor", "E": "tuple"}
"""Placeholder in a command -> a value that exists."""


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    listing: str
    text: str


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def prose(page):
    return FENCE.sub("", read(page))


def blocks():
    return [
        Block(page, found["language"], found["listing"] or "", found["text"])
        for page in PAGES
        for found in FENCE.finditer(read(page))
    ]


# --- links -----------------------------------------------------------------------------------------------------------


def tracked():
    """Files and folders that git tracks. Skips the test outside a checkout."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git checkout")
    files = [Path(name) for name in listed.split("\0") if name]
    return {ROOT / path for file in files for path in (file, *file.parents)}


def anchor(heading):
    """GitHub's anchor of a heading."""
    text = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES)
def test_each_link_leads_to_a_tracked_file(page):
    there = tracked()
    for link in LINK.findall(prose(page)):
        if link.startswith(("http://", "https://")):
            continue
        name, _, part = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.resolve() in there, f"{page}: {link} is not in git"
        if part:
            headings = HEADING.findall(FENCE.sub("", target.read_text(encoding="utf-8")))
            assert part in map(anchor, headings), f"{page}: {link} is not a heading"


# --- Python ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", sorted({block.page for block in blocks() if block.language == "python"}))
def test_the_python_of_a_page_runs(page):
    """In the page's order, in one namespace: a later block may use the names of an earlier one."""
    usable("tcc")
    names = {"__name__": "__main__"}
    for block in blocks():
        if block.page != page or block.language != "python":
            continue
        if block.text.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(block.text, names, page, page, 0)
            assert not doctest.DocTestRunner().run(example, clear_globs=False).failed
            names.update(example.globs)
        else:
            with redirect_stdout(io.StringIO()):
                exec(compile(block.text, page, "exec"), names)


# --- commands --------------------------------------------------------------------------------------------------------


def commands():
    """(page, command) of each line of the blocks of commands, and of each command in the prose."""
    found = []
    for block in blocks():
        if not block.language and not block.listing and not block.text.startswith(tuple(EXCEPTIONS)):
            lines = re.sub(r"\\\n\s*", "", block.text).splitlines()
            # The text after two spaces or a # is a description.
            found += [(block.page, re.split(r"\s{2,}|\s+#", line)[0]) for line in lines]
    for page in PAGES:
        for command in INLINE.findall(prose(page)):
            words = command.split()
            # Two words only name a command, without its arguments.
            found.append((page, " ".join([*words, "--help"] if len(words) == 2 else words)))
    return found


def check_zoomgrad(arguments):
    """The command takes these options, and its engines, workloads and preset exist."""
    name, *rest = arguments
    assert name in cli.COMMANDS, f"`zoomgrad {name}` does not exist"
    if rest == ["--help"]:
        return
    values = cli.load(name).make_context(name, [PLACEHOLDERS.get(each, each) for each in rest]).params
    for parameter, load in (("engine", engines.load), ("workload", workloads.load)):
        for each in filter(None, [values.get(parameter), *(values.get(f"{parameter}s") or ())]):
            load(PLACEHOLDERS.get(each, each))
    assert values.get("preset") in {None, *PRESETS}


@pytest.mark.parametrize(("page", "command"), sorted(set(commands())))
def test_each_command_would_be_accepted(page, command, tmp_path, monkeypatch):
    own.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(discovery.ENGINE_FILES, "")
    program, *arguments = shlex.split(CHOICE.sub(r"\1", command).partition(" > ")[0].replace("…", ""))
    if program == "uvx":
        program, *arguments = arguments
        program = program.removesuffix("[bench]")
    program = program.removeprefix(".venv/bin/")
    if program == "zoomgrad":
        check_zoomgrad(arguments)
    elif program == "tox":
        assert f"[testenv:{arguments[-1]}]" in read("tox.ini"), command
    elif program == "python":
        assert arguments[0] == "-m" and find_spec(arguments[1]), command
    elif program == "pytest":
        assert all((ROOT / each).exists() for each in arguments if "/" in each), command
    else:
        assert program in OTHER_PROGRAMS, (
            f"{page}: `{command}` is not checked\n  If it can't be, add its program to OTHER_PROGRAMS."
        )


# --- everything else -------------------------------------------------------------------------------------------------


def test_each_block_is_checked():
    """Listings of these pages are compared with the code by tests/test_one_neuron.py and tests/test_tutorial.py."""
    pages = ("docs/loops.md", "docs/using.md")
    for block in blocks():
        is_listing = block.listing and block.page in pages
        assert is_listing or block.language in ("", "python", "toml"), block
    texts = [block.text for block in blocks()]
    assert all(any(text.startswith(words) for text in texts) for words in EXCEPTIONS), (
        "no block starts with one of EXCEPTIONS; remove it"
    )


def test_the_mnist_loops_match_the_code():
    """docs/loops.md omits some lines and shows the others as the code prints them for vectors of 8."""
    from zoomgrad.datasets import Unavailable
    from zoomgrad.engines.rerolled.fitted import fitted
    from zoomgrad.harness import stages

    if fitted(engines.load("rerolled-gcc").options).width != 8:
        pytest.skip("the page shows the loops of a processor with vectors of 8 doubles")
    try:
        shown = stages.text(engines.load("rerolled-gcc"), workloads.load("mnist"), stages.Stage.loops).splitlines()
    except (Unavailable, engines.Unavailable) as missing:
        pytest.skip(missing.reason)
    (listing,) = [block.text for block in blocks() if block.text.startswith("forward:\n") and not block.listing]
    for line in listing.splitlines():
        assert "…" in line or line in shown, line
    count = sum(bool(re.match(r" +\d+: ", line)) for line in shown)
    assert f" {count} loops" in prose("docs/loops.md")
