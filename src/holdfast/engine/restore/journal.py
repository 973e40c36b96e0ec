"""The restore journal: durable before the first change, used to finish or roll back a restore.

Plans are computed from trees, so the journal needs only the inputs of the plan, the path of each
staging slot, and the modes of directories that must be made writable.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.domain.diff.hunk_choice import HunkChoice
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import (
    STAGING_PREFIX,
    basename,
    from_text,
    require_safe_path,
    to_text,
)
from holdfast.domain.trees.objects import digest_of
from holdfast.values.classes import dataclass, replace

_VERSION = 1
_VERSION_WITH_HUNKS = 2
"""Written only if needed: a version that cannot restore hunks must not restore the whole file."""
_VERSION_WITH_COMPONENTS = 3
"""The same for restores with components: an older version must not do half of it."""
_VERSION_WITH_TREE = 4
"""The same for restores to another tree than the checkpoint's own, with or without components."""
_VERSIONS = (_VERSION, _VERSION_WITH_HUNKS, _VERSION_WITH_COMPONENTS, _VERSION_WITH_TREE)


@dataclass(frozen=True, slots=True)
class Journal:
    """A restore that has begun and is not recorded yet. `trouble` is why the last attempt to finish
    it failed. `saved_since` is the first tree saved after that; if a later one differs, the work
    has `moved_on`, and recovery no longer changes the workspace."""

    token: str
    kind: OperationKind
    session_id: SessionId
    target: CheckpointId
    safety: CheckpointId
    head_before: CheckpointId | None
    reverses: int | None
    paths: tuple[bytes, ...]
    best_effort: bool
    staging: tuple[bytes, ...]
    slots: dict[int, bytes]
    modes: dict[bytes, int]
    backwards: bool = False
    note: str | None = None
    hunks: HunkChoice | None = None
    tree: Digest | None = None
    components: tuple[tuple[str, str], ...] = ()
    trouble: str | None = None
    saved_since: Digest | None = None
    moved_on: bool = False

    def marked_for_rollback(self) -> Journal:
        return replace(self, backwards=True)


def encode_journal(journal: Journal) -> bytes:
    body = json.dumps(
        _fields_by_version(journal)
        | _fields_of_trouble(journal)
        | {
            "token": journal.token,
            "kind": journal.kind.value,
            "session_id": journal.session_id,
            "target": journal.target,
            "safety": journal.safety,
            "head_before": journal.head_before,
            "reverses": journal.reverses,
            "paths": [to_text(path) for path in journal.paths],
            "best_effort": journal.best_effort,
            "staging": [to_text(path) for path in journal.staging],
            "slots": {str(number): to_text(path) for number, path in journal.slots.items()},
            "modes": {to_text(path): mode for path, mode in journal.modes.items()},
            "backwards": journal.backwards,
            "note": journal.note,
        }
    ).encode()
    return digest_of(body).hex().encode() + b"\n" + body


def _fields_by_version(journal: Journal) -> dict[str, Any]:
    components = {"components": [list(chosen) for chosen in journal.components]}
    if journal.tree is not None and journal.hunks is None:
        return {"version": _VERSION_WITH_TREE, "tree": journal.tree.hex(), **components}
    if journal.components:
        return {"version": _VERSION_WITH_COMPONENTS, **components}
    if journal.hunks is None or journal.tree is None:
        return {"version": _VERSION}
    return {
        "version": _VERSION_WITH_HUNKS,
        "hunks": sorted(journal.hunks.names),
        "context": journal.hunks.context,
        "tree": journal.tree.hex(),
    }


def _fields_of_trouble(journal: Journal) -> dict[str, Any]:
    if journal.trouble is None:
        return {}
    since = None if journal.saved_since is None else journal.saved_since.hex()
    return {"trouble": journal.trouble, "saved_since": since, "moved_on": journal.moved_on}


def decode_journal(data: bytes) -> Journal:
    """`StoreDamaged` unless it is a complete journal of a known version."""
    checksum, _, body = data.partition(b"\n")
    if checksum != digest_of(body).hex().encode():
        raise StoreDamaged(
            "the journal of an unfinished restore is damaged", hint="run: holdfast check"
        )
    try:
        fields = json.loads(body)
        if fields["version"] not in _VERSIONS:
            raise StoreDamaged(
                "a later version of Holdfast left a restore unfinished", hint="upgrade Holdfast"
            )
        return _from_fields(fields)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreDamaged(
            f"cannot use the journal of an unfinished restore: {error}",
            hint="run: holdfast check",
        ) from None


def _from_fields(fields: dict[str, Any]) -> Journal:
    """Every path is validated here, before any is used in the workspace."""
    with_hunks = fields["version"] == _VERSION_WITH_HUNKS
    with_tree = with_hunks or fields["version"] == _VERSION_WITH_TREE
    since = fields.get("saved_since")
    return Journal(
        token=fields["token"],
        kind=OperationKind(fields["kind"]),
        session_id=SessionId(fields["session_id"]),
        target=CheckpointId(fields["target"]),
        safety=CheckpointId(fields["safety"]),
        head_before=fields["head_before"],
        reverses=fields["reverses"],
        paths=tuple(_safe(path) for path in fields["paths"]),
        best_effort=fields["best_effort"],
        staging=tuple(_staging(path) for path in fields["staging"]),
        slots={int(number): _safe(path) for number, path in fields["slots"].items()},
        modes={_safe(path) if path else b"": mode for path, mode in fields["modes"].items()},
        backwards=fields["backwards"],
        note=fields.get("note"),
        hunks=HunkChoice(frozenset(fields["hunks"]), fields["context"]) if with_hunks else None,
        tree=Digest(bytes.fromhex(fields["tree"])) if with_tree else None,
        components=tuple((str(n), str(m)) for n, m in fields.get("components", ())),
        trouble=fields.get("trouble"),
        saved_since=None if since is None else Digest(bytes.fromhex(since)),
        moved_on=bool(fields.get("moved_on", False)),
    )


def _safe(text: str) -> bytes:
    return require_safe_path(from_text(text))


def _staging(text: str) -> bytes:
    """Recovery empties staging directories, so only names of such directories are accepted."""
    path = _safe(text)
    if not basename(path).startswith(STAGING_PREFIX):
        raise ValueError(f"{text!r} is not a staging directory")
    return path
