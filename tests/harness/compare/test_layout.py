"""How a player builds."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import usable
from zoomgrad.engines.kernel import building
from zoomgrad.harness.worker.player import CODE_ALIGNMENT, laid_out


@pytest.mark.parametrize("engine", ["tcc", "gcc-O1", "clang-O1"])
def test_a_build_gets_padding_and_its_units_in_another_order(engine):
    units = [f"int f{n}(int a) {{ return a + {n}; }}\n" for n in range(8)]
    tool, seen = usable(engine).toolchain(), []

    def build(tool, units, flags):
        seen.append(units)
        return building.build(tool, units, flags)

    with laid_out(build, random.Random(5))(tool, units, ()) as path:
        assert path.stat().st_size
    padding, first = seen[0][0].split("\n", 1)
    assert sorted([first, *seen[0][1:]]) == units != [first, *seen[0][1:]]
    assert int(padding.partition(".skip ")[2][:-3]) % CODE_ALIGNMENT == 0


def test_a_layout_is_drawn_for_an_engine_whose_modules_keep_the_builder():
    usable("native")
    code = """if True:
        import sys
        from pathlib import Path
        from zoomgrad.harness.worker.player import Player
        Player(Path(sys.argv[1]), {"engine": "native", "workload": "xor", "layout_seed": 5})
        print(sys.modules["zoomgrad.engines.native.build"].build.__qualname__)
    """
    command = [sys.executable, "-c", code, str(Path(__file__).parents[3])]
    ended = subprocess.run(command, cwd=command[-1], capture_output=True, text=True)
    assert ended.stdout == "laid_out.<locals>.another\n", ended.stderr
