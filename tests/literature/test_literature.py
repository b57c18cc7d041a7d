"""The programs of the literature print the expected output on every Value class."""

import pytest

from tests.engines.ladder import of_each_value
from tests.literature.run import outcome, printed, programs
from zoomgrad import engines


@pytest.mark.parametrize("engine", of_each_value())
def test_the_programs_of_the_literature(engine):
    outputs = printed(engine)
    found = {program: outcome(engines.load(engine), program, outputs[program]) for program in programs()}
    assert "differs" not in found.values(), {name: outputs[name] for name in found if found[name] == "differs"}
