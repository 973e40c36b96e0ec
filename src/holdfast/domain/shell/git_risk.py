"""Risks of git commands: lost uncommitted work, unreferenced commits, remote branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from holdfast.domain.shell.expansion import after_options, flags, plain_words
from holdfast.domain.shell.findings import Finding, notable, risky

_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path")
_WHOLE_TREE = frozenset("reset clean checkout switch stash read-tree checkout-index".split())
_CHANGING = frozenset("merge pull cherry-pick revert am apply bisect rebase mv submodule".split())
_VALUES = {
    "clone": "-b --branch -c --config --depth --filter -j --jobs -o --origin --reference "
    "--reference-if-able --separate-git-dir --shallow-exclude --shallow-since --template -u "
    "--upload-pack",
    "init": "-b --initial-branch --object-format --ref-format --separate-git-dir --template",
    "worktree": "-b -B --reason",
    "bundle": "--version",
}
"""For some verbs, the options that take the next word as value."""
_OUTPUTS = {
    "archive": ("-o", "--output"),
    "diff": ("--output",),
    "format-patch": ("-o", "--output", "--output-directory"),
    "log": ("--output",),
    "show": ("--output",),
}


def git_finding(arguments: Sequence[str]) -> Finding | None:
    """What a git command may destroy."""
    verb, rest = _verb(arguments)
    if verb in _CHANGING:
        return notable(f"git {verb} changes files")
    rule = {
        "reset": _reset,
        "clean": _clean,
        "push": _push,
        "checkout": _checkout,
        "switch": _switch,
        "restore": _restore,
        "branch": _branch,
        "stash": _stash,
    }.get(verb)
    if rule is not None:
        return rule(rest)
    has = _has(rest)
    if verb in ("filter-branch", "filter-repo", "replace"):
        return risky(f"git {verb} rewrites history")
    if verb == "rm" and not has("n", "--cached", "--dry-run"):
        return risky("git rm deletes files")
    if verb == "read-tree" and has("--reset", "u"):
        return risky("git read-tree discards changes")
    if verb == "checkout-index" and has("f", "--force"):
        return risky("git checkout-index overwrites files")
    if verb == "reflog" and rest[:1] in (["expire"], ["delete"]):
        return risky("git reflog forgets commits")
    if verb in ("gc", "prune") and (verb == "prune" or has("--prune")):
        return risky(f"git {verb} deletes unreferenced commits")
    if verb == "update-ref" and has("d", "--delete"):
        return risky("git update-ref deletes a reference")
    if verb == "worktree" and rest[:1] == ["remove"]:
        return risky("git worktree remove deletes a worktree")
    if verb == "commit" and has("--amend"):
        return notable("git commit --amend replaces a commit")
    if verb == "tag" and has("d", "--delete", "f", "--force"):
        return notable("git tag moves or deletes a tag")
    return None


def changed_trees(arguments: Sequence[str]) -> Iterator[str]:
    """The paths that a git command changes, relative to its directory: those it names, or the whole
    tree."""
    verb, rest = _verb(arguments)
    names = plain_words(rest)
    into = [word.partition("=")[2] for word in rest if word.startswith("--directory=")]
    if verb in ("apply", "am") and into:
        yield from into
    elif "--" in rest:
        yield from rest[rest.index("--") + 1 :]
    elif verb in ("rm", "mv", "restore"):
        yield from names
    elif verb in _CHANGING or verb in _WHOLE_TREE:
        yield "."


def written_paths(arguments: Sequence[str]) -> Iterator[str]:
    """The paths that a git command creates, moves, removes or writes its output to, relative to its
    directory: clones, repositories, worktrees, bundles, archives, patches."""
    verb, rest = _verb(arguments)
    names = plain_words(rest, _VALUES.get(verb, "").split())
    if verb == "clone":
        yield from names[1:2]
    elif verb == "init":
        yield from names[:1]
    elif verb == "worktree" and names[:1] in (["add"], ["remove"]):
        yield from names[1:2]
    elif verb == "worktree" and names[:1] == ["move"]:
        yield from names[1:3]
    elif verb == "bundle" and names[:1] == ["create"]:
        yield from names[1:2]
    for position, word in enumerate(rest):
        option, equals, value = word.partition("=")
        if option in _OUTPUTS.get(verb, ()):
            yield from [value] if equals else rest[position + 1 : position + 2]


def emptied_trees(arguments: Sequence[str]) -> Iterator[str]:
    """Where a git command deletes ignored files: in the paths it names, relative to its directory,
    or in the whole tree."""
    verb, rest = _verb(arguments)
    has = _has(rest)
    if verb == "stash" and has("a", "--all") and rest[:1] not in (["apply"], ["branch"]):
        yield ":/"
    elif verb == "clean" and has("x", "X") and not has("n", "--dry-run"):
        yield from plain_words(rest, ("-e", "--exclude")) or ["."]


def _verb(arguments: Sequence[str]) -> tuple[str, list[str]]:
    rest = after_options(arguments, lambda option: option in _WITH_VALUE)
    return (rest[0], rest[1:]) if rest else ("", [])


def _has(words: Sequence[str]) -> Callable[..., bool]:
    """Returns a test for whether one of these options is given; single letters also in a bundle."""
    given = flags(words)
    return lambda *names: not given.isdisjoint(names)


def _reset(rest: list[str]) -> Finding | None:
    if _has(rest)("--hard", "--merge", "--keep"):
        return risky("git reset --hard discards changes")
    return notable("git reset moves HEAD or the index")


def _clean(rest: list[str]) -> Finding | None:
    if _has(rest)("n", "--dry-run"):
        return None
    ignored = " and ignored ones" if _has(rest)("x", "X") else ""
    return risky(f"git clean deletes untracked files{ignored}")


def _push(rest: list[str]) -> Finding | None:
    forced = _has(rest)(
        "f", "--force", "--force-with-lease", "--mirror", "--delete", "d", "--prune"
    )
    if forced or any(word.startswith(("+", ":")) for word in rest):
        return risky("a forced push cannot be undone here")
    return notable("git push cannot be undone here")


def _checkout(rest: list[str]) -> Finding | None:
    has = _has(rest)
    paths = "--" in rest or any(word in (".", "./", ":/", "*") for word in rest)
    if paths or has("f", "--force", "B", "p", "--patch", "--ours", "--theirs", "m", "--merge"):
        return risky("git checkout overwrites files")
    if has("b", "--orphan") or not rest:
        return None
    if len(plain_words(rest)) > 1 and not has("t", "--track"):
        return risky("git checkout overwrites files")
    return notable("git checkout may change many files")


def _switch(rest: list[str]) -> Finding | None:
    if _has(rest)("f", "--force", "--discard-changes", "C"):
        return risky("git switch discards changes")
    if _has(rest)("c", "--create"):
        return None
    return notable("git switch may change many files")


def _restore(rest: list[str]) -> Finding | None:
    has = _has(rest)
    if has("--staged", "S") and not has("--worktree", "W"):
        return notable("git restore --staged changes the index")
    return risky("git restore overwrites files")


def _branch(rest: list[str]) -> Finding | None:
    has = _has(rest)
    if has("D", "M", "C") or (has("d", "--delete", "m", "--move") and has("f", "--force")):
        return risky("git branch -D deletes commits that are not merged")
    if has("d", "--delete", "f", "--force"):
        return notable("git branch deletes or moves a branch")
    return None


def _stash(rest: list[str]) -> Finding | None:
    verb = next(iter(plain_words(rest)), "push")
    if verb in ("drop", "clear"):
        return risky(f"git stash {verb} deletes stashed work")
    if verb in ("list", "show"):
        return None
    return notable("git stash changes files")
