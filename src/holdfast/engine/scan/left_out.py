"""Whether the rules of a workspace leave a directory or a file out, without a scan of anything
else.

    from the root downwards: list → rules of this directory → is the next one on the way captured?

Guarantee: the answer is the one that a scan at this moment would give. A directory that is entered
just for something that is included below it counts as left out: whatever else is in it is not
captured.
"""

from __future__ import annotations

from contextlib import suppress

from holdfast.domain.paths import GIT_DIRECTORY, join
from holdfast.engine.scan.policy import CapturePolicy, DirectoryRules, Mode, Verdict
from holdfast.engine.scan.repositories import repository_kind
from holdfast.engine.scan.rule_files import RuleFiles
from holdfast.engine.scan.walker import DIRECTORY_FLAGS
from holdfast.ports.filesystem import Filesystem

_ANY_NAME = b"\x01"
"""A file that no pattern is about, unless it is about all of them."""


def leaves_out(fs: Filesystem, policy: CapturePolicy, root_fd: int, directory: bytes) -> bool:
    """OSError when the way to the directory cannot be gone; links are not followed."""
    rule_files = RuleFiles(fs, policy)
    rules = rule_files.above_root()
    opened = [fs.open(b".", DIRECTORY_FLAGS, dir_fd=root_fd)]
    path = b""
    try:
        for name in directory.split(b"/"):
            names = fs.list_names(opened[-1])
            if policy.kept is not None:
                policy.kept.enter(path, names, _not_settled)
            entered = _as_cache(rule_files, policy, opened[-1], path, names, rules)
            rules = rule_files.entering(opened[-1], path, names, rules, entered.mode)
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
        judged = _as_cache(rule_files, policy, opened[-1], path, names, rules)
        if judged.reason is None and judged.mode is not Mode.NORMAL:
            judged = policy.judge(rules.stack, join(path, _ANY_NAME), False, judged.mode)
        return judged.reason is not None
    finally:
        for fd in opened:
            fs.close(fd)


def ignoring_rule(fs: Filesystem, policy: CapturePolicy, root_fd: int, path: bytes) -> str | None:
    """The rule that ignores a file, as `status --skipped` shows it; None when none does, and for
    what is never captured. The file and the directories above it need not be there. An exception
    that the policy knows counts: with none, the answer is about the rules alone."""
    rule_files = RuleFiles(fs, policy)
    rules = rule_files.above_root()
    at: bytes = b""
    opened: list[int] = [fs.open(b".", DIRECTORY_FLAGS, dir_fd=root_fd)]
    names = path.split(b"/")
    try:
        for number, name in enumerate(names):
            if len(opened) > number:
                present = fs.list_names(opened[-1])
                if policy.kept is not None:
                    policy.kept.enter(at, present, _not_settled)
                entered = _as_cache(rule_files, policy, opened[-1], at, present, rules)
                if entered.reason is not None:
                    return entered.detail
                rules = rule_files.entering(opened[-1], at, present, rules, entered.mode)
            at = join(at, name)
            if name == GIT_DIRECTORY or at in policy.own_data:
                return None
            is_last = number == len(names) - 1
            judged = policy.judge(rules.stack, at, not is_last, rules.mode)
            if judged.reason is not None or is_last:
                return judged.detail if judged.reason is not None else None
            rules = DirectoryRules(rules.fingerprint, judged.mode, stack=rules.stack)
            if len(opened) > number:
                with suppress(FileNotFoundError, NotADirectoryError):
                    opened.append(fs.open(name, DIRECTORY_FLAGS, dir_fd=opened[-1]))
        return None
    finally:
        for fd in opened:
            fs.close(fd)


def _not_settled(ctime_ns: int) -> bool:
    """Nothing that is found out here is kept for later."""
    return False


def _as_cache(
    rule_files: RuleFiles,
    policy: CapturePolicy,
    fd: int,
    path: bytes,
    names: list[bytes],
    rules: DirectoryRules,
) -> Verdict:
    return policy.judge_cache(rules, path, names, lambda name: rule_files.read(fd, name))
