"""The Python API's values for a checkpoint: frozen, and convertible to plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.intent import SnapshotIntent

PREVIEW_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a snapshot. Its content is read from the store on access, and verified."""

    path: str
    content_hash: str
    size: int
    mode: int
    _chunks: Callable[[], Iterator[bytes]] | None = field(default=None, compare=False, repr=False)

    def chunks(self) -> Iterator[bytes]:
        if self._chunks is None:
            raise LookupError(f"{self.path}: this artifact was made from plain data, not a store")
        return self._chunks()

    def read_bytes(self) -> bytes:
        return b"".join(self.chunks())

    @property
    def content(self) -> str:
        """The text of the file. Bytes that are not UTF-8 become lone surrogates, as in paths, so
        that they convert back exactly."""
        return self.read_bytes().decode("utf-8", "surrogateescape")

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "content_hash": self.content_hash,
            "size": self.size,
            "mode": self.mode,
        }

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], contents: Mapping[str, str | bytes] | None = None
    ) -> Artifact:
        """`contents` maps content hashes to files; without it, the content cannot be read."""
        made = cls(data["path"], data["content_hash"], data["size"], data["mode"])
        given = (contents or {}).get(made.content_hash)
        if given is None:
            return made
        content = given.encode("utf-8", "surrogateescape") if isinstance(given, str) else given
        return replace(made, _chunks=lambda: iter((content,)))


@dataclass(frozen=True, slots=True)
class WorkspaceSnapshot:
    """A checkpoint with the list of its files, without their content."""

    id: str
    timestamp: datetime
    parent: str | None
    intent: SnapshotIntent
    artifacts: tuple[Artifact, ...]
    kind: str = "manual"

    @property
    def manifest(self) -> tuple[tuple[str, str], ...]:
        """Each path with its content hash."""
        return tuple((artifact.path, artifact.content_hash) for artifact in self.artifacts)

    def artifact(self, path: str) -> Artifact:
        for artifact in self.artifacts:
            if artifact.path == path:
                return artifact
        raise KeyError(path)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "timestamp": self.timestamp.isoformat(),
            "parent": self.parent,
            "intent": self.intent.to_dict(),
            "kind": self.kind,
            "artifacts": [artifact.to_dict() for artifact in self.artifacts],
            "manifest": [list(row) for row in self.manifest],
        }

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], contents: Mapping[str, str | bytes] | None = None
    ) -> WorkspaceSnapshot:
        """`contents` maps content hashes to the content of artifacts."""
        return cls(
            id=data["id"],
            timestamp=datetime.fromisoformat(data["timestamp"]),
            parent=data.get("parent"),
            intent=SnapshotIntent.from_dict(data["intent"]),
            artifacts=tuple(Artifact.from_dict(row, contents) for row in data["artifacts"]),
            kind=data.get("kind", "manual"),
        )


@dataclass(frozen=True, slots=True)
class CheckpointSummary:
    """One line of the history."""

    id: str
    timestamp: datetime
    parent: str | None
    kind: str
    checkpoint_name: str | None
    confidence: float
    tags: tuple[str, ...]
    reasoning_preview: str
    file_count: int

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> CheckpointSummary:
        return cls(
            id=checkpoint.id,
            timestamp=checkpoint.created_at,
            parent=checkpoint.parent,
            kind=checkpoint.kind.value,
            checkpoint_name=checkpoint.name,
            confidence=checkpoint.intent.confidence,
            tags=checkpoint.intent.tags,
            reasoning_preview=checkpoint.intent.reasoning[:PREVIEW_LENGTH],
            file_count=checkpoint.files,
        )

    @classmethod
    def from_snapshot(cls, snapshot: WorkspaceSnapshot) -> CheckpointSummary:
        intent = snapshot.intent
        return cls(
            id=snapshot.id,
            timestamp=snapshot.timestamp,
            parent=snapshot.parent,
            kind=snapshot.kind,
            checkpoint_name=intent.checkpoint_name,
            confidence=intent.confidence,
            tags=intent.tags,
            reasoning_preview=intent.reasoning[:PREVIEW_LENGTH],
            file_count=len(snapshot.artifacts),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "timestamp": self.timestamp.isoformat(),
            "parent": self.parent,
            "kind": self.kind,
            "checkpoint_name": self.checkpoint_name,
            "confidence": self.confidence,
            "tags": list(self.tags),
            "reasoning_preview": self.reasoning_preview,
            "file_count": self.file_count,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CheckpointSummary:
        fields = dict(data)
        fields["timestamp"] = datetime.fromisoformat(data["timestamp"])
        fields["tags"] = tuple(data["tags"])
        return cls(**fields)
