"""Process of one batch, started by `faults.campaign`: `python -m faults.batch KIND INDEX SEED FOLDER`."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from faults import kinds
from faults.sandbox import end_descendants
from faults.tally import Tally
from harness.containment.descendants import adopt_orphans


def main() -> None:
    """Run the batch and write `tally.json` into the folder."""
    name, index, seed, folder = sys.argv[1:]
    kind = kinds.load(name)
    skipped = kind.lacks()
    adopt_orphans()
    signal.signal(signal.SIGTERM, _end)
    work = Path(folder) / "work"
    work.mkdir()
    tally = Tally()
    try:
        if not skipped:
            kind.run(kinds.Batch(int(index), int(seed), work), tally)
    finally:
        end_descendants()
        answer = Path(folder) / "tally.json"
        answer.write_text(json.dumps({"tally": asdict(tally), "skipped": skipped}), encoding="utf-8")


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
