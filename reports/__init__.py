"""Records of a run -> its report, the gate's verdicts and exports: records -> table -> story -> HTML and Markdown.

Nothing here measures: `harness` runs the cells, and `results` keeps their records and computes the statistics.
"""
