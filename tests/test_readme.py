"""What the README promises of code, run."""

import re
from pathlib import Path

import pytest

import engines

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_example_trains_a_compiled_model(capsys):
    try:
        engines.load("tcc").check()
    except engines.Unavailable as missing:
        pytest.skip(missing.reason)
    (example,) = re.findall(r"(?s)```python\n(.*?)```", README)
    exec(compile(example, "README.md", "exec"), {"__name__": "__main__"})
    loss, phases = capsys.readouterr().out.split(" ", 1)
    assert float(loss) < 0.01
    assert phases.startswith("{'trace': 0.0, 'lower'")


def test_every_engine_and_workload_is_in_a_table():
    from harness import workloads

    for name in (*engines.names(), *workloads.names()):
        family, _, level = name.partition("-O")
        written = f"`{name}`" if f"`{name}`" in README or not level else f"{family}-O0/-O1/-O2"
        assert written in README, name
