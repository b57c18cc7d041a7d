"""Counts of fused multiply-adds in an object, and the reason if they can't be counted."""

import shutil

import pytest

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.harness.profile import fused as counting
from zoomgrad.harness.profile.fused import count, fused

LINES = """\
0000000000000000 <forward>:
       0:	vfmadd213sd %xmm0,%xmm1,%xmm2
       5:	vfnmsub132pd (%rax),%zmm1,%zmm2
       9:	fmadd	d0, d1, d2, d3
       d:	fmla	v0.2d, v1.2d, v2.2d
      11:	fmadd.d	fa0,fa1,fa2,fa3
      15:	vmulsd %xmm0,%xmm1,%xmm2
      19:	madd	x0, x1, x2, x3
      1d:	call   0 <vfmadd213sd>
      21:	fmul	v0.2d, v1.2d, v2.2d
"""

C = "double f(double a, double b, double c) { return a * b + c; }\n"


def test_disassemblies_of_several_processors_are_counted():
    assert count(LINES.splitlines()) == 5


@pytest.mark.parametrize(("flags", "instructions"), [((), 0), (toolchains.FUSED, 1)])
def test_a_real_object(flags, instructions):
    try:
        tool = toolchains.find("clang")
        toolchains.check_fused(tool)
    except Unavailable as missing:
        pytest.skip(missing.reason)
    if not any(map(shutil.which, counting.DISASSEMBLERS)):
        pytest.skip("there is no objdump: apt install binutils")
    with building.compile_unit(tool, C, [*toolchains.STRICT, "-O1", *flags]) as compiled:
        assert fused(compiled.path) == instructions
