"""Options -> the form of an engine's code over recovered loops: C, NumPy or machine code, fitted to this machine."""

from __future__ import annotations

from dataclasses import replace

from zoomgrad.engines.compiled.flags import flags_of
from zoomgrad.engines.compiled.machine import CORES, most_doubles, second_level_cache, widest
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.machine.target import features, native_width, vector_registers
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.rearrange import REARRANGEMENTS

ARRAYS = Form(rearrangements=("in place",))
"""For NumPy."""
SCALARS = Form(rearrangements=("in place", "deferred", "in rounds"))
VECTORS = Form(width=8, units=CORES, rearrangements=tuple(name for name in REARRANGEMENTS if name != "zeros skipped"))


def fitted(options: Options) -> Form:
    """The form of the code. Raises Unavailable if it depends on a compiler that is missing."""
    if options.form is not None:
        form: Form = options.form
        return form
    if options.target == "NumPy":
        return ARRAYS
    if options.target == "machine":
        return form_of(options, native_width(), vector_registers(native_width()))
    if options.compiler == "tcc":
        return SCALARS
    tool, flags = toolchains.find(options.compiler), flags_of(options)
    # Ignore -mfma, which would imply wider vectors.
    asked = tuple(flag for flag in flags if flag.startswith("-m") and flag not in toolchains.FUSED)
    defined = toolchains.macros(tool, asked)
    registers = 32 if defined & {"__AVX512VL__", "__aarch64__"} else 16
    return form_of(options, min(widest(defined), most_doubles()), registers)


def form_of(options: Options, width: int, registers: int) -> Form:
    """The form of C or machine code in vectors of that width."""
    names = (*VECTORS.rearrangements, *(["zeros skipped"] if options.sparse else []))
    return replace(
        VECTORS,
        width=width,
        registers=registers,
        many_terms=256 if options.target == "machine" else Form.many_terms,  # C compilers take long for tiles
        cache=second_level_cache() or Form.cache,
        rearrangements=names,
        threads=max(1, options.threads),
        embeds=width == 8 and "AuthenticAMD" in features(),
        is_fast=options.fast,
        has_functions=options.fast and options.target == "machine",
    )
