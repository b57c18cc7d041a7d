"""Micrograd programs, run unchanged on an engine."""
