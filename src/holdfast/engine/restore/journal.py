"""The note, durable before the first change, from which a restore is finished or taken back.

Plans are computed from trees, so the note needs only what the plan was computed from, and which
staging slot belongs to which path.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from holdfast.domain.digests import digest_of
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import from_text, to_text

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Journal:
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
    backwards: bool = False

    def turned_back(self) -> Journal:
        return replace(self, backwards=True)

    def with_safety(self, safety: CheckpointId) -> Journal:
        return replace(self, safety=safety)


def encode_journal(journal: Journal) -> bytes:
    body = json.dumps(
        {
            "version": _VERSION,
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
            "backwards": journal.backwards,
        }
    ).encode()
    return digest_of(body).hex().encode() + b"\n" + body


def decode_journal(data: bytes) -> Journal:
    """`StoreDamaged` for anything but a whole journal of a known version."""
    checksum, _, body = data.partition(b"\n")
    if checksum != digest_of(body).hex().encode():
        raise StoreDamaged(
            "the journal of an unfinished restore is damaged", hint="run: holdfast check"
        )
    fields = json.loads(body)
    if fields["version"] != _VERSION:
        raise StoreDamaged(
            "a later version of Holdfast left a restore unfinished", hint="upgrade Holdfast"
        )
    return Journal(
        token=fields["token"],
        kind=OperationKind(fields["kind"]),
        session_id=SessionId(fields["session_id"]),
        target=CheckpointId(fields["target"]),
        safety=CheckpointId(fields["safety"]),
        head_before=fields["head_before"],
        reverses=fields["reverses"],
        paths=tuple(from_text(path) for path in fields["paths"]),
        best_effort=fields["best_effort"],
        staging=tuple(from_text(path) for path in fields["staging"]),
        slots={int(number): from_text(path) for number, path in fields["slots"].items()},
        backwards=fields["backwards"],
    )
