"""`harness.worker.vouch`, with engines that misbehave: they are found, though none of them vouches."""

from harness.worker.job import do_job
from harness.worker.vouch import vouch

if __name__ == "__main__":
    do_job(vouch)
