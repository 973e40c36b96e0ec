"""How quickly a moment is found, and a timeline told, in a store with a long past.

    python -m bench.finding [--checkpoints N] [--messages N] [--rounds N]

A workspace with one real checkpoint gets the others as rows, and its story a million messages, as
years of work would leave them: words as common and as rare as in prose, names of code, many
sessions. The first search makes the index and is timed apart. Then each query runs several times;
what is printed is the median, and the bound that it is promised (SE-8, SE-9). The catching up that
every search begins with is part of each figure.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measure import timed
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import ChangeCounts, Kind, NewCheckpoint
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.intent import SnapshotIntent, make_intent
from holdfast.domain.operations import OperationKind
from holdfast.domain.sessions import Session
from holdfast.domain.story import Role
from holdfast.engine.conversation.conversation import add_message
from holdfast.engine.engine import Engine
from holdfast.engine.history.annotations import annotate
from holdfast.engine.history.timeline import timeline
from holdfast.engine.search.search import search
from holdfast.engine.sessions.approval import approval
from holdfast.ports.catalog import NewOperation
from holdfast.ports.story import NewMessage

SEED = 20_261_115
SESSIONS = 50
EVENTS = 10_000
SEARCH_LIMIT_MS = 50.0
TIMELINE_LIMIT_MS = 100.0
SMALL_LIMIT_MS = 5.0
_ROWS_AT_ONCE = 5_000
_SECOND_NS = 1_000_000_000

_VERBS = "get set load save make find read write open close check parse send fetch".split()
_NOUNS = "User Name File Path Server Client Token Session Cart Order Login Report Cache".split()

QUERIES = {
    "a rare word": "word19876",
    "a common word": "the",
    "three common words": "the server word1",
    "a name in code": "getUserName",
    "a part of names": "session",
    "a phrase": '"the server"',
    "a beginning": "sess*",
    "one letter": "w*",
    "the beginning of most words": "word*",
    "beginnings of one letter": "s* t* w*",
    "nineteen words": "the server word1 word2 word3 word4 word5 get set load save make find"
    " user name file path session word6",
    "words that never follow": '"session server the session"',
    "a word nobody said": "zyzzyva",
    "words and filters": "kind:risky after:30d server",
    "a tag": "tag:tag7",
    "by time alone": "after:1d",
    "in all sessions": "the",
}


def main() -> int:
    given = _parse()
    with tempfile.TemporaryDirectory(prefix="holdfast-finding-") as directory:
        os.environ["HOLDFAST_HOME"] = str(Path(directory) / "home")
        workspace = Path(directory) / "project"
        workspace.mkdir()
        (workspace / "file.txt").write_text("content\n")
        with open_workspace(workspace, create=True) as opened:
            _say(f"{given.checkpoints:,} checkpoints, {given.messages:,} messages: filling")
            filled_s = timed(lambda: fill(opened.engine, given.checkpoints, given.messages))
            _say(f"filled in {filled_s:.0f} s; indexing")
            indexed_s = timed(lambda: _first_search(opened.engine))
            size_mb = (opened.store.directory / "search.db").stat().st_size / 1e6
            print(f"index made in {indexed_s:.0f} s, {size_mb:.0f} MB")
            for name, took_ms, bound_ms in measure(opened.engine, given.rounds):
                verdict = "within" if took_ms <= bound_ms else "OVER"
                print(f"{name:<32} {took_ms:8.1f} ms  {verdict} {bound_ms:.0f} ms")
    return 0


def fill(engine: Engine, checkpoints: int, messages: int) -> None:
    """Rows for the past, through the same ports that work uses."""
    rng = random.Random(SEED)
    sessions = [SessionId(f"session-{number}") for number in range(SESSIONS)]
    first = engine.save(sessions[0], make_intent("it begins")).checkpoint
    now_ns = time.time_ns()
    begun_ns = now_ns - 400 * 86_400 * _SECOND_NS
    heads: dict[SessionId, CheckpointId | None] = dict.fromkeys(sessions)
    catalog = engine.vault.catalog
    with engine.vault.lock.hold():
        with catalog.transaction() as transaction:
            for session_id in sessions[1:]:
                transaction.add_session(Session(session_id, begun_ns))
        for start in range(0, checkpoints, _ROWS_AT_ONCE):
            with catalog.transaction() as transaction:
                for number in range(start, min(start + _ROWS_AT_ONCE, checkpoints)):
                    # Half of everything happened in one session, as it does.
                    owner = sessions[0] if number % 2 else sessions[number % SESSIONS]
                    at_ns = begun_ns + number * (now_ns - begun_ns) // max(checkpoints, 1)
                    new = _checkpoint(rng, number, owner, heads[owner], first.tree, at_ns)
                    heads[owner] = new.id
                    transaction.add_checkpoint(new)
                    transaction.add_operation(
                        NewOperation(OperationKind.CHECKPOINT, owner, at_ns, checkpoint=new.id)
                    )
    for start in range(0, messages, _ROWS_AT_ONCE):
        owner = sessions[0] if start // _ROWS_AT_ONCE % 2 else rng.choice(sessions)
        count = min(_ROWS_AT_ONCE, messages - start)
        at_ns = begun_ns + start * (now_ns - begun_ns) // max(messages, 1)
        spoken = [NewMessage(_role(n), _prose(rng, 12, 40), at_ns + n) for n in range(count)]
        engine.vault.story.add_messages(owner, spoken)


def _checkpoint(
    rng: random.Random,
    number: int,
    owner: SessionId,
    parent: CheckpointId | None,
    tree: Digest,
    at_ns: int,
) -> NewCheckpoint:
    kind = rng.choice((Kind.TOOL, Kind.TOOL, Kind.MANUAL, Kind.MESSAGE, Kind.RISKY))
    intent = SnapshotIntent(
        _prose(rng, 6, 20),
        task_id=f"T-{number % 500}",
        tool_calls=({"tool": "Edit", "path": f"src/{rng.choice(_NOUNS).lower()}.py"},),
        tags=(f"tag{number % 40}",) if number % 10 == 0 else (),
    )
    return NewCheckpoint(
        CheckpointId(f"{rng.getrandbits(80):020x}"),
        owner,
        parent,
        kind,
        at_ns,
        tree,
        intent,
        1,
        8,
        ChangeCounts(modified=1),
        message_index=number,
    )


def _prose(rng: random.Random, least: int, most: int) -> str:
    return " ".join(_words(rng, rng.randint(least, most)))


def _words(rng: random.Random, count: int) -> Iterator[str]:
    """Mostly common words, some rare ones, now and then a name of code."""
    for _ in range(count):
        chance = rng.random()
        if chance < 0.1:
            yield "the"
        elif chance < 0.15:
            yield "server"
        elif chance < 0.2:
            yield rng.choice(_VERBS) + rng.choice(_NOUNS) + rng.choice(_NOUNS)
        else:
            yield f"word{min(int(rng.paretovariate(0.6)), 20_000)}"


def _role(number: int) -> Role:
    return Role.ASSISTANT if number % 2 else Role.USER


def _first_search(engine: Engine) -> None:
    result = search(engine.vault, "the", session_id=None, patience_s=None)
    if not result.complete:
        raise RuntimeError(f"the index is not complete: {result.warnings}")


def measure(engine: Engine, rounds: int) -> Iterator[tuple[str, float, float]]:
    """Name, median in milliseconds, promised bound."""
    session = SessionId("session-0")
    for name, query in QUERIES.items():
        wanted = None if name == "in all sessions" else session

        def ask(query: str = query, wanted: SessionId | None = wanted) -> object:
            return search(engine.vault, query, session_id=wanted)

        yield f"search: {name}", _median_ms(ask, rounds), SEARCH_LIMIT_MS

    def after_a_save() -> object:
        return search(engine.vault, "the server word1", session_id=session)

    saved = []
    for number in range(rounds):
        engine.save(session, make_intent(f"saved before search {number}"))
        saved.append(1000 * timed(after_a_save))
    yield "search: the first after a save", statistics.median(saved), SEARCH_LIMIT_MS

    def whole() -> object:
        return timeline(engine.vault, session, limit=EVENTS, before=None, messages=False)

    def spoken() -> object:
        return timeline(engine.vault, session, limit=EVENTS, before=None)

    def page() -> object:
        return timeline(engine.vault, session, limit=100, before=None)

    yield f"timeline: {EVENTS:,} checkpoints", _median_ms(whole, rounds), TIMELINE_LIMIT_MS
    yield f"timeline: {EVENTS:,} with messages", _median_ms(spoken, rounds), TIMELINE_LIMIT_MS
    yield "timeline: a page of 100", _median_ms(page, rounds), TIMELINE_LIMIT_MS
    for name, act in _small_ones(engine, session).items():
        yield name, _median_ms(act, rounds), SMALL_LIMIT_MS


def _small_ones(engine: Engine, session: SessionId) -> dict[str, Callable[[], object]]:
    """What happens all the time. Those that write wait for the disk."""
    vault = engine.vault
    head = engine.resolve(session, "HEAD").id
    return {
        "a message is added": lambda: add_message(vault, session, "user", "go on"),
        "a checkpoint is annotated": lambda: annotate(vault, session, head, "so far so good"),
        "100 checkpoints are listed": lambda: vault.catalog.history(session, limit=100),
        "the approval is told": lambda: approval(engine.vault, session),
    }


def _median_ms(ask: Callable[[], object], rounds: int) -> float:
    return statistics.median(timed(ask) for _ in range(rounds)) * 1000


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.finding")
    parser.add_argument("--checkpoints", type=int, default=100_000, metavar="N")
    parser.add_argument("--messages", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=9, metavar="N")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
