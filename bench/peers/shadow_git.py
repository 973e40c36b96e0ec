"""The reference: a warm shadow repository driven by git's plumbing, the least work git can do for
the same end.

Save is `add -A`, `write-tree`, `commit-tree`; restore is `read-tree`, `checkout-index -a -f`,
`clean -f -d`. The same repository can also restore with `checkout -f` and `clean -f -d`, which
rewrites only what differs.

git does not fsync loose objects by default: this reference is not durable when it returns,
Holdfast is.
"""

import subprocess
from pathlib import Path

from bench.peers.contract import PeerKind, Ref, StoreSize, measure_store
from bench.processes import Failed, run
from bench.verify import Entry, Fingerprint, directory_entry

GC_LIMIT_S = 900.0
BRANCH = "refs/heads/checkpoints"


def git_version() -> str | None:
    """What git says it is, or None where there is none."""
    try:
        done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.removeprefix("git version ").strip()


def contents(git_directory: Path, ref: Ref) -> Fingerprint:
    """What a commit or tree of any git directory holds, every object of it seen to be there."""
    place = {"GIT_DIR": str(git_directory)}
    listed = run(
        ("git", "ls-tree", "-r", "-t", "-z", "--full-tree", ref),
        cwd=git_directory,
        environment=place,
    )
    found: Fingerprint = {}
    names = set()
    for line in listed.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, _, name = facts.split()
        found[path] = _entry(mode, name)
        names.add(name)
    check = ("git", "cat-file", "--batch-check")
    said = run(check, cwd=git_directory, environment=place, stdin=b"\n".join(names))
    if b" missing" in said:
        raise Failed("git objects are missing")
    return found


def _entry(mode: bytes, name: bytes) -> Entry:
    if mode == b"040000":
        return directory_entry()
    kind = "link" if mode == b"120000" else "file"
    return Entry(kind, int(mode, 8) & 0o777, bytes.fromhex(name.decode()))


class Repository:
    """A git directory apart from the tree it records."""

    def __init__(self, store: Path) -> None:
        self.git_directory = store / "shadow.git"
        self.tree = store

    def prepare(self, tree: Path, **settings: str) -> None:
        self.tree = tree
        self.git("init", "--quiet")
        # A collection in the background of one tool would be paid for by the next one measured.
        for key, value in {"gc.auto": "0", "core.bare": "false", **settings}.items():
            self.git("config", key, value)

    def git(self, *arguments: str, stdin: bytes = b"", limit_s: float | None = None) -> bytes:
        place = {"GIT_DIR": str(self.git_directory), "GIT_WORK_TREE": str(self.tree)}
        command = ("git", *arguments)
        if limit_s is None:
            return run(command, cwd=self.tree, environment=place, stdin=stdin)
        return run(command, cwd=self.tree, environment=place, stdin=stdin, limit_s=limit_s)

    def word(self, *arguments: str) -> str:
        return self.git(*arguments).decode().strip()

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        names = self.git("diff-tree", "-r", "-z", "--name-status", "--no-renames", before, after)
        return frozenset(names.split(b"\0")[1::2])

    def contents(self, ref: Ref) -> Fingerprint:
        return contents(self.git_directory, ref)

    def size(self) -> StoreSize:
        return measure_store(self.git_directory)


class ShadowGit:
    """The reference peer."""

    def __init__(self, store: Path) -> None:
        self._repository = Repository(store)
        self._parent: str | None = None

    def prepare(self, tree: Path) -> None:
        # No untracked cache: it makes these commands no quicker, and git should be at its best.
        self._repository.prepare(tree)

    def save(self) -> Ref:
        repository = self._repository
        repository.git("add", "-A")
        tree = repository.word("write-tree")
        parent = ("-p", self._parent) if self._parent else ()
        self._parent = repository.word("commit-tree", tree, *parent, "-m", "save")
        return Ref(self._parent)

    def restore(self, ref: Ref) -> None:
        self._repository.git("read-tree", ref)
        self._repository.git("checkout-index", "-a", "-f")
        self._repository.git("clean", "-f", "-d", "-q")

    def restore_by_checkout(self, ref: Ref) -> None:
        """The other way git offers: rewrite only what differs from the index."""
        self._repository.git("checkout", "-q", "-f", "--detach", ref)
        self._repository.git("clean", "-f", "-d", "-q")

    def contents(self, ref: Ref, scratch: Path) -> Fingerprint:
        return self._repository.contents(ref)

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        return self._repository.changed_paths(before, after)

    def size(self) -> StoreSize:
        return self._repository.size()

    def collect(self) -> None:
        """Pack everything saved as small as git can."""
        if self._parent is None:
            raise Failed("nothing saved to collect")
        self._repository.git("update-ref", BRANCH, self._parent)
        self._repository.git("gc", "--aggressive", "--prune=now", "--quiet", limit_s=GC_LIMIT_S)

    def close(self) -> None:
        """Nothing is held between two commands."""


KIND = PeerKind("git", "shadow git", ShadowGit, git_version)
