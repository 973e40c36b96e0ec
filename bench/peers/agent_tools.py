"""What three coding agents run for their own checkpoints, command by command as their sources have
it.

They differ from the reference in their porcelain commands and in what their restore leaves
behind; nothing is added here to make them more correct or less.
"""

import re
from pathlib import Path

from bench.peers.contract import PeerKind, Ref, StoreSize
from bench.peers.shadow_git import Repository, git_version
from bench.processes import Failed, run
from bench.verify import Fingerprint

_COMMITTED = re.compile(r"^\[.*?\b([0-9a-f]{7,40})\]")


def _commit_in(said: bytes) -> Ref:
    """The commit that `git commit` reports having made."""
    match = _COMMITTED.match(said.decode(errors="replace"))
    if match is None:
        raise Failed("git commit named no commit")
    return Ref(match[1])


class Cline:
    """Cline up to 3: a shadow repository whose `core.worktree` is the workspace."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._repository = Repository(store)

    def prepare(self, tree: Path) -> None:
        self._git("init", "--quiet")
        for key, value in (("core.worktree", str(tree)), ("gc.auto", "0")):
            self._git("config", key, value)
        self._repository.git_directory = self._store / ".git"
        self._repository.tree = tree

    def _git(self, *arguments: str) -> bytes:
        return run(("git", *arguments), cwd=self._store)

    def save(self) -> Ref:
        self._git("add", ".", "--ignore-errors")
        return _commit_in(self._git("commit", "--allow-empty", "--no-verify", "-m", "checkpoint"))

    def restore(self, ref: Ref) -> None:
        self._git("reset", "--hard", ref)

    def contents(self, ref: Ref, scratch: Path) -> Fingerprint:
        return self._repository.contents(ref)

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        return self._repository.changed_paths(before, after)

    def size(self) -> StoreSize:
        return self._repository.size()

    def close(self) -> None:
        """Nothing is held between two commands."""


class GeminiCli:
    """Gemini CLI: add, status, and a commit unless the status is clean."""

    def __init__(self, store: Path) -> None:
        self._repository = Repository(store)
        self._head: Ref | None = None

    def prepare(self, tree: Path) -> None:
        self._repository.prepare(tree)

    def save(self) -> Ref:
        repository = self._repository
        repository.git("add", ".")
        status = repository.git("status", "--porcelain", "-b", "-u", "--null")
        entries = status.split(b"\0")[1:-1]
        if entries or self._head is None:
            self._head = _commit_in(repository.git("commit", "--no-verify", "-m", "checkpoint"))
        return self._head

    def restore(self, ref: Ref) -> None:
        self._repository.git("restore", "--source", ref, ".")
        self._repository.git("clean", "-f", "-d")

    def contents(self, ref: Ref, scratch: Path) -> Fingerprint:
        return self._repository.contents(ref)

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        return self._repository.changed_paths(before, after)

    def size(self) -> StoreSize:
        return self._repository.size()

    def close(self) -> None:
        """Nothing is held between two commands."""


class OpenCode:
    """OpenCode: asks git what changed, adds exactly that, keeps bare trees without commits."""

    def __init__(self, store: Path) -> None:
        self._repository = Repository(store)

    def prepare(self, tree: Path) -> None:
        many_files = {
            "core.untrackedCache": "true",
            "index.version": "4",
            "feature.manyFiles": "true",
        }
        self._repository.prepare(tree, **many_files)

    def save(self) -> Ref:
        repository = self._repository
        changed = repository.git("diff-files", "--name-only", "-z")
        new = repository.git("ls-files", "--others", "--exclude-standard", "-z")
        if changed or new:
            repository.git(
                "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=changed + new
            )
        return Ref(repository.word("write-tree"))

    def restore(self, ref: Ref) -> None:
        self._repository.git("read-tree", ref)
        self._repository.git("checkout-index", "-a", "-f")

    def contents(self, ref: Ref, scratch: Path) -> Fingerprint:
        return self._repository.contents(ref)

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        return self._repository.changed_paths(before, after)

    def size(self) -> StoreSize:
        return self._repository.size()

    def close(self) -> None:
        """Nothing is held between two commands."""


KINDS = (
    PeerKind("cline", "Cline 3", Cline, git_version),
    PeerKind("gemini", "Gemini CLI", GeminiCli, git_version, most_files=20_000),
    # git matches every path it is given against every other: its first save is quadratic.
    PeerKind("opencode", "OpenCode", OpenCode, git_version, most_files=20_000),
)
