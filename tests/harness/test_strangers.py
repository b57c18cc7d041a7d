"""Runs from strangers: a command does not write, remove or show anything outside its own folders."""

import json
import subprocess
import sys

import pytest

from tests.harness.answering import Answering
from tests.harness.runs import kept
from tests.harness.test_cli import kept_in


@pytest.fixture(scope="module")
def zoomgrad(tmp_path_factory):
    """`zoomgrad(*arguments)`: run a command in one shared process, with runs and baseline runs in `zoomgrad.folder`."""
    folder = tmp_path_factory.mktemp("strangers")
    with Answering(**kept_in(folder)) as answering:
        answering.folder = folder
        yield answering


@pytest.fixture
def mine(tmp_path):
    """A folder of the user's, which no command may change."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    yield folder
    assert (folder / "thesis.tex").read_text() == "years of work"
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


def claim(store, **fields):
    """Change fields of the run's own description."""
    file = store.folder / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def refused(result, *said):
    assert result.returncode == 2, result.stdout + result.stderr
    assert result.stderr.startswith("zoomgrad: "), result.stderr
    for text in said:
        assert text in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("what", ["folder", "link", "text"])
def test_only_a_baseline_run_is_replaced(zoomgrad, tmp_path, mine, what):
    place = zoomgrad.folder / "baseline_runs" / f"{what}.jsonl.xz"
    place.parent.mkdir(exist_ok=True)
    if what == "link":
        place.symlink_to(mine / "thesis.tex")
    elif what == "folder":
        place.mkdir()
    else:
        place.write_text("years of work")
    store = kept(tmp_path, preset=what)
    refused(zoomgrad("check", store.folder, "--update"), str(place))
    assert {"folder": place.is_dir(), "link": place.is_symlink(), "text": place.is_file()}[what]


def test_every_command_accepts_a_run_kept_as_a_file(zoomgrad, tmp_path):
    one, another = (
        kept(tmp_path / "live", name).keep_as(tmp_path / "kept" / f"{name}.jsonl.xz").path
        for name in ("one", "another")
    )
    for arguments in (
        ("report", one),
        ("report", one, "--into", tmp_path / "site"),
        ("compare", one, another),
        ("check", one, "--against", another),
        ("check", one, "--against", tmp_path / "live" / "another"),
        ("export", one, "--format", "csv"),
        ("history", tmp_path / "kept"),
    ):
        result = zoomgrad(*arguments)
        assert result.returncode == 0, (arguments, result.stderr)
    beside = {path.name for path in (tmp_path / "kept" / "one").iterdir()}
    assert beside == {".zoomgrad-run", "report.html", "report.md", "charts", "check.md", "export"}
    assert not list((tmp_path / "live" / "one").glob("*.html"))


@pytest.mark.parametrize(
    ("field", "value"),
    [("preset", "../mine"), ("cells", [{"engine": "..", "interpreter": "cpython-3.13", "workload": "xor"}])],
)
def test_a_name_that_is_a_path_is_refused(zoomgrad, tmp_path, mine, field, value):
    """`check --update` once replaced a baseline run by removing the folder named after its preset."""
    store = kept(tmp_path)
    claim(store, **{field: value})
    refused(zoomgrad("check", store.folder, "--update"), f"run.json: {field}")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        *(("report", name) for name in ("report.html", "report.md", "charts/")),
        *(("check --against", "check.md"), ("history", "../history.html"), ("export --format csv", "export/")),
    ],
)
def test_nothing_is_written_through_a_link(zoomgrad, tmp_path, mine, command, name):
    store, other = kept(tmp_path / "runs", "one"), kept(tmp_path / "runs", "another")
    (store.folder / name.rstrip("/")).symlink_to(mine if name.endswith("/") else mine / "thesis.tex")
    name_, *options = command.split()
    place = store.folder.parent if name_ == "history" else store.folder
    arguments = (name_, place, *options, *([other.folder] if options == ["--against"] else []))
    refused(zoomgrad(*arguments), name.strip("./"), "leads out of")


def test_a_record_that_is_a_link_to_a_secret_does_not_reveal_it(zoomgrad, tmp_path):
    store = kept(tmp_path)
    (tmp_path / "key").write_text("-----BEGIN PRIVATE KEY-----")
    (store.folder / "records" / "a.json").symlink_to(tmp_path / "key")
    result = zoomgrad("report", store.folder)
    refused(result, "leads out of")
    assert "PRIVATE" not in result.stderr


def test_no_escape_sequence_reaches_the_terminal(zoomgrad, tmp_path):
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
    runs = tmp_path / "runs"
    stores = [kept(runs, name, command=("zoomgrad", evil)) for name in ("one", "another")]
    for store in stores:
        facts = {"processor": evil, "system": evil, "load at start": evil}
        claim(
            store, machine=facts, commit=evil, interpreters={"cpython-3.13": {"version": evil, "build": {evil: evil}}}
        )
        for path in (store.folder / "records").glob("tuple*"):
            content = json.loads(path.read_text())
            failed = {"status": "failed", "reason": evil, "remedy": evil, "step_seconds": [], "compiler": evil}
            path.write_text(json.dumps({**content, **failed}))
    kept(runs, "whole")
    kept(runs, "whole-too")
    (runs / f"x{evil}").mkdir()
    (runs / f"x{evil}" / "run.json").write_text(json.dumps({evil: evil}))
    one, another = (str(store.folder) for store in stores)
    for arguments in (
        ("report", one),
        ("compare", one, another),
        ("report", runs / f"x{evil}"),
        ("report", evil),
        ("check", one, "--against", another),
        ("check", one, "--update"),
        ("history", runs),
        *(("export", one, "--format", form, "--output", "-") for form in ("csv", "github-action-benchmark", "pyperf")),
    ):
        result = zoomgrad(*arguments)
        assert "Traceback" not in result.stderr, arguments
        for text in (result.stdout, result.stderr):
            assert not set(text) & set("\x1b\x07\x9b\u202e"), arguments


@pytest.mark.parametrize("arguments", [["list"], ["show", "xor"]])
def test_a_closed_pipe_is_not_a_traceback(tmp_path, arguments):
    command = [sys.executable, "-m", "zoomgrad", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kept_in(tmp_path))
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 1
