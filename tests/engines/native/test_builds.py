"""Builds of the extension type: every compiler, memory checkers, the kept object, and Pythons that can't have it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import engines
from engines.api import Unavailable
from engines.kernel.building import build as compiled
from engines.kernel.toolchains import find
from engines.native import build
from engines.native.recorder import SWITCH

ROOT = Path(__file__).parents[3]

try:
    build._check_python()
except Unavailable as reason:
    pytest.skip(reason.reason, allow_module_level=True)


def tool(name):
    try:
        return find(name)
    except Unavailable as missing:
        pytest.skip(missing.reason)


def exercise(command, **variables):
    """Run the exercise in another process."""
    command = [*command, sys.executable, "-m", "tests.engines.native.exercise"]
    return lambda *arguments: subprocess.run(
        [*command, *map(str, arguments)], cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("name", build.COMPILERS)
def test_each_compiler_builds_it(name):
    """TCC sees the limited API of Python, the others the full one."""
    chosen = tool(name)
    with compiled(chosen, [build.source(chosen)], build.flags(chosen)) as built:
        result = exercise([])(built.path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


@pytest.mark.host
def test_the_source_has_no_warnings():
    chosen = tool("gcc")
    strict = ("-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers")
    with compiled(chosen, [build.source(chosen)], (*build.flags(chosen), *strict)):
        pass


@pytest.mark.host
def test_sanitizers_find_nothing(tmp_path):
    chosen = tool("gcc")
    answer = subprocess.run([*chosen.command, "-print-file-name=libasan.so"], capture_output=True, text=True)
    library = answer.stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("gcc has no AddressSanitizer here")
    source, target = tmp_path / "value.c", tmp_path / "value.so"
    source.write_text(build.source(chosen))
    # Not by `building.build`, which links without the compiler and so without the sanitizers' libraries.
    checks = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fPIC", "-shared")
    subprocess.run([*chosen.command, *build.flags(chosen), *checks, "-o", str(target), str(source)], check=True)
    result = exercise([], LD_PRELOAD=library, PYTHONMALLOC="malloc", ASAN_OPTIONS="detect_leaks=0")(target)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


@pytest.mark.host
def test_valgrind_finds_nothing():
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    chosen = tool("gcc")
    command = ["valgrind", "--quiet", "--error-exitcode=9", "--undef-value-errors=no"]
    with compiled(chosen, [build.source(chosen)], (*build.flags(chosen), "-g")) as built:
        result = exercise(command, PYTHONMALLOC="malloc")(built.path, 5)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr[-2000:]
