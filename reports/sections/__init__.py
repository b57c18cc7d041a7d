"""The report's sections on what was measured, one file per section. Sections on profiles are in reports/profiling."""
