"""What the library hands out about a checkpoint: frozen values that convert to plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.intent import SnapshotIntent

PREVIEW_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a snapshot; its content is read from the store when asked for, and checked."""

    path: str
    digest: str
    size: int
    mode: int
    _chunks: Callable[[], Iterator[bytes]] | None = field(default=None, compare=False, repr=False)

    def chunks(self) -> Iterator[bytes]:
        if self._chunks is None:
            raise LookupError(f"{self.path}: this artifact was made from plain data, not a store")
        return self._chunks()

    def read_bytes(self) -> bytes:
        return b"".join(self.chunks())

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "digest": self.digest, "size": self.size, "mode": self.mode}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Artifact:
        return cls(data["path"], data["digest"], data["size"], data["mode"])


@dataclass(frozen=True, slots=True)
class WorkspaceSnapshot:
    """A checkpoint with the list of its files, without their bytes."""

    id: str
    timestamp: datetime
    parent: str | None
    intent: SnapshotIntent
    artifacts: tuple[Artifact, ...]

    @property
    def manifest(self) -> tuple[tuple[str, str], ...]:
        return tuple((artifact.path, artifact.digest) for artifact in self.artifacts)

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
            "artifacts": [artifact.to_dict() for artifact in self.artifacts],
            "manifest": [list(row) for row in self.manifest],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkspaceSnapshot:
        return cls(
            id=data["id"],
            timestamp=datetime.fromisoformat(data["timestamp"]),
            parent=data["parent"],
            intent=SnapshotIntent.from_dict(data["intent"]),
            artifacts=tuple(Artifact.from_dict(row) for row in data["artifacts"]),
        )


@dataclass(frozen=True, slots=True)
class CheckpointSummary:
    """One line of a history."""

    id: str
    timestamp: datetime
    parent: str | None
    kind: str
    name: str | None
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
            name=checkpoint.name,
            confidence=checkpoint.intent.confidence,
            tags=checkpoint.intent.tags,
            reasoning_preview=checkpoint.intent.reasoning[:PREVIEW_LENGTH],
            file_count=checkpoint.files,
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "timestamp": self.timestamp.isoformat(),
            "parent": self.parent,
            "kind": self.kind,
            "name": self.name,
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
