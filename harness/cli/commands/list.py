"""`zoomgrad list`: print the engines, workloads, interpreters and presets that other commands accept by name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from zoomgrad.harness.cli.app import app
from zoomgrad.harness.cli.options import Json
from zoomgrad.harness.machine import interpreters


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List engines, workloads, interpreters and presets."""
    installed = ThreadPoolExecutor(1).submit(interpreters.discover)  # they answer while everything else is imported
    from zoomgrad import engines
    from zoomgrad.harness import workloads
    from zoomgrad.harness.cli import display
    from zoomgrad.harness.cli.console import say_next
    from zoomgrad.harness.cli.display import Part
    from zoomgrad.harness.plan import presets
    from zoomgrad.harness.workloads import microgpt

    loaded = [engines.load(name) for name in engines.names()]
    parts = [
        Part(
            "engines",
            ("name", "description", "builds on", "bits"),
            [(e.name, e.idea, e.builds_on, "identical" if e.strict else f"within {e.error_bound:g}") for e in loaded],
        ),
        Part(
            "workloads",
            ("name", "model and loss", "steps per epoch"),
            [(w.name, w.description, w.steps_per_epoch) for w in map(workloads.load, workloads.names())]
            + [("mlp-IxHxO", "an MLP of any shape, squared error, synthetic rows", 1000)]
            + [("microgpt", microgpt.load("microgpt").description, 1000)]
            + [(microgpt.EXAMPLE, "the same with other sizes", 1000)],
        ),
        Part(
            "interpreters", ("name", "version", "path"), [(i.name, i.version, str(i.path)) for i in installed.result()]
        ),
        Part(
            "presets",
            ("name", "what it measures"),
            [(name, preset.description) for name, preset in presets.PRESETS.items()],
        ),
        Part("left out", ("file", "why"), [*engines.problems(), *workloads.problems()]),
    ]
    display.show(parts, as_json=as_json)
    if not as_json:
        say_next("Measure some of them: `zoomgrad run --preset smoke`.")
