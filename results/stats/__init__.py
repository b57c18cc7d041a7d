"""Statistics as pure functions: confidence intervals of seconds, and shares of sampled stacks.

Selecting samples from records is in `results.samples`; the gate's rules are in `reports.gate`.
"""
