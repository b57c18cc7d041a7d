"""Planning a run: presets, the cells they choose, time estimates, and the plan.

Nothing here measures: `harness.run` carries out the plan, and `harness.machine` finds out what is installed.
"""
