"""Reading ignore files through the open directory they belong to."""

from __future__ import annotations

import stat
from typing import TypeAlias

from holdfast.domain.ignore.rules import RuleStack
from holdfast.domain.paths import GIT_DIRECTORY
from holdfast.engine.scan.directory_state import DirectoryState
from holdfast.engine.scan.policy import (
    IGNORE_FILES,
    CapturePolicy,
    DirectoryRules,
    Mode,
    layers_of,
    rules_fingerprint,
)
from holdfast.engine.scan.stable_read import read_whole
from holdfast.ports.filesystem import DIRECTORY_FLAGS, FILE_FLAGS, Filesystem

LARGEST_BYTES = 4 << 20
"""Far above any ignore file written by people; larger files are not read as rules."""


KnownRules: TypeAlias = "tuple[DirectoryRules | KnownRules, int, bytes, DirectoryState]"
"""The source of an unchanged directory's rules, in case they are needed: the rules above it, its
handle, path and state. A plain tuple, because one is made per directory."""


class RuleFiles:
    def __init__(self, fs: Filesystem, policy: CapturePolicy) -> None:
        self._fs = fs
        self._policy = policy

    def above_root(self) -> DirectoryRules:
        stack = self._policy.root_stack
        fingerprint = rules_fingerprint(self._policy.salt, stack, Mode.NORMAL)
        return DirectoryRules(fingerprint, Mode.NORMAL, stack=stack)

    def rules_inside(
        self, fd: int, path: bytes, names: list[bytes], parent: DirectoryRules, mode: Mode
    ) -> DirectoryRules:
        """The rules inside a directory that has just been listed."""
        contents = self._contents(fd, names, git=GIT_DIRECTORY in names)
        stack = self._stack(parent.stack, path, contents)
        return DirectoryRules(rules_fingerprint(self._policy.salt, stack, mode), mode, stack=stack)

    def known(self, known: KnownRules) -> DirectoryRules:
        """The rules of a directory with unchanged ignore files; read only if needed."""

        above, fd, path, state = known

        def load() -> RuleStack:
            parent = self.known(above) if isinstance(above, tuple) else above
            stack = parent.stack
            if state.has_ignore_files:
                contents = self._contents(fd, list(IGNORE_FILES), git=False)
                stack = self._stack(stack, path, contents)
            # They may have been edited since the last scan. Decisions by the new rules must not be
            # remembered as decisions by the old ones, which may come back.
            rules.fingerprint = rules_fingerprint(self._policy.salt, stack, Mode.NORMAL)
            return stack

        rules = DirectoryRules(state.rules, Mode.NORMAL, load=load)
        return rules

    def _stack(self, stack: RuleStack, path: bytes, contents: dict[bytes, bytes]) -> RuleStack:
        for layer in layers_of(path, contents):
            stack = stack.with_layer(layer)
        return stack

    def _contents(self, fd: int, names: list[bytes], *, git: bool) -> dict[bytes, bytes]:
        contents: dict[bytes, bytes] = {}
        for name in IGNORE_FILES:
            if name in names and (text := self.read(fd, name)) is not None:
                contents[name] = text
        if git and (text := self.read_git_exclude(fd)) is not None:
            contents[b"info/exclude"] = text
        return contents

    def read_git_exclude(self, fd: int) -> bytes | None:
        opened: list[int] = []
        try:
            for name in (GIT_DIRECTORY, b"info"):
                opened.append(
                    self._fs.open(name, DIRECTORY_FLAGS, dir_fd=opened[-1] if opened else fd)
                )
            return self.read(opened[-1], b"exclude")
        except OSError:  # no ordinary repository here
            return None
        finally:
            for each in opened:
                self._fs.close(each)

    def read(self, fd: int, name: bytes) -> bytes | None:
        """Like git, does not follow a symbolic link in place of an ignore file."""
        try:
            named = self._fs.stat(name, dir_fd=fd, follow_symlinks=False)
            if not stat.S_ISREG(named.st_mode):
                return None  # a pipe is not even opened
            file_fd = self._fs.open(name, FILE_FLAGS, dir_fd=fd)
        except OSError:
            return None
        try:
            status = self._fs.fstat(file_fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_BYTES:
                return None
            return read_whole(self._fs, file_fd, status.st_size)
        finally:
            self._fs.close(file_fd)
