"""Letting go of what is kept alive in repositories inside the workspace."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from pathlib import Path

from holdfast.components.git import keep_alive as keeping
from holdfast.components.git.nested.places import Places, git_at
from holdfast.components.git.repository import Repository, find_repository
from holdfast.domain.paths import from_text, to_text
from holdfast.ports.component_notes import NestedRepositories


def owned_in_nested(
    workspace: Path, noted: NestedRepositories, environment: Mapping[str, str], owner: str
) -> dict[str, list[bytes]]:
    """Git directories, relative to the workspace, with the references that this store has made in
    each; one that is gone has none."""
    known = noted.load()
    if not known:
        return {}
    places = Places(os.fsencode(workspace), find_repository(workspace), environment, 0)
    found = {}
    for relative in known:
        git_dir = _git_directory(workspace, relative)
        if places.is_inside(git_dir) and os.path.isdir(os.path.join(git_dir, b"objects")):
            refs = keeping.owned_references(Repository(git_dir, git_dir, git_dir), owner)
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
            keeping.drop(git_at(git_dir, environment, timeout_s), gone)


def _git_directory(workspace: Path, relative: bytes) -> bytes:
    return os.path.normpath(os.path.join(os.fsencode(workspace), relative))
