"""Statistics as pure functions over seconds: confidence intervals.

Selecting samples from records is in `results.samples`; the gate's rules are in `reports.gate`.
"""
