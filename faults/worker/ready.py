"""`harness.worker.ready` with the engines that misbehave."""

from harness.worker.ready import main

if __name__ == "__main__":
    main()
