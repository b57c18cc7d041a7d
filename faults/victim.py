"""`zoomgrad` as the campaign disturbs it: `python -m faults.victim [--planted] COMMAND …`.

This is the real command line with one extra preset, `faults`, whose runs take seconds. `--planted` adds the engines
that misbehave, here and in workers.
"""

from __future__ import annotations

import functools
import sys
from unittest import mock

from faults import planted
from results.record import Settings

VOUCH_SECONDS = 0.1
SETTINGS = Settings(
    values=2, warmups=1, value_seconds=0.02, timeout_seconds=60.0, memory_bytes=2 << 30, most_processes=64
)
"""Limits that the greedy engines exceed."""


def run() -> None:
    """Run the command line with the extra preset."""
    arguments = sys.argv[1:]
    bad = arguments[:1] == ["--planted"]
    if bad:
        # The harness must not have discovered its engines yet.
        planted.plant()
        arguments = arguments[1:]

    from harness.cli import main, measuring
    from harness.machine import facts
    from harness.plan import estimate, presets
    from harness.plan.presets import Part, Preset
    from harness.run.isolate import isolate

    preset = Preset(
        "for the fault campaign: a run of seconds",
        blocks=2,
        settings=SETTINGS,
        parts=(Part(("xor",), ("tuple", "tcc")),),
    )
    if bad:
        mock.patch.object(measuring, "isolate", functools.partial(isolate, package="faults.worker")).start()
    # A resumed run refuses to continue on another commit, but the checkout may be edited during the campaign.
    mock.patch.object(facts, "commit", lambda folder: "faults").start()
    mock.patch.dict(presets.PRESETS, {"faults": preset}).start()
    mock.patch.object(estimate, "LEAST_VOUCH_SECONDS", VOUCH_SECONDS).start()
    sys.argv = ["zoomgrad", *arguments]
    main()


if __name__ == "__main__":
    run()
