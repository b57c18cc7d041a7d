"""What all tests share. Standard library and pytest only, CPython 3.9: the tests of worker-safe code use it too."""

import os
from pathlib import Path

import pytest

os.environ["ZOOMGRAD_CHECK"] = "1"  # before the engines are imported, and for all that tests start

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files of tests/golden from what the code prints now; read the diff before you commit it",
    )


@pytest.fixture
def golden(request):
    """`golden(name, text)`: the text equals the file tests/golden/name, which --update-golden rewrites."""

    def check(name, text):
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path}: no such golden file\n  Write it with `pytest --update-golden`, then read it."
        assert text == path.read_text(encoding="utf-8"), f"{path} differs\n  If it should: `pytest --update-golden`."

    return check
