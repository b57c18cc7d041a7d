"""C -> Kernel: build it, and load the object."""

from __future__ import annotations

from collections.abc import Sequence

from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.machine import CORES
from zoomgrad.engines.kernel import building
from zoomgrad.engines.kernel.c_text import Source
from zoomgrad.engines.kernel.extension import Extension
from zoomgrad.engines.kernel.library import Library, interface
from zoomgrad.engines.kernel.program import Kernel
from zoomgrad.engines.kernel.toolchains import Toolchain
from zoomgrad.engines.options import Options


def load(source: Source, options: Options, tool: Toolchain, flags: Sequence[str], clock: Clock) -> Kernel:
    """Build C, load the object, and record the sizes. Raises BuildFailed."""
    units = len(source.units)
    clock.sizes.update(source_bytes=source.size, translation_units=units, parallel_compilers=min(units, CORES))
    with clock.phase("compile"), building.build(tool, source.units, flags) as path:
        clock.sizes["object_bytes"] = path.stat().st_size
        with clock.phase("load"), building.loading():
            if options.target == "module":
                return Extension(str(path), source.workspace)
            return Library(interface().dlopen(str(path)), source.workspace)
