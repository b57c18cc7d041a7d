"""The command `zoomgrad`, also as `python -m zoomgrad`: starts `zoomgrad.harness.cli`, or says what it lacks.

The library installs on every supported interpreter, and so does this command. Its own packages are an extra.
"""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> None:
    """Run the command line, or exit with 2 and one line that says what to install."""
    if sys.argv[1:2] == ["exec"]:
        program = import_module("zoomgrad.harness.worker.programs.execute")
        if program.quickly(sys.argv[2:]):
            return
    if sys.version_info < (3, 11):
        sys.exit(_complaint(f"the command needs CPython 3.11 or newer, and this is {sys.version.split()[0]}"))
    try:
        import_module("zoomgrad.harness.cli").main()
    except ModuleNotFoundError as missing:
        package = str(missing.name).partition(".")[0]
        if package == "zoomgrad":
            raise
        sys.exit(_complaint(f"the package {package} is missing: pip install 'zoomgrad[bench]'"))


def _complaint(text: str) -> int:
    sys.stderr.write(f"zoomgrad: {text}\n")
    return 2


if __name__ == "__main__":
    main()
