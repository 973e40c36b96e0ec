"""The contracts of `holdfast.ports.system`, as tests."""

from __future__ import annotations

import os
import subprocess
import sys

from holdfast.domain.ids import CHECKPOINT_ID_LENGTH
from holdfast.ports.system import Clock, IdSource, Processes


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


_SAY_WHO = "import os; print(os.getpid(), flush=True); input()"


class ProcessesContract:
    """Subclass it, and say what is tested."""

    def processes(self) -> Processes:
        raise NotImplementedError

    def test_this_process_has_one_identity_and_lives(self) -> None:
        processes = self.processes()
        own = processes.own_identity()
        assert own == processes.own_identity()
        assert own.partition(" ")[0] == str(os.getpid())
        assert processes.is_alive(own)

    def test_a_number_that_another_process_had_is_not_the_same_process(self) -> None:
        processes = self.processes()
        assert not processes.is_alive(f"{os.getpid()} at another time")

    def test_text_that_is_no_identity_is_nobody(self) -> None:
        processes = self.processes()
        for text in ("", " ", "x", "-1 x", "0 x", f"{1 << 70} x"):
            assert not processes.is_alive(text)

    def test_the_program_above_a_process_lives_until_it_ends(self) -> None:
        processes = self.processes()
        child = subprocess.Popen(
            [sys.executable, "-c", _SAY_WHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert child.stdout is not None
            above = processes.agent_above(int(child.stdout.readline()))
            assert above == processes.own_identity()
        finally:
            child.communicate()
        assert processes.agent_above(child.pid) is None
