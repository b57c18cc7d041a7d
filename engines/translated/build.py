"""The text of `slots` -> C -> an extension module, by Cython or mypyc, kept in a private folder.

mypyc can't compile a class whose base it does not compile. It enforces annotations, but a program may pass a set of
children, or a Fraction as an exponent, and it does not know `Self`. It stops at `reversed` over a list of any type, so
two loops walk a reversed copy instead. Everything else is the text of `slots` and `engines/value_base.py`, word for
word.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from zoomgrad.engines import asking
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel.building import OUTPUT_BYTES, BuildFailed, build, loading, private_folder, write
from zoomgrad.engines.kernel.c_tree import read
from zoomgrad.engines.kernel.extension import abi, check_python, include_flags, load_module
from zoomgrad.engines.kernel.kept import kept
from zoomgrad.engines.kernel.toolchains import Toolchain, usable

SECONDS = 7200.0
"""Time limit of a tool. On a quiet machine, Cython and mypyc take 2 s, RPython 35 s, and with its JIT 12 minutes."""

FLAGS = ("-std=gnu11", "-O2", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-builtin", "-w")
"""The C of these tools breaks the aliasing rules, as Python's own does. It is not ours, so warnings help nobody."""

COMPILERS = ("gcc", "clang")
"""TCC does not compile what these tools write."""

_CHANGES = (
    ("from zoomgrad.engines.api import Number\n", "from zoomgrad.engines.api import CyclicGraph, Number\n"),
    ("import Derived, check_exponent", "import check_exponent"),
    ("class Value(Derived):", "class Value:"),
    ("def __pow__(self, other: Number)", "def __pow__(self, other: Any)"),
    (
        '_children: tuple[Value, ...] = (), _op: str = "", label: str = ""',
        '_children: Any = (), _op: Any = "", label: Any = ""',
    ),
    ("reversed(tuple(v._prev))", "list(v._prev)[::-1]"),
    ("reversed(self.topo())", "self.topo()[::-1]"),
)


@cache
def source() -> str:
    """The text of a module that defines Value, with the mixin of derived operators written into it."""
    from zoomgrad.engines.interpreted import slots  # which compiles its text

    _, first, derived = read("value_base.py").partition("    def topo(")
    text = f"{slots.TEXT}\n{first}{derived.replace('-> Self:', '-> Any:')}"
    for old, new in _CHANGES:
        assert text.count(old) == 1, f"{old!r} must occur once in the texts of slots and value_base.py"
        text = text.replace(old, new)
    return text


C_FILE = "__native.c"
"""What a tool writes into its folder, beside headers. mypyc gives no choice of the name."""


class Translator(NamedTuple):
    """A tool."""

    tool: str
    packages: tuple[str, ...]
    """What it needs. The first is the tool's own."""
    arguments: tuple[str, ...]
    """Arguments of Python that run the tool. The name of a module's file follows."""


def _remedy(packages: Sequence[str]) -> str:
    """How to install the packages here. A worker's environment is in the checkout, and has no pip."""
    folder, checkout = Path(sys.prefix), Path(__file__).resolve().parent.parent.parent
    if checkout in folder.parents:
        return f"In the checkout: `uv pip install --python {folder.relative_to(checkout)} {' '.join(packages)}`."
    return f"Install it with `pip install {' '.join(packages)}`."


def value(translator: Translator) -> Any:
    """The class Value, built by this tool. Raises Unavailable."""
    check_python("slots")
    try:
        version, *_ = [importlib.metadata.version(package) for package in translator.packages]
    except importlib.metadata.PackageNotFoundError as error:
        raise Unavailable(f"{error.args[0]} is not installed", _remedy(translator.packages)) from None
    compiler, flags = next(usable(COMPILERS)), (*FLAGS, *include_flags())
    module = f"zoomgrad_translated_{translator.tool.lower()}"
    recipe = (translator.tool.lower(), abi(), version, str(compiler), *compiler.command, *flags, source())
    try:
        with kept("translated", recipe, _object(translator, compiler, flags, module)) as (path, _), loading():
            return load_module(module, str(path)).Value
    except BuildFailed as failure:
        raise Unavailable(f"Value could not be built: {failure.reason}", failure.remedy) from None


@contextlib.contextmanager
def _object(translator: Translator, compiler: Toolchain, flags: tuple[str, ...], module: str) -> Iterator[Path]:
    """The object of that module. Python is isolated from the user's modules and variables."""
    with private_folder() as folder:
        write(folder / f"{module}.py", source().encode())
        command = (sys.executable, "-I", *translator.arguments, f"{module}.py")
        text = run(translator.tool, command, folder, C_FILE).read_text(encoding="utf-8")
        with build(compiler, [text], (*flags, f"-I{folder}")) as path:
            yield path


def run(tool: str, command: Sequence[str], folder: Path, result: str) -> Path:
    """Run a tool in a folder, and return the file that it wrote by a name of that pattern."""
    environment = {**asking.surroundings(), "TMPDIR": str(folder), "PYPY_USESSION_DIR": str(folder)}  # RPython's own
    try:
        asking.ask(command, seconds=SECONDS, most_bytes=OUTPUT_BYTES, folder=folder, environment=environment)
    except asking.NoAnswer as error:
        raise BuildFailed(f"{tool} {error.reason}", error.output, "Install another version of it.") from None
    for file in folder.glob(result):
        return file
    raise BuildFailed(f"{tool} reported success but wrote no {result}", "", "Install another version of it.")


# Annotations are for readers here, not declarations that Cython enforces.
CYTHON = Translator("Cython", ("cython",), ("-m", "cython", "-3", "-X", "annotation_typing=False", "-o", C_FILE))

_MYPYC = """
import mypyc, os, shutil, sys
from mypyc.build import mypycify
options = ["--config-file=", "--cache-dir=" + os.devnull, "--ignore-missing-imports", "--follow-imports=skip"]
mypycify([*options, sys.argv[1]], target_dir=".")
shutil.copytree(os.path.join(mypyc.__path__[0], "lib-rt"), ".", dirs_exist_ok=True)
"""
MYPYC = Translator("mypyc", ("mypy", "setuptools"), ("-c", _MYPYC))
