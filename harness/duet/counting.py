"""Instructions of a step on both sides, by the processor's counter or by callgrind.

Both sides run this checkout's `count.py` on their own engines, so that they are counted in the same way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import engines
from engines.api import UnknownName
from harness.containment import Limits
from harness.duet.block import SIDES
from harness.duet.compare import LONGEST_BLOCK_SECONDS, Place
from harness.machine.interpreters import Interpreter
from harness.profile import instructions
from harness.profile.profile_session import NoProfile, Session
from results.duet.blocks import Counts
from results.record import Cell

_RUN = "import runpy, sys; sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
COUNT = Path(__file__).parents[1] / "worker" / "profiling" / "count.py"


def counted(cell: Cell, places: Mapping[str, Place], interpreter: Interpreter) -> Counts:
    """Count both sides' instructions."""
    found = {}
    tool = ""
    for side in SIDES:
        place = places[side]
        try:
            engine = engines.load(cell.engine)
            if not hasattr(engine, "toolchain"):
                return Counts(cell=cell, reason="only compiled engines are counted")
            with tempfile.TemporaryDirectory(prefix="zoomgrad-") as folder:
                limits = Limits(LONGEST_BLOCK_SECONDS)
                session = Session(
                    cell, engine, interpreter, partial(_python_of, place, cell.interpreter), 1.0, limits, Path(folder)
                )
                reply = instructions.profile(
                    session, worker=("-c", _RUN, str(COUNT)), environment={"PYTHONPATH": str(place.checkout)}
                )
        except (NoProfile, UnknownName) as none:
            return Counts(cell=cell, reason=f"{side}: {str(none).splitlines()[0]}")
        tool, found[side] = str(reply["tool"]), float(reply["step_instructions"])
    return Counts(cell=cell, tool=tool, base=found["base"], head=found["head"])


def _python_of(place: Place, interpreter: str, lock: str) -> Path:
    return place.pythons[interpreter][0]
