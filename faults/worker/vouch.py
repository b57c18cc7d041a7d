"""`harness.worker.vouch` with the engines that misbehave. They are discovered, but none of them vouches."""

from harness.worker.job import do_job
from harness.worker.vouch import vouch

if __name__ == "__main__":
    do_job(vouch)
