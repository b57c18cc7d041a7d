"""Fixtures of the tests of programs."""

import pytest

from tests.engines.compiled.compiling import ONE_OF_EACH_KIND, usable


@pytest.fixture(params=ONE_OF_EACH_KIND)
def engine(request):
    """One engine of each kind of kernel."""
    return usable(request.param)
