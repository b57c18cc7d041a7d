"""A plain install: the wheel holds what the commands need, works from any folder, and is typed for its users."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uv")

from uv import find_uv_bin

from zoomgrad.harness.machine.project import PACKAGES

pytestmark = pytest.mark.host

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Folder with the packages of a wheel that was built from a copy of this checkout, outside it."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    ignored = shutil.ignore_patterns("__pycache__", "runs", "baseline_runs")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    built = subprocess.run(
        [find_uv_bin(), "build", "--quiet", "--wheel", "--out-dir", source / "out", "--python", sys.executable, source],
        capture_output=True,
        text=True,
    )
    if built.returncode and "setuptools" in built.stderr:
        pytest.skip(f"setuptools can't be installed: {built.stderr.strip().splitlines()[-1]}")
    assert built.returncode == 0, built.stderr
    (wheel,) = (source / "out").glob("*.whl")
    install = [find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    subprocess.run([*install, "--target", folder, wheel], check=True)
    return folder


@pytest.fixture
def elsewhere(installed, tmp_path):
    """`elsewhere(*arguments)`: run the installed copy in a folder whose modules have the names of ours."""
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    for name in ("datasets", "results", "harness", "reports"):
        (folder / f"{name}.py").write_text("mine = True\n")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ZOOMGRAD_", "XDG_"))},
        "ZOOMGRAD_CACHE": os.environ.get("ZOOMGRAD_CACHE", "off"),
        "HOME": str(home),
        "PYTHONPATH": str(installed),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(*arguments):
        return subprocess.run(
            [sys.executable, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True
        )

    run.folder, run.home = folder, home
    return run


def succeeded(result):
    assert result.returncode == 0, result.stderr
    return result.stdout


COMMAND = ("-c", "import sys; del sys.path[0]; from zoomgrad.harness.cli import main; main()")
"""What the script `zoomgrad` does, which has no current folder on its path."""


def test_the_wheel_holds_our_packages_and_their_data(installed):
    assert {file.parent.name for file in installed.glob("*/__init__.py")} == set(PACKAGES)
    assert not list(installed.glob("*.py"))
    suffixes = (".py", ".c", ".h", ".lock", ".gz", ".j2", ".css", ".js", ".typed")
    for name in PACKAGES:
        for path in (ROOT / name).rglob("*"):
            kept = path.relative_to(ROOT)
            if path.suffix in suffixes and not {"runs", "baseline_runs"} & set(kept.parts):
                assert (installed / kept).is_file(), kept


def test_a_library_user_needs_no_checkout(elsewhere):
    code = """if True:
        from zoomgrad import datasets, results, zoomgrad
        assert datasets.mine and results.mine
        print(zoomgrad.__file__)
        engine = zoomgrad.load("bytecode")
        x, w = zoomgrad.Value(2.0), zoomgrad.Value(3.0)
        print(engine.compile(x * w, inputs=[x], parameters=[w]).forward())
    """
    file, loss = succeeded(elsewhere("-c", code)).split()
    assert not Path(file).is_relative_to(ROOT)
    assert loss == "6.0"


def test_commands_work_beside_modules_with_our_names_and_write_only_below_home(elsewhere):
    before = set(elsewhere.folder.iterdir())
    assert "Measure some of them" in succeeded(elsewhere(*COMMAND, "list"))
    assert "epochs, loss" in succeeded(elsewhere(*COMMAND, "train", "xor", "--engine", "bytecode", "--epochs", 3))
    (elsewhere.folder / "program.py").write_text(
        "from zoomgrad import datasets\nfrom micrograd.engine import Value\nprint(datasets.mine, Value(2.0) * 3)\n"
    )
    assert succeeded(elsewhere(*COMMAND, "exec", "program.py", "--engine", "slots")) == "True Value(data=6.0, grad=0)\n"
    assert set(elsewhere.folder.iterdir()) == before | {elsewhere.folder / "program.py"}
    assert (elsewhere.home / ".local" / "share" / "zoomgrad" / "packages").is_dir()


TYPED = '''
"""A program of a user, under mypy --strict."""

import zoomgrad
from zoomgrad import Column, Value


def trained(name: str, rows: bytes) -> float:
    engine: zoomgrad.Engine = zoomgrad.load(name)
    x, w = Value(2.0), Value(3.0)
    loss = (x * w + 1).tanh() ** 2
    program: zoomgrad.Program = engine.compile(loss, inputs=[x], parameters=[w])
    losses = program.train(Column(rows, 1, divisor=255.0), rate=0.1, batch=2)
    program.save("model.safetensors", shapes={"w": (1,)}, settings={"name": name})
    saved: zoomgrad.Saved = zoomgrad.load_parameters("model.safetensors")
    return sum(losses) + saved.parameters[0] + loss.data + (1 - x / w).grad


try:
    print(trained("tcc", b"abc"), zoomgrad.names())
except (zoomgrad.Unavailable, zoomgrad.UnknownName) as error:
    print(error)
except zoomgrad.NonFiniteLoss as error:
    print(error.step + 1)
'''
WRONG = """
zoomgrad.load(1)
zoomgrad.Value("2")
zoomgrad.load("tcc").compile(zoomgrad.Value(1.0))
"""


def test_mypy_knows_the_types(elsewhere, installed):
    pytest.importorskip("mypy")
    (elsewhere.folder / "program.py").write_text(TYPED + WRONG)
    site = elsewhere.folder.parent / "site"
    # mypy finds typed packages in a site-packages folder only, not on PYTHONPATH.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", site], check=True)
    (packages,) = site.glob("lib/python*/site-packages")
    (packages / "installed.pth").write_text(f"{installed}\n")
    python = str(site / "bin" / "python")
    result = elsewhere("-m", "mypy", "--strict", "--python-executable", python, "--cache-dir", os.devnull, "program.py")
    first = TYPED.count("\n")
    found = [
        (int(line) > first, kind) for line, kind in re.findall(r"(?m):(\d+): error: .*\[([\w-]+)\]$", result.stdout)
    ]
    assert found == [(True, kind) for kind in ("arg-type", "arg-type", "call-arg", "call-arg")], result.stdout
