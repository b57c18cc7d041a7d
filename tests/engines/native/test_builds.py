"""Builds of the extension type: every compiler, memory checkers, the kept object, and Pythons that can't have it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.test_asking import script
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel.building import build as compiled
from zoomgrad.engines.kernel.extension import check_python
from zoomgrad.engines.kernel.toolchains import find
from zoomgrad.engines.native import build

ROOT = Path(__file__).parents[3]

try:
    check_python("hoisted")
except Unavailable as reason:
    pytest.skip(reason.reason, allow_module_level=True)


def tool(name):
    try:
        return find(name)
    except Unavailable as missing:
        pytest.skip(missing.reason)


def exercise(*arguments, **variables):
    """Run the exercise in another process."""
    command = [sys.executable, "-m", "tests.engines.native.exercise", *map(str, arguments)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", build.COMPILERS)
def test_each_compiler_builds_it(name):
    """TCC sees the limited API of Python, the others the full one."""
    chosen = tool(name)
    with compiled(chosen, [build.source(chosen)], build.flags(chosen)) as path:
        result = exercise(path, 10)
        value = build.class_in(path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")

    class Data(value):
        __slots__ = ()

    length = type("Length", (float,), {"dtype": "metre"})(3.0)
    assert type((value(length) * 2.0).data) is float, "not every float with a dtype is NumPy's"
    v = value(3.0)
    v.__class__ = Data  # as tracing does; Python refuses if a slot's function has another address in each class
    assert (type(v), v.data) == (Data, 3.0)


@pytest.mark.host
def test_the_source_has_no_warnings_and_sanitizers_find_nothing(tmp_path):
    chosen = tool("gcc")
    answer = subprocess.run([*chosen.command, "-print-file-name=libasan.so"], capture_output=True, text=True)
    library = answer.stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("gcc has no AddressSanitizer here")
    source, target = tmp_path / "value.c", tmp_path / "value.so"
    source.write_text(build.source(chosen))
    # Not by `building.build`, which links without the compiler and so without the sanitizers' libraries.
    checks = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fPIC", "-shared")
    checks += ("-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-Wno-unused-parameter")
    subprocess.run([*chosen.command, *build.flags(chosen), *checks, "-o", str(target), str(source)], check=True)
    result = exercise(target, 20, LD_PRELOAD=library, PYTHONMALLOC="malloc", ASAN_OPTIONS="detect_leaks=0")
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_without_a_compiler_the_recorder_is_in_python(tmp_path):
    text = (
        "from zoomgrad import engines; print(engines.load('bytecode').Value.__module__); engines.load('native').check()"
    )
    variables = {**os.environ, "PATH": str(tmp_path), "ZOOMGRAD_CACHE": str(tmp_path)}
    result = subprocess.run([sys.executable, "-S", "-c", text], cwd=ROOT, env=variables, capture_output=True, text=True)
    assert result.stdout == "zoomgrad.engines.graph.value\n"
    assert "there is no gcc or clang or tcc on PATH\n  Install it" in result.stderr


@pytest.mark.host
def test_a_compiler_that_fails_is_passed_over(tmp_path):
    tool("clang")
    fake = tmp_path / "bin" / "gcc"
    fake.parent.mkdir()
    script(fake, "case \"$*\" in *--version*) echo 'gcc (fake) 99.1.0';; *) exit 3;; esac")
    text = "from zoomgrad import engines; engines.load('native').check(); print('ok')"
    result = subprocess.run(
        [sys.executable, "-c", text],
        cwd=ROOT,
        env={**os.environ, "ZOOMGRAD_CACHE": str(tmp_path), "PATH": f"{fake.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert (result.stdout, result.stderr) == ("ok\n", "")


@pytest.mark.host
@pytest.mark.parametrize("name", ["bytecode", "tcc", "rerolled-tcc"])
def test_no_timed_phase_builds_the_recorder(name, monkeypatch):
    engine, calls = usable(name), []
    monkeypatch.setattr("zoomgrad.engines.compiled.engine.recorder", lambda: calls.append(name))
    engine.check()
    assert calls
