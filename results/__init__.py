"""Records of runs, their files on disk, and the statistics over them.

Running, timing and profiling are in `harness`; tables, charts, the report and the gate are in `reports`.
"""
