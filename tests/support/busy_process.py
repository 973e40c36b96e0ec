"""One of several processes that use a workspace at once.

    python -m tests.support.busy_process WORKSPACE SEED THREADS ROUNDS

Threads share one checkpointer and save, restore, undo and read as chance has it. What was
acknowledged is printed as JSON lines: the id and the files that the checkpoint says it holds. The
error that the store is busy is an answer; anything else that goes wrong makes the status 1.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from contextlib import suppress
from pathlib import Path

from holdfast import SessionCheckpointer
from holdfast.domain.errors import Busy, NothingToUndo, RestoreConflict, RestoreFailed
from tests.support.session_states import get_snapshot

_EXPECTED = (Busy, NothingToUndo, RestoreConflict, RestoreFailed)


def main() -> int:
    workspace, seed, threads, rounds = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    said = threading.Lock()
    failures: list[str] = []
    print("ready", flush=True)
    sys.stdin.readline()  # the starting gun: everybody begins at once
    with SessionCheckpointer(workspace, f"process-{seed}") as shared:

        def work(number: int) -> None:
            rng = random.Random(f"{seed}:{number}")
            try:
                for turn in range(rounds):
                    _one_turn(shared, rng, f"{seed}-{number}-{turn}", said)
            except Exception as error:
                failures.append(f"thread {number}: {type(error).__name__}: {error}")

        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


def _one_turn(
    session: SessionCheckpointer, rng: random.Random, label: str, said: threading.Lock
) -> None:
    file = session.workspace / f"dir-{rng.randrange(3)}" / f"file-{rng.randrange(6)}"
    with suppress(FileExistsError):  # and gone again when `mkdir` looks: a restore removed it
        file.parent.mkdir(exist_ok=True)
    choice = rng.random()
    try:
        if choice < 0.55:
            file.write_text(label)
            made = session.checkpoint(label, name=label)
            manifest = get_snapshot(session, made).manifest
            with said:
                print(json.dumps({"session": session.session_id, "id": made, "files": manifest}))
                sys.stdout.flush()
        elif choice < 0.75:
            known = session.summaries(records=rng.random() < 0.5)
            if known:
                session.restore(rng.choice(known).id)
        elif choice < 0.85:
            session.undo()
        else:
            session.history(3)
            session.stats.values()
            session.diff() if session.head_id else None
    except _EXPECTED:
        return
    except FileNotFoundError as error:
        if error.filename != str(file):
            raise


if __name__ == "__main__":
    sys.exit(main())
