"""The workers of `harness.worker`, with the engines of `faults.planted` among the others."""

from faults.planted import plant

plant()
