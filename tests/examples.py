"""How many random examples a property test draws. Needs only CPython 3.9 and hypothesis, as worker-safe tests do."""

from hypothesis import settings


def examples(count):
    """Return `count` in the exhaustive suite, and the share of it that the profile of a push sets (conftest.py)."""
    return max(1, count * settings.default.max_examples // 100)
