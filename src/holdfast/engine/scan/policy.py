"""Which paths of a workspace are captured: ignore rules, includes, the size cap, a filter.

A directory is entered in one of four modes:

    NORMAL         rules decide
    EVERYTHING     below an included directory
    ONLY_LISTED    below an ignored one: only included paths, and paths that a restore is about to
                   write, because those must be saved first (RB-4)
    ONLY_EXPLICIT  below one that a built-in rule ignores: the same, but patterns without a slash
                   are not searched for in subdirectories

Exceptions are single files, tracked by git or named by a tool. They are captured in every mode.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.ignore.defaults import (
    CACHEDIR_TAG,
    DEFAULT_RULES,
    cache_marker,
)
from holdfast.domain.ignore.includes import IncludePatterns
from holdfast.domain.ignore.rules import Precedence, RuleLayer, RuleStack, parse_rules
from holdfast.domain.paths import MARKER_DIRECTORY, to_text
from holdfast.domain.settings.schema import Settings
from holdfast.domain.trees.objects import digest_of
from holdfast.engine.scan.repositories import ExemptPaths, RepositoryKind
from holdfast.values.classes import dataclass

GITIGNORE = b".gitignore"
HOLDFASTIGNORE = b".holdfastignore"
IGNORE_FILES = (GITIGNORE, HOLDFASTIGNORE)
DECIDING_FILES = (*IGNORE_FILES, CACHEDIR_TAG)
"""Files whose content affects the capture of others."""

FileFilter: TypeAlias = Callable[[Path], bool]
"""The caller's code that decides whether a file is captured."""

FINGERPRINT_BYTES = 16
_BELOW_IGNORED = "in an ignored directory"


class Mode(IntEnum):
    NORMAL = 0
    EVERYTHING = 1
    ONLY_LISTED = 2
    ONLY_EXPLICIT = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """Capture it (and enter it in `mode` if it is a directory), or skip it for `reason`. An ignored
    directory that is entered only for included paths below has a `detail` as well."""

    mode: Mode = Mode.NORMAL
    reason: SkipReason | None = None
    detail: str = ""
    ignored_by: str = ""
    """The rule that would leave out a path that is captured as an exception."""


_CAPTURE = Verdict()
_CAPTURE_ALL = Verdict(Mode.EVERYTHING)
ENTER_ONLY = Verdict(Mode.ONLY_LISTED, detail=_BELOW_IGNORED)
_ENTER_EXPLICIT = Verdict(Mode.ONLY_EXPLICIT, detail=_BELOW_IGNORED)
_NOT_LISTED = Verdict(reason=SkipReason.IGNORED, detail=_BELOW_IGNORED)


class CapturePolicy:
    """Capture decisions from a workspace's settings."""

    def __init__(
        self,
        settings: Settings,
        workspace: Path,
        file_filter: FileFilter | None = None,
        *,
        own_data: bytes | None = None,
    ) -> None:
        self.own_data = {MARKER_DIRECTORY} if own_data is None else {MARKER_DIRECTORY, own_data}
        self.max_file_size = settings.max_file_size
        self._use_defaults = settings.defaults == "on"
        self._leaves_repositories = settings.nested_repositories != "on"
        self._includes = IncludePatterns.parse(settings.include)
        self._workspace = workspace
        self._file_filter = file_filter
        layers = [DEFAULT_RULES] if self._use_defaults else []
        configured = "\n".join(settings.ignore).encode("utf-8", "surrogateescape")
        layers.append(parse_rules(configured, b"", "setting 'ignore'", Precedence.SETTING))
        self.root_stack = RuleStack.of(*layers)
        self.salt = digest_of(
            b"policy 3|%d|%d|%d|%d|"
            % (self.max_file_size, self._use_defaults, self.has_filter, self._leaves_repositories)
            + self._includes.fingerprint
        )
        self.kept: ExemptPaths | None = None

    def with_exceptions(self, kept: ExemptPaths) -> CapturePolicy:
        """The same policy with these exceptions, for one scan."""
        policy = object.__new__(CapturePolicy)
        vars(policy).update(vars(self))
        policy.kept = kept
        return policy

    @property
    def has_filter(self) -> bool:
        return self._file_filter is not None

    def judge(self, stack: RuleStack, path: bytes, is_dir: bool, mode: Mode) -> Verdict:
        if mode is Mode.EVERYTHING:
            return _CAPTURE_ALL
        if mode is not Mode.NORMAL:
            by_default = mode is Mode.ONLY_EXPLICIT
            exception = self._exception(path, is_dir, by_default=by_default)
            return _NOT_LISTED if exception is None else _ignored(_BELOW_IGNORED, exception)
        rule = stack.decide(path, is_dir)
        if rule is None or rule.negated:
            # No rule ignores the directory itself; ignored files in it are included anyway.
            return _CAPTURE_ALL if is_dir and self._includes.matches(path, True) else _CAPTURE
        by_default = rule.source == "default"
        exception = self._exception(path, is_dir, by_default=by_default)
        return _ignored(rule.describe(), exception)

    def judge_cache(
        self,
        parent: DirectoryRules,
        path: bytes,
        names: list[bytes],
        read: Callable[[bytes], bytes | None],
    ) -> Verdict:
        """A directory that marks itself as a cache is left out like an ignored one, unless a rule
        re-includes it (`!target/`)."""
        verdict = Verdict(parent.mode)
        if parent.mode is not Mode.NORMAL or not path or not self._use_defaults:
            return verdict
        marker = cache_marker(names, read)
        if marker is None:
            return verdict
        rule = parent.stack.decide(path, True)
        if rule is not None and rule.negated:
            return verdict
        exception = self._exception(path, True, by_default=True)
        return _ignored(f"default: holds {to_text(marker)}", exception)

    def judge_repository(self, kind: RepositoryKind | None, path: bytes) -> SkipReason | None:
        """Why the directory, the top of a repository below the workspace, is not entered."""
        if kind is None or not path:
            return None
        if kind is RepositoryKind.LINKED_WORKTREE:
            return SkipReason.WORKTREE
        return SkipReason.REPOSITORY if self._leaves_repositories else None

    def _exception(self, path: bytes, is_dir: bool, *, by_default: bool) -> Verdict | None:
        if self._includes.matches(path, is_dir):
            return _CAPTURE_ALL
        kept = self.kept
        if kept is not None and kept.holds(path, is_dir):
            return _CAPTURE
        below = is_dir and self._includes.may_match_below(path, by_default)
        if below or (is_dir and kept is not None and kept.holds_below(path)):
            return _ENTER_EXPLICIT if by_default else ENTER_ONLY
        return None

    def filtered_out(self, path: bytes) -> bool:
        return self._file_filter is not None and not self._file_filter(
            self._workspace / to_text(path)
        )


def _ignored(why: str, exception: Verdict | None) -> Verdict:
    """The verdict of an ignore rule, `why`, unless an include makes an exception."""
    if exception is None:
        return Verdict(reason=SkipReason.IGNORED, detail=why)
    if exception is _CAPTURE:
        return Verdict(ignored_by=why)
    return exception if exception is _CAPTURE_ALL else Verdict(exception.mode, detail=why)


class DirectoryRules:
    """The rules of one directory, assembled only when needed."""

    __slots__ = ("_load", "_stack", "fingerprint", "mode")

    def __init__(
        self,
        fingerprint: bytes,
        mode: Mode,
        *,
        stack: RuleStack | None = None,
        load: Callable[[], RuleStack] | None = None,
    ) -> None:
        self.fingerprint = fingerprint
        self.mode = mode
        self._stack = stack
        self._load = load

    @property
    def stack(self) -> RuleStack:
        if self._stack is None:
            assert self._load is not None
            self._stack = self._load()
        return self._stack


_parse = lru_cache(maxsize=256)(parse_rules)
"""Cached: ignore files are read on every scan and rarely change."""


def layers_of(path: bytes, contents: dict[bytes, bytes]) -> list[RuleLayer]:
    """Rules from the ignore files of one directory, by file name (`info/exclude` for git's own)."""
    layers = []
    if (text := contents.get(b"info/exclude")) is not None:
        layers.append(_parse(text, path, ".git/info/exclude", Precedence.GIT_EXCLUDE))
    if (text := contents.get(GITIGNORE)) is not None:
        layers.append(_parse(text, path, ".gitignore", Precedence.GITIGNORE))
    if (text := contents.get(HOLDFASTIGNORE)) is not None:
        layers.append(_parse(text, path, ".holdfastignore", Precedence.HOLDFASTIGNORE))
    return layers


def rules_fingerprint(salt: bytes, stack: RuleStack, mode: Mode) -> bytes:
    return _fingerprint(salt, stack.fingerprint, mode)


@lru_cache(maxsize=1024)
def _fingerprint(salt: bytes, stack: bytes, mode: Mode) -> bytes:
    """Cached: most directories share the rules of their parent, and one object serves all."""
    return digest_of(b"%s|%d|%s" % (salt, mode, stack))[:FINGERPRINT_BYTES]
