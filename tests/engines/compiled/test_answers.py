"""Memory of compilers: a program is asked once, and again after its file changed. Hostile memories are ignored."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.engines.compiled.test_toolchains import GCC, forget, script
from zoomgrad.engines import asking
from zoomgrad.engines.files import CACHE
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.toolchains import find

if sys.platform != "linux":
    pytest.skip("programs are remembered only on Linux", allow_module_level=True)

ASK = asking.ask
PROGRAM = """
int printf(const char *text, ...);
int main(void) { printf("%s\\n", "SAYS"); return CODE; }
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv(CACHE, str(folder))
    return folder


@pytest.fixture
def add(cache, tmp_path, monkeypatch):
    """`add(name, says)` compiles a program that says this, into a folder that becomes the whole PATH with `asked`."""
    folder, compiler = tmp_path / "bin", asking.which("gcc") or asking.which("clang")
    environment = asking.surroundings()
    folder.mkdir()
    if not compiler:
        pytest.skip("there is neither gcc nor clang on PATH")

    def compile_one(name, says, code=0):
        source = tmp_path / "program.c"
        source.write_text(PROGRAM.replace("SAYS", says.replace("\n", "\\n")).replace("CODE", str(code)))
        try:
            ASK([compiler, "-o", str(folder / name), str(source)], environment=environment)
        except asking.NoAnswer as why:  # without the C library's start files
            pytest.skip(f"{compiler} makes no programs: {why}")
        return folder / name

    with monkeypatch.context() as patch:
        patch.setattr(toolchains.importlib.util, "find_spec", lambda name: None)
        forget()
        yield compile_one
    forget()


@pytest.fixture
def asked(add, tmp_path, monkeypatch):
    """The programs that were asked, by name."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = []

    def ask(command, **how):
        found.append(Path(command[0]).name)
        return ASK(command, **how)

    monkeypatch.setattr(asking, "ask", ask)
    return found


def kept(cache):
    """The answers in the cache's files."""
    files = sorted((cache / "compilers").iterdir())
    return [json.loads(file.read_bytes().partition(b"\n")[2]) for file in files]


def test_a_program_is_asked_once(add, cache, asked):
    for name in ("gcc", "gcc-12", "ld"):
        add(name, GCC.format("12.2.0"))
    for times in (1, 2, 3):
        assert find("gcc").version == "12.2.0"
        assert toolchains.linker(find("gcc"))[0].endswith("/ld")
        assert sorted(asked) == ["gcc", "gcc-12", "ld"], f"asked again in process {times}"
        forget()
    assert len(kept(cache)) == 3
    assert toolchains.skipped() == []


@pytest.mark.parametrize("change", ["content", "time", "path", "variable"])
def test_a_changed_program_is_asked_again(add, asked, monkeypatch, tmp_path, change):
    program = add("gcc", GCC.format("12.2.0"))
    assert find("gcc").version == "12.2.0"
    if change == "content":
        add("gcc", GCC.format("13.3.0"))
    elif change == "time":
        os.utime(program, ns=(1, 1))
    elif change == "path":
        (tmp_path / "other").mkdir()
        shutil.copy2(program, tmp_path / "other" / "gcc")
        monkeypatch.setenv("PATH", str(tmp_path / "other"))
    else:
        monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    forget()
    assert find("gcc").version == ("13.3.0" if change == "content" else "12.2.0")
    assert asked == ["gcc", "gcc"]


def test_scripts_and_disguised_links_are_asked_every_time(add, cache, asked, tmp_path):
    """What they start may be replaced while they stay the same."""
    script(tmp_path / "bin" / "gcc-11", f"echo '{GCC.format('11.1.0')}'")
    add("ccache", GCC.format("12.2.0"))
    (tmp_path / "bin" / "gcc").symlink_to(tmp_path / "bin" / "ccache")
    for _ in range(2):
        assert find("gcc").version == "12.2.0"
        forget()
    assert sorted(asked) == ["gcc", "gcc", "gcc-11", "gcc-11"]
    assert not cache.exists()


def of_no_version(file):
    content = b'"12.2.0; rm"'
    file.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def test_an_answer_that_cannot_be_trusted_is_asked_for(add, cache, asked, recwarn):
    add("gcc", GCC.format("12.2.0"))
    find("gcc")
    (file,) = (cache / "compilers").iterdir()
    of_no_version(file)
    forget()
    assert find("gcc").version == "12.2.0"
    assert asked == ["gcc"] * 2
    assert not recwarn.list, "a memory that can't be used is not reported"
