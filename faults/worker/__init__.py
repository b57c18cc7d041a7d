"""The workers of `harness.worker` with the engines of `faults.planted` added. The workers' logic is not here."""

from faults.planted import plant

plant()
