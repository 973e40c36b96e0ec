"""A git bundle of checkpoints: the mirror, made in a repository of its own and packed into a file.

    bare repository in a scratch directory → mirror of everything → `git bundle create` → the file

Guarantee: the repository of the workspace is neither needed nor touched, and nothing is left. The
bundle can be cloned: its HEAD is the branch, and its names are tags.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.mirror.mirror import Mirror
from holdfast.components.git.plain_files import blocks_of, opened
from holdfast.components.git.repository import Repository
from holdfast.components.git.scratch_index import GitWith
from holdfast.ports.repository import MirroredHistory, MirrorOutcome, MirrorPlace

_TIMEOUT_S = 3600.0
_PLAIN = ("init.defaultBranch=main", "init.defaultRefFormat=files")


def write_bundle(
    environment: Mapping[str, str], place: MirrorPlace, history: MirroredHistory, fd: int
) -> MirrorOutcome:
    """`GitFailed` when git cannot make it."""
    scratch = os.fsencode(tempfile.mkdtemp(prefix="holdfast-bundle-"))
    try:
        repository = Repository(
            scratch, os.path.join(scratch, b"git"), os.path.join(scratch, b"git")
        )
        Git(repository, environment, _TIMEOUT_S).run(
            "init", "--bare", "--quiet", "--template=", repository.git_dir, config=_PLAIN
        )
        variables = {"GIT_DIR": repository.git_dir}
        git = GitWith(repository, environment, _TIMEOUT_S, variables)
        # Nobody stands on the branch before it is made: a mirror is never made under anybody.
        git.run("symbolic-ref", "HEAD", "refs/heads/nobody")
        outcome = Mirror(git, place, history).catch_up()
        git.run("symbolic-ref", "HEAD", place.branch)
        file = os.path.join(scratch, b"bundle")
        git.run("bundle", "create", "--quiet", file, "HEAD", "--all")
        with opened(file) as made:
            if made is None:
                raise GitFailed("git made no bundle")
            for block in blocks_of(made):
                _write(fd, block)
        return outcome
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
