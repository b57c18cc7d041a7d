"""Engines whose graph is walked by Python. One file a variant; the diff between two of them is the experiment."""
