"""Charts that compare engines: times, speedups, memory. What compiling costs is in `reports.charts.compiling`."""
