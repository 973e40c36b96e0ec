"""Many processes on one workspace: each with a session and a directory of its own, all at once.

    python -m tests.torture.crowd PROJECT HOME COUNT     a JSON list of turns in, one of answers out

The server has one thread and forks; every process keeps its store open from turn to turn, or opens
it anew. In a turn that concerns its own directory only, a process knows exactly what a checkpoint
must hold and what a restore must bring back, and says so if it does not; the same for what it has
told in the story that all share. In a turn that concerns
the whole tree others interfere, and conflicts are answers; what was acknowledged then is what the
store said at once, and must stay so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import NothingToUndo, RestoreConflict, RestoreFailed
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.story import ActivityKind, ActivityStatus, NewActivity
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.engine.conversation.conversation import add_message
from holdfast.engine.history.annotations import annotate
from holdfast.engine.retention.cleanup import collect
from holdfast.engine.retention.deletion import delete
from holdfast.engine.retention.eviction import make_room
from holdfast.engine.statistics import session_statistics
from holdfast.engine.stored_objects import entry_at
from holdfast.engine.undo.undo import undo_request
from holdfast.engine.vault import Vault
from tests.support.tree_hash import Node, describe
from tests.torture.campaign import ROOT
from tests.torture.scenes import State, stored_state, write
from tests.torture.telling import Told, told_in

OWN_ACTIONS = (
    *("save", "save", "save", "restore", "restore", "delete", "read", "prune", "collect"),
    *("tell", "tell"),
)
WHOLE_ACTIONS = ("save_any", "save_any", "restore_all", "undo", "delete", "read", "collect", "tell")
_INTERFERENCE = (RestoreConflict, RestoreFailed, NothingToUndo)
_MOST_KNOWN = 5
_WAIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a process did: `made` and `deleted` are acknowledged, `error` is what went wrong.
    `told` is all it has told so far, by its fingerprint."""

    action: str
    made: str | None = None
    holds: str | None = None
    deleted: tuple[str, ...] = ()
    error: str | None = None
    told: str | None = None


def fingerprint(state: State) -> str:
    return hashlib.sha256(repr(sorted(state.items())).encode()).hexdigest()


def told_by(vault: Vault, number: int) -> str:
    """Everything in the story that is the process's own."""
    return _fingerprint_of(told_in(vault, session_of(number)))


def _fingerprint_of(told: Told) -> str:
    return hashlib.sha256(repr(told).encode()).hexdigest()


def session_of(number: int) -> SessionId:
    return SessionId(f"process-{number}")


def directory_of(number: int) -> bytes:
    return b"own-%d" % number


def own_part(vault: Vault, checkpoint: Checkpoint, number: int) -> State:
    """What a checkpoint holds of the directory of one process, by its bytes."""
    entry = entry_at(vault.load_tree, checkpoint.tree, directory_of(number))
    if not isinstance(entry, DirectoryEntry):
        return {}
    return stored_state(vault, replace(checkpoint, tree=entry.digest))


class Crowd:
    """The test's side."""

    def __init__(self, project: Path, home: Path, count: int) -> None:
        command = [sys.executable, "-m", "tests.torture.crowd"]
        self._process = subprocess.Popen(
            [*command, str(project), str(home), str(count)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def round(self, turns: list[tuple[str, int]]) -> list[Answer]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(turns), file=self._process.stdin, flush=True)
        return [Answer(**answer) for answer in json.loads(self._process.stdout.readline())]

    def __enter__(self) -> Crowd:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()


class _Worker:
    """One process of the crowd."""

    def __init__(self, project: Path, home: Path, number: int) -> None:
        self._project = project
        self._environment = {"HOLDFAST_HOME": str(home)}
        self._number = number
        self._session = session_of(number)
        self._own = project / os.fsdecode(directory_of(number))
        self._known: dict[str, str] = {}
        self._told = Told()
        self._open: OpenWorkspace | None = None

    def turn(self, action: str, seed: int) -> Answer:
        rng = random.Random(seed)
        try:
            if self._open is not None and rng.random() < 0.2:
                self._open.close()
                self._open = None
            if self._open is None:
                self._open = open_workspace(
                    self._project, create=True, environment=self._environment
                )
                self._open.store.lock_timeout_s = _WAIT_S
            act: Callable[[OpenWorkspace, random.Random], Answer]
            act = getattr(self, f"_{action}")
            answer = act(self._open, rng)
            return replace(answer, told=_fingerprint_of(self._told))
        except Exception as error:
            return Answer(action, error=f"{type(error).__name__}: {error}")

    def _edit(self, rng: random.Random) -> None:
        self._own.mkdir(exist_ok=True)
        for _ in range(rng.randint(1, 3)):
            path = self._own / rng.choice(("a", "b", "c", "dir/d", "dir/e", "dir/deep/f"))
            what = rng.random()
            if what < 0.15 and path.exists():
                path.unlink()
            elif what < 0.25 and path.exists():
                path.chmod(rng.choice((0o600, 0o644, 0o755)))
            else:
                write(path, rng.randbytes(rng.choice((0, 30, 2_000, 60_000))))

    def _save(self, work: OpenWorkspace, rng: random.Random) -> Answer:
        self._edit(rng)
        expected = describe(self._own)
        made = self._checkpoint(work)
        holds = own_part(work.engine.vault, made, self._number)
        if holds != expected:
            return Answer("save", error=f"{made.id} holds {_unlike(holds, expected)}")
        return self._acknowledged("save", made, holds)

    def _save_any(self, work: OpenWorkspace, rng: random.Random) -> Answer:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            self._edit(rng)  # unless a restore of somebody else has just taken the directory away
        made = self._checkpoint(work)
        return self._acknowledged("save_any", made, own_part(work.engine.vault, made, self._number))

    def _checkpoint(self, work: OpenWorkspace) -> Checkpoint:
        return work.engine.save(self._session, make_intent("why")).checkpoint

    def _acknowledged(self, action: str, made: Checkpoint, holds: State) -> Answer:
        self._known[made.id] = fingerprint(holds)
        return Answer(action, made=made.id, holds=self._known[made.id])

    def _restore(self, work: OpenWorkspace, rng: random.Random) -> Answer:
        wanted = [i for i, holds in self._known.items() if holds != fingerprint({})]
        if not wanted:
            return Answer("restore")
        chosen = rng.choice(wanted)
        request = work.engine.restore_request(
            self._session, chosen, paths=(directory_of(self._number),)
        )
        outcome = work.engine.restore(request)
        if fingerprint(describe(self._own)) != self._known[chosen] or outcome.conflicts:
            return Answer("restore", error=f"{chosen} was restored otherwise")
        return Answer("restore")

    def _restore_all(self, work: OpenWorkspace, rng: random.Random) -> Answer:
        if self._known:
            request = work.engine.restore_request(self._session, rng.choice(list(self._known)))
            try:
                work.engine.restore(request)
            except _INTERFERENCE:
                return Answer("restore_all")
        return Answer("restore_all")

    def _undo(self, work: OpenWorkspace, rng: random.Random) -> Answer:
        try:
            work.engine.restore(undo_request(work.engine.vault, self._session))
        except _INTERFERENCE:
            return Answer("undo")
        return Answer("undo")

    def _delete(self, work: OpenWorkspace, rng: random.Random) -> Answer:
        deleted: list[str] = []
        warnings: list[str] = []
        surplus = max(len(self._known) - _MOST_KNOWN, 0) + 1
        for chosen in rng.sample(list(self._known), min(surplus, len(self._known))):
            if len(self._known) > 1:
                checkpoint = work.engine.resolve(self._session, chosen)
                warnings += delete(work.engine, checkpoint).warnings
                del self._known[chosen]
                deleted.append(chosen)
                self._told = replace(
                    self._told,
                    annotations=tuple(n for n in self._told.annotations if n[0] != chosen),
                    edits=tuple(e for e in self._told.edits if e[0] != chosen),
                )
        return Answer("delete", deleted=tuple(deleted), error="; ".join(warnings) or None)

    def _read(self, work: OpenWorkspace, rng: random.Random) -> Answer:
        """Without the lock, beside whoever moves content."""
        vault = work.engine.vault
        for chosen in rng.sample(list(self._known), min(2, len(self._known))):
            checkpoint = vault.catalog.checkpoint(self._session, chosen)
            if checkpoint is None:
                return Answer("read", error=f"{chosen} is gone")
            if fingerprint(own_part(vault, checkpoint, self._number)) != self._known[chosen]:
                return Answer("read", error=f"{chosen} holds something else")
        session_statistics(work.engine.vault, self._session)
        return Answer("read")

    def _tell(self, work: OpenWorkspace, rng: random.Random) -> Answer:
        """Some words, whose places nobody else may take; what is read at once is what was said."""
        vault, said = work.engine.vault, [f"{rng.random()}" for _ in range(rng.randint(1, 4))]
        for text in said:
            add_message(vault, self._session, "user", text)
        self._told = self._told.and_then(*said)
        if self._known and rng.random() < 0.6:
            chosen = rng.choice(list(self._known))
            made = annotate(vault, self._session, chosen, said[0])
            note = (chosen, made.number, made.revision, said[0], None)
            self._told = replace(self._told, annotations=(*self._told.annotations, note))
            begun = vault.story.begin(
                NewActivity(self._session, ActivityKind.EDIT, chosen, made.checkpoint_id, 1, "me")
            )
            vault.story.settle(begun.number, ActivityStatus.KEPT, at_ns=2, outcome=said[0])
            edit = (chosen, ActivityStatus.KEPT.value, said[0], None)
            self._told = replace(self._told, edits=(*self._told.edits, edit))
        found = told_in(vault, self._session)
        wrong = None if found == self._told else f"the story holds {found!r:.300}"
        return Answer("tell", error=wrong)

    def _prune(self, work: OpenWorkspace, rng: random.Random) -> Answer:
        with work.engine.vault.lock.hold():
            make_room(work.engine.vault, 0)
        return Answer("prune")

    def _collect(self, work: OpenWorkspace, rng: random.Random) -> Answer:
        with work.engine.vault.lock.hold():
            collect(work.engine.vault)
        return Answer("collect")


def _unlike(found: State, expected: State) -> str:
    paths = [p for p in found.keys() | expected.keys() if found.get(p) != expected.get(p)]
    shown: list[tuple[bytes, Node | None, Node | None]]
    shown = [(path, found.get(path), expected.get(path)) for path in sorted(paths)[:3]]
    return f"(path, found, expected) {shown}"


def _fork(project: Path, home: Path, number: int, others: list[Any]) -> tuple[Any, Any, int]:
    turn_read, turn_write = os.pipe()
    answer_read, answer_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(turn_write)
        os.close(answer_read)
        for writer, reader, _ in others:
            writer.close()
            reader.close()
        status = 1
        try:
            worker = _Worker(project, home, number)
            with os.fdopen(turn_read) as turns, os.fdopen(answer_write, "w") as answers:
                for line in turns:
                    print(json.dumps(asdict(worker.turn(*json.loads(line)))), file=answers)
                    answers.flush()
            status = 0
        finally:
            os._exit(status)
    os.close(turn_read)
    os.close(answer_write)
    return os.fdopen(turn_write, "w"), os.fdopen(answer_read), child


def main() -> None:
    project, home, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    workers: list[tuple[Any, Any, int]] = []
    for number in range(count):
        workers.append(_fork(project, home, number, workers))
    for line in sys.stdin:
        turns = json.loads(line)
        for (writer, _, _), turn in zip(workers, turns, strict=True):
            print(json.dumps(turn), file=writer, flush=True)
        answers = [json.loads(reader.readline()) for _, reader, _ in workers]
        print(json.dumps(answers), flush=True)
    for writer, reader, child in workers:
        writer.close()
        reader.close()
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
