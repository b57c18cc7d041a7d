"""The tools that turn the text of a Python module into C. Each runs in a separate process, under limits."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from zoomgrad.engines import asking
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel.building import BuildFailed

SECONDS = 300.0
"""Time limit of a tool. On a quiet machine each takes 2 s."""


class Translated(NamedTuple):
    """A module as C, and the flags with which it finds its headers."""

    text: str
    flags: tuple[str, ...] = ()


class Translator(NamedTuple):
    """A tool. `translate(folder, module)` reads `module`.py in the folder, and raises BuildFailed."""

    tool: str
    packages: dict[str, str]
    """What it imports -> the package that has it. The first is the tool's own."""
    translate: Callable[[Path, str], Translated]

    def version(self) -> str:
        """Name and version. Raises Unavailable if a package is missing."""
        versions = [_version(module, package) for module, package in self.packages.items()]
        for version, package in zip(versions, self.packages.values()):
            if not version:
                raise Unavailable(f"{package} is not installed", _remedy([*self.packages.values()]))
        return f"{self.tool} {versions[0]}"


def _version(module: str, package: str) -> str:
    """Version of an installed package; empty if it can't be imported."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        if importlib.util.find_spec(module):
            return importlib.metadata.version(package)
    return ""


def _remedy(packages: Sequence[str]) -> str:
    """How to install the packages here. A worker's environment is in the checkout, and has no pip."""
    folder, checkout = Path(sys.prefix), Path(__file__).resolve().parent.parent.parent
    if checkout in folder.parents:
        return f"In the checkout: `uv pip install --python {folder.relative_to(checkout)} {' '.join(packages)}`."
    return f"Install it with `pip install {' '.join(packages)}`."


def _cython(folder: Path, module: str) -> Translated:
    # Annotations are for readers here, not declarations that Cython enforces.
    options = ("-3", "-X", "annotation_typing=False", "-o", f"{module}.c")
    return Translated(_run("Cython", ["-m", "cython", *options, f"{module}.py"], folder, f"{module}.c"))


_MYPYC = """
import os, sys
from mypyc.build import mypycify
options = ["--config-file=", "--cache-dir=" + os.devnull, "--ignore-missing-imports", "--follow-imports=skip"]
mypycify([*options, sys.argv[1]], target_dir="c")
"""


def _mypyc(folder: Path, module: str) -> Translated:
    text = _run("mypyc", ["-c", _MYPYC, f"{module}.py"], folder, "c/__native.c")
    spec = importlib.util.find_spec("mypyc")
    assert spec is not None and spec.origin is not None
    return Translated(text, (f"-I{Path(spec.origin).parent / 'lib-rt'}", f"-I{folder / 'c'}"))


def _run(tool: str, arguments: Sequence[str], folder: Path, result: str) -> str:
    """Run this Python, isolated from the user's modules and variables, and return the file that it wrote."""
    try:
        asking.ask([sys.executable, "-I", *arguments], seconds=SECONDS, folder=folder)
        return (folder / result).read_text(encoding="ascii")
    except asking.NoAnswer as error:
        raise BuildFailed(f"{tool} failed", str(error), "Install another version of it.") from None
    except (OSError, UnicodeError) as error:
        raise BuildFailed(f"{tool} reported success but wrote no C", str(error), "Install another version.") from None


CYTHON = Translator("Cython", {"Cython": "cython"}, _cython)
MYPYC = Translator("mypyc", {"mypyc": "mypy", "setuptools": "setuptools"}, _mypyc)
