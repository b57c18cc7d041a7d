"""Run engines on workloads under interpreters and store the measurements.

Planning, workers, schedule, profilers and the command line are here. What the results mean is in `reports`.
"""
