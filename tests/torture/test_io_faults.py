"""Part 3: each call to the disk fails in each way it can, in store, journal, staging and workspace.

One call fails, or is cut short, and the next ones work again; or everything that writes fails from
some call on, as on a disk that is full or gone. The error has a name and the right exit status, the
tree is old or new, nothing acknowledged is lost, and when the fault is gone the same process goes
on as if nothing had been.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeVar

import apsw
import pytest

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.errors import HoldfastError
from holdfast.domain.outcomes import RestoreOutcome, SaveOutcome
from holdfast.engine.conversation.conversation import add_message
from tests.support.tree_hash import describe
from tests.torture.acts import Act, first_save, small_act, telling
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.interception import DiskCall, intercepted, let_pass
from tests.torture.scenes import SESSION, State, problems, save_outcome
from tests.torture.telling import may_be_left, story_problems

T = TypeVar("T")

WRITING = frozenset(
    "write fsync sync_all ftruncate mkdir symlink link rename rename_new exchange"
    " xWrite xSync xTruncate".split()
)
OPENING = frozenset({"open", "list_names", "set_mode", "xOpen"})
SIZED = frozenset({"read", "pread", "write", "xWrite"})
# A descriptor is gone however its closing ends, and nobody can do anything about it.
NOT_FAILING = frozenset({"close"})
FULL = (errno.ENOSPC, errno.EDQUOT)
NO_SPACE_STATUS, OTHER_STATUSES = 7, {5, 6}
SQLITE_CODES = {
    "xSync": apsw.SQLITE_IOERR_FSYNC,
    "xWrite": apsw.SQLITE_IOERR_WRITE,
    "xRead": apsw.SQLITE_IOERR_READ,
    "xTruncate": apsw.SQLITE_IOERR_TRUNCATE,
    "xDelete": apsw.SQLITE_IOERR_DELETE,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A way in which a call goes wrong; `lasting` means all later ones that it can hit, too."""

    name: str
    number: int = 0
    only: frozenset[str] | None = None
    lasting: bool = False

    def can_hit(self, call: DiskCall) -> bool:
        if self.number == 0:
            return call.name in SIZED and (call.size or 0) > 1
        if self.number == errno.EINTR and call.is_sqlite:
            return False  # SQLite's own calls are repeated below the place where we stand
        return call.name in self.only if self.only else call.name not in NOT_FAILING

    def strike(self, call: DiskCall, run: Callable[[int], T]) -> T:
        if self.number == 0:
            done = run((call.size or 0) // 2)
            if call.name == "xWrite":
                raise apsw.FullError("only half was taken")
            return done
        if call.is_sqlite:
            _fail_in_sqlite(call, self.number)
        raise OSError(self.number, os.strerror(self.number))


def _fail_in_sqlite(call: DiskCall, number: int) -> NoReturn:
    if call.name == "xOpen":
        raise apsw.CantOpenError("refused by a test")
    if number in FULL:
        raise apsw.FullError("refused by a test")
    error = apsw.IOError("refused by a test")
    setattr(error, "extendedresult", SQLITE_CODES[call.name])  # noqa: B010
    raise error


FAULTS = (
    Fault("EIO", errno.EIO),
    Fault("ENOSPC", errno.ENOSPC, WRITING),
    Fault("EDQUOT", errno.EDQUOT, WRITING),
    Fault("EINTR", errno.EINTR),
    Fault("EMFILE", errno.EMFILE, OPENING),
    Fault("cut short"),
    Fault("ENOSPC from then on", errno.ENOSPC, WRITING, lasting=True),
    Fault("EIO of all writing from then on", errno.EIO, WRITING, lasting=True),
)


@dataclass(slots=True)
class Attempt:
    """An act under a fault, in a process that goes on afterwards."""

    act: Act
    fault: Fault
    at: int
    raised: BaseException | None = None
    outcome: object = None
    wrong: list[str] = field(default_factory=list)
    hit: DiskCall | None = None
    known: dict[str, State] = field(default_factory=dict)
    over: bool = False
    told: int = 0
    last_words: tuple[str, ...] = ()

    def gate(self, call: DiskCall, run: Callable[[int], T]) -> T:
        due = call.number == self.at or (self.fault.lasting and call.number > self.at)
        if not self.over and due and self.fault.can_hit(call):
            self.hit = self.hit or call
            return self.fault.strike(call, run)
        return let_pass(call, run)

    def run(self) -> None:
        scene = self.act.scene
        scene.reset()
        with intercepted(self.gate):
            try:
                with scene.open(create=True) as work:
                    self._perform(work)
                    self.over = True
                    if not self.wrong:
                        self._go_on(work)
            except HoldfastError as error:
                self.raised = self.raised or error
            except Exception as error:
                self.wrong.append(f"an error without a name: {error!r}")
            self.over = True
        self._judge()

    def _perform(self, work: OpenWorkspace) -> None:
        try:
            if self.act.action == "tell":
                self.act.tell(work, self._count)
            else:
                self.outcome = self.act.perform(work)
        except HoldfastError as error:
            self.raised = error

    def _count(self) -> None:
        self.told += 1

    def _go_on(self, work: OpenWorkspace) -> None:
        """The same process, after the fault: it is not stuck."""
        try:
            made = save_outcome(work, "after the fault").checkpoint
        except HoldfastError as error:
            self.wrong.append(f"the next save of the same process fails: {error!r}")
            return
        if not made.partial:
            self.known[made.id] = describe(self.act.scene.project)
        if self.act.action == "tell":
            self._tell_more(work)

    def _tell_more(self, work: OpenWorkspace) -> None:
        try:
            add_message(work.engine.vault, SESSION, "user", "after the fault")
            self.last_words = ("after the fault",)
        except HoldfastError as error:
            self.wrong.append(f"the next words of the same process fail: {error!r}")

    def _judge(self) -> None:
        if self.raised is not None:
            assert isinstance(self.raised, HoldfastError)
            self._judge_status(self.raised)
        made = self._made()
        known, trees = self.act.acknowledged(made)
        said = _said(self.outcome)
        if said:
            # What could not be read is left out, or left alone, and the result says so.
            self._judge_said(said)
            if made in known and self.act.action == "save":
                del known[made]
            trees = (describe(self.act.scene.project),)
        project, home = self.act.scene.project, self.act.scene.home
        if self.act.action == "tell":
            allowed = may_be_left(self.act.stories, self.told)
            self.wrong += story_problems(
                project, home, (story.and_then(*self.last_words) for story in allowed)
            )
        self.wrong += problems(project, home, {**known, **self.known}, trees)

    def _made(self) -> str | None:
        if isinstance(self.outcome, SaveOutcome):
            return self.outcome.checkpoint.id
        if isinstance(self.outcome, RestoreOutcome):
            return self.outcome.record
        return None if self.outcome is None else "done"

    def _judge_said(self, said: set[bytes]) -> None:
        if self.act.action != "restore":
            return
        found, wanted = describe(self.act.scene.project), self.act.trees[-1]
        for path in found.keys() | wanted.keys():
            near = any(path == s or path.startswith(s + b"/") or not s for s in said)
            if found.get(path) != wanted.get(path) and not near:
                self.wrong.append(f"not a word about {path!r}")

    def _judge_status(self, error: HoldfastError) -> None:
        expected = {NO_SPACE_STATUS} if self.fault.number in FULL else OTHER_STATUSES
        if self.fault.number == 0:
            expected = {NO_SPACE_STATUS, *OTHER_STATUSES}
        if error.exit_status not in expected:
            self.wrong.append(f"exit status {error.exit_status} for {self.fault.name}: {error!r}")


def _said(outcome: object) -> set[bytes]:
    """Paths that a result names as left out or left alone because of trouble."""
    if isinstance(outcome, SaveOutcome) and outcome.checkpoint.partial:
        return {skip.path for skip in outcome.skipped if skip.reason.is_failure}
    if isinstance(outcome, RestoreOutcome):
        left_out = {problem.path for problem in (*outcome.skipped, *outcome.conflicts)}
        return left_out | {kept.path for kept in outcome.kept}
    return set()


def _every_fault_at_every_call(campaign: Campaign, scenario: Scenario, act: Act) -> None:
    calls = act.calls()
    space = [(fault, call) for call in calls for fault in FAULTS if fault.can_hit(call)]

    def case(case: Case) -> None:
        fault, call = space[case.number]
        attempt = Attempt(act, fault, call.number)
        attempt.run()
        where = f"{fault.name} at call {call.number}, {call.name} of {call.subject!r}"
        end = f"ended as {attempt.raised or attempt.outcome!r}"[:500]
        assert not attempt.wrong, "\n".join([where, end, *attempt.wrong])

    campaign.run(
        scenario,
        case,
        slice_cases=50,
        space=len(space),
        covered="every call that each fault can hit",
        most_cases=len(space),
    )


FAULTY = "every fault at every call of"


@pytest.mark.torture_share(2)
@pytest.mark.requirement("RL-3")
def test_faults_at_every_call_of_a_save(campaign: Campaign, quick_disk: Path) -> None:
    scenario = Scenario(3, "faults-save", f"{FAULTY} a small save")
    _every_fault_at_every_call(campaign, scenario, small_act(quick_disk, "save"))


@pytest.mark.torture_share(2)
@pytest.mark.requirement("RL-3")
def test_faults_at_every_call_of_a_first_save(campaign: Campaign, quick_disk: Path) -> None:
    scenario = Scenario(3, "faults-first-save", f"{FAULTY} the first save")
    _every_fault_at_every_call(campaign, scenario, first_save(quick_disk))


@pytest.mark.torture_share(4)
@pytest.mark.requirement("RL-3", "RL-2")
def test_faults_at_every_call_of_a_restore(campaign: Campaign, quick_disk: Path) -> None:
    scenario = Scenario(3, "faults-restore", f"{FAULTY} a small restore")
    _every_fault_at_every_call(campaign, scenario, small_act(quick_disk, "restore"))


@pytest.mark.torture_share(2)
@pytest.mark.requirement("RL-3", "RL-8")
def test_faults_at_every_call_of_a_deletion(campaign: Campaign, quick_disk: Path) -> None:
    scenario = Scenario(3, "faults-delete", f"{FAULTY} a deletion with garbage collection")
    _every_fault_at_every_call(campaign, scenario, small_act(quick_disk, "delete"))


@pytest.mark.torture_share(3)
@pytest.mark.requirement("RL-3", "SE-7")
def test_faults_at_every_call_of_recording_messages(campaign: Campaign, quick_disk: Path) -> None:
    title = f"{FAULTY} recording messages, annotations, edits and notices"
    act = telling(quick_disk, first=False)
    _every_fault_at_every_call(campaign, Scenario(3, "faults-telling", title), act)


@pytest.mark.torture_share(3)
@pytest.mark.requirement("RL-3", "SE-7")
def test_faults_at_every_call_of_the_first_message(campaign: Campaign, quick_disk: Path) -> None:
    title = f"{FAULTY} recording the first messages"
    act = telling(quick_disk, first=True)
    _every_fault_at_every_call(campaign, Scenario(3, "faults-first-words", title), act)
