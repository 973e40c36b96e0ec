"""Protects commits of checkpoints from `git gc`: one reference under `refs/holdfast/` for each
state.

    HEAD alone            → the reference is HEAD's commit
    anything else as well → a Holdfast commit, whose parents are all commits (HEAD, the stash, those
                            that an operation names) and whose tree holds staged content
    other branches, tags  → a Holdfast commit for each of the two, which is one more parent and is
                            recreated only if one of them changes

`git branch`, `git log` and `git stash` do not show such references, and git transfers them only if
they are named explicitly. Their name is `refs/holdfast/OWNER/CHECKPOINT`: the store, and the
checkpoint that first saw the state; later ones of the same state share it.

A new reference is written as git does, in less time than starting a process:

    directories → create NAME.lock exclusively → write its content → rename to NAME

Guarantees: while the lock exists, no git touches the reference. It becomes valid only when its
content, and what the caller wrote first, is on disk; `place` returns when its name is on disk as
well. No link is followed on the way. A crash leaves only the lock. Only for repositories that keep
references as files, and for names that cannot be in use.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from holdfast.components.files import DIRECTORY_FLAGS, NEW_FLAGS
from holdfast.components.git.commands import NO_REFLOG, Git, GitFailed
from holdfast.components.git.durability import sync_all, sync_references
from holdfast.components.git.loose_objects import (
    NewObject,
    add_objects,
    is_loose,
    name_of,
    read_loose,
)
from holdfast.components.git.references import packed_under, require_file_references
from holdfast.components.git.repository import Repository
from holdfast.components.git.status import KEPT_PREFIX


class NewReference:
    """A locked reference with the commit in its lock file; `fd` is that file, to be synced."""

    def __init__(self, name: bytes, directory: int, fd: int, changed: Sequence[int]) -> None:
        """`changed` are parent directories in which a directory was created."""
        self._name = name
        self._directory = directory
        self._changed = changed
        self._locked = True
        self.fd = fd

    def place(self) -> None:
        """Make it valid; call this after syncing `fd`."""
        at = self._directory
        os.rename(self._name + b".lock", self._name, src_dir_fd=at, dst_dir_fd=at)
        self._locked = False
        sync_all([*self._changed, at])

    def give_up(self) -> None:
        """Does nothing if it is valid: a lock of that name then belongs to another process."""
        if self._locked:
            os.unlink(self._name + b".lock", dir_fd=self._directory)


@contextmanager
def new_reference(repository: Repository, ref: bytes, commit: str) -> Iterator[NewReference]:
    """`OSError` if another process has the lock, the reference exists, or something else has its
    name."""
    names = ref.split(b"/")
    with contextlib.ExitStack() as opened:
        at, changed = os.open(repository.shared(names[0]), DIRECTORY_FLAGS), list[int]()
        opened.callback(os.close, at)
        allowed = stat.S_IMODE(os.fstat(at).st_mode)
        for name in names[1:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=at)
                os.chmod(name, allowed, dir_fd=at)
                changed.append(at)
            at = os.open(name, DIRECTORY_FLAGS, dir_fd=at)
            opened.callback(os.close, at)
        fd = os.open(names[-1] + b".lock", NEW_FLAGS, 0o600, dir_fd=at)
        opened.callback(os.close, fd)
        mine = NewReference(names[-1], at, fd, changed)
        opened.callback(mine.give_up)
        if _is_there(names[-1], at):
            raise FileExistsError(os.fsdecode(ref))
        os.write(fd, commit.encode() + b"\n")
        os.fchmod(fd, 0o666 & allowed)
        yield mine


def _is_there(name: bytes, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


_MODES = {"blob": b"100644", "tree": b"40000"}
_IDENTITY = b"Holdfast <holdfast@localhost> 0 +0000"
_MESSAGE = b"Kept alive by a checkpoint of Holdfast\n"


def keep(
    git: Git,
    ref: bytes,
    head: str | None,
    commits: Sequence[str],
    blobs: set[str],
    known: Container[str] = (),
    groups: Sequence[NewObject] = (),
) -> str:
    """Keep all of these from being collected, through `ref`; returns the commit it names. `known`
    are commits known to exist; nothing missing may be named. `groups` are objects to add with it,
    some of which `commits` names."""
    others = [oid for oid in dict.fromkeys(commits) if oid != head]
    oid, objects = head, list[NewObject]()
    if oid is None or others or blobs:
        parents = ([head] if head is not None else []) + others
        _require(git, [oid for oid in parents if oid not in known], blobs)
        objects = _commit_of(parents, dict.fromkeys(blobs, "blob"))
        oid = objects[-1].oid
    objects = [*dict.fromkeys((*groups, *objects))]
    # Git has just shown that it trusts this repository, and that HEAD's commit exists.
    if head is None or head not in known or not _write_reference(git.repository, ref, oid, objects):
        add_objects(git.repository, objects)
        line = b"create %b\0%b\0" % (ref, oid.encode())
        git.run("update-ref", "--stdin", "-z", given=line, config=NO_REFLOG)
        sync_references(git.repository, [ref])
    return oid


def _write_reference(
    repository: Repository, ref: bytes, oid: str, objects: Sequence[NewObject]
) -> bool:
    """Create the reference and its objects without git; returns whether that worked. If not, git
    does it, and reports any problem."""
    with contextlib.ExitStack() as locked:
        try:
            mine = locked.enter_context(new_reference(repository, ref, oid))
        except OSError:
            return False
        add_objects(repository, objects, beside=mine.fd)
        mine.place()
    return True


def _require(git: Git, commits: Sequence[str], blobs: set[str]) -> None:
    """Require that all of these exist; asks git only about those that are not loose."""
    repository = git.repository
    commits = [oid for oid in commits if not is_loose(repository, oid, b"commit")]
    blobs = {oid for oid in blobs if not is_loose(repository, oid, b"blob")}
    if not commits and not blobs:
        return
    there = existing_objects(git, [*commits, *blobs])
    missing = sorted({*commits} - {*there[0]} | blobs - there[1])
    if missing:
        raise GitFailed(
            f"object {missing[0]} is missing", "objects are damaged or missing: git fsck --full"
        )


def group_of(ends: Mapping[str, str]) -> list[NewObject]:
    """A commit that keeps existing objects alive, each with its kind; as `_commit_of`."""
    parents = sorted(oid for oid, kind in ends.items() if kind == "commit")
    others = {oid: kind for oid, kind in ends.items() if kind in _MODES}
    return _commit_of(parents, others) if parents or others else []


def parents_in(repository: Repository, group: str | None) -> set[str]:
    """The commits that a group keeps alive, if its object is loose."""
    found = None if group is None else read_loose(repository, group, b"commit")
    if found is None:
        return set()
    head = found.content.partition(b"\n\n")[0]
    return {line[7:].decode() for line in head.split(b"\n") if line.startswith(b"parent ")}


def _commit_of(parents: Sequence[str], others: Mapping[str, str]) -> list[NewObject]:
    """The objects for a commit that keeps all of these, itself last; `others` are blobs and
    trees."""
    like = next(iter((*parents, *others)))
    rows = [
        b"%b %b\0%b" % (_MODES[kind], oid.encode(), bytes.fromhex(oid))
        for oid, kind in sorted(others.items())
    ]
    tree = b"".join(rows)
    tree_oid = name_of(b"tree", tree, like=like)
    lines = [b"tree " + tree_oid.encode(), *(b"parent " + oid.encode() for oid in parents)]
    lines += [b"author " + _IDENTITY, b"committer " + _IDENTITY, b"", _MESSAGE]
    commit = b"\n".join(lines)
    commit_oid = name_of(b"commit", commit, like=like)
    return [NewObject(tree_oid, b"tree", tree), NewObject(commit_oid, b"commit", commit)]


def existing_objects(git: Git, oids: Iterable[str]) -> tuple[list[str], set[str]]:
    """Which of these are commits, and which are blobs, of this repository."""
    kinds = object_types(git, oids)
    commits = [oid for oid, kind in kinds.items() if kind == "commit"]
    return commits, {oid for oid, kind in kinds.items() if kind == "blob"}


def object_types(git: Git, oids: Iterable[str]) -> dict[str, str]:
    """The types of these objects, without missing ones. One process; none for no objects."""
    wanted = sorted(set(oids))
    if not wanted:
        return {}
    listed = git.run(
        "cat-file", "--batch-check=%(objecttype) %(objectname)", given="\n".join(wanted).encode()
    )
    rows = [line.decode().split(" ") for line in listed.splitlines()]
    return {row[1]: row[0] for row in rows if row[0] in ("commit", "tree", "blob", "tag")}


def owned_references(repository: Repository, owner: str) -> list[bytes]:
    """All references that this store created here; `OtherReferences` if only git can list them."""
    prefix = KEPT_PREFIX + owner.encode() + b"/"
    require_file_references(repository)
    try:
        loose = [prefix + name for name in os.listdir(repository.shared(prefix))]
    except OSError:
        loose = []
    found = {ref for ref in loose if not ref.endswith(b".lock")}
    return sorted(found | set(packed_under(repository, prefix)))


def remove_own_locks(repository: Repository, owner: str) -> None:
    """Remove leftovers of Holdfast's killed git processes. Called only with the store's lock, so no
    other process writes this store's references. No link is followed on the way."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        fd: int | None = None
        at = repository.shared(b"refs")
        for part in (at, *(KEPT_PREFIX.removeprefix(b"refs/") + owner.encode()).split(b"/")):
            fd = os.open(part, DIRECTORY_FLAGS, dir_fd=fd)
            opened.callback(os.close, fd)
        assert fd is not None
        for name in os.listdir(fd):
            if os.fsencode(name).endswith(b".lock"):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=fd)


def drop(git: Git, refs: Sequence[bytes]) -> None:
    script = b"".join(b"delete %b\0\0" % ref for ref in refs)
    git.run("update-ref", "--stdin", "-z", given=script, config=NO_REFLOG)
