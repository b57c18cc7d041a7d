"""A pool of threads for kernels that divide their work. `rerolled/rearrange/divided.py` divides a step."""
