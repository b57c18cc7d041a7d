"""The command `zoomgrad`, also as `python -m zoomgrad`. What it needs besides the library is the extra `bench`."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> None:
    """Run the command line, or exit with 2 and one line that says what to install."""
    if sys.argv[1:2] == ["exec"]:
        program = import_module("zoomgrad.harness.worker.programs.execute")
        if program.quickly(sys.argv[2:]):
            return
    try:
        if sys.version_info >= (3, 11):
            import_module("zoomgrad.harness.cli").main()
            return
        problem = f"the command needs CPython 3.11 or newer, and this is {sys.version.split()[0]}"
    except ModuleNotFoundError as missing:
        package = str(missing.name).partition(".")[0]
        if package == "zoomgrad":
            raise
        problem = f"the package {package} is missing: pip install 'zoomgrad[bench]'"
    sys.stderr.write(f"zoomgrad: {problem}\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
