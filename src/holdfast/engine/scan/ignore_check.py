"""Checks whether a workspace's rules exclude a directory or a file, without a full scan.

    from the root downwards: list → this directory's rules → is the next directory captured?

Guarantee: the answer matches a scan at this moment. A directory that is entered only for an
included path below it counts as excluded, because nothing else in it is captured.

An ignored file that a tool names is captured from then on, by whatever means the tool accesses it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack

from holdfast.domain.errors import HoldfastError
from holdfast.domain.ignore.rules import Precedence, precedence_of
from holdfast.domain.paths import GIT_DIRECTORY, basename, join, parent, to_text
from holdfast.engine.scan.policy import CapturePolicy, DirectoryRules, Mode, Verdict
from holdfast.engine.scan.repositories import repository_kind
from holdfast.engine.scan.rule_files import RuleFiles
from holdfast.engine.vault import Vault
from holdfast.ports.filesystem import DIRECTORY_FLAGS, Filesystem
from holdfast.values.classes import NamedTuple

_ANY_NAME = b"\x01"
"""A file name that only a pattern for all files matches."""
_SLASH = ord(b"/")
_NOT_ENTERED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES)
"""Missing, a link or of another type by now, or not accessible."""

MOST_NAMED = 5_000


def leaves_out(fs: Filesystem, policy: CapturePolicy, root_fd: int, directory: bytes) -> bool:
    """OSError if the directory cannot be reached; links are not followed."""
    rule_files = RuleFiles(fs, policy)
    rules = rule_files.above_root()
    opened = [fs.open(b".", DIRECTORY_FLAGS, dir_fd=root_fd)]
    path = b""
    try:
        for name in directory.split(b"/"):
            names = fs.list_names(opened[-1])
            if policy.kept is not None:
                policy.kept.enter(path, names, _not_settled)
            entered = _cache_verdict(rule_files, policy, opened[-1], path, names, rules)
            rules = rule_files.rules_inside(opened[-1], path, names, rules, entered.mode)
            path = join(path, name)
            judged = policy.judge(rules.stack, path, True, rules.mode)
            own = name == GIT_DIRECTORY or path in policy.own_data
            if own or entered.reason is not None or judged.reason is not None:
                return True
            rules = DirectoryRules(rules.fingerprint, judged.mode, stack=rules.stack)
            opened.append(fs.open(name, DIRECTORY_FLAGS, dir_fd=opened[-1]))
            if policy.judge_repository(repository_kind(fs, opened[-1]), path) is not None:
                return True
        names = fs.list_names(opened[-1])
        judged = _cache_verdict(rule_files, policy, opened[-1], path, names, rules)
        if judged.reason is None and judged.mode is not Mode.NORMAL:
            judged = policy.judge(rules.stack, join(path, _ANY_NAME), False, judged.mode)
        return judged.reason is not None
    finally:
        for fd in opened:
            fs.close(fd)


class IgnoreRules:
    """A workspace's rules, for many files: each directory is listed once."""

    def __init__(
        self,
        fs: Filesystem,
        policy: CapturePolicy,
        open_root: Callable[[], AbstractContextManager[int]],
    ) -> None:
        self._fs = fs
        self._policy = policy
        self._open_root = open_root
        self._rule_files = RuleFiles(fs, policy)
        self._inside: dict[bytes, DirectoryRules | _Decided] = {}

    def rule(self, path: bytes) -> str | None:
        """The rule that ignores a file, as `status --skipped` shows it. None if there is none, or
        if the file is never captured. The file and its parents may be missing or unreadable.
        Exceptions in the policy count; without them, only the rules decide."""
        for place, letter in enumerate(path):
            if letter == _SLASH:  # top-down, because trees may be deeper than Python recurses
                self._within(path[:place])
        found = self._next(path, is_directory=False)
        return found.rule if isinstance(found, _Decided) else None

    def _next(self, path: bytes, *, is_directory: bool) -> DirectoryRules | _Decided:
        above = self._within(parent(path))
        if isinstance(above, _Decided):
            return above
        if basename(path) == GIT_DIRECTORY or path in self._policy.own_data:
            return _Decided(None)
        judged = self._policy.judge(above.stack, path, is_directory, above.mode)
        if judged.reason is not None:
            return _Decided(judged.detail)
        return DirectoryRules(above.fingerprint, judged.mode, stack=above.stack)

    def _within(self, directory: bytes) -> DirectoryRules | _Decided:
        if directory not in self._inside:
            rules: DirectoryRules | _Decided = self._rule_files.above_root()
            if directory:
                rules = self._next(directory, is_directory=True)
            if isinstance(rules, DirectoryRules):
                rules = self._entered(directory, rules)
            self._inside[directory] = rules
        return self._inside[directory]

    def _entered(self, directory: bytes, rules: DirectoryRules) -> DirectoryRules | _Decided:
        """The rules inside a directory. If it is unreadable, it adds none."""
        with ExitStack() as opened:
            try:
                fd = self._open(opened, directory)
                names = self._fs.list_names(fd)
            except OSError as error:
                if error.errno not in _NOT_ENTERED:
                    raise
                return rules
            if self._policy.kept is not None:
                self._policy.kept.enter(directory, names, _not_settled)
            judged = _cache_verdict(self._rule_files, self._policy, fd, directory, names, rules)
            if judged.reason is not None:
                return _Decided(judged.detail)
            return self._rule_files.rules_inside(fd, directory, names, rules, judged.mode)

    def _open(self, opened: ExitStack, directory: bytes) -> int:
        fd = opened.enter_context(self._open_root())
        for name in directory.split(b"/") if directory else [b"."]:
            way = opened.pop_all()
            with way:
                fd = self._fs.open(name, DIRECTORY_FLAGS, dir_fd=fd)
            opened.callback(self._fs.close, fd)
        return fd


class _Decided(NamedTuple):
    """The rule that leaves out a directory with everything in it; None for paths that are never
    captured."""

    rule: str | None


def _not_settled(ctime_ns: int) -> bool:
    """Nothing found here is kept for later."""
    return False


def _cache_verdict(
    rule_files: RuleFiles,
    policy: CapturePolicy,
    fd: int,
    path: bytes,
    names: list[bytes],
    rules: DirectoryRules,
) -> Verdict:
    return policy.judge_cache(rules, path, names, lambda name: rule_files.read(fd, name))


def name_ignored_paths(vault: Vault, candidates: Mapping[bytes, bool]) -> dict[bytes, str]:
    """Capture the ignored ones of these paths from the next checkpoint on. Each path comes with
    whether the tool changes it, because files that built-in rules ignore are read all the time.
    Returns the new paths with the rules that ignore them. Called with the store's lock held;
    `HoldfastError` if there are too many."""
    if vault.settings.capture_named_ignored != "on":
        return {}
    found = _ignored(vault, candidates)
    known = vault.parts.named_paths.load()
    new = {path: rule for path, rule in found.items() if path not in known}
    if new:
        if len(known) + len(new) > MOST_NAMED:
            raise HoldfastError(
                f"{to_text(next(iter(new)))!r} is not captured, because {MOST_NAMED:,} ignored "
                "files are captured already"
            )
        vault.parts.named_paths.replace([*known, *new])
    return new


def _ignored(vault: Vault, candidates: Mapping[bytes, bool]) -> dict[bytes, str]:
    from holdfast.engine.save.workspace_tree import capture_policy

    found: dict[bytes, str] = {}
    if not candidates:
        return found
    rules = IgnoreRules(vault.fs, capture_policy(vault), vault.open_root)
    for path, changes in candidates.items():
        try:
            rule = rules.rule(path)
        except OSError:  # unreachable, so it is not captured
            continue
        if rule is not None and (changes or precedence_of(rule) is not Precedence.DEFAULT):
            found[path] = rule
    return found
