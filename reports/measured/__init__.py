"""A run's results: outcomes of cells, the table of figures, headline, findings, trade-off, curves and races.

The sections of a report are made from these in `reports.sections`, and profiles are read in `reports.profiling`.
"""
