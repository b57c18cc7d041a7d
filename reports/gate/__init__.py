"""The gate: limits, the rules that compare two runs, verdicts and their table.

Nothing here measures: `zoomgrad check` in `harness.cli` makes the new run and measures suspects again.
"""
