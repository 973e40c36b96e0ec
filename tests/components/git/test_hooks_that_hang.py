"""A hook of the user that does not end: it is ended in time, and nothing is left half done."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.components.git import user_commit
from holdfast.domain.errors import Refused
from tests.components.git.accepted_work import hook
from tests.components.git.repositories import git, picture, write
from tests.support.composition import configure

HANG = "(while :; do sleep 1; done) & echo $$ $! > {fifo}; wait"
"""A hook that starts something else, tells who both are, and waits for it for ever."""


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def is_running(pid: int) -> bool:
    """A process that was ended may wait for its parent to reap it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


@pytest.fixture
def hanging(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time is up when the hook has begun; then who it was."""
    seen: list[int] = []

    def has_ended(process: subprocess.Popen[bytes], timeout_s: float | None) -> bool:
        assert timeout_s is not None
        seen.extend(int(word) for word in fifo.read_text().split())
        return False

    monkeypatch.setattr(user_commit, "has_ended", has_ended)
    return seen


def begin(session: SessionCheckpointer, place: Path) -> None:
    session.checkpoint("how it began")
    write(place / "code.txt", "three\n")
    session.checkpoint("three")


@pytest.mark.linux
@pytest.mark.requirement("GT-3")
@pytest.mark.parametrize("name", ["pre-commit", "commit-msg", "reference-transaction"])
def test_a_hook_that_hangs_is_ended_with_what_it_started_and_nothing_has_changed(
    place: Path, fifo: Path, hanging: list[int], name: str
) -> None:
    with SessionCheckpointer(place, "s") as session:
        begin(session, place)
        write(place / "other.txt", "staged by somebody\n")
        git(place, "add", "other.txt")
        before = picture(place)
        hook(place, name, HANG.format(fifo=fifo))
        with pytest.raises(Refused, match="did not finish within 600 seconds") as refused:
            session.accept()
        assert "accept_timeout" in (refused.value.hint or "")
        assert len(hanging) == 2
        assert not any(map(is_running, hanging))
        (place / ".git/hooks" / name).unlink()
        after = picture(place)
        assert (after.head, after.refs, after.index, after.status) == (
            before.head,
            before.refs,
            before.index,
            before.status,
        )
        assert list((place / ".git").rglob("*.lock")) == []


@pytest.mark.linux
@pytest.mark.requirement("GT-3")
def test_a_hook_that_hangs_after_the_commit_leaves_the_commit_and_is_reported(
    place: Path, fifo: Path, hanging: list[int]
) -> None:
    with SessionCheckpointer(place, "s") as session:
        begin(session, place)
        hook(place, "post-commit", HANG.format(fifo=fifo))
        outcome = session.accept()
        assert outcome.commit == git(place, "rev-parse", "HEAD").strip()
        assert any("post-commit hook did not finish" in text for text in outcome.warnings)
        assert not any(map(is_running, hanging))
    assert git(place, "status", "--porcelain") == ""


@pytest.mark.requirement("GT-3")
def test_the_limit_is_a_setting(place: Path) -> None:
    configure(place, accept_timeout=0.2)
    with SessionCheckpointer(place, "s") as session:
        begin(session, place)
        before = git(place, "rev-parse", "HEAD")
        hook(place, "pre-commit", "while :; do sleep 1; done")
        with pytest.raises(Refused, match=r"did not finish within 0\.2 seconds"):
            session.accept()
        assert git(place, "rev-parse", "HEAD") == before
        (place / ".git/hooks/pre-commit").unlink()
    configure(place, accept_timeout=0)
    with SessionCheckpointer(place, "s") as session:
        assert session.accept().commit is not None
