"""The charts of a report: one module each, which turns rows into a `Drawing`. A section of the report shows it.

A chart computes no figures. Figures come from `reports.measured`, `reports.break_even` and `reports.profiling`.
"""
