"""An install adds `zoomgrad` and nothing else, works from any folder, and is typed for its users."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.harness.worker.own_classes import CLOSURES

pytest.importorskip("uv")

from uv import find_uv_bin

pytestmark = pytest.mark.host

ROOT = Path(__file__).parents[1]
HERE = next(path for path in sys.path if path.endswith("site-packages"))
"""Where the packages are that zoomgrad needs."""


def uv(*arguments):
    done = subprocess.run([find_uv_bin(), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode and "setuptools" in done.stderr:
        pytest.skip(f"setuptools can't be installed: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the source distribution of a copy of this checkout."""
    folder, checkout = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("checkout") / "project"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "runs", "tests", "docs")
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=ignored)
    uv("build", "--quiet", "--out-dir", folder, "--python", sys.executable, checkout)
    (file,) = folder.glob("*.whl")
    return file


def made(folder, *install):
    """A new environment with the packages of this one behind its own. Returns its site-packages."""
    uv("venv", "--quiet", "--python", sys.executable, folder)
    uv("pip", "install", "--quiet", "--no-deps", "--python", folder / "bin" / "python", *install)
    (site,) = folder.glob("lib/python*/site-packages")
    return site


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """site-packages of an environment with the wheel."""
    site = made(tmp_path_factory.mktemp("installed") / "environment", wheel)
    (site / "others.pth").write_text(f"{HERE}\n")
    return site


@pytest.fixture
def elsewhere(site, tmp_path):
    """`elsewhere(program, *arguments)`: run a program of the environment in a folder whose files have names of ours."""
    folder, home = tmp_path / "project", tmp_path / "home"
    (folder / "zoomgrad").mkdir(parents=True)
    for name in ("datasets", "engines", "harness", "reports", "results"):
        (folder / f"{name}.py").write_text("mine = True\n")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ZOOMGRAD_", "XDG_", "PYTHON"))},
        "ZOOMGRAD_CACHE": os.environ.get("ZOOMGRAD_CACHE", "off"),
        "ZOOMGRAD_LOCK": str(tmp_path / "lock"),
        "HOME": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(program, *arguments, code=0):
        command = [site.parents[2] / "bin" / program, *map(str, arguments)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout

    run.folder, run.home = folder, home
    return run


def test_the_wheel_of_the_source_distribution_holds_our_package_and_its_data(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in names} == {
        "zoomgrad",
        f"{'-'.join(wheel.name.split('-')[:2])}.dist-info",
    }
    suffixes = (".py", ".c", ".h", ".lock", ".gz", ".j2", ".css", ".js", ".typed")
    for folder, _, files in os.walk(ROOT / "zoomgrad", followlinks=True):
        for path in (Path(folder, file).relative_to(ROOT) for file in files):
            assert path.suffix not in suffixes or "baseline_runs" in path.parts or path.as_posix() in names, path
    assert "zoomgrad/results/baseline_runs/smoke.jsonl.xz" in names


def test_a_command_without_its_extra_says_which_one_to_install(wheel, tmp_path):
    site = made(tmp_path / "environment", wheel)
    missing = subprocess.run([site.parents[2] / "bin" / "zoomgrad", "run"], capture_output=True, text=True)
    assert missing.returncode == 2
    assert re.fullmatch(r"zoomgrad: .*pip install 'zoomgrad\[bench\]'\n", missing.stderr)


def test_commands_work_beside_files_with_our_names_and_write_only_below_home(elsewhere, site):
    before = set(elsewhere.folder.iterdir())
    assert "Measure some of them" in elsewhere("zoomgrad", "list")
    (elsewhere.folder / "program.py").write_text(
        "import datasets, zoomgrad\nfrom micrograd.engine import Value\n"
        "print(datasets.mine, Value(2.0) * 3, zoomgrad.__file__)\n"
    )
    shown = elsewhere("zoomgrad", "exec", "--engine", "slots", "program.py")
    assert shown.startswith("True Value(data=6.0, grad=0) ")
    assert Path(shown.split()[-1]).resolve() == site / "zoomgrad" / "__init__.py"
    (elsewhere.folder / "own.py").write_text(f"{CLOSURES}print((Value(2.0) * 3.0).data, hasattr(Value, '_record'))\n")
    assert elsewhere("zoomgrad", "exec", "own.py") == "6.0 True\n"
    elsewhere("zoomgrad", "compare", "main", "HEAD", code=2)
    assert set(elsewhere.folder.iterdir()) == before | {elsewhere.folder / name for name in ("program.py", "own.py")}
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
    return sum(losses) + program.parameters[0] + loss.data + (1 - x / w).grad


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


def test_mypy_knows_the_types(elsewhere):
    pytest.importorskip("mypy")
    (elsewhere.folder / "program.py").write_text(TYPED + WRONG)
    (elsewhere.folder / "zoomgrad").rmdir()
    shown = elsewhere("python", "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py", code=1)
    first = TYPED.count("\n")
    errors = [(int(line) > first, kind) for line, kind in re.findall(r"(?m):(\d+): error: .*\[([\w-]+)\]$", shown)]
    assert errors == [(True, kind) for kind in ("arg-type", "arg-type", "call-arg", "call-arg")], shown
