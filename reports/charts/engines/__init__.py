"""Charts that compare engines: times, speedups, memory."""
