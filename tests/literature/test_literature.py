"""The programs of the literature print the expected output on every Value class; their C computes what Python does."""

import re
import shutil
import subprocess

import pytest

from tests.engines.ladder import of_each_value
from tests.literature.run import HERE, outcome, printed, programs
from zoomgrad import engines


@pytest.mark.parametrize("engine", of_each_value())
def test_the_programs_of_the_literature(engine):
    outputs = printed(engine)
    found = {program: outcome(engines.load(engine), program, outputs[program]) for program in programs()}
    assert "differs" not in found.values(), {name: outputs[name] for name in found if found[name] == "differs"}


def test_the_generated_c_computes_the_gradients(tmp_path):
    compiler = shutil.which("cc") or shutil.which("tcc")
    if compiler is None:
        pytest.skip("there is no C compiler on PATH")
    source = tmp_path / "generated.c"
    source.write_text((HERE / "generator.txt").read_text(encoding="utf-8"))
    subprocess.run([compiler, str(source), "-o", str(tmp_path / "generated"), "-lm"], check=True, timeout=60)
    ran = subprocess.run([tmp_path / "generated"], capture_output=True, text=True, check=True, timeout=60)

    value = engines.load("tuple").Value
    weights = [value(float(number)) for number in re.findall(r"data\[\d+\] = (\S+);", source.read_text())[:13]]
    x, y = value(0.5), value(-0.25)
    rows = [weights[i : i + 3] for i in (0, 3, 6)]
    hidden = [(b + a * x + c * y).relu() for a, c, b in rows]
    out = sum((w * h for w, h in zip(weights[9:12], hidden)), weights[12])
    loss = (out.max(value(-1.0)) - 0.5) ** 2
    loss.backward()
    assert ran.stdout.split() == [f"{x:.6f}" for x in (weights[0].grad, weights[-1].grad, loss.data)]
