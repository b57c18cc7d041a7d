"""Options and fixtures for all tests. It runs on CPython 3.9 with pytest and hypothesis, as worker-safe tests do."""

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["ZOOMGRAD_CHECK"] = "1"  # before the engines are imported, and for all that tests start

GOLDEN = Path(__file__).parent / "golden"

PARTS = {
    "together": lambda item: not item.get_closest_marker("alone"),
    "alone": lambda item: item.get_closest_marker("alone"),
    "elsewhere": lambda item: not item.get_closest_marker("host"),
}
"""Part of `python -m tests` -> whether it runs a test."""


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files of tests/golden from what the code prints now; read the diff before you commit it",
    )
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="leave nothing out: tests marked `exhaustive`, every test on every interpreter, other random examples "
        "each time",
    )
    parser.addoption("--part", choices=PARTS, help="the tests of one part of `python -m tests`")
    parser.addoption("--host", help="the host's fingerprints, a file that `python -m tests` makes, to compare with")


def pytest_configure(config):
    # On a push the same examples every time: a red test is the change's, and comes back when it is run again.
    settings.register_profile("push", deadline=None, derandomize=True)
    # Said outright: where CI is set, hypothesis's own profile draws the same examples too.
    settings.register_profile("exhaustive", deadline=None, derandomize=False, print_blob=True)
    settings.load_profile("exhaustive" if config.getoption("--exhaustive") else "push")


def pytest_collection_modifyitems(config, items):
    exhaustive, of_part = config.getoption("--exhaustive"), PARTS.get(config.getoption("--part"), lambda item: True)
    chosen, others = [], []
    for item in items:
        is_chosen = of_part(item) and (exhaustive or not item.get_closest_marker("exhaustive"))
        (chosen if is_chosen else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def pytest_collection_finish(session):
    # A graph is a hundred thousand objects: while tests build them, default thresholds would have the collector walk
    # over every module and test that was imported, again and again. That is half of the suite's time.
    if sys.implementation.name == "cpython":
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def shared_objects(tmp_path_factory):
    """Compile each C program once per run."""
    from tests.objects import shared

    folder = os.environ.get("ZOOMGRAD_TEST_OBJECTS")
    with shared(Path(folder) if folder else tmp_path_factory.mktemp("objects")):
        yield


@pytest.fixture
def golden(request):
    """`golden(name, text)` compares the text with the file tests/golden/name, which --update-golden rewrites."""

    def check(name, text):
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path}: no such golden file\n  Write it with `pytest --update-golden`, then read it."
        assert text == path.read_text(encoding="utf-8"), f"{path} differs\n  If it should: `pytest --update-golden`."

    return check
