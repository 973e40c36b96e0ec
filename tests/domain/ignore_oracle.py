"""What git says about a working tree, and what the rules under test say about the same tree.

git is asked twice: which rule decides about every path, and which paths it ignores. The walk that
rules alone do not do (below an ignored directory, everything is ignored by the same rule) is here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.domain.ignore.rules import IgnoreRule, Precedence, RuleStack, parse_rules

# What git says decided about a path: the file, the line, the pattern. Empty: nothing did.
Verdict = tuple[bytes, int, bytes]
NO_RULE: Verdict = (b"", 0, b"")


@dataclass(frozen=True, slots=True)
class Workspace:
    """Files, directories (with a slash at the end) and the ignore files of some directories."""

    paths: frozenset[bytes]
    gitignores: Mapping[bytes, bytes]
    exclude: bytes = b""

    def write(self, root: bytes) -> None:
        for name in os.listdir(root):
            if name != b".git":
                where = os.path.join(root, name)
                shutil.rmtree(where) if os.path.isdir(where) else os.unlink(where)
        for path in sorted(self.paths):
            where = os.path.join(root, path)
            if path.endswith(b"/"):
                os.makedirs(where, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(where), exist_ok=True)
                os.close(os.open(where, os.O_CREAT | os.O_WRONLY))
        for directory, text in self.gitignores.items():
            Path(os.fsdecode(os.path.join(root, directory, b".gitignore"))).write_bytes(text)
        Path(os.fsdecode(root), ".git/info/exclude").write_bytes(self.exclude)

    def children(self) -> dict[bytes, dict[bytes, bool]]:
        """The names in each directory, and whether each is a directory itself."""
        tree: dict[bytes, dict[bytes, bool]] = {b"": {}}
        ignore_files = {_join(directory, b".gitignore") for directory in self.gitignores}
        for path in self.paths | ignore_files:
            directory = b""
            *parents, last = path.rstrip(b"/").split(b"/")
            for name in parents:
                tree[directory][name] = True
                directory = _join(directory, name)
                tree.setdefault(directory, {})
            is_dir = path.endswith(b"/")
            tree[directory][last] = is_dir
            if is_dir:
                tree.setdefault(_join(directory, last), {})
        return tree


@dataclass(frozen=True, slots=True)
class Decided:
    """How the rules under test decide about everything in a workspace."""

    verdicts: dict[bytes, Verdict]
    ignored: frozenset[bytes]  # the topmost paths, directories with a slash
    captured_files: frozenset[bytes]


def decide_all(workspace: Workspace) -> Decided:
    tree = workspace.children()
    verdicts: dict[bytes, Verdict] = {}
    ignored: set[bytes] = set()
    captured: set[bytes] = set()

    def visit(directory: bytes, stack: RuleStack, inherited: IgnoreRule | None) -> None:
        if directory in workspace.gitignores and inherited is None:
            text = workspace.gitignores[directory]
            stack = stack.with_layer(parse_rules(text, directory, ".gitignore"))
        names = stack.in_directory(directory)
        for name, is_dir in tree[directory].items():
            path = _join(directory, name)
            rule = inherited or stack.decide(path, is_dir)
            assert inherited or names.decide(name, is_dir) is rule
            verdicts[path] = verdict_of(rule)
            is_ignored = rule is not None and not rule.negated
            if is_ignored and inherited is None:
                ignored.add(path + b"/" if is_dir else path)
            if is_dir:
                visit(path, stack, rule if is_ignored else None)
            elif not is_ignored:
                captured.add(path)

    exclude = parse_rules(workspace.exclude, b"", ".git/info/exclude", Precedence.GIT_EXCLUDE)
    visit(b"", RuleStack.of(exclude), None)
    return Decided(verdicts, frozenset(ignored), frozenset(captured))


@dataclass(frozen=True, slots=True)
class Git:
    """A repository without a commit, and what git says about its working tree."""

    root: bytes

    def run(
        self, *arguments: str, stdin: bytes = b"", statuses: Sequence[int] = (0,)
    ) -> list[bytes]:
        command = ["git", "-c", "core.excludesFile=/dev/null", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, check=False, cwd=self.root)
        assert done.returncode in statuses, done.stderr
        return done.stdout.split(b"\0")[:-1]

    def verdicts(self, paths: Sequence[bytes]) -> dict[bytes, Verdict]:
        # "./" keeps git from reading a leading colon as pathspec magic.
        stdin = b"".join(b"./" + path + b"\0" for path in paths)
        fields = self.run(
            *("check-ignore", "-z", "--stdin", "-v", "-n"), stdin=stdin, statuses=(0, 1)
        )
        answers = zip(*(iter(fields),) * 4, strict=True)
        return {
            path.removeprefix(b"./"): (source, int(line or 0), pattern)
            for source, line, pattern, path in answers
        }

    def ignored(self) -> frozenset[bytes]:
        """Ignored paths, the topmost only; also directories that hold nothing else."""
        options = ("-z", "-o", "-i", "--exclude-standard", "--directory")
        return frozenset(self.run("ls-files", *options))


def assert_equal_to_git(git: Git, workspace: Workspace) -> Decided:
    workspace.write(git.root)
    decided = decide_all(workspace)
    assert decided.verdicts == git.verdicts(list(decided.verdicts))
    ignored = git.ignored()
    assert decided.ignored <= ignored
    for surplus in ignored - decided.ignored:
        holds = (path for path in decided.captured_files if path.startswith(surplus))
        below_ignored = any(
            surplus.startswith(path) for path in decided.ignored if path.endswith(b"/")
        )
        assert surplus.endswith(b"/")
        assert not below_ignored
        assert next(holds, None) is None
    return decided


def verdict_of(rule: IgnoreRule | None) -> Verdict:
    if rule is None:
        return NO_RULE
    return _join(rule.base, rule.source.encode()), rule.line, rule.pattern


def _join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name
