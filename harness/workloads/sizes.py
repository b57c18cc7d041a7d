"""Limits on the sizes that a workload's name asks for."""

from zoomgrad.engines.api import UnknownName
from zoomgrad.harness.workloads.models import MOST_WEIGHTS


class BadSize(UnknownName):
    """A workload's name has the right form, but asks for a model that can't be made."""

    def __init__(self, name: str, problem: str, remedy: str = "Use smaller sizes.") -> None:
        LookupError.__init__(self, f"{name}: {problem}\n  {remedy}")
        self.nearest = []


def check_size(name: str, weights: int) -> None:
    """Raise BadSize for too many weights, over all positions of a step."""
    if weights > MOST_WEIGHTS:
        raise BadSize(name, f"its graph would have {weights:,} weights; the limit is {MOST_WEIGHTS:,}")
