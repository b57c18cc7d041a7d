"""Where this copy of zoomgrad is, and where it keeps its files.

A checkout keeps them beside its code. An installed copy lies among other packages, where it may not write, so it uses a
folder of the user.
"""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).absolute().parents[1].resolve()
ROOT = PACKAGE.parent
"""The folder that holds our package: the checkout, or the `site-packages` of an installed copy."""

IS_CHECKOUT = (ROOT / "results" / "baseline_runs").is_dir()
"""Whether this is a checkout. An installed copy has baseline runs in the package only."""


def _of_user() -> Path:
    shared = Path(os.environ.get("XDG_DATA_HOME", ""))
    # The XDG specification requires that relative paths are ignored.
    if not shared.is_absolute():
        shared = Path(os.path.expanduser("~/.local/share"))  # noqa: PTH111  (a Path raises if there is no home)
    return shared / "zoomgrad" if shared.is_absolute() else Path.cwd() / ".zoomgrad"


STATE = ROOT / ".zoomgrad" if IS_CHECKOUT else _of_user()
"""Folder for environments, and for a link that makes the package importable."""
