"""`harness.worker.proof`, as it is."""

from harness.worker.proof import main

if __name__ == "__main__":
    main()
