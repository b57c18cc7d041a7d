"""Fetching what a machine lacks: interpreters from a fake uv, and a Clang, from a fake uv and for real."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

import pytest

from tests.engines.compiled.test_toolchains import forget
from zoomgrad import engines
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.extension import check_python
from zoomgrad.harness.cli import preparing
from zoomgrad.harness.machine import environments, interpreters
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.plan.presets import Selection
from zoomgrad.results.places import ROOT

if sys.platform != "linux":
    pytest.skip("the programs are scripts, and the package ziglang is used on Linux only", allow_module_level=True)

PYTHON = r"""
import sys
told = '{"compiler": "Clang 21", "cflags": "-O3", "debug": ""}' if "platform" in sys.argv[-1] else None
print(told or "cpython\n3.14.2\n3.14.2 (fake)\nFalse\nFalse")
"""
ZIG = "import sys; sys.argv[1] == 'clang' and print('clang version 22.1.8')"
UV = """
import json, os, sys
from pathlib import Path
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    print(json.dumps(arguments), file=log)
def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{{sys.executable}}\\n{{text}}")
    path.chmod(0o755)
if arguments[:2] == ["python", "install"]:
    arguments[2] == "cpython-3.14" or sys.exit(f"error: no download found for {{arguments[2]}}")
    program(Path(os.environ["UV_PYTHON_INSTALL_DIR"]) / "cpython-3.14.2-linux" / "bin" / "python", {python!r})
elif "--target" in arguments:
    program(Path(arguments[arguments.index("--target") + 1]) / "ziglang" / "zig", {zig!r})
"""


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine with one Python, no compilers, and a fake uv. `bare()`: the arguments of each call of uv."""
    uv, log = tmp_path / "uv", tmp_path / "uv.log"
    log.touch()
    uv.write_text(f"#!{sys.executable}\n{UV.format(log=str(log), python=PYTHON, zig=ZIG)}")
    uv.chmod(0o755)
    monkeypatch.setattr(environments, "UV", (str(uv),))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    monkeypatch.delenv(toolchains.CLANG, raising=False)
    monkeypatch.setattr(environments, "ENVIRONMENTS", tmp_path / "environments")
    forget()
    yield lambda: [json.loads(line) for line in log.read_text().splitlines()]
    os.environ.pop(toolchains.CLANG, None)
    forget()


def test_a_missing_interpreter_is_fetched_and_one_that_uv_lacks_is_named(bare, capsys, monkeypatch):
    monkeypatch.setenv("CI", "true")
    here = interpreters.discover()[0].name
    plan = preparing.new_plan("smoke", Selection(["tuple"], [], ["cpython-3.14", "pypy-3.11", here]))
    assert "cpython-3.14" in plan.interpreters
    assert capsys.readouterr().err.startswith("zoomgrad: pypy-3.11: not fetched (")
    assert [arguments[:2] for arguments in bare()] == [["python", "install"]] * 2
    assert plan.interpreters["cpython-3.14"].build() == {"compiler": "Clang 21", "cflags": "-O3"}


def test_a_clang_is_fetched_only_for_engines_that_need_it_and_only_once(bare):
    def planned(*names, fetches=True):
        here = [interpreters.discover()[0].name]
        return preparing.new_plan("smoke", Selection(names, ["xor"], here), fetches=fetches).run.machine

    assert "clang" not in planned("baseline", "tcc")
    assert "clang" not in planned("clang-O1", fetches=False)
    assert not bare()
    assert planned("clang-O1")["clang"] == "22.1.8 (zig clang)"
    done = bare()
    os.environ.pop(toolchains.CLANG)
    forget()
    environments.use_clang()
    planned("clang-O1")
    assert bare() == done, "a second run must use the Clang of the first"


TRAIN = """
import sys
from zoomgrad import engines
from zoomgrad.engines.native import build
from zoomgrad.harness import workloads

build.COMPILERS = ("clang",)

def trained(name, workload):
    engine = engines.load(name)
    engine.check()
    trainer = engine.prepare(workloads.load(workload))
    trainer.train(40)
    return [trainer.losses[step] for step in range(40)], list(trainer.parameters())

for workload in ("xor", "tour"):
    for name in sys.argv[1:]:
        print(workload, name, trained(name, workload) == trained("tuple", workload))
"""


def test_the_real_package_compiles_without_anything_of_the_system(tmp_path):
    """The Clang, its headers and its linker, for straight-line C, loops, threads and the extension type."""
    try:
        environments.fetch_clang()
    except NoEnvironment as error:
        pytest.skip(f"ziglang can't be fetched: {str(error)[-200:]}")
    finally:
        chosen = os.environ.pop(toolchains.CLANG, "")
        forget()
    (tmp_path / "bin").mkdir()
    names = ["clang-O1", "clang-O2+native", "rerolled-clang", "rerolled-clang+threads"]
    with contextlib.suppress(engines.Unavailable):
        check_python("tcc")
        names.append("native")
    surroundings = {"PATH": str(tmp_path / "bin"), "ZOOMGRAD_CACHE": "off", toolchains.CLANG: chosen}
    command = [sys.executable, "-c", TRAIN, *names]
    done = subprocess.run(command, env=surroundings, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    same = [f"{workload} {name} True" for workload in ("xor", "tour") for name in names]
    assert done.stdout.splitlines() == same
