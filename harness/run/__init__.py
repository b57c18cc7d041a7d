"""Carry out a plan: one worker at a time in a fresh process, replies validated, records stored.

The plan comes from `harness.plan`; the code inside a worker is in `harness.worker`, and its limits in
`harness.containment`.
"""
