"""`python -m harness` is `zoomgrad`."""

from harness.cli import main

if __name__ == "__main__":
    main()
