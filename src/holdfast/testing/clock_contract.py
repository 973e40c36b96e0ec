"""The contracts of `holdfast.ports.clock`, as tests."""

from __future__ import annotations

from holdfast.domain.ids import CHECKPOINT_ID_LENGTH
from holdfast.ports.clock import Clock, IdSource


class ClockContract:
    """Subclass it, and say which clock is tested."""

    def clock(self) -> Clock:
        raise NotImplementedError

    def test_the_wall_clock_counts_nanoseconds_since_1970(self) -> None:
        assert self.clock().now_ns() > 1_500_000_000 * 1_000_000_000

    def test_the_monotonic_clock_never_goes_back(self) -> None:
        clock = self.clock()
        read = [clock.monotonic_ns() for _ in range(100)]
        assert read == sorted(read)


class IdSourceContract:
    """Subclass it, and say which source is tested."""

    def ids(self) -> IdSource:
        raise NotImplementedError

    def test_each_id_is_new_lower_case_hexadecimal(self) -> None:
        ids = self.ids()
        made = {ids.new_id() for _ in range(1000)}
        assert len(made) == 1000
        assert all(len(one) == CHECKPOINT_ID_LENGTH for one in made)
        assert set("".join(made)) <= set("0123456789abcdef")
