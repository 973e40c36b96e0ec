"""Whether the rules of a workspace leave a directory out, without a scan of anything else.

    from the root downwards: list → rules of this directory → is the next one on the way captured?

Guarantee: the answer is the one that a scan at this moment would give. A directory that is entered
just for something that is included below it counts as left out: whatever else is in it is not
captured.
"""

from __future__ import annotations

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


def _as_cache(
    rule_files: RuleFiles,
    policy: CapturePolicy,
    fd: int,
    path: bytes,
    names: list[bytes],
    rules: DirectoryRules,
) -> Verdict:
    return policy.judge_cache(rules, path, names, lambda name: rule_files.read(fd, name))
