"""View -> the table of engines: the idea, source, generated C, compiler and flags of each."""

from __future__ import annotations

from zoomgrad.reports.measured.table import in_order
from zoomgrad.reports.text.figures import Figure, Link, Section, Sheet
from zoomgrad.reports.view import View
from zoomgrad.results import units

SOURCES = {
    "engines/interpreted/engine.py": ("baseline", "tuple", "slots", "hoisted", "local-grads", "replay"),
    "engines/interpreted/built.py": ("cython", "mypyc", "native"),
    "engines/straight/bytecode.py": ("bytecode",),
    "engines/straight/python_source.py": ("python-source",),
    "engines/straight/extension.py": ("tcc-extension",),
    "engines/straight/c_engines.py": ("tcc", "gcc", "clang"),
    "engines/rerolled/numpy_engine.py": ("rerolled-numpy",),
    "engines/rerolled/c_engines.py": ("rerolled",),
    "engines/handwritten/engine.py": ("handwritten",),
    "engines/peers/engine.py": ("numpy", "torch", "jax"),
}
"""File -> the first parts of its engines' names. The first file that fits is the engine's."""
_C = {
    "engines/handwritten/mlp.c": ("handwritten",),
    "docs/one-neuron.md": ("tcc", "gcc", "clang", "rerolled-tcc", "rerolled-gcc", "rerolled-clang"),
}
"""File that shows an engine's C -> the first parts of its engines' names."""

_LEAD = (
    "What each engine does, the file that defines it, and the compiler and flags of its cells. The generated C of a "
    "workload: zoomgrad show WORKLOAD --engine ENGINE --stage source"
)


def engines(view: View, code: str = "") -> Section | None:
    """One row for each engine of the plan; None if there is none. code: path from the report to the project's folder.

    Without `code`, files are named but not linked.
    """
    compilers: dict[str, dict[str, None]] = {}
    for record in view.records:
        if record.compiler:
            # Search paths change no code, and name the folders of one machine.
            flags = [flag for flag in record.compiler_flags if not flag.startswith("-I")]
            text = " ".join((record.compiler, *flags))
            compilers.setdefault(record.cell.engine, {})[text] = None
    rows = tuple(
        (
            Figure(name, anchor=f"engine-{name}"),
            Figure(view.run.engines[name].idea if name in view.run.engines else units.ABSENT),
            _file(source(name), code),
            _file(_first(_C, name), code),
            Figure("; ".join(compilers.get(name, ())) or units.ABSENT),
        )
        for name in in_order(view.table, "engine")
    )
    headings = ("engine", "idea", "source", "C", "compiler and flags")
    return Section("engines", "Engines", _LEAD, (Sheet("", 5, headings, rows, folded=False),)) if rows else None


def source(engine: str) -> str:
    """Return the file that defines an engine; empty for one that the project doesn't have."""
    return _first(SOURCES, engine)


def _first(files: dict[str, tuple[str, ...]], engine: str) -> str:
    return next((file for file, roots in files.items() if any(f"{engine}-".startswith(f"{r}-") for r in roots)), "")


def _file(path: str, code: str) -> Figure:
    if not path:
        return Figure(units.ABSENT)
    return Figure("", links=(Link(path, f"{code}/{path}"),)) if code else Figure(path)
