"""Repositories inside the workspace: their location, and their state in a checkpoint.

    a `.git` directory                        → that one
    a `.git` file that names a directory      → that one, if it is below the workspace or in the
                                                repository around it (a submodule)
    no `.git`, but a submodule had one        → the directory it named, if that names this place

A `.git` file may be forged, so one that names a directory elsewhere, or through a link, is never
followed.

Their states are part of the git component's state: a row for each in its facts, its contents named
`nested/NUMBER/…`, its notes beside those of the outer repository. These values may come from an
imported bundle, so each is checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.component import NESTED
from holdfast.components.git.keep_alive import drop, owned_references
from holdfast.components.git.repository import (
    Repository,
    TooLarge,
    find_repository,
    read_small,
    repository_at,
)
from holdfast.domain.component_states import ComponentState, StoredContent
from holdfast.domain.errors import HoldfastError
from holdfast.domain.paths import from_text, is_within, require_safe_path, to_text
from holdfast.ports.component import Captured, ComponentProblem, ContentSink, ContentSource

if TYPE_CHECKING:
    from holdfast.ports.store import NestedRepositories

LEFT_OUT, COMMON = "nested_left_out", "common"
MOST_ROWS = 500
_MOST_STAGED = 20


@dataclass(frozen=True, slots=True)
class NestedRow:
    """One repository; `state` is None if `failure` says why it was not captured."""

    number: int
    path: bytes
    link: bytes | None
    linked: bool
    state: ComponentState | None
    failure: str | None


def has_nested(state: ComponentState | None) -> bool:
    return state is not None and NESTED in state.facts


def rows_of(state: ComponentState) -> list[NestedRow]:
    """`ComponentProblem` if no capture could have made this."""
    try:
        return list(_rows(state))
    except (LookupError, TypeError, ValueError, AttributeError, HoldfastError) as error:
        text = f"the checkpoint's data about nested repositories is unusable: {error}"
        raise ComponentProblem(text) from None


def _rows(state: ComponentState) -> Iterator[NestedRow]:
    notes: Mapping[str, Any] = state.notes.get(NESTED, {})
    for number, row in enumerate(state.facts.get(NESTED, ())):
        facts, failure = row.get("facts"), row.get("failure")
        path = require_safe_path(from_text(row["path"]))
        link = None if row["link"] is None else from_text(row["link"])
        if link is not None and (not link or set(link) & set(b"\0\n")):
            raise ValueError(f"{row['link']!r:.80} points to a missing directory")
        one = None
        if facts is not None:
            prefix = content_prefix(number)
            contents = tuple(
                replace(content, name=content.name.removeprefix(prefix))
                for content in state.contents
                if content.name.startswith(prefix)
            )
            one = ComponentState(
                state.name, facts, contents, notes=dict(notes.get(row["path"], {}))
            )
        yield NestedRow(number, path, link, row["linked"] is True, one, failure)


def kept_in_nested(state: ComponentState) -> Iterator[tuple[str, bytes]]:
    """Git directories, relative to the workspace, with the references that the state needs."""
    for notes in state.notes.get(NESTED, {}).values():
        if "ref" in notes:
            yield notes[COMMON], from_text(notes["ref"])


def content_prefix(number: int) -> str:
    return f"{NESTED}/{number}/"


def new_row(path: bytes, link: bytes | None, *, linked: bool) -> dict[str, Any]:
    text = None if link is None else to_text(link)
    return {"path": to_text(path), "link": text, "linked": linked}


def facts_of(captured: Captured) -> dict[str, Any]:
    """The recorded facts of a nested repository, without staged paths: the index has them."""
    return captured.facts | {"staged": captured.facts["staged"][:_MOST_STAGED]}


class NestedSink:
    """A sink for the contents of one nested repository."""

    def __init__(self, sink: ContentSink, number: int) -> None:
        self._sink = sink
        self._prefix = content_prefix(number)

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        self._sink.add(self._prefix + name, pieces)

    def keep(self, name: str, content: StoredContent) -> None:
        self._sink.keep(self._prefix + name, content)


class NestedSource:
    """The contents of one nested repository."""

    def __init__(self, source: ContentSource, number: int) -> None:
        self._source = source
        self._prefix = content_prefix(number)

    def read(self, name: str) -> Iterator[bytes]:
        return self._source.read(self._prefix + name)


_LINK_BYTES = 4096
_LINK = b"gitdir: "


class NotCaptured(Exception):
    """A repository whose git state is left alone, with the reason."""


@dataclass(frozen=True, slots=True)
class Nested:
    """`link` is the content of its `.git` file; None if `.git` is a directory. Not `linked`: the
    file is gone, but the directory it named still exists."""

    path: bytes
    repository: Repository
    link: bytes | None
    linked: bool = True


class Places:
    """The repositories inside one workspace; `around` is the one that contains the workspace."""

    def __init__(
        self,
        workspace: bytes,
        around: Repository | None,
        environment: Mapping[str, str],
        timeout_s: float,
    ) -> None:
        self._workspace = workspace
        self._environment = environment
        self._timeout_s = timeout_s
        allowed = [workspace] if around is None else [workspace, around.common_dir]
        self._allowed = [os.path.realpath(place) for place in allowed]
        self._taken = set() if around is None else {os.path.realpath(around.common_dir)}

    def top(self, path: bytes) -> bytes:
        return os.path.join(self._workspace, path)

    def locate(self, path: bytes, link: bytes | None = None) -> Nested | None:
        """None if there is none. With `link`, which a checkpoint recorded, one whose `.git` file is
        gone is found as well. `NotCaptured` if it does not belong here."""
        top = self.top(path)
        if os.path.realpath(top) != os.path.join(os.path.realpath(self._workspace), path):
            raise NotCaptured("it is reached through a link")
        if os.path.lexists(os.path.join(top, b".git")):
            found = repository_at(top)
            if found is None:
                return None
            return self._required(Nested(path, found, read_link(top)))
        return None if link is None else self._unlinked(path, link)

    def take(self, nested: Nested) -> None:
        """Each repository once: two places may share the objects that they keep alive."""
        common = os.path.realpath(nested.repository.common_dir)
        if common in self._taken:
            raise NotCaptured("it is another worktree of a repository that is already saved")
        self._taken.add(common)

    def git(self, nested: Nested) -> Git:
        if nested.linked:
            return Git(nested.repository, self._environment, self._timeout_s)
        return git_at(nested.repository.git_dir, self._environment, self._timeout_s)

    def _required(self, nested: Nested) -> Nested:
        for place in (nested.repository.git_dir, nested.repository.common_dir):
            if not self.is_inside(place):
                raise NotCaptured(f"its repository is elsewhere, at {os.fsdecode(place)}")
        if not os.path.isdir(nested.repository.shared(b"objects")):
            raise NotCaptured("its .git points to a missing directory")
        return nested

    def is_inside(self, place: bytes) -> bool:
        real = os.path.realpath(place)
        return any(real != allowed and is_within(real, allowed) for allowed in self._allowed)

    def is_kept(self, path: bytes, link: bytes) -> bool:
        """Whether the repository that a `.git` file named exists, even if nothing names it now."""
        git_dir = os.path.normpath(os.path.join(self.top(path), link))
        return self.is_inside(git_dir) and os.path.isdir(os.path.join(git_dir, b"objects"))

    def _unlinked(self, path: bytes, link: bytes) -> Nested | None:
        if not self.is_kept(path, link):
            return None
        git_dir = os.path.normpath(os.path.join(self.top(path), link))
        git = git_at(git_dir, self._environment, self._timeout_s)
        config = os.path.join(git_dir, b"config")
        try:
            named = git.run("config", "--file", config, "--get", "core.worktree").rstrip(b"\n")
        except GitFailed:
            return None  # it does not name its working tree
        if os.path.realpath(os.path.join(git_dir, named)) != os.path.realpath(self.top(path)):
            return None
        return Nested(path, git.repository, link, linked=False)


def read_link(top: bytes) -> bytes | None:
    """The directory that the `.git` file names; None if there is no such file."""
    try:
        text = read_small(os.path.join(top, b".git"), _LINK_BYTES)
    except TooLarge:
        return None
    return text[len(_LINK) :].rstrip(b"\n") if text is not None and text.startswith(_LINK) else None


def link_text(link: bytes) -> bytes:
    return _LINK + link + b"\n"


def git_at(git_dir: bytes, environment: Mapping[str, str], timeout_s: float) -> Git:
    """Git in a repository without a working tree."""
    variables = {"GIT_DIR": git_dir, "GIT_WORK_TREE": git_dir}
    return Git(Repository(git_dir, git_dir, git_dir), environment, timeout_s, variables)


def owned_in_nested(
    workspace: Path, noted: NestedRepositories, environment: Mapping[str, str], owner: str
) -> dict[str, list[bytes]]:
    """Git directories, relative to the workspace, with the references that this store created in
    each; none for a missing one."""
    known = noted.load()
    if not known:
        return {}
    places = Places(os.fsencode(workspace), find_repository(workspace), environment, 0)
    found = {}
    for relative in known:
        git_dir = _git_directory(workspace, relative)
        if places.is_inside(git_dir) and os.path.isdir(os.path.join(git_dir, b"objects")):
            refs = owned_references(Repository(git_dir, git_dir, git_dir), owner)
            if refs:
                found[to_text(relative)] = refs
    return found


def drop_nested(
    found: Mapping[str, list[bytes]],
    wanted: Set[tuple[str, bytes]],
    workspace: Path,
    environment: Mapping[str, str],
    timeout_s: float,
) -> None:
    for relative, refs in found.items():
        if gone := [ref for ref in refs if (relative, ref) not in wanted]:
            git_dir = _git_directory(workspace, from_text(relative))
            drop(git_at(git_dir, environment, timeout_s), gone)


def _git_directory(workspace: Path, relative: bytes) -> bytes:
    return os.path.normpath(os.path.join(os.fsencode(workspace), relative))
