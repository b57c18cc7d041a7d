"""The gate: its limits, the machine's noise floor, the rules that compare two runs, verdicts and their table."""
