"""Graph and engine -> the files of a standalone build."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from engines.kernel import building, extension
from engines.kernel.c_engine import CEngine
from engines.standalone.graph import Graph, checked
from engines.standalone.readme import library_readme, module_readme
from engines.standalone.source import header_source, library_source, module_source
from harness.standalone.folder import check_folder, fill


class Form(StrEnum):
    """What a build makes."""

    module = "module"
    c = "c"


def make(engine: CEngine, graph: Graph, folder: Path, form: Form, *, frozen: bool) -> list[str]:
    """Fill the folder, and return the names of its files. Raises Unfit, Unavailable, BuildFailed and OSError."""
    check_folder(folder)
    checked(graph, frozen=frozen)
    files = _module(engine, graph, frozen) if form is Form.module else _library(engine, graph, frozen)
    fill(folder, files)
    return [*files]


def _module(engine: CEngine, graph: Graph, frozen: bool) -> dict[str, bytes]:
    extension.check_python()
    source = module_source(engine, graph, frozen=frozen)
    file = f"{graph.name}.abi3.so"
    flags = [*engine.flags, *(flag for flag in extension.include_flags() if flag not in engine.flags)]
    with building.build(engine.toolchain(), [source], flags) as built:
        compiled = built.path.read_bytes()
    readme = module_readme(engine, graph, frozen=frozen, file=file)
    return {file: compiled, f"{graph.name}.c": source.encode("ascii"), "README.md": readme.encode()}


def _library(engine: CEngine, graph: Graph, frozen: bool) -> dict[str, bytes]:
    return {
        f"{graph.name}.c": library_source(engine, graph, frozen=frozen).encode("ascii"),
        f"{graph.name}.h": header_source(engine, graph, frozen=frozen).encode("ascii"),
        "README.md": library_readme(engine, graph, frozen=frozen).encode(),
    }
