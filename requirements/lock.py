"""Resolves every lock file from pyproject.toml: `tox -e lock`, or `tox -e lock -- --upgrade`.

A lock is universal (every Python from its oldest on, CPython and PyPy), carries hashes and names no index, so that it
installs from whichever mirror the user has.
"""

import subprocess
import sys
from pathlib import Path

from uv import find_uv_bin

# Lock -> (oldest Python, extra). Workers run under every interpreter, everything else under CPython 3.11+.
LOCKS = {
    "worker": ("3.9", None),
    "profile-worker": ("3.9", "profile-worker"),
    "test-worker": ("3.9", "test-worker"),
    "harness": ("3.11", "harness"),
    "test": ("3.11", "test"),
    "lint": ("3.11", "lint"),
}
HERE = Path(__file__).parent

for lock, (oldest, extra) in LOCKS.items():
    command = [find_uv_bin(), "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-emit-index-url"]
    command += ["--no-header", f"--python-version={oldest}", f"--override={HERE / 'overrides.txt'}"]
    command += [f"--extra={extra}"] if extra else []
    command += [*sys.argv[1:], "pyproject.toml", f"--output-file={HERE / lock}.lock"]
    subprocess.run(command, cwd=HERE.parent, check=True)  # noqa: S603  (a list of arguments)
