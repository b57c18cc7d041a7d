"""Options and fixtures for all tests. Needs only CPython 3.9, pytest and hypothesis, as worker-safe tests do."""

import atexit
import contextlib
import gc
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["ZOOMGRAD_CHECK"] = "1"  # before the engines are imported; processes that tests start inherit it


def _take_a_cache_of_our_own():
    """Point the tests, and processes that they start, to an empty cache with the developer's data and nothing else."""
    from zoomgrad.datasets import Unavailable, mnist

    if os.environ.get("ZOOMGRAD_TEST_CACHE"):  # another process of these tests has made it
        return
    folder = Path(tempfile.mkdtemp(prefix="zoomgrad-test-cache-"))
    with contextlib.suppress(Unavailable, OSError):
        data = mnist.cache_folder()
        for name in ("mnist", "rpython"):  # data, and a package that no interpreter of today can install
            if (data.parent / name).is_dir():
                (folder / name).symlink_to(data.parent / name)
        (folder / "translated").mkdir(mode=0o700)
        for library in (data.parent / "translated").glob("rpython-*"):  # it takes half a minute to translate
            shutil.copy(library, folder / "translated")
    maker = os.getpid()
    atexit.register(lambda: os.getpid() == maker and shutil.rmtree(folder, ignore_errors=True))
    os.environ["ZOOMGRAD_TEST_CACHE"] = os.environ["ZOOMGRAD_CACHE"] = str(folder)


_take_a_cache_of_our_own()

GOLDEN = Path(__file__).parent / "golden"

PARTS = {
    "together": lambda item: not item.get_closest_marker("alone"),
    "alone": lambda item: item.get_closest_marker("alone"),
    "elsewhere": lambda item: not item.get_closest_marker("host"),
}
"""Part of `python -m tests` -> whether it runs a test."""

FILES = {
    "alone": lambda text: "pytest.mark.alone" in text,
    "elsewhere": lambda text: "\npytestmark = pytest.mark.host\n" not in text,
}
"""Part -> whether a file with that text may have tests of the part."""


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files in tests/golden from the code's current output; read the diff before you commit it",
    )
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="also run tests marked `exhaustive`, run every test on every interpreter, and draw new random examples "
        "each time",
    )
    parser.addoption("--part", choices=PARTS, help="run only one part of `python -m tests`")
    parser.addoption("--host", help="file with the host's fingerprints to compare with; `python -m tests` makes it")


def pytest_configure(config):
    # A push draws the same examples every time, so a failure comes from the change and can be reproduced.
    settings.register_profile("push", deadline=None, derandomize=True, max_examples=40)
    # `derandomize=False` must be explicit: where CI is set, hypothesis's own profile derandomizes.
    settings.register_profile("exhaustive", deadline=None, derandomize=False, max_examples=100, print_blob=True)
    settings.load_profile("exhaustive" if config.getoption("--exhaustive") else "push")


def pytest_ignore_collect(collection_path, config):
    """Don't import files in which the part has no test; importing all of them takes an interpreter up to a minute."""
    part = config.getoption("--part")
    if part in FILES and collection_path.suffix == ".py" and collection_path.name.startswith("test_"):
        return not FILES[part](collection_path.read_text(encoding="utf-8")) or None
    return None


def pytest_collection_modifyitems(config, items):
    exhaustive, of_part = config.getoption("--exhaustive"), PARTS.get(config.getoption("--part"), lambda item: True)
    for item in items:
        if item.get_closest_marker("alone") and not FILES["alone"](item.path.read_text(encoding="utf-8")):
            raise pytest.UsageError(f"{item.nodeid}: no part would run it\n  Write `pytest.mark.alone` in its file.")
    chosen, others = [], []
    for item in items:
        is_chosen = of_part(item) and (exhaustive or not item.get_closest_marker("exhaustive"))
        (chosen if is_chosen else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def pytest_collection_finish(session):
    # A graph has a hundred thousand objects. While tests build graphs, the default thresholds make the collector
    # traverse every imported module and test repeatedly, which takes half of the suite's time.
    if sys.implementation.name == "cpython":
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip a test that needs a compiler or a header which the machine lacks. CI has them all, so it skips nothing."""
    report = yield
    reason = str(getattr(call.excinfo and call.excinfo.value, "reason", ""))
    if re.match(r"there is (no|neither) (gcc|clang|tcc|Python\.h)\b", reason):
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {reason}")
    return report


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
        assert text == path.read_text(encoding="utf-8"), (
            f"{path} differs\n  If you meant to change it, run `pytest --update-golden`."
        )

    return check
