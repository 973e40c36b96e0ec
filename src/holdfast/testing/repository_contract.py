"""The contract of `holdfast.ports.repository`, as tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import Refused
from holdfast.domain.git.mirror_commits import Approvals
from holdfast.domain.ids import CheckpointId, Digest
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import Tree
from holdfast.ports.repository import (
    CommitWish,
    HandOver,
    MirrorPlace,
    PathChange,
    WorkRepository,
)
from holdfast.testing.samples import expect_error

_MIRROR = MirrorPlace(b"refs/heads/holdfast-checkpoints", b"refs/holdfast-checkpoints/")


class EmptyHistory:
    """A `MirroredHistory` without checkpoints."""

    owner = "owner"

    def after(self, sequence: int) -> Sequence[Checkpoint]:
        return ()

    def tree(self, digest: Digest) -> Tree:
        raise NotImplementedError

    def content(self, entry: FileEntry) -> Iterator[bytes]:
        raise NotImplementedError

    def names(self) -> Mapping[bytes, CheckpointId]:
        return {}

    def approvals(self, approved: CheckpointId) -> Approvals:
        return Approvals(None, ())

    def leaves_out(self, path: bytes) -> bool:
        return False

    def has_time(self) -> bool:
        return True


class WorkRepositoryContract:
    """Subclass it, and define what to test and how to create a repository with a commit."""

    def repository(self) -> WorkRepository:
        raise NotImplementedError

    def make_repository(self, place: Path) -> None:
        raise NotImplementedError

    def work(self, place: Path, name: str, data: bytes) -> HandOver:
        """A file of the workspace to commit."""
        (place / name).write_bytes(data)
        entry = FileEntry(name.encode(), 0o644, len(data), 0, digest_of(data))
        return HandOver(
            place, [PathChange(entry.name, entry)], rules=(), read=lambda _: iter([data])
        )

    def test_a_directory_without_a_repository_is_reported(self, tmp_path: Path) -> None:
        repository = self.repository()
        assert repository.main_branches(tmp_path, ["main"]) is None
        with expect_error(Refused):
            repository.is_unborn(tmp_path)
        mirrored = repository.mirror(tmp_path, _MIRROR, EmptyHistory())
        assert (mirrored.commits, mirrored.complete) == (0, False)
        assert mirrored.warnings

    def test_a_plan_writes_nothing_and_names_the_paths_of_the_commit(self, tmp_path: Path) -> None:
        self.make_repository(tmp_path)
        repository = self.repository()
        assert not repository.is_unborn(tmp_path)
        work = self.work(tmp_path, "new.txt", b"new\n")
        plan = repository.plan_commit(work)
        assert [one.path for one in plan.paths] == [b"new.txt"]
        assert not plan.obstacles
        assert repository.plan_commit(work) == plan

    def test_changes_become_one_commit_unless_the_head_has_moved(self, tmp_path: Path) -> None:
        self.make_repository(tmp_path)
        repository = self.repository()
        work = self.work(tmp_path, "new.txt", b"new\n")
        head = repository.plan_commit(work).head
        wish = CommitWish("why", checked=True, expected_head=head)
        outcome = repository.commit(work, wish)
        assert outcome.commit is not None
        assert outcome.commit != head
        assert outcome.message.strip() == "why"
        assert (tmp_path / "new.txt").read_bytes() == b"new\n"
        later = self.work(tmp_path, "later.txt", b"later\n")
        assert repository.plan_commit(later).head == outcome.commit
        with expect_error(Refused):
            repository.commit(later, wish)
