"""`zoomgrad` as the campaign runs it, to be killed: `python -m faults.victim [--planted] COMMAND …`.

The command line is the real one. It has one more preset, `faults`, whose runs take seconds. With `--planted`, engines
that misbehave are found beside the others, here and in workers.
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
"""Limits below what the greedy engines take."""


def run() -> None:
    """The command line, over the preset."""
    arguments = sys.argv[1:]
    bad = arguments[:1] == ["--planted"]
    if bad:
        # Before the harness looks for engines.
        planted.plant()
        arguments = arguments[1:]

    from harness import machine, matrix
    from harness.cli import main, measuring
    from harness.isolate import isolate
    from harness.matrix import Part, Preset

    preset = Preset(
        "what the fault campaign disturbs: seconds",
        blocks=2,
        settings=SETTINGS,
        parts=(Part(("xor",), ("tuple", "tcc")),),
    )
    if bad:
        mock.patch.object(measuring, "isolate", functools.partial(isolate, package="faults.worker")).start()
    # Whoever edits the checkout meanwhile would make each resumed run refuse to go on.
    mock.patch.object(machine, "commit", lambda folder: "faults").start()
    mock.patch.dict(matrix.PRESETS, {"faults": preset}).start()
    mock.patch.object(matrix, "LEAST_VOUCH_SECONDS", VOUCH_SECONDS).start()
    sys.argv = ["zoomgrad", *arguments]
    main()


if __name__ == "__main__":
    run()
