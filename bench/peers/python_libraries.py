"""Python libraries of the same trade, called in process: stepback and dulwich."""

import importlib
import importlib.metadata
import os
from pathlib import Path
from typing import Any

from bench.peers import shadow_git
from bench.peers.contract import PeerKind, Ref, StoreSize, measure_store
from bench.processes import Failed, NotOffered
from bench.verify import Fingerprint

STEPBACK_DIRECTORY = ".stepback"
_AUTHOR = b"bench <bench@example.invalid>"


def installed_version(distribution: str) -> str | None:
    """The version that is installed, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


class Stepback:
    """stepback: a repository inside the workspace, a new git index for every save."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._engine: Any = None

    def prepare(self, tree: Path) -> None:
        self._store = tree / STEPBACK_DIRECTORY
        self._engine = importlib.import_module("stepback").Engine(tree)

    def save(self) -> Ref:
        made = self._engine.checkpoint(label="save")
        # It makes no checkpoint of an unchanged tree: the one it has stands for it.
        return Ref(str((made or self._engine.state.latest()).id))

    def restore(self, ref: Ref) -> None:
        checkpoint = self._engine.state.by_id(int(ref))
        if checkpoint is None:
            raise Failed(f"stepback has no checkpoint {ref}")
        self._engine.rewind(checkpoint)

    def contents(self, ref: Ref, scratch: Path) -> Fingerprint:
        commit = self._engine.state.by_id(int(ref)).commit
        return shadow_git.contents(self._store / "shadow.git", commit)

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        raise NotOffered("stepback compares a checkpoint with its parent only")

    def size(self) -> StoreSize:
        return measure_store(self._store)

    def close(self) -> None:
        """Nothing is held between two calls."""


class Dulwich:
    """dulwich through its index and work tree, which is quicker than `porcelain.add`."""

    def __init__(self, store: Path) -> None:
        self._tree = store
        self._repository: Any = None

    def prepare(self, tree: Path) -> None:
        self._tree = tree
        self._repository = importlib.import_module("dulwich.repo").Repo.init(str(tree))

    def save(self) -> Ref:
        index_module = importlib.import_module("dulwich.index")
        porcelain = importlib.import_module("dulwich.porcelain")
        root, repository = str(self._tree), self._repository
        index = repository.open_index()
        new = list(porcelain.get_untracked_paths(root, root, index, repo=repository))
        changed = list(index_module.get_unstaged_changes(index, os.fsencode(root)))
        work_tree = repository.get_worktree()
        work_tree.stage([*map(os.fsencode, new), *changed])
        tree = repository.open_index().commit(repository.object_store)
        commit = work_tree.commit(message=b"save", author=_AUTHOR, committer=_AUTHOR, tree=tree)
        return Ref(commit.decode())

    def restore(self, ref: Ref) -> None:
        porcelain = importlib.import_module("dulwich.porcelain")
        porcelain.reset(self._repository, "hard", ref)

    def contents(self, ref: Ref, scratch: Path) -> Fingerprint:
        return shadow_git.contents(self._tree / ".git", ref)

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        tree_changes = importlib.import_module("dulwich.diff_tree").tree_changes
        trees = [self._repository[ref.encode()].tree for ref in (before, after)]
        changes = tree_changes(self._repository.object_store, *trees)
        return frozenset((change.new or change.old).path for change in changes)

    def size(self) -> StoreSize:
        return measure_store(self._tree / ".git")

    def close(self) -> None:
        if self._repository is not None:
            self._repository.close()


KINDS = (
    PeerKind(
        "stepback",
        "stepback",
        Stepback,
        lambda: installed_version("stepback"),
        frozenset({STEPBACK_DIRECTORY.encode()}),
    ),
    PeerKind(
        "dulwich",
        "dulwich",
        Dulwich,
        lambda: installed_version("dulwich"),
        frozenset({b".git"}),
        most_files=20_000,
    ),
)
