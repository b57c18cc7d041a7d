"""Python process that loads a sanitized extension module: `python -m faults.sanitized_host JOB`."""

import sys

from faults.kinds.sanitizers import host

if __name__ == "__main__":
    host(sys.argv[1])
