"""Restores a repository's state, by git's own rules for changing it.

    lock the index → write the new one → recreate missing tag objects → move references in one
    transaction (each only if it is still where the plan saw it) → HEAD → remove references
    → index in place → files of an operation → the stash

Guarantees: every step can be repeated, also after a crash. Each is synced before the next. While
the index is locked, no other git changes it. Removed references were captured before, so undo
restores them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.durability import sync_changed, sync_references
from holdfast.components.git.index_file import is_same_index
from holdfast.components.git.operation_files import Files, decode_files, put_files
from holdfast.components.git.plan import (
    GitPlan,
    Move,
    describe,
    make_plan,
    other_differences,
    tree_of,
)
from holdfast.components.git.reference_choice import choose, differing, kind_of, short_name
from holdfast.components.git.references import LINK, BrokenReference, Head, read_all, read_head
from holdfast.components.git.repository import (
    own_copy,
    read_whole,
    remove_own_lock,
    sync_directory,
    take_lock,
)
from holdfast.components.git.staged import is_placed, place_shared
from holdfast.components.git.stash import (
    put_entries,
    read_stash,
    remove_own_stash_lock,
)
from holdfast.components.git.states import (
    BRANCH,
    INDEX,
    OPERATION,
    REFS,
    GitState,
    decode_state,
    intended_refs,
    way_of,
)
from holdfast.components.git.status import RepositoryStatus, read_status
from holdfast.components.git.tags import write_missing
from holdfast.domain.component_states import EXACT
from holdfast.domain.paths import to_text
from holdfast.ports.component import ComponentPreview, ComponentProblem, Intended, RestoreOf
from holdfast.values.classes import replace

_LOCK_MODE = 0o644
_FALLBACK = ("user.name=Holdfast", "user.email=holdfast@localhost")


def present_status(git: Git, request: RestoreOf) -> RepositoryStatus:
    """The current status, with every branch that the restore may move."""
    remove_own_lock(git.repository, request.owner)
    remove_own_stash_lock(git.repository, request.owner)
    intended = Intended(request.target, request.mode, request.label, request.contents)
    refs = intended_refs(git.repository, intended)
    return read_status(git.repository, now_ns=request.now_ns, refs=refs)


def restore(git: Git, request: RestoreOf) -> None:
    """`ComponentProblem` if it fails; it may be partly done then."""
    target = decode_state(request.target)
    git.require_own_repository()
    present = present_status(git, request)
    plan = make_plan(git, present, target, request)
    if plan.blocked:
        raise ComponentProblem("; ".join(plan.blocked))
    if plan.moves_head:
        _restore_head(git, present, target, plan, request)
    else:
        _move_references(git, plan, _message(request))
    if plan.stash is not None:
        put_entries(git, request.owner, plan.stash)


def _operation_files(request: RestoreOf) -> Files:
    """The files of the operation that was in progress at the checkpoint."""
    if request.target.content(OPERATION) is None:
        return {}
    return decode_files(b"".join(request.contents.read(OPERATION)))


def _message(request: RestoreOf) -> str:
    return f"holdfast: restore {request.label[:10]} ({way_of(request.mode)[0]})"


def _move_references(git: Git, plan: GitPlan, message: str) -> None:
    write_missing(git, plan.tag_objects, [move.new for move in plan.moves if move.new])
    _move(git, [move for move in plan.moves if move.new is not None], message)
    _move(git, [move for move in plan.moves if move.new is None], message)


def _restore_head(
    git: Git, present: RepositoryStatus, target: GitState, plan: GitPlan, request: RestoreOf
) -> None:
    if target.has_index and request.target.content(INDEX) is None:
        raise ComponentProblem("the checkpoint has no git index")
    message = _message(request)
    write_missing(git, plan.tag_objects, [move.new for move in plan.moves if move.new])
    with _locked_index(git, target, request) as place_index:
        if plan.makes_commit:
            plan = _with_commit(git, plan, request)
        _move(git, [move for move in plan.moves if move.new is not None], message)
        _set_head(git, present.head, plan, message)
        _move(git, [move for move in plan.moves if move.new is None], message)
        place_shared(git, request)
        place_index()
    put_files(git.repository, _operation_files(request) if plan.put_operation else {})


@contextmanager
def _locked_index(git: Git, target: GitState, request: RestoreOf) -> Iterator[Callable[[], None]]:
    """The index lock as git takes it, with the new index in it; always released."""
    repository = git.repository
    index, lock = repository.own(b"index"), repository.own(b"index.lock")
    pieces = request.contents.read(INDEX) if target.has_index else ()
    mode = os.stat(index).st_mode & 0o777 if os.path.exists(index) else _LOCK_MODE
    placed = False

    def place() -> None:
        nonlocal placed
        if target.has_index:
            os.replace(lock, index)
            placed = True
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(index)
        sync_directory(repository.git_dir)

    take_lock(repository, request.owner, pieces, mode)
    try:
        yield place
    finally:
        if not placed:
            os.unlink(lock)
        os.unlink(own_copy(repository, request.owner))


def _with_commit(git: Git, plan: GitPlan, request: RestoreOf) -> GitPlan:
    """The plan with the commit that reverts the content, which is made here."""
    tree = tree_of(git, plan.revert_to, write=True)
    parents = [] if plan.head.commit is None else ["-p", plan.head.commit]
    text = f"Restore {request.title}\n\nHoldfast-Id: {request.label}\n".encode()
    try:
        made = git.run("commit-tree", *parents, tree, given=text, as_user=True)
    except GitFailed as error:
        if "ident" not in str(error) and "tell me who" not in str(error):
            raise
        made = git.run("commit-tree", *parents, tree, given=text, config=_FALLBACK)
    oid = made.strip().decode()
    if plan.head.ref is None:
        return replace(plan, head=Head(None, oid), makes_commit=False)
    holder = plan.head.holder or plan.head.ref
    move = Move(holder, plan.head.commit, oid)
    return replace(plan, head=Head(plan.head.ref, oid), moves=(move, *plan.moves))


def _move(git: Git, moves: list[Move], message: str) -> None:
    """All references or none; each only if it is unchanged. Symbolic ones have no commit of their
    own, and come after the others."""
    links = [move for move in moves if LINK in f"{move.old} {move.new}"]
    plain = [move for move in moves if move not in links]
    if plain:
        script = b"".join(map(_command, plain))
        git.run("update-ref", "--stdin", "-z", "-m", message, given=script)
    for move in links:
        if move.new is None:
            git.run("symbolic-ref", "--delete", move.ref)
        elif move.new.startswith(LINK):
            git.run("symbolic-ref", "-m", message, move.ref, move.new.removeprefix(LINK))
        else:
            git.run("update-ref", "--no-deref", "-m", message, move.ref, move.new)
    if moves:
        sync_references(git.repository, [move.ref for move in moves])


def _command(move: Move) -> bytes:
    if move.new is None:
        return b"delete %b\0%b\0" % (move.ref, (move.old or "").encode())
    old = move.old or "0" * len(move.new)
    return b"update %b\0%b\0%b\0" % (move.ref, move.new.encode(), old.encode())


def _set_head(git: Git, present: Head, plan: GitPlan, message: str) -> None:
    wanted = plan.head
    if wanted.ref is not None:
        if present.ref != wanted.ref:
            git.run("symbolic-ref", "-m", message, "HEAD", wanted.ref)
    elif present.ref is not None or present.commit != wanted.commit:
        assert wanted.commit is not None
        git.run("update-ref", "--no-deref", "-m", message, "HEAD", wanted.commit)
    sync_changed(git.repository.git_dir, [b"HEAD"])


def verify(git: Git, request: RestoreOf) -> list[str]:
    """The differences from the checkpoint after a restore in mode `exact`."""
    target = decode_state(request.target)
    present = read_status(git.repository, now_ns=request.now_ns, refs=tuple(target.refs))
    way, _ = way_of(request.mode)
    wrong = _wrong_references(git, present, request)
    if way == REFS:
        return wrong
    if way == EXACT:
        if (present.head.ref, present.head.commit) != (target.head.ref, target.head.commit):
            wrong.append("HEAD differs from the checkpoint")
        for ref, oid in target.refs.items():
            if present.refs.get(ref) != oid:
                wrong.append(f"branch {to_text(ref)} differs from the checkpoint")
        expected = _operation_files(request)
        found = {path: data for path, (_, data) in present.operation().items()}
        if found != {path: data for path, (_, data) in expected.items()}:
            wrong.append("merge/rebase state differs from the checkpoint")
    elif read_head(git.repository).ref is None and way == BRANCH:
        wrong.append("HEAD is detached")
    if present.has_index != target.has_index:
        wrong.append("the index is missing" if target.has_index else "the index should not exist")
    elif target.has_index and not is_same_index(
        read_whole(git.repository.own(b"index")), b"".join(request.contents.read(INDEX))
    ):
        wrong.append("the index differs from the checkpoint")
    elif not is_placed(git, request):
        wrong.append("the shared index file is missing")
    return wrong


def _wrong_references(git: Git, present: RepositoryStatus, request: RestoreOf) -> list[str]:
    choice = choose(git.repository, present.head, request.mode, request.target, request.contents)
    now = read_all(git.repository).both
    wrong = [
        f"{kind_of(ref)} {short_name(ref)} is not at the checkpoint's commit"
        for ref, value in choice.wanted.items()
        if now.get(ref) != value
    ]
    if choice.stash is not None and choice.stash != read_stash(git.repository):
        wrong.append("the stash differs from the checkpoint")
    return wrong


_SHOWN = 5


def preview(git: Git, request: RestoreOf) -> ComponentPreview:
    target = decode_state(request.target)
    try:
        present = present_status(git, request)
        plan = make_plan(git, present, target, request)
        if plan.blocked:
            return ComponentPreview(blocked=tuple(plan.blocked))
        actions = describe(git, present, target, plan)
        actions += other_differences(present, request, plan, actions)
    except BrokenReference as error:
        return ComponentPreview(blocked=(f"the repository is damaged: {error}",))
    warnings = []
    if target.operation is not None and not plan.put_operation:
        warnings.append(f"a {target.operation} was in progress; to resume it: --git exact")
    choices = tuple(_offered(git, present, request))
    if choices:
        shown = ", ".join(line for _, line in choices[:_SHOWN])
        more = f" and {len(choices) - _SHOWN} more" if len(choices) > _SHOWN else ""
        back = "it" if len(choices) == 1 else "them"
        warnings.append(f"{shown}{more} since that checkpoint; to restore {back}: --refs all")
    return ComponentPreview(tuple(actions), tuple(warnings), choices=choices)


def _offered(git: Git, present: RepositoryStatus, request: RestoreOf) -> Iterator[tuple[str, str]]:
    """Other changed references that were not selected: the name to select each with, and a
    line."""
    found = differing(git.repository, present.head, request.mode, request.target, request.contents)
    choice = choose(git.repository, present.head, request.mode, request.target, request.contents)
    for ref in found.references:
        if ref not in choice.wanted and ref not in found.occupied:
            fate = "moved" if ref in found.now else "is gone"
            yield to_text(ref).removeprefix("refs/"), f"{kind_of(ref)} {short_name(ref)} {fate}"
    if found.stash and choice.stash is None:
        count = len(found.stash)
        yield "stash", "1 stash entry is gone" if count == 1 else f"{count} stash entries are gone"
