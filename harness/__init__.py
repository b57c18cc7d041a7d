"""Run engines on workloads under interpreters: planning, the schedule, workers, profilers and the command line.

Records and statistics are in `results`; tables, charts, the report and the gate are in `reports`.
"""
