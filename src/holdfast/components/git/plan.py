"""What a restore of git state would do, as data; used for the preview and for the restore.

    exact   HEAD, the branches that the checkpoint knows, the index and the files of an operation
            are restored
    branch  a new branch is created at HEAD's old commit, and HEAD is set to it; the index is
            restored; no other branch moves
    revert  one new commit on top of HEAD's current commit, with the content of its old commit; the
            index is restored; no commit is removed from any branch
    refs    HEAD and index stay

Each with the selected other branches, tags and stash entries (`reference_choice`). Nothing else in
the repository is touched.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.keep_alive import object_types
from holdfast.components.git.operation_files import encode_files, operation_name
from holdfast.components.git.reference_choice import (
    ReferenceChoice,
    choose,
    kind_of,
    short_name,
)
from holdfast.components.git.references import LINK, TAGS, Head, read_all, read_head
from holdfast.components.git.repository import Repository, read_whole
from holdfast.components.git.stash import StashEntry, read_stash
from holdfast.components.git.states import (
    BRANCH,
    INDEX,
    OPERATION,
    REFS,
    REVERT,
    TAG_OBJECTS,
    GitState,
    new_branch,
    way_of,
)
from holdfast.components.git.status import KEPT_PREFIX, RepositoryStatus, read_worktrees
from holdfast.components.git.tags import decode_tags, final_target
from holdfast.domain.component_states import EXACT
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import RestoreOf
from holdfast.values.classes import dataclass, field, replace

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Move:
    """A branch from one commit to another; None if it does not exist."""

    ref: bytes
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class GitPlan:
    """`head` is the new HEAD. With `revert_to`, a commit with the content of that one is made
    first, and `head` is the current HEAD."""

    head: Head
    moves: tuple[Move, ...]
    put_operation: bool
    revert_to: str | None = None
    makes_commit: bool = False
    moves_head: bool = True
    stash: list[StashEntry] | None = None
    tag_objects: Mapping[str, bytes] = field(default_factory=dict)
    blocked: list[str] = field(default_factory=list)


def make_plan(git: Git, present: RepositoryStatus, target: GitState, request: RestoreOf) -> GitPlan:
    way, _ = way_of(request.mode)
    plan = _plan_of(git, present, target, way, request.label)
    choice = choose(git.repository, present.head, request.mode, request.target, request.contents)
    if choice.wanted or choice.stash is not None or choice.unknown:
        plan = _with_choice(git, plan, choice, request)
    plan.blocked.extend(_obstacles(git, present, target, plan))
    return plan


def _plan_of(
    git: Git, present: RepositoryStatus, target: GitState, way: str, label: str
) -> GitPlan:
    if way == EXACT:
        return GitPlan(target.head, _moves(present, target.refs), put_operation=True)
    if way == BRANCH:
        ref = new_branch(git.repository, label, target.head.commit)
        return GitPlan(
            Head(ref, target.head.commit),
            _moves(present, {ref: target.head.commit} if target.head.commit else {}),
            put_operation=False,
        )
    if way == REVERT:
        return GitPlan(
            present.head,
            (),
            put_operation=False,
            revert_to=target.head.commit,
            makes_commit=_differs(git, present.head.commit, target.head.commit),
        )
    if way == REFS:
        return GitPlan(present.head, (), put_operation=False, moves_head=False)
    raise GitFailed(f"unknown git mode: {way!r}", "modes: exact, branch, revert, refs")


def _with_choice(git: Git, plan: GitPlan, choice: ReferenceChoice, request: RestoreOf) -> GitPlan:
    now = read_all(git.repository).both
    moved = {move.ref for move in plan.moves}
    more = tuple(
        Move(ref, now.get(ref), value)
        for ref, value in sorted(choice.wanted.items())
        if ref not in moved and now.get(ref) != value
    )
    stash = choice.stash
    if stash is not None and stash == read_stash(git.repository):
        stash = None
    objects: dict[str, bytes] = {}
    has_objects = request.target.content(TAG_OBJECTS) is not None
    if has_objects and any(move.ref.startswith(TAGS) for move in more):
        try:
            objects = decode_tags(b"".join(request.contents.read(TAG_OBJECTS)))
        except ValueError as error:
            raise GitFailed(f"the checkpoint's git data is unusable: {error}") from None
    blocked = [
        f"that checkpoint has no branch, tag or stash entry named {name}" for name in choice.unknown
    ]
    blocked += _name_clashes(now, more)
    return replace(
        plan,
        moves=(*plan.moves, *more),
        stash=stash,
        tag_objects=objects,
        blocked=[*plan.blocked, *blocked],
    )


def _name_clashes(now: Mapping[bytes, str], moves: Sequence[Move]) -> list[str]:
    """A reference cannot have the name of another one's directory, or be below another."""
    staying = now.keys() - {move.ref for move in moves if move.new is None}
    above = {ref[:at] for ref in staying for at in _slashes(ref)}
    found = []
    for move in moves:
        if move.old is not None or move.new is None:
            continue
        in_way = move.ref in above or any(move.ref[:at] in staying for at in _slashes(move.ref))
        if in_way:
            found.append(
                f"{kind_of(move.ref)} {short_name(move.ref)} conflicts with an existing name "
                "(git cannot keep both a and a/b); rename that one first"
            )
    return found


def _slashes(ref: bytes) -> list[int]:
    return [at for at, byte in enumerate(ref) if byte == ord("/")][2:]


def _moves(present: RepositoryStatus, wanted: Mapping[bytes, str | None]) -> tuple[Move, ...]:
    there = dict(present.refs)
    if present.head.holder is not None:
        there[present.head.holder] = present.head.commit
    return tuple(
        Move(ref, there.get(ref), new)
        for ref, new in sorted(wanted.items())
        if there.get(ref) != new
    )


def _differs(git: Git, one: str | None, other: str | None) -> bool:
    """Whether two commits have different content; None means no content."""
    return one != other and tree_of(git, one) != tree_of(git, other)


def tree_of(git: Git, commit: str | None, *, write: bool = False) -> str:
    """The tree of a commit; for None an empty tree, which may have to be created."""
    if commit is None:
        made = ("-w",) if write else ()
        return git.run("hash-object", "-t", "tree", *made, "--stdin").strip().decode()
    return git.run("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}").strip().decode()


def _obstacles(git: Git, present: RepositoryStatus, target: GitState, plan: GitPlan) -> list[str]:
    found = []
    if present.has_lock:
        lock = os.fsdecode(git.repository.own(b"index.lock"))
        found.append(
            f"{lock} exists: another git process is running, or has crashed; if none is running, "
            "remove the file"
        )
    wanted = {move.new for move in plan.moves if move.new and not move.new.startswith(LINK)}
    wanted |= {target.head.commit} if target.head.commit and plan.moves_head else set()
    needed = {final_target(oid, plan.tag_objects) for oid in wanted}
    needed |= {entry.oid for entry in plan.stash or ()}
    there = object_types(git, needed)
    for oid in sorted(needed - there.keys()):
        found.append(f"commit {oid[:10]} is no longer in the repository; git fetch may retrieve it")
    moved = {move.ref for move in plan.moves}
    switched = plan.head.ref if plan.head.ref != present.head.ref else None
    for worktree in read_worktrees(git.repository):
        ref = None if worktree["ref"] is None else from_text(worktree["ref"])
        if worktree["here"] or ref is None or (ref not in moved and ref != switched):
            continue
        found.append(
            f"branch {short_name(ref)} is checked out in {worktree['path']}; "
            f"use --git branch, or remove that worktree"
        )
    main = _main_worktree_ref(git)
    if main is not None and (main in moved or main == switched):
        found.append(
            f"branch {short_name(main)} is checked out in the repository's main worktree; "
            f"use --git branch"
        )
    return found


def _main_worktree_ref(git: Git) -> bytes | None:
    """The main worktree's branch, for a linked worktree; None for a bare repository."""
    repository = git.repository
    if repository.git_dir == repository.common_dir:
        return None
    config = git.run("config", "--type=bool", "--default=false", "--get", "core.bare").strip()
    if config == b"true":
        return None
    return read_head(Repository(b"", repository.common_dir, repository.common_dir)).ref


def describe(git: Git, present: RepositoryStatus, target: GitState, plan: GitPlan) -> list[str]:
    """The plan's effects, one line each; lists the commits that leave a branch."""
    lines: list[str] = []
    for move in plan.moves:
        is_new = move.ref == plan.head.ref != target.head.ref
        lines += _describe_move(git, move, "created" if is_new else "recreated")
    if plan.makes_commit:
        lines.append(
            f"a new commit on {_where(present.head)} restores the content of "
            f"{(plan.revert_to or 'an empty repository')[:10]}"
        )
    lines += _describe_stash(git, plan)
    if (plan.head.ref, plan.head.commit) != (present.head.ref, present.head.commit):
        moved = any(move.ref == plan.head.ref == present.head.ref for move in plan.moves)
        if not moved:
            lines.append(f"HEAD moves from {_where(present.head)} to {_where(plan.head)}")
    if not plan.moves_head:
        return lines
    now = operation_name(present.operation_paths)
    then = target.operation if plan.put_operation else None
    if now != then and now is not None:
        lines.append(f"the {now} in progress is discarded")
    if now != then and then is not None:
        lines.append(f"the {then} that was in progress is resumed")
    return lines


def other_differences(
    present: RepositoryStatus, request: RestoreOf, plan: GitPlan, known: list[str]
) -> list[str]:
    """Other changes, unless they follow from the known ones."""
    lines: list[str] = []
    if not plan.moves_head:
        return lines
    wanted = request.target.content(INDEX)
    index = read_whole(present.repository.own(b"index")) if present.has_index else None
    if (wanted.digest if wanted else None) != (None if index is None else digest_of(index)):
        lines.append("the index is restored" if wanted else "the index is removed")
    files = request.target.content(OPERATION) if plan.put_operation else None
    there = present.operation()
    found = digest_of(encode_files(there)) if there else None
    if not known and (files.digest if files else None) != found:
        lines.append("git's merge/rebase state is restored")
    return lines


def _describe_move(git: Git, move: Move, created: str) -> list[str]:
    name, kind = short_name(move.ref), kind_of(move.ref)
    if move.new is None:
        first = f"{kind} {name}, created since, is removed"
    elif move.old is None:
        return [f"{kind} {name} is {created} at {_target_words(move.new)}"]
    else:
        old, new = _target_words(move.old), _target_words(move.new)
        first = f"{kind} {name} moves from {old} to {new}"
    if kind != "branch" or LINK in f"{move.old} {move.new}":
        return [first]
    leaving = _leaving_commits(git, move)
    if not leaving:
        return [first]
    noun = "commit leaves" if len(leaving) == 1 else "commits leave"
    more = f", and {len(leaving) - _SHOWN} more" if len(leaving) > _SHOWN else ""
    listed = "; ".join(leaving[:_SHOWN])
    return [first, f"{len(leaving)} {noun} {name} (kept for undo): {listed}{more}"]


def _describe_stash(git: Git, plan: GitPlan) -> list[str]:
    if plan.stash is None:
        return []
    now = {entry.oid for entry in read_stash(git.repository)}
    then = {entry.oid for entry in plan.stash}
    back = [entry.shown for entry in reversed(plan.stash) if entry.oid not in now]
    lines = []
    if back:
        entries = "1 stash entry is" if len(back) == 1 else f"{len(back)} stash entries are"
        more = f"; and {len(back) - _SHOWN} more" if len(back) > _SHOWN else ""
        lines.append(f"{entries} restored: {'; '.join(back[:_SHOWN])}{more}")
    if now - then:
        count = len(now - then)
        entries = "1 new stash entry is" if count == 1 else f"{count} new stash entries are"
        lines.append(f"{entries} removed (kept for undo)")
    return lines or ["the order of the stash is restored"]


def _target_words(value: str) -> str:
    """A commit, or the branch that a symbolic one points to."""
    return short_name(value.removeprefix(LINK).encode()) if value.startswith(LINK) else value[:10]


def _leaving_commits(git: Git, move: Move) -> list[str]:
    """Commits that the branch has now and will lose, newest first."""
    if move.old is None:
        return []
    exclude = [] if move.new is None else [f"^{move.new}"]
    if move.new is None:
        # All references except the removed one and Holdfast's own; `--all` would include HEAD.
        unwanted = [f"--exclude={to_text(ref)}" for ref in (move.ref, KEPT_PREFIX + b"*")]
        exclude = ["--not", *unwanted, "--glob=refs/*"]
    raw = git.run(
        "rev-list", "--max-count=1000", "--pretty=tformat:%h %s", move.old, *exclude, "--"
    )
    lines = raw.decode("utf-8", "replace").splitlines()
    shown = [line for line in lines if not line.startswith("commit ")]
    return ["".join(c for c in line if c.isprintable())[:100] for line in shown]


def _where(head: Head) -> str:
    if head.ref is None:
        return f"{(head.commit or '')[:10]} (detached)"
    return short_name(head.ref)
