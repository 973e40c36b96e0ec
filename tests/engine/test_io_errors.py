"""A failing call, at every place a save or a restore makes one: the tree stays whole and usable.

Two kinds of trouble: one call fails and the next succeeds again, and everything that writes fails
from some call on, as on a full disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.domain.errors import HoldfastError, RestoreFailed, StoreDamaged
from holdfast.domain.outcomes import RestoreOutcome
from tests.support.composition import SESSION, composed
from tests.support.hostile_trees import fill
from tests.support.strides import strides
from tests.support.tree_hash import debris, describe, differences
from tests.support.watched_filesystem import Call, WatchedFilesystem, ignore_call
from tests.support.wrecked_workspace import Story

WRITING = {
    "exchange",
    "fsync",
    "ftruncate",
    "link",
    "mkdir",
    "rename",
    "rename_new",
    "symlink",
    "sync_all",
    "write",
}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "project")


def _failing_once(at: int, number: int) -> Callable[[Call], None]:
    def fail(call: Call) -> None:
        # A close that fails has closed anyway, and nothing can be done about it.
        if call.number == at and call.member != "close":
            raise OSError(number, os.strerror(number))

    return fail


def _failing_from(at: int, number: int) -> Callable[[Call], None]:
    def fail(call: Call) -> None:
        if call.number >= at and call.member in WRITING:
            raise OSError(number, os.strerror(number))

    return fail


@dataclass(frozen=True, slots=True)
class Attempt:
    """A restore under a fault: how it ended, and what it left."""

    raised: BaseException | None
    outcome: RestoreOutcome | None
    calls: int

    def wrong(self, story: Story) -> list[str]:
        """Not reported to the caller: a mixture, or an error without a name."""
        found = describe(story.workspace)
        problems: list[str] = []
        if self.raised is not None:
            if not isinstance(self.raised, (HoldfastError, KeyboardInterrupt)):
                problems.append(f"raised {self.raised!r}")
            if found != story.old:
                problems += differences(found, story.new)
        elif self.outcome is not None:
            said = {kept.path for kept in self.outcome.kept}
            said |= {problem.path for problem in self.outcome.skipped}
            unsaid = {
                path
                for path in found.keys() | story.old.keys()
                if found.get(path) != story.old.get(path)
                and not any(path == s or path.startswith(s + b"/") for s in said)
            }
            problems += [f"succeeded without a word about {path!r}" for path in sorted(unsaid)]
        return problems


def _restore_with(
    story: Story, fault: Callable[[Call], None], *, after: Callable[[Call], None] = ignore_call
) -> Attempt:
    fs = WatchedFilesystem(before=fault, after=after)
    try:
        with composed(story.workspace, fs=fs.as_port()) as opened:
            return Attempt(None, opened.restore(story.good), fs.calls)
    except (Exception, KeyboardInterrupt) as error:
        return Attempt(error, None, fs.calls)


def _calls_of_a_restore(story: Story) -> int:
    attempt = _restore_with(story, lambda call: None)
    assert attempt.raised is None
    return attempt.calls


@pytest.mark.requirement("RB-3")
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EACCES])
@strides(5)
def test_a_restore_with_one_failing_call_is_rolled_back_or_done(
    story: Story, number: int, stride: int
) -> None:
    calls = _calls_of_a_restore(story)
    wrong: list[str] = []
    # What fails is the same for all; the others show that the kind of error does not matter.
    for at in range(1, calls + 1, stride if number == errno.EIO else 4 * stride):
        story.go_to(story.bad)
        attempt = _restore_with(story, _failing_once(at, number))
        wrong += [f"call {at}: {problem}" for problem in attempt.wrong(story)]
        after = story.recover()
        if attempt.raised is not None and after not in (story.old, story.new):
            wrong.append(f"call {at}: recovery leaves {differences(after, story.new)}")
        story.put_right()
    story.check()
    assert not wrong, "\n".join(wrong)


@pytest.mark.requirement("RB-3")
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@strides(7)
def test_a_restore_on_a_disk_that_takes_no_more_is_repaired_when_it_does_again(
    story: Story, number: int, stride: int
) -> None:
    calls = _calls_of_a_restore(story)
    wrong: list[str] = []
    for at in range(1, calls + 1, stride):
        story.go_to(story.bad)
        attempt = _restore_with(story, _failing_from(at, number))
        if attempt.raised is not None and not isinstance(attempt.raised, HoldfastError):
            wrong.append(f"from call {at}: {attempt.raised!r}")
        after = story.recover()
        if after not in (story.old, story.new):
            wrong.append(f"from call {at}: recovery leaves {differences(after, story.new)}")
        story.put_right()
    story.check()
    assert not wrong, "\n".join(wrong)


@pytest.mark.requirement("RB-3")
def test_a_restore_that_fails_on_a_full_disk_is_rolled_back_although_its_journal_cannot_be_written(
    story: Story,
) -> None:
    story.go_to(story.bad)
    present = describe(story.workspace)
    exchanges = 0

    def fill_up(call: Call) -> None:
        nonlocal exchanges
        exchanges += call.member == "exchange"
        if exchanges >= 3 and call.member in ("exchange", "write") and not rolling_back():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def rolling_back() -> bool:
        return exchanges > 3

    attempt = _restore_with(story, fill_up)
    assert isinstance(attempt.raised, HoldfastError)
    assert differences(describe(story.workspace), present) == []
    assert differences(story.recover(), present) == []


@pytest.mark.requirement("RB-3")
def test_a_failed_restore_is_rolled_back_later_if_the_catalog_cannot_be_read_now(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.go_to(story.bad)
    present = describe(story.workspace)
    exchanges = 0

    def fail(call: Call) -> None:
        nonlocal exchanges
        exchanges += call.member == "exchange"
        if exchanges == 3 and call.member == "exchange":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def unreadable(*_: object) -> None:
        raise StoreDamaged("a row of the catalog cannot be read")

    with monkeypatch.context() as damage:
        damage.setattr(SqliteCatalog, "operation_with_token", unreadable)
        attempt = _restore_with(story, fail)
    assert isinstance(attempt.raised, RestoreFailed)
    assert "the next command rolls the restore back" in attempt.raised.message
    assert describe(story.workspace) != present
    assert differences(story.recover(), present) == []


@pytest.mark.requirement("RB-3")
@pytest.mark.parametrize("moment", ["before", "after"])
@strides(7)
def test_a_restore_interrupted_by_a_person_at_any_call_is_rolled_back_or_done(
    story: Story, moment: str, stride: int
) -> None:
    """A signal that comes during a system call is delivered when the call is done."""
    calls = _calls_of_a_restore(story)

    def interrupt(at: int) -> Callable[[Call], None]:
        def raise_at(call: Call) -> None:
            if call.number == at:
                raise KeyboardInterrupt

        return raise_at

    wrong: list[str] = []
    for at in range(1, calls + 1, stride):
        story.go_to(story.bad)
        if moment == "before":
            attempt = _restore_with(story, interrupt(at))
        else:
            attempt = _restore_with(story, ignore_call, after=interrupt(at))
        wrong += [f"call {at}: {problem}" for problem in attempt.wrong(story)]
        after = story.recover()
        if after not in (story.old, story.new):
            wrong.append(f"call {at}: recovery leaves {differences(after, story.new)}")
        story.put_right()
    story.check()
    assert not wrong, "\n".join(wrong)


@pytest.mark.requirement("RB-2", "RB-3")
@strides(17)
def test_the_same_engine_goes_on_after_a_failed_restore(story: Story, stride: int) -> None:
    calls = _calls_of_a_restore(story)
    fs = WatchedFilesystem()
    with composed(story.workspace, fs=fs.as_port()) as opened:
        for at in range(1, calls + 1, stride):
            opened.restore(story.bad)
            fs.calls, fs.before = 0, _failing_once(at, errno.EIO)
            with contextlib.suppress(Exception):
                opened.restore(story.good)
            fs.before = lambda call: None
            saved = opened.save(f"after {at}")
            state = describe(story.workspace)
            opened.restore(story.good)
            assert describe(story.workspace) == story.old, at
            opened.undo()
            assert describe(story.workspace) == state, at
            opened.restore(saved.id)
            assert describe(story.workspace) == state, at


@pytest.mark.requirement("CP-7", "ST-3")
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@strides(3)
def test_a_save_with_one_failing_call_is_acknowledged_only_if_it_can_be_restored(
    story: Story, number: int, stride: int
) -> None:
    known = {story.good: story.old, story.bad: story.new}
    unnamed: list[str] = []
    for at in range(1, 2_000, stride):
        fill(story.workspace / "edited", f"version {at}".encode())
        state = describe(story.workspace)
        fs = WatchedFilesystem(before=_failing_once(at, number))
        try:
            with composed(story.workspace, fs=fs.as_port()) as opened:
                known[opened.save().id] = state
        except HoldfastError:
            pass
        except Exception as error:
            unnamed.append(f"call {at}: {error!r}")
        assert describe(story.workspace) == state
        if fs.calls < at:
            break
    for checkpoint, expected in known.items():
        story.go_to(checkpoint)
        if differences(describe(story.workspace), expected):
            # A file that could not be read is left out, and the checkpoint says so.
            with composed(story.workspace) as opened:
                assert opened.engine.resolve(SESSION, checkpoint).partial
    story.check()
    assert not unnamed, "\n".join(unnamed)
    assert debris(story.workspace) == []
