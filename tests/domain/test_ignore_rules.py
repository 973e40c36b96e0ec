"""Ignore rules by themselves: precedence, reasons, fingerprints, bounded time, defaults."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.ignore.defaults import (
    CACHEDIR_TAG_SIGNATURE,
    DEFAULT_RULES,
    cache_marker,
)
from holdfast.domain.ignore.rules import (
    IgnoreRule,
    Precedence,
    RuleLayer,
    RuleStack,
    parse_rules,
    precedence_of,
)
from tests.domain.ignore_workspaces import FREE_PATTERNS, PATHS


def gitignore(text: bytes, base: bytes = b"") -> RuleLayer:
    return parse_rules(text, base, ".gitignore")


def holdfastignore(text: bytes, base: bytes = b"") -> RuleLayer:
    return parse_rules(text, base, ".holdfastignore", Precedence.HOLDFASTIGNORE)


def is_ignored(stack: RuleStack, path: bytes, is_dir: bool = False) -> bool:
    rule = stack.decide(path, is_dir)
    return rule is not None and not rule.negated


@pytest.mark.requirement("CP-12")
def test_without_rules_nothing_is_decided() -> None:
    assert RuleStack.of().decide(b"a/b", False) is None
    assert RuleStack.of(gitignore(b"# nothing\n\n")).decide(b"a", True) is None


@pytest.mark.requirement("CP-12")
def test_a_decision_names_the_rule_as_written_and_where_it_stands() -> None:
    stack = RuleStack.of(gitignore(b"# logs\n\n*.log  \r\n"), gitignore(b"!keep.*\n", b"sub"))
    assert stack.decide(b"x.log", False) == IgnoreRule(b"*.log", ".gitignore", b"", 3, False)
    assert stack.decide(b"sub/keep.log", False) == IgnoreRule(
        b"!keep.*", ".gitignore", b"sub", 1, True
    )


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        (IgnoreRule(b"*.log", ".gitignore", b"", 3, False), ".gitignore:3: *.log"),
        (IgnoreRule(b"!a/", ".gitignore", b"x/y", 1, True), "x/y/.gitignore:1: !a/"),
        (IgnoreRule(b"node_modules/", "default", b"", 0, False), "default: node_modules/"),
        (IgnoreRule("é".encode(), ".gitignore", b"", 1, False), ".gitignore:1: é"),
        (IgnoreRule(b"\xff\x1b[2J", ".gitignore", b"", 1, False), r".gitignore:1: \xff\x1b[2J"),
    ],
)
def test_a_reason_is_safe_to_print_and_says_where_to_look(rule: IgnoreRule, shown: str) -> None:
    assert rule.describe() == shown


@pytest.mark.requirement("CP-12")
def test_a_rule_of_the_user_wins_over_a_default() -> None:
    stack = RuleStack.of(DEFAULT_RULES)
    assert is_ignored(stack, b"web/node_modules", is_dir=True)
    brought_back = stack.with_layer(gitignore(b"!node_modules/\n"))
    assert not is_ignored(brought_back, b"web/node_modules", is_dir=True)
    assert is_ignored(stack, b"web/node_modules", is_dir=True)


@pytest.mark.requirement("CP-12")
def test_own_ignore_file_wins_over_a_deeper_gitignore_in_whatever_order_they_come() -> None:
    own = holdfastignore(b"!*.log\n")
    root, deep = gitignore(b"*.log\n"), gitignore(b"*.log\n", b"x")
    for stack in (
        RuleStack.of(own, root, deep),
        RuleStack.of(root, own, deep),
        RuleStack.of(root).with_layer(own).with_layer(deep),
    ):
        assert not is_ignored(stack, b"x/a.log")


@pytest.mark.requirement("CP-12")
def test_precedence_rises_from_defaults_to_settings() -> None:
    kinds = list(Precedence)
    for weaker, stronger in pairwise(kinds):
        ignores = parse_rules(b"a\n", b"", "one", stronger)
        takes_back = parse_rules(b"!a\n", b"", "other", weaker)
        assert is_ignored(RuleStack.of(ignores, takes_back), b"a")
        assert is_ignored(RuleStack.of(takes_back).with_layer(ignores), b"a")
    assert kinds[0] is Precedence.DEFAULT
    assert kinds[-1] is Precedence.SETTING


@pytest.mark.requirement("CP-12")
@given(lines=st.lists(FREE_PATTERNS, max_size=8), path=PATHS, is_dir=st.booleans())
def test_the_deciding_rule_is_the_last_that_itself_matches(
    lines: list[bytes], path: bytes, is_dir: bool
) -> None:
    """Whatever form a pattern takes among others: dictionary, tail, or part of an expression."""
    expected = None
    for line in lines:
        alone = RuleStack.of(gitignore(line)).decide(path, is_dir)
        expected = alone.pattern if alone else expected
    together = RuleStack.of(gitignore(b"\n".join(lines))).decide(path, is_dir)
    layered = RuleStack.of(*(gitignore(line) for line in lines)).decide(path, is_dir)
    assert (together.pattern if together else None) == expected
    assert (layered.pattern if layered else None) == expected


@pytest.mark.requirement("CP-12")
@given(text=st.lists(FREE_PATTERNS, max_size=8).map(b"\n".join), paths=st.lists(PATHS, max_size=8))
def test_paths_are_decided_alike_in_any_order_and_directory_by_directory(
    text: bytes, paths: list[bytes]
) -> None:
    stack = RuleStack.of(gitignore(text))
    for path, is_dir in product([*paths, *reversed(paths)], (False, True)):
        directory, _, name = path.rpartition(b"/")
        fresh = RuleStack.of(gitignore(text)).decide(path, is_dir)
        assert stack.decide(path, is_dir) == fresh
        assert stack.in_directory(directory).decide(name, is_dir) == fresh


@pytest.mark.requirement("CP-12")
def test_a_fingerprint_tells_rules_apart_by_what_they_decide() -> None:
    reference = RuleStack.of(gitignore(b"a\nb\n")).fingerprint
    same = RuleStack.of(parse_rules(b"# words\na  \r\n\nb", b"", "elsewhere"), gitignore(b"#"))
    assert same.fingerprint == reference
    others = [
        RuleStack.of(gitignore(b"b\na\n")),
        RuleStack.of(gitignore(b"ab\n")),
        RuleStack.of(gitignore(b"a\n")),
        RuleStack.of(gitignore(b"!a\nb\n")),
        RuleStack.of(gitignore(b"a\nb/\n")),
        RuleStack.of(gitignore(b"a\nb\n", b"x")),
        RuleStack.of(holdfastignore(b"a\nb\n")),
        RuleStack.of(gitignore(b"a\n"), gitignore(b"b\n", b"x")),
        RuleStack.of(),
    ]
    assert len({reference, *(stack.fingerprint for stack in others)}) == len(others) + 1


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (b"a*" * 60 + b"b", b"a" * 250),
        (b"?*" * 60 + b"b", b"a" * 250),
        (b"[ab]*" * 60 + b"c", b"ab" * 125),
        (b"*a*" * 60 + b"[!a]", b"a" * 250),
        (b"x/" + b"a*" * 60 + b"b", b"x/" + b"a" * 250),
        (b"**/" * 60 + b"x", b"a/" * 500 + b"y"),
        (b"**/a/" * 60 + b"b/x", b"a/" * 500 + b"c/x"),
        (b"**/*a*a*a*/" * 30 + b"b/x", (b"a" * 50 + b"/") * 60 + b"c/x"),
        (b"a**/*a*/**/" * 20 + b"b/x", (b"a" * 50 + b"/") * 60 + b"c/x"),
        (b"a**/" + b"*a*/**/" * 20 + b"x", b"a" * 50 + b"/" + b"a/" * 200 + b"y"),
        (b"**\\/a/" * 30 + b"b/x", b"a/" * 500 + b"c/x"),
    ],
)
def test_a_pattern_made_to_take_for_ever_is_decided(pattern: bytes, path: bytes) -> None:
    """A matcher that tries one split after the other would not return: there are over 10^20."""
    for is_dir in (False, True):
        assert RuleStack.of(gitignore(pattern)).decide(path, is_dir) is None


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize(
    "path",
    [b".venv", b"a/__pycache__", b"node_modules", b"x/.mypy_cache", b".terraform", b"web/.next"],
)
def test_what_tools_make_again_is_ignored_by_default(path: bytes) -> None:
    stack = RuleStack.of(DEFAULT_RULES)
    rule = stack.decide(path, True)
    assert rule is not None
    assert rule.describe() == f"default: {path.rpartition(b'/')[2].decode()}/"
    assert not is_ignored(stack, path, is_dir=False)
    assert is_ignored(stack, b"x/module.cpython-311.pyc")
    assert is_ignored(stack, b"x/.DS_Store")


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize(
    "path",
    b"build dist target out vendor venv env bin lib tmp coverage a.swp a.log data.db".split()
    + b".git .env .cache .vscode .idea .mvn .yarn .terraform.lock.hcl".split(),
)
def test_what_can_hold_work_is_not_ignored_by_default(path: bytes) -> None:
    stack = RuleStack.of(DEFAULT_RULES)
    assert stack.decide(path, True) is None
    assert stack.decide(b"x/" + path, False) is None


@pytest.mark.requirement("CP-12")
def test_the_reference_names_every_built_in_rule() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/ignore-rules.md").read_text("utf-8")
    patterns = [rule.pattern.decode() for rule in DEFAULT_RULES.rules]
    assert [pattern for pattern in patterns if f"`{pattern}`" not in page] == []


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize(
    ("source", "base", "kind"),
    [
        ("default", b"", Precedence.DEFAULT),
        ("setting 'ignore'", b"", Precedence.SETTING),
        (".holdfastignore", b"a/b", Precedence.HOLDFASTIGNORE),
        (".gitignore", b"a", None),
        (".git/info/exclude", b"", None),
    ],
)
def test_the_kind_of_a_rule_is_reported_by_its_description(
    source: str, base: bytes, kind: Precedence | None
) -> None:
    line = 3 if "ignore" in source and "setting" not in source else 0
    rule = IgnoreRule(b"a: .holdfastignore:1: b", source, base, line, negated=False)
    assert precedence_of(rule.describe()) is kind


@pytest.mark.requirement("CP-12")
def test_a_marker_tells_a_cache_from_a_source_directory() -> None:
    def marker(names: Collection[bytes], tag: bytes = b"") -> bytes | None:
        return cache_marker(names, {b"CACHEDIR.TAG": tag}.get)

    tagged = [b"debug", b"CACHEDIR.TAG"]
    assert marker(tagged, CACHEDIR_TAG_SIGNATURE + b"\n# made by a tool\n") == b"CACHEDIR.TAG"
    assert marker(tagged, b"notes about " + CACHEDIR_TAG_SIGNATURE) is None
    assert marker(tagged, CACHEDIR_TAG_SIGNATURE[:-1]) is None
    assert marker({b"bin", b"lib", b"pyvenv.cfg"}) == b"pyvenv.cfg"
    assert marker([b"main.rs", b"cachedir.tag", b"pyvenv.cfg.in"]) is None
