"""The gate: limits, and the rules that compare two runs. `results.compare` decides which is faster.

Nothing here measures: `zoomgrad check` in `harness.cli` makes the new run and measures suspects again.
"""
