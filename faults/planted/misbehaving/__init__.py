"""Engines that each misbehave in one way. `engines` finds them after `faults.planted.plant()`."""
