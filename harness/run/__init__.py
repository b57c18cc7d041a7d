"""Runs a plan: one worker at a time, each in a fresh process, and what each wrote is validated."""
