"""The story in memory: the smallest implementation of the contract; for tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.paths import from_text, is_within, to_text
from holdfast.domain.purges import TextReplacement
from holdfast.domain.story import (
    Activity,
    ActivityStatus,
    Annotation,
    Message,
    NewActivity,
    Rollback,
    rolled_back_by,
)
from holdfast.ports.story import NewMessage, no_annotation


@dataclass(slots=True)
class MemoryStory:
    """See `holdfast.ports.story.Story` for the contract of each member."""

    _messages: list[tuple[int, Message]] = field(default_factory=list)
    _annotations: list[Annotation] = field(default_factory=list)
    _rollbacks: dict[SessionId, list[Rollback]] = field(default_factory=dict)
    _facts: dict[tuple[SessionId, str], str] = field(default_factory=dict)
    _activities: dict[int, Activity] = field(default_factory=dict)
    _diffs: dict[int, bytes] = field(default_factory=dict)
    _removals: int = 0
    _last: int = 0

    def add_messages(
        self,
        session_id: SessionId,
        new: Sequence[NewMessage],
        *,
        fact: tuple[str, str] | None = None,
    ) -> Sequence[Message]:
        added = []
        for message in new:
            key = message.source_key
            if key is not None and self.has_source(session_id, key):
                continue
            made = Message(
                session_id,
                self.message_count(session_id),
                message.role,
                message.content,
                message.at_ns,
                message.tool_calls,
                key,
            )
            self._messages.append((self._next(), made))
            added.append(made)
        if fact is not None:
            self._facts[session_id, fact[0]] = fact[1]
        return added

    def message_count(self, session_id: SessionId) -> int:
        return sum(message.session_id == session_id for _, message in self._messages)

    def messages(
        self, session_id: SessionId, *, first: int = 0, limit: int | None = None
    ) -> Sequence[Message]:
        mine = [self._marked(m) for _, m in self._messages if m.session_id == session_id]
        return [message for message in mine if message.index >= first][:limit]

    def messages_after(self, sequence: int, limit: int) -> Sequence[tuple[int, Message]]:
        found = [(number, self._marked(m)) for number, m in self._messages if number > sequence]
        return found[:limit]

    def has_source(self, session_id: SessionId, source_key: str) -> bool:
        return any(
            (m.session_id, m.source_key) == (session_id, source_key) for _, m in self._messages
        )

    def annotate(
        self,
        session_id: SessionId,
        checkpoint_id: CheckpointId,
        text: str,
        *,
        author: str | None,
        at_ns: int,
        number: int | None = None,
    ) -> Annotation:
        here = self.annotations(session_id, checkpoint_id, revisions=True)
        if number is None:
            number, revision = max((a.number for a in here), default=0) + 1, 1
        else:
            revisions = [a for a in here if a.number == number]
            if not revisions:
                raise no_annotation(checkpoint_id, number)
            revision, author = revisions[-1].revision + 1, author or revisions[-1].author
        made = Annotation(
            self._next(), session_id, checkpoint_id, number, revision, text, author, at_ns
        )
        self._annotations.append(made)
        return made

    def annotations(
        self,
        session_id: SessionId,
        checkpoint_id: CheckpointId | None = None,
        *,
        revisions: bool = False,
    ) -> Sequence[Annotation]:
        begun: dict[tuple[CheckpointId, int], list[Annotation]] = {}
        for annotation in self._annotations:
            if annotation.session_id == session_id:
                place = (annotation.checkpoint_id, annotation.number)
                begun.setdefault(place, []).append(annotation)
        chosen = [a for (c, _), a in begun.items() if checkpoint_id in (None, c)]
        return [a for group in chosen for a in (group if revisions else group[-1:])]

    def annotations_after(self, sequence: int, limit: int) -> Sequence[Annotation]:
        return [a for a in self._annotations if a.sequence > sequence][:limit]

    def rollbacks(self, session_id: SessionId) -> Sequence[Rollback]:
        return list(self._rollbacks.get(session_id, ()))

    def add_rollback(self, session_id: SessionId, rollback: Rollback) -> bool:
        known = self._rollbacks.setdefault(session_id, [])
        if known and known[-1].operation >= rollback.operation:
            return False
        known.append(rollback)
        return True

    def fact(self, session_id: SessionId, name: str) -> str | None:
        return self._facts.get((session_id, name))

    def set_fact(
        self, session_id: SessionId, name: str, value: str, *, expected: str | None
    ) -> bool:
        if self.fact(session_id, name) != expected:
            return False
        self._facts[session_id, name] = value
        return True

    def begin(self, new: NewActivity) -> Activity:
        fields = {key: getattr(new, key) for key in NewActivity.__dataclass_fields__}
        made = Activity(number=self._next(), **fields)
        self._activities[made.number] = made
        return made

    def settle(
        self,
        number: int,
        status: ActivityStatus,
        *,
        at_ns: int,
        outcome: str | None = None,
        diff: bytes | None = None,
    ) -> Activity | None:
        found = self._activities.get(number)
        if found is None or found.status is not ActivityStatus.OPEN:
            return None
        if diff is not None:
            self._diffs[number] = diff
        ended = replace(
            found, status=status, ended_at_ns=at_ns, outcome=outcome, has_diff=diff is not None
        )
        self._activities[number] = ended
        return ended

    def record_edit(self, new: NewActivity, *, at_ns: int, diff: bytes) -> Activity:
        begun = self.begin(new)
        ended = self.settle(begun.number, ActivityStatus.KEPT, at_ns=at_ns, diff=diff)
        return ended or begun

    def activity(self, number: int) -> Activity | None:
        return self._activities.get(number)

    def activities(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Activity]:
        mine = [a for a in self._activities.values() if a.session_id == session_id]
        return [a for a in mine if a.number > after][:limit]

    def activities_after(self, number: int, limit: int) -> Sequence[Activity]:
        return [a for a in self._activities.values() if a.number > number][:limit]

    def open_activities(self, session_id: SessionId | None = None) -> Sequence[Activity]:
        begun = [a for a in self._activities.values() if session_id in (None, a.session_id)]
        return [a for a in begun if a.status is ActivityStatus.OPEN]

    def diff_of(self, number: int) -> bytes | None:
        return self._diffs.get(number)

    def import_rows(self, messages: Sequence[Message], annotations: Sequence[Annotation]) -> int:
        added = 0
        for message in messages:
            if message.index == self.message_count(message.session_id):
                key = message.source_key
                known = key is not None and self.has_source(message.session_id, key)
                taken = replace(message, rolled_back_by=None, source_key=None if known else key)
                self._messages.append((self._next(), taken))
                added += 1
        there = {(a.session_id, a.checkpoint_id, a.number, a.revision) for a in self._annotations}
        for one in annotations:
            if (one.session_id, one.checkpoint_id, one.number, one.revision) not in there:
                self._annotations.append(replace(one, sequence=self._next()))
                added += 1
        return added

    def named_checkpoints(self) -> set[CheckpointId]:
        noted = {annotation.checkpoint_id for annotation in self._annotations}
        return noted | {activity.checkpoint for activity in self._activities.values()}

    def forget_checkpoints(self, checkpoint_ids: Sequence[CheckpointId]) -> int:
        kept = [a for a in self._annotations if a.checkpoint_id not in checkpoint_ids]
        gone = len(self._annotations) - len(kept)
        self._annotations = kept
        done = [a for a in self._activities.values() if a.checkpoint in checkpoint_ids]
        return self._forget(done, gone)

    def forget_session(self, session_id: SessionId) -> int:
        before = len(self._messages) + len(self._annotations) + len(self._facts)
        self._messages = [(n, m) for n, m in self._messages if m.session_id != session_id]
        self._annotations = [a for a in self._annotations if a.session_id != session_id]
        self._facts = {key: fact for key, fact in self._facts.items() if key[0] != session_id}
        gone = before - len(self._messages) - len(self._annotations) - len(self._facts)
        gone += len(self._rollbacks.pop(session_id, ()))
        done = [a for a in self._activities.values() if a.session_id == session_id]
        return self._forget(done, gone)

    def forget_paths(self, paths: Sequence[bytes]) -> int:
        return self._forget(
            [
                a
                for a in self._activities.values()
                if any(is_within(path, removed) for path in a.paths for removed in paths)
            ]
        )

    def replace_text(
        self, replacement: TextReplacement, diff: Callable[[bytes], bytes]
    ) -> Mapping[str, int]:
        changed = Counter[str]()
        for at, (number, message) in enumerate(self._messages):
            calls = tuple(replacement.value(list(message.tool_calls)))
            new = replace(message, content=replacement.text(message.content), tool_calls=calls)
            changed["messages"] += new != message
            self._messages[at] = (number, new)
        for at, note in enumerate(self._annotations):
            author = None if note.author is None else replacement.text(note.author)
            noted = replace(note, text=replacement.text(note.text), author=author)
            changed["annotations"] += noted != note
            self._annotations[at] = noted
        for number, activity in self._activities.items():
            outcome = None if activity.outcome is None else replacement.text(activity.outcome)
            reason = replacement.text(activity.reason)
            paths = tuple(from_text(replacement.text(to_text(path))) for path in activity.paths)
            edit = replace(activity, reason=reason, outcome=outcome, paths=paths)
            old = self._diffs.get(number)
            if old is not None:
                self._diffs[number] = diff(old)
            changed["edits"] += edit != activity or self._diffs.get(number) != old
            self._activities[number] = edit
        self._removals += changed.total() > 0
        return +changed

    def generation(self) -> str:
        return str(self._removals)

    def erase_traces(self) -> None:
        return None

    def is_empty(self) -> bool:
        """Whether nothing was ever written."""
        return not (self._last or self._facts or self._rollbacks)

    def version(self) -> object:
        """Differs after every write."""
        statuses = [activity.status for activity in self._activities.values()]
        rollbacks = [len(known) for known in self._rollbacks.values()]
        return self._last, self._removals, statuses, rollbacks, dict(self._facts)

    def size_bytes(self) -> int:
        return sum(len(m.content) for _, m in self._messages)

    def check(self) -> Iterator[str]:
        yield from ()

    def close(self) -> None:
        return None

    def _forget(self, activities: list[Activity], others: int = 0) -> int:
        for activity in activities:
            del self._activities[activity.number]
            self._diffs.pop(activity.number, None)
        gone = len(activities) + others
        self._removals += gone > 0
        return gone

    def _marked(self, message: Message) -> Message:
        history = self._rollbacks.get(message.session_id)
        marks = history[-1].after if history else ()
        return replace(message, rolled_back_by=rolled_back_by(marks, message.index))

    def _next(self) -> int:
        self._last += 1
        return self._last
