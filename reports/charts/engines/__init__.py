"""Charts that compare engines: times, speedups, memory. The cost of compiling is in `reports.charts.compiling`."""
