"""Options -> the flags of a C compiler.

Two flags of recovered loops need an explanation. Clang splits 512-bit vectors in two unless -mprefer-vector-width=512
is given. gcc -O1 omits `vzeroupper` unless -fexpensive-optimizations is given, and every call to libm is slower without
it.
"""

from __future__ import annotations

from zoomgrad.engines.compiled.machine import most_doubles
from zoomgrad.engines.kernel.extension import include_flags
from zoomgrad.engines.kernel.toolchains import FUSED, IS_X86, NATIVE, STRICT
from zoomgrad.engines.options import Options

WIDE = ("-mprefer-vector-width=512",) if IS_X86 else ()
# Not -ffast-math, which would switch the whole process to flush-to-zero.
FAST = (
    *("-ffp-contract=fast", "-fassociative-math", "-freciprocal-math"),
    *("-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"),
)


def native() -> tuple[str, ...]:
    """Flags for this processor, with vectors no wider than the user wants. Raises Unavailable."""
    without = {2: ("-mno-avx",), 4: ("-mno-avx512f",)}
    return (*NATIVE, *(without.get(most_doubles(), ()) if IS_X86 else ()))


def flags_of(options: Options) -> tuple[str, ...]:
    """The flags of an engine that compiles a graph as C."""
    if options.flags is not None:
        return (*STRICT, *options.flags)
    of_loops = options.compiler if options.code == "loops" else ""
    return (
        *STRICT,
        *(() if options.level is None else (f"-O{options.level}",)),
        *(native() if options.native else ()),
        *(WIDE if options.native and of_loops == "clang" else ()),
        *(("-fexpensive-optimizations",) if of_loops == "gcc" else ()),
        *(FAST if options.fast else ()),
        *(FUSED if options.fma else ()),
        *(include_flags() if options.target == "module" else ()),
    )
