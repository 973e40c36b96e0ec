"""What the library hands out: frozen, comparable, and whole after a way through plain data."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.snapshots import (
    PREVIEW_LENGTH,
    Artifact,
    CheckpointSummary,
    WorkspaceSnapshot,
)
from holdfast.testing.samples import new_checkpoint
from tests.domain.test_intent import intents

pytestmark = pytest.mark.requirement("CP-5")

times = st.datetimes(timezones=st.just(UTC))
ids = st.text("0123456789abcdef", min_size=20, max_size=20)
artifacts = st.builds(
    Artifact,
    st.text(min_size=1, max_size=8) | st.just("not \udcff text"),
    ids,
    st.integers(0, 2**63),
    st.integers(0, 0o7777),
)
snapshots = st.builds(
    WorkspaceSnapshot,
    ids,
    times,
    st.none() | ids,
    intents(),
    st.lists(artifacts, max_size=4).map(tuple),
)


@given(snapshot=snapshots)
def test_a_snapshot_survives_the_way_through_json(snapshot: WorkspaceSnapshot) -> None:
    plain = json.loads(json.dumps(snapshot.to_dict()))
    assert WorkspaceSnapshot.from_dict(plain) == snapshot
    assert [tuple(row) for row in plain["manifest"]] == list(snapshot.manifest)


def checkpoint(created_at_ns: int, reasoning: str = "why") -> Checkpoint:
    new = new_checkpoint(1, created_at_ns=created_at_ns)
    fields = {field.name: getattr(new, field.name) for field in dataclasses.fields(new)}
    intent = dataclasses.replace(new.intent, reasoning=reasoning, tags=("a", "b"))
    return Checkpoint(sequence=1, **(fields | {"intent": intent}))


@given(at_ns=st.integers(0, 4_000_000_000 * 10**9), reasoning=st.text(min_size=1, max_size=200))
def test_a_summary_survives_the_way_through_json(at_ns: int, reasoning: str) -> None:
    summary = CheckpointSummary.of(checkpoint(at_ns, reasoning))
    assert CheckpointSummary.from_dict(json.loads(json.dumps(summary.to_dict()))) == summary
    assert summary.reasoning_preview == reasoning[:PREVIEW_LENGTH]
    assert PREVIEW_LENGTH == 80


def test_the_time_of_a_checkpoint_is_shown_with_its_zone() -> None:
    shown = CheckpointSummary.of(checkpoint(1_800_000_000 * 10**9 + 500_000)).timestamp
    assert shown == datetime(2027, 1, 15, 8, 0, 0, 500, tzinfo=UTC)


def test_values_cannot_be_changed() -> None:
    artifact = Artifact("a", "d", 1, 0o644)
    summary = CheckpointSummary.of(checkpoint(1))
    for value, field in ((artifact, "path"), (summary, "id")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, "changed")


def test_content_is_read_when_asked_for_and_each_time_again() -> None:
    reads = 0

    def chunks() -> Iterator[bytes]:
        nonlocal reads
        reads += 1
        yield b"one "
        yield b"two"

    artifact = Artifact("a", "d", 7, 0o644, chunks)
    snapshot = WorkspaceSnapshot(
        "id", datetime.now(tz=UTC), None, checkpoint(1).intent, (artifact,)
    )
    assert reads == 0
    assert snapshot.artifact("a").read_bytes() == b"one two"
    assert snapshot.artifact("a").read_bytes() == b"one two"
    assert reads == 2
    with pytest.raises(KeyError):
        snapshot.artifact("b")


def test_an_artifact_made_from_plain_data_says_that_it_has_no_content() -> None:
    artifact = Artifact.from_dict(Artifact("a", "d", 1, 0o644).to_dict())
    with pytest.raises(LookupError, match="a"):
        artifact.read_bytes()
