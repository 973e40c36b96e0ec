"""Small stores with a known history, and every way to damage one of their files.

A victim is made once and copied for each case; what each checkpoint held was read from the
workspace itself when it was made, without any code of Holdfast.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast import SessionCheckpointer
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import OperationKind
from holdfast.engine.restore.journal import Journal, encode_journal
from holdfast.ports.catalog import all_checkpoints
from tests.behind_the_api import engine_of
from tests.support.encrypted_stores import make_encrypted
from tests.support.tree_hash import describe
from tests.torture.telling import Teller, Told, told_in

STORE_ID = "0123456789abcdef0123"
SESSION = "s"
_MESSAGES = 3


@dataclass(frozen=True, slots=True)
class Victim:
    """A store as bytes by path, and what each of its checkpoints held."""

    files: dict[str, bytes]
    states: dict[str, object]
    rows: list[tuple[object, ...]]
    workspace_files: dict[str, bytes]
    told: Told

    def with_journal(self) -> Victim:
        """The same, with a restore to the first state that was cut off before its first step."""
        target, *_, safety = (str(row[0]) for row in self.rows if row[3] != "restore")
        journal = Journal(
            token="0" * 20,
            kind=OperationKind.RESTORE,
            session_id=SessionId(SESSION),
            target=CheckpointId(target),
            safety=CheckpointId(safety),
            head_before=None,
            reverses=None,
            paths=(),
            best_effort=False,
            staging=(),
            slots={},
            modes={},
        )
        return replace(self, files={**self.files, "journal": encode_journal(journal)})

    def lay_out(self, place: Path, files: dict[str, bytes]) -> Path:
        """The store with these bytes, below `place/home`, and an empty workspace that owns it."""
        home, workspace = place / "home", place / "workspace"
        store = home / "stores" / STORE_ID
        for name, data in files.items():
            path = store / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o600)
        (store / "objects" / "packs").mkdir(parents=True, exist_ok=True)
        for directory in (home, home / "stores", store, store / "objects"):
            directory.chmod(0o700)
        (workspace / ".holdfast").mkdir(parents=True)
        (workspace / ".holdfast" / "workspace.json").write_text(json.dumps({"id": STORE_ID}))
        os.environ["HOLDFAST_HOME"] = str(home)
        return workspace


def rows_of(session: SessionCheckpointer) -> list[tuple[object, ...]]:
    catalog = engine_of(session).vault.catalog
    return [(c.id, c.name, c.parent, c.kind, c.tree, c.intent) for c in all_checkpoints(catalog)]


def make_victim(
    place: Path,
    edit: Callable[[Path, int], None],
    checkpoints: int,
    *,
    key: Path | None = None,
    brief: bool = False,
) -> Victim:
    """A history of edits and a restore, its logs not folded: as a killed process leaves it. With
    a `key` the store is encrypted; a `brief` story has no long texts in it."""
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    os.environ["HOLDFAST_HOME"] = str(place / "home")
    if key is not None:
        make_encrypted(workspace, key)
    states: dict[str, object] = {}
    with SessionCheckpointer(workspace, SESSION) as session:
        for number in range(checkpoints):
            edit(workspace, number)
            session.checkpoint(f"state {number}", name=f"n{number}", tags=["victim"])
            states[f"n{number}"] = describe(workspace)
        session.restore("n0")
        session.undo()
        vault = engine_of(session).vault
        with vault.lock.hold():
            vault.catalog.erase_traces()  # which folds its log, so that both files hold some of it
        session.checkpoint("the state after all that", name="last")
        states["last"] = describe(workspace)
        rows = rows_of(session)
        steps = Teller("n0", SessionId(SESSION)).steps()
        for step in steps if not brief else (*steps[:1], *steps[2:5]):
            step(vault)
        vault.story.erase_traces()
        for number in range(1 if brief else _MESSAGES):
            session.add_message("user", f"message {number} of a story")
        told = told_in(vault)
        store = session.save()
    files = {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted(store.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm") and path.name != "lock"
    }
    files["lock"] = (store / "lock").read_bytes()
    present = {
        str(path.relative_to(workspace)): path.read_bytes()
        for path in workspace.rglob("*")
        if path.is_file() and ".holdfast" not in path.parts
    }
    shutil.rmtree(place)
    return Victim(files, states, rows, present, told)


@dataclass(frozen=True, slots=True)
class Damage:
    """One way to hurt one file; applied to a store's files it gives the damaged ones."""

    kind: str
    name: str
    position: int = 0
    other: str = ""

    def touches(self, part: str) -> bool:
        return self.name.startswith(part) or self.other.startswith(part)

    def touches_only(self, part: str) -> bool:
        return self.name.startswith(part) and (not self.other or self.other.startswith(part))

    def apply(self, files: dict[str, bytes]) -> dict[str, bytes]:
        hurt = dict(files)
        data = bytearray(files[self.name])
        if self.kind == "flipped":
            data[self.position] ^= 0xFF
        elif self.kind == "one bit":
            data[self.position] ^= 1 << (self.position % 8)
        elif self.kind == "zeroed":
            data[self.position] = 0
        elif self.kind == "truncated":
            del data[self.position :]
        elif self.kind == "missing":
            del hurt[self.name]
            return hurt
        elif self.kind == "swapped":
            hurt[self.name], hurt[self.other] = files[self.other], files[self.name]
            return hurt
        hurt[self.name] = bytes(data)
        return hurt


def byte_damages(files: dict[str, bytes], step: int = 1, start: int = 0) -> Iterator[Damage]:
    for name, data in files.items():
        for position in range(start % step, len(data), step):
            for kind in ("flipped", "one bit", "zeroed", "truncated"):
                yield Damage(kind, name, position)


def file_damages(files: dict[str, bytes]) -> Iterator[Damage]:
    """Every file gone, and every two swapped: of those of the story, with one another and with
    those of the catalog."""
    names = sorted(files)
    for name in names:
        yield Damage("missing", name)
        for other in names:
            apart = name.startswith("story") != other.startswith("story")
            if other > name and not (apart and not name.startswith("catalog")):
                yield Damage("swapped", name, other=other)
