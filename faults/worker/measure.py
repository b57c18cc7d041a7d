"""`harness.worker.measure`, with engines that misbehave."""

from harness.worker.measure import main

if __name__ == "__main__":
    main("faults.worker.measure")
