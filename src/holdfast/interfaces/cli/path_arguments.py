"""Paths that users type relative to the current directory, as workspace paths.

Paths that start with `:/` are relative to the workspace, like paths in JSON. Only the workspace
itself is resolved: a named link means the link, not its target.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import NotFound, UnknownReference, UsageError
from holdfast.domain.ids import short
from holdfast.domain.paths import GIT_DIRECTORY, MARKER_DIRECTORY, to_text

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.interfaces.cli.invocation import Invocation
    from holdfast.interfaces.cli.terminal import Terminal


_FROM_THE_TOP = b":/"


def workspace_paths(typed: Sequence[str], base: Path, workspace: Path) -> list[bytes]:
    """Each path relative to the workspace; an empty list for the whole workspace."""
    found = [_workspace_path(text, base, workspace) for text in typed]
    return [] if b"" in found else found


def _workspace_path(text: str, base: Path, workspace: Path) -> bytes:
    raw = os.fsencode(text)
    if not raw or b"\0" in raw:
        raise UsageError(f"{text!r} is not a path", hint="name a file or directory")
    root = os.fsencode(workspace)
    if raw.startswith(_FROM_THE_TOP):
        raw = os.path.join(root, raw.removeprefix(_FROM_THE_TOP).lstrip(b"/"))
    wanted = os.path.normpath(os.path.join(os.path.realpath(os.fsencode(base)), raw))
    relative = _below(wanted, root)
    if relative is None:
        # The path may lead to the workspace through a link.
        directory, name = os.path.split(wanted)
        relative = _below(os.path.join(os.path.realpath(directory), name), root)
    if relative is None:
        raise UsageError(
            f"{text!r} is outside the workspace {workspace}",
            hint="use paths inside it, relative to the current directory, or from its root: :/src",
        )
    if GIT_DIRECTORY in relative.split(b"/"):
        raise UsageError(
            f"{text!r} is git's own data, which checkpoints do not contain",
            hint="use git commands for it",
        )
    if relative.split(b"/", 1)[0] == MARKER_DIRECTORY:
        raise UsageError(
            f"{text!r} is Holdfast's own data, which checkpoints do not contain",
            hint="to change settings: holdfast config",
        )
    return relative


def subdirectory_of(base: Path, workspace: Path) -> bytes:
    """The current subdirectory of the workspace; its root if that is unknown."""
    return _below(os.path.realpath(os.fsencode(base)), os.fsencode(workspace)) or b""


def excluded_directory_warning(terminal: Terminal, opened: Workspace) -> str | None:
    """Warn if ignore rules exclude the current directory. "Saved, nothing changed" is then true,
    but not what a user who just worked there expects."""
    inside = terminal.subdirectory
    if not inside or not opened.leaves_out(inside):
        return None
    return (
        f"nothing in {to_text(inside)} is saved: ignore rules of {opened.path} exclude it. To "
        "save it, include it (holdfast config get include), or make it a separate workspace: "
        "holdfast init"
    )


@contextmanager
def path_mistaken_for_checkpoint(
    invocation: Invocation, opened: Workspace, typed: str | None, form: str
) -> Iterator[None]:
    """A hint on how to write it, if a path was given in place of a checkpoint."""
    try:
        yield
    except UnknownReference as error:
        if typed is None:
            raise
        if not is_known_path(invocation, opened, typed):
            if (saved := _where_saved(invocation, opened, typed)) is None:
                raise
            form = form.replace("HEAD", short(saved.id), 1)
        hint = f"{typed} is a path; write: {form.format(shlex.quote(typed))}"
        raise UnknownReference(error.message, hint=hint) from None


def require_restorable(
    invocation: Invocation, opened: Workspace, target: Checkpoint, typed: Sequence[str]
) -> None:
    """If the path is neither in the checkpoint nor in the workspace, name the newest checkpoint
    that has it."""
    for text in typed:
        for path in invocation.paths([text], opened.path):
            present = os.path.lexists(os.fsencode(opened.path) + b"/" + path)
            if present or opened.contents.entry(target, path) is not None:
                continue
            if (saved := _where_saved(invocation, opened, text)) is not None:
                raise NotFound(
                    f"{text!r} is neither in that checkpoint nor in the workspace",
                    hint="the newest checkpoint with it: "
                    f"holdfast restore {short(saved.id)} {shlex.quote(text)}",
                )


def _where_saved(invocation: Invocation, opened: Workspace, typed: str) -> Checkpoint | None:
    try:
        paths = invocation.paths([typed], opened.path)
    except (UsageError, ValueError):
        return None
    return opened.contents.newest_with(paths[0]) if paths else None


def is_known_path(
    invocation: Invocation,
    opened: Workspace,
    typed: str,
    checkpoints: Sequence[Checkpoint] = (),
) -> bool:
    """Whether the workspace, HEAD or one of these checkpoints has the path."""
    try:
        paths = invocation.paths([typed], opened.path)
    except (UsageError, ValueError):
        return False
    if not paths or os.path.lexists(os.fsencode(opened.path) + b"/" + paths[0]):
        return True
    head = opened.head(invocation.scope(opened))
    return any(
        one is not None and opened.contents.entry(one, paths[0]) is not None
        for one in (head, *checkpoints)
    )


def _below(path: bytes, root: bytes) -> bytes | None:
    if path == root:
        return b""
    prefix = root if root.endswith(b"/") else root + b"/"
    return path[len(prefix) :] if path.startswith(prefix) else None
