"""Planning a run: presets, the cells they choose, time estimates, budgets, and the plan.

Nothing here measures: `harness.run` carries out a plan. What is installed comes from `harness.machine`.
"""
