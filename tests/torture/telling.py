"""What is said and done around the checkpoints, step by step, and what must be left of it.

    steps that are the same each time → the story after each of them, as it must be
    k of them acknowledged → the story is the one after k steps, or after the one that was cut off

A step is one durable write: a message, an annotation or a new revision of one, an edit begun or
settled, notices taken. What restores did to the marks of messages is derived from the log, and
therefore compared apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.ids import SessionId
from holdfast.domain.story import ActivityKind, ActivityStatus, NewActivity
from holdfast.engine.conversation.conversation import add_message, messages
from holdfast.engine.conversation.notices import LAST_NOTICE, take_notices
from holdfast.engine.history.annotations import annotate
from holdfast.engine.history.references import resolve
from holdfast.engine.vault import Vault
from holdfast.ports.story import Story
from tests.torture.scenes import SESSION, opened

_LONG = "a long answer, on more than one page of the database; " * 200
_AFTER = "said when it was over"


@dataclass(frozen=True, slots=True)
class Told:
    """What a story holds of one session, without times and numbers that chance decides."""

    messages: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, int, int, str, str | None], ...] = ()
    edits: tuple[tuple[str, str, str | None, bytes | None], ...] = ()
    noticed: bool = False

    def and_then(self, *contents: str) -> Told:
        return replace(self, messages=(*self.messages, *(("user", text) for text in contents)))


def told_in(vault: Vault, session_id: SessionId = SESSION) -> Told:
    return told_of(vault.story, session_id)


def told_of(story: Story, session_id: SessionId) -> Told:
    return Told(
        tuple((m.role.value, m.content) for m in story.messages(session_id)),
        tuple(
            (a.checkpoint_id, a.number, a.revision, a.text, a.author)
            for a in story.annotations(session_id, revisions=True)
        ),
        tuple(
            (a.reason, a.status.value, a.outcome, story.diff_of(a.number))
            for a in story.activities(session_id)
        ),
        story.fact(session_id, LAST_NOTICE) is not None,
    )


class Teller:
    """The steps, about one checkpoint; each takes the vault and returns when it is durable."""

    def __init__(self, checkpoint: str, session_id: SessionId = SESSION) -> None:
        self._checkpoint = checkpoint
        self._session = session_id

    def steps(self, rounds: int = 1) -> Sequence[Callable[[Vault], None]]:
        one = [self._ask, self._answer, self._note, self._revise, self._begin, self._settle]
        return [*one, self._notice] + one * (rounds - 1)

    def _ask(self, vault: Vault) -> None:
        add_message(vault, self._session, "user", "do it")

    def _answer(self, vault: Vault) -> None:
        call = {"name": "Edit", "arguments": {"path": "edited"}}
        add_message(vault, self._session, "assistant", _LONG, tool_calls=(call,))

    def _note(self, vault: Vault) -> None:
        annotate(vault, self._session, self._checkpoint, "worth keeping", author="ada")

    def _revise(self, vault: Vault) -> None:
        annotate(vault, self._session, self._checkpoint, "worth keeping, really", number=1)

    def _begin(self, vault: Vault) -> None:
        checkpoint = resolve(vault, self._session, self._checkpoint).id
        paths = (b"edited", b"not \xff text")
        new = NewActivity(self._session, ActivityKind.EDIT, "an edit", checkpoint, 5, "me", paths)
        vault.story.begin(new)

    def _settle(self, vault: Vault) -> None:
        number = vault.story.open_activities(self._session)[-1].number
        diff = b"+a line\n" * 900
        vault.story.settle(number, ActivityStatus.KEPT, at_ns=6, outcome="kept", diff=diff)

    def _notice(self, vault: Vault) -> None:
        assert take_notices(vault, self._session)


def stories_of(work: OpenWorkspace, steps: Sequence[Callable[[Vault], None]]) -> tuple[Told, ...]:
    """Take the steps, undisturbed: what there is before the first and after each."""
    vault = work.engine.vault
    found = [told_in(vault)]
    for step in steps:
        step(vault)
        found.append(told_in(vault))
    assert len(set(found)) == len(found)
    return tuple(found)


def may_be_left(stories: Sequence[Told], acknowledged: int) -> Sequence[Told]:
    return stories[acknowledged : acknowledged + 2]


def story_problems(project: Path, home: Path, allowed: Iterable[Told]) -> list[str]:
    """What is wrong with the story, seen by the next process; it then goes on with the story."""
    allowed = list(allowed)
    with opened(project, home) as work:
        work.engine.recover()
        vault = work.engine.vault
        wrong = [f"check: {problem}" for problem in vault.story.check()]
        if wrong:
            return wrong
        found = told_in(vault)
        if found not in allowed:
            return [f"the story is {_brief(found)}", *(f"not {_brief(s)}" for s in allowed)]
        add_message(vault, SESSION, "user", _AFTER)
        if told_in(vault) != found.and_then(_AFTER):
            wrong.append("the next message is not where it belongs")
        return wrong + [f"check: {problem}" for problem in vault.story.check()]


def taken_back(work: OpenWorkspace) -> list[int]:
    """Which messages no longer hold, as whoever looks at the conversation is told."""
    found = messages(work.engine.vault, SESSION)
    return [message.index for message in found if message.rolled_back_by is not None]


def _brief(told: Told) -> str:
    counts = (len(told.messages), len(told.annotations), len(told.edits))
    return f"{counts[0]} messages, {counts[1]} notes, {counts[2]} edits, {told!r:.300}"
