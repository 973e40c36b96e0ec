"""A test of every place in something finite: some places in `make test`, all in `make torture`.

    @strides(7)                       a slice of every seventh place, and a campaign of every place
    def test_...(stride: int): for at in range(1, calls + 1, stride)

A slice takes a few seconds at most. Its stride is a prime, so that it keeps no step with what
repeats itself among the places, and small enough for all that the test says of them to be seen.
"""

from __future__ import annotations

import pytest

# They end with their places, whatever TORTURE_S is, and so take no share of it.
UNTIMED = (pytest.mark.torture, pytest.mark.torture_share(0))


def strides(of_the_slice: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("stride", [of_the_slice, pytest.param(1, marks=UNTIMED)])
