"""Finding and running compilers that are missing, misnamed, failing, hanging or greedy; and the build folder.

Most of the compilers are scripts on a temporary PATH.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.test_asking import script
from zoomgrad.engines import asking
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.kernel.building import BuildFailed, build
from zoomgrad.engines.kernel.toolchains import find

if os.name != "posix":
    pytest.skip("fake compilers are scripts, which need a POSIX system", allow_module_level=True)

GCC = "gcc (Debian {0}-14) {0}\nCopyright (C) 2022 Free Software Foundation, Inc."
CLANG = "Debian clang version {0} (3)\nTarget: x86_64-pc-linux-gnu"
APPLE = "Apple clang version {0} (clang-1500.3.9.4)\nTarget: arm64-apple-darwin23.4.0"
TCC = "tcc version {0} (x86_64 Linux)"


def forget():
    """Clear the caches of answers from another PATH."""
    for asked in (toolchains._survey, toolchains.macros):
        asked.cache_clear()


@pytest.fixture
def path(tmp_path, monkeypatch):
    """An empty PATH; `path(name, version_text)` adds a compiler that prints the text."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for setting in toolchains.SETTINGS.values():
        monkeypatch.delenv(setting, raising=False)
    monkeypatch.setattr(toolchains.importlib.util, "find_spec", lambda name: None)
    forget()
    yield lambda name, says: script(folder / name, f"echo '{says}'")
    forget()


# --- choosing a compiler -----------------------------------------------------------------------------------------


def test_the_newest_compiler_is_taken(path):
    """Of two with the same version, the first."""
    for name, version in (("clang", "19.1.7"), ("clang-14", "14.0.6"), ("clang-9", "9.0.1"), ("clang-19", "19.1.7")):
        path(name, CLANG.format(version))
    assert find("clang").version == "19.1.7", "versions must be compared as numbers: 19 is newer than 9"
    assert Path(find("clang").command[0]).name == "clang"


FROM_APPLE, GCC_13, CLANG_14 = APPLE.format("15.0.0"), GCC.format("13.2.0"), CLANG.format("14.0.6")
OF_NAMES = {
    "a gcc that is Clang, and another": ("gcc", {"gcc": FROM_APPLE, "gcc-13": GCC_13}, "13.2.0"),
    "Apple's Clang": ("clang", {"clang": FROM_APPLE}, "15.0.0"),
    "similar names": ("gcc", dict.fromkeys(("gcc-ar", "gcc-ar-12", "x86_64-linux-gnu-gcc"), GCC_13), None),
    "no version": ("clang", {"clang": "hello"}, None),
}


@pytest.mark.parametrize("case", OF_NAMES)
def test_which_programs_count(path, case):
    family, programs, version = OF_NAMES[case]
    for name, says in programs.items():
        path(name, says)
    if version:
        assert find(family).version == version
        return
    with pytest.raises(Unavailable) as error:
        find(family)
    has_skipped = case == "no version"
    assert ("`zoomgrad doctor` lists programs" in error.value.remedy) == bool(toolchains.skipped()) == has_skipped


@pytest.mark.parametrize(("family", "text"), [("gcc", GCC), ("clang", CLANG), ("tcc", TCC)])
def test_a_chosen_compiler_comes_before_path(path, tmp_path, monkeypatch, family, text):
    """If the chosen one is none, that is an error, even if PATH has one. A process may choose again."""
    path(family, text.format("19.1.7"))
    chosen = script(tmp_path / "my-compiler", f"echo '{text.format('14.0.6')}'")
    monkeypatch.setenv(toolchains.SETTINGS[family], str(chosen))
    assert find(family).command == (str(chosen),)
    for chosen, reason in (
        (f"bin/{family}", f"bin/{family} is not an absolute path"),
        ("/a\x1b[2Jb", "/a\N{REPLACEMENT CHARACTER}[2Jb is not an executable file"),
    ):
        monkeypatch.setenv(toolchains.SETTINGS[family], chosen)
        with pytest.raises(Unavailable) as error:
            find(family)
        assert error.value.reason == f"{toolchains.SETTINGS[family]} names no {family}: {reason}"
        assert "unset it" in error.value.remedy


def test_the_clang_in_a_zig_is_called_itself_with_zigs_headers_and_linker(path, tmp_path, monkeypatch):
    zig = script(tmp_path / "zig", f"[ $1 = clang ] && echo '{CLANG.format('22.1.8')}'")
    link = tmp_path / "bin" / "zig"
    link.symlink_to(zig)
    monkeypatch.setenv(toolchains.CLANG, str(link))
    forget()
    tool = find("clang")
    assert tool.command[:2] == (str(zig), "clang"), "its headers lie beside the program, not beside the link"
    assert str(tool) == "clang 22.1.8 (zig clang)"
    assert toolchains.linker(tool) == (str(zig), "ld.lld", "-shared", "-Bsymbolic")
    assert tool.own_flags[0] == "clang"
    assert tool.own_flags[3:5] == ("-nostdinc", "-Ilib/include")
    assert not [flag for flag in tool.own_flags if str(tmp_path) in flag], "a record must not hold the user's paths"


# --- programs that only look like compilers ----------------------------------------------------------------------

INVALID_VERSIONS = ("12..3", "99999999999999999999.1", "12", "١٢.٣", "\x1b[2J12.0")
MISBEHAVING = {
    **{f"echo '{GCC.format(version)}'": "prints no gcc version: " for version in INVALID_VERSIONS},
    "exec sleep 1000": "took longer than 0.5 s",
}


@pytest.mark.parametrize("text", MISBEHAVING)
def test_a_compiler_that_misbehaves_is_skipped_and_listed(path, monkeypatch, text):
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}/usr/bin{os.pathsep}/bin")
    bad = script(Path(os.environ["PATH"].split(os.pathsep)[0]) / "gcc-999", text)
    script(bad.with_name("gcc"), f"echo '{GCC.format('98.7.6')}'")
    monkeypatch.setattr(toolchains.asking, "ANSWER_SECONDS", 0.5)
    assert find("gcc").version == "98.7.6"
    reasons = {skipped.path: skipped.reason for skipped in toolchains.skipped()}
    assert reasons[str(bad)].startswith(MISBEHAVING[text])
    assert reasons[str(bad)].isprintable()


# --- hostile environments ----------------------------------------------------------------------------------------


def test_a_header_on_cpath_is_not_included(tmp_path, monkeypatch):
    tool = usable("gcc-O0").toolchain()
    (tmp_path / "math.h").write_text("#error a stranger's header\n")
    monkeypatch.setenv("CPATH", str(tmp_path))
    with build(tool, ["#include <math.h>\ndouble f(void) { return 1.0; }\n"], ("-O0",)) as path:
        assert path.stat().st_size


@pytest.mark.skipif(not asking.which("ld"), reason="there is no ld on PATH")
@pytest.mark.parametrize("name", ["tcc", "gcc-O0", "clang-O0"])
def test_a_truncated_object_fails_the_build(name, tmp_path):
    """Some compilers do not check whether a write succeeded."""
    tool = usable(name).toolchain()
    with build(tool, ["double f(void) { return 1.0; }"], ()) as path:
        whole = path.read_bytes()
    (tmp_path / "whole").write_bytes(whole)
    if not whole.startswith(b"\x7fELF"):
        pytest.skip("objects are not ELF here")
    building._check(tool, tmp_path / "whole")
    for size in (64, len(whole) // 2, len(whole) - 200):  # TCC's last section is no part of a segment
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(BuildFailed, match=rf"wrote {size:,} of [\d,]+ bytes of the object"):
            building._check(tool, tmp_path / "cut")
