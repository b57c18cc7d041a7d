"""An engine of somebody else, in a file, and the suite of docs/using.md that gates changes to it."""

import re
from pathlib import Path

ENGINE = """
from zoomgrad.engines.interpreted.engine import Interpreted
from zoomgrad.engines.interpreted.slots import Value

ENGINES = (Interpreted("walk", "one of our own", "slots", (1e-6, 0.0), build=lambda: Value),)
"""
SLOWED = f"""{ENGINE}
usual = Value.backward


def backward(self):
    for _ in range(200_000):
        pass
    usual(self)


Value.backward = backward
"""
WORKLOADS = """
from dataclasses import replace

from zoomgrad.harness.workloads import load

WORKLOADS = (replace(load("xor"), name="slower-xor", rate=lambda update: 0.05),)
"""


def suite():
    """The suite that the page shows."""
    page = (Path(__file__).parent.parent / "docs" / "using.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"(?ms)^```toml\n(engines = .*?)^```$", page)
    return text


def write(folder):
    """Write the engine and the suite."""
    (folder / "engine.py").write_text(ENGINE)
    (folder / "gate.toml").write_text(suite())
