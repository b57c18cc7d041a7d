"""Make `python -m harness` the same as `zoomgrad`."""

from zoomgrad.harness.cli import main

if __name__ == "__main__":
    main()
