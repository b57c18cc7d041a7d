"""Engines that misbehave, each in one way: found by `engines` once `faults.planted.plant` was called."""
