"""Graph and engine -> the C of a standalone build.

The parts of a file, in order: a kernel, which the engine generates; `model.c`, the state around it; `module.c` for
Python or `library.c` for C; and the starting parameters. All functions are static except the entry points, so two
models may be linked into one program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engines.columns import MOST_COLUMNS
from engines.kernel.c_engine import CEngine
from engines.kernel.c_text import read, table
from engines.standalone.graph import Graph
from engines.straight.c_source import Storage

LIMITED_API = 0x030B0000
"""Buffers belong to the limited API since CPython 3.11, so one module serves that version and all later ones."""


def shares_values(engine: CEngine) -> bool:
    """Whether the engine's C keeps values in static variables, which all models of a process share."""
    storage = getattr(engine.form, "storage", None)
    return storage in (Storage.static, Storage.globals) or "-published" in engine.name


def library_threads(engine: CEngine) -> str:
    """What a user of a library must know about threads."""
    if shares_values(engine):
        return "Values are in static variables: there can be one model at a time, for one thread at a time."
    return "Each model has its own state, so each thread may use its own models."


def module_source(engine: CEngine, graph: Graph, *, frozen: bool) -> str:
    """The C of an extension module, which includes Python.h."""
    python = [f"#define Py_LIMITED_API {LIMITED_API:#010x}", "#define PY_SSIZE_T_CLEAN"]
    python += ["#include <Python.h>", "#include <string.h>"]
    own = [
        f"#define INIT PyInit_{graph.name}",
        f'#define NAME_TEXT "{graph.name}"',
        f'#define ENGINE "{engine.name}"',
        f"#define SHARED {int(shares_values(engine))}",
    ]
    parts = ["kernel/python_arguments.c", "standalone/model.c", "standalone/processor.c", "standalone/module.c"]
    return _file(engine, graph, python, own, parts, frozen=frozen)


def library_source(engine: CEngine, graph: Graph, *, frozen: bool) -> str:
    """The C of a library, which includes its header."""
    own = [f"#define f(name) {graph.name}_##name", f"#define SHARED {int(shares_values(engine))}"]
    parts = ["standalone/model.c", "standalone/library.c"]
    head = ["#include <stdlib.h>", "#include <string.h>", f'#include "{graph.name}.h"']
    return _file(engine, graph, head, own, parts, frozen=frozen)


def header_source(engine: CEngine, graph: Graph, *, frozen: bool) -> str:
    """The header of a library."""
    text = read("standalone/library.h")
    if frozen:
        text = re.sub(r"/\* training \*/.*?/\* end of training \*/\n\n", "", text, flags=re.DOTALL)
    text = text.replace("/* training */\n", "").replace("/* end of training */\n\n", "")
    numbers = {
        "INPUTS": graph.tape.inputs,
        "FEATURES": graph.features,
        "OUTPUTS": len(graph.tape.outputs),
        "PARAMETERS": 0 if frozen else len(graph.parameters),
    }
    threads = library_threads(engine)
    text = re.sub(r"\bNAME_", f"{graph.name}_", text)
    text = re.sub(r"= ([A-Z]+)\b", lambda match: f"= {numbers[match[1]]}", text)
    return f"/* {_title(engine, graph, frozen)}\n   {threads} */\n\n{text}"


def _title(engine: CEngine, graph: Graph, frozen: bool) -> str:
    return f"{graph.origin}{', frozen' if frozen else ''}, by zoomgrad's engine {engine.name}."


def _file(
    engine: CEngine, graph: Graph, head: Sequence[str], own: Sequence[str], parts: Sequence[str], *, frozen: bool
) -> str:
    source = engine.kernel(graph.tape, graph.parameters if frozen else None)
    (kernel,) = source.units
    # Published C defines its own OUTPUTS.
    outputs = [] if "#define OUTPUTS " in kernel else [f"#define OUTPUTS {len(graph.tape.outputs)}"]
    macros = [
        *outputs,
        *own,
        f"#define FEATURES {graph.features}",
        f"#define WORKSPACE {source.workspace}",
        f"#define FROZEN {int(frozen)}",
        f"#define MOST_COLUMNS {MOST_COLUMNS}",
    ]
    return "\n".join(
        [
            f"/* {_title(engine, graph, frozen)} */\n",
            *head,
            "",
            *_static_prototypes(kernel),
            "",
            kernel,
            *macros,
            "",
            *map(read, parts),
            *(table("START", graph.parameters) if graph.parameters and "#define PARAMETERS 0" not in kernel else ()),
            "",
        ]
    )


def _static_prototypes(kernel: str) -> list[str]:
    """Prototypes that make the kernel's functions static: a later declaration without `static` inherits it."""
    found = re.findall(r"^(?:void|double|long long) \w+\([^;{]*\);", read("kernel/kernel.h"), re.MULTILINE)
    starts = {text: text.split("(")[0] for text in found}
    defined = [text for text, start in starts.items() if re.search(rf"^{start}\([^;]*\{{", kernel, re.MULTILINE)]
    return ["struct column;", "struct buffers;", "struct stretch;", *(f"static {text}" for text in defined)]
