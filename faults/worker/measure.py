"""`harness.worker.measure` with the engines that misbehave."""

from harness.worker.measure import main

if __name__ == "__main__":
    main("faults.worker.measure")
