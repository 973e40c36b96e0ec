"""Ignore rules decide as git does: each answer here is compared with that of a real git."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings

from holdfast.domain.ignore.rules import RuleStack, parse_rules
from tests.domain.ignore_oracle import Git, Workspace, assert_equal_to_git, verdict_of
from tests.domain.ignore_workspaces import workspaces


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    root = os.fsencode(tmp_path_factory.mktemp("repository"))
    subprocess.run(["git", "init", "--quiet", root], check=True)
    return Git(root)


@pytest.mark.requirement("CP-12")
@settings(max_examples=300)
@given(workspace=workspaces())
@example(workspace=Workspace(frozenset([b"a/b/c", b"ab", b"aab"]), {b"": b"a**/b\n!a**\n"}))
def test_generated_rules_decide_about_generated_trees_as_git_does(
    git: Git, workspace: Workspace
) -> None:
    assert_equal_to_git(git, workspace)


@dataclass(frozen=True, slots=True)
class Case:
    """Rules of the root, and what they do to paths (directories with a slash)."""

    why: str
    rules: bytes
    ignored: tuple[bytes, ...] = ()
    kept: tuple[bytes, ...] = ()


CASES = [
    Case("a name matches at any depth", b"a", (b"a", b"x/a", b"x/y/a"), (b"ab", b"x/b")),
    Case("case counts", b"Makefile\n*.LOG", (b"Makefile", b"x.LOG"), (b"makefile", b"x.log")),
    Case("a leading slash anchors", b"/a", (b"a",), (b"x/a",)),
    Case("a slash in the middle anchors", b"x/a", (b"x/a",), (b"y/x/a", b"a")),
    Case("a trailing slash does not anchor", b"a/", (b"a/", b"x/a/"), ()),
    Case("a trailing slash asks for a directory", b"a/", (b"x/a/",), (b"a",)),
    Case("a double slash matches nothing", b"x//a\n//b\nc//", (), (b"x/a", b"b", b"c/")),
    Case("a lone slash matches nothing", b"/\n!/\n", (), (b"a", b"b/")),
    Case("a star stays in a name", b"x/*a", (b"x/a", b"x/ba"), (b"x/b/a", b"xa")),
    Case("a star takes a leading dot", b"*.log\n?b", (b".log", b"a.log", b".b"), (b"log",)),
    Case("a question mark is one byte", b"?", (b"a",), (b"\xc3\xa9", b"ab")),
    Case("a question mark is no slash", b"x?a", (b"xya",), (b"x/a",)),
    Case("**/ is any depth, none too", b"**/a/b", (b"a/b", b"x/a/b", b"x/y/a/b"), (b"xa/b",)),
    Case("/**/ is any depth, none too", b"x/**/a", (b"x/a", b"x/y/a", b"x/y/z/a"), (b"a", b"xa")),
    Case("/** is what lies below", b"x/**", (b"x/a", b"x/y/"), (b"a/x", b"xa")),
    Case("/** leaves the directory itself", b"x/**\n!x/a", (b"x/b",), (b"x/a",)),
    Case("** in a name is *", b"x/a**b", (b"x/ab", b"x/acb"), (b"x/a/b", b"x/ac/b")),
    Case("** behind a literal crosses", b"x**/a", (b"xa", b"x/a", b"xy/a", b"xy/z/a"), (b"y/a",)),
    Case("** behind a literal, at the end", b"/x**\n!/xa", (b"xb", b"x/a"), (b"xa", b"y/x")),
    Case(
        "** behind a wildcard does not cross", b"?x**/a", (b"yx/a", b"yxz/a"), (b"yx/z/a", b"yxa")
    ),
    Case("** behind a literal, twice", b"x**/**/a", (b"xa", b"x/a", b"xy/z/a"), (b"y/a", b"xab")),
    Case("three stars are two", b"x/***/a", (b"x/a", b"x/y/z/a"), (b"xa",)),
    Case("**\\/ wants one directory or more", b"x/**\\/a", (b"x/y/a", b"x/y/z/a"), (b"x/a",)),
    Case("many **/ are one", b"**/**/**/a", (b"a", b"x/a", b"x/y/a"), (b"ab",)),
    Case("the last rule wins", b"*.a\n!b.a\nb.*\n!b.a", (b"c.a", b"b.c"), (b"b.a",)),
    Case("the last wins, anchored or not", b"/a\n!a\n!/b\nb\nx/c\n!c", (b"b",), (b"a", b"x/c")),
    Case("nothing returns from an ignored directory", b"x/\n!x/a", (b"x/a",), (b"a",)),
    Case("an exception needs open parents", b"/*\n!/x/\n/x/*\n!/x/a", (b"b", b"x/b"), (b"x/a",)),
    Case("two exclamation marks negate one name", b"*\n!!a", (b"a", b"b"), (b"!a",)),
    Case("a lone exclamation mark does nothing", b"!\n!\n", (), (b"!", b"a")),
    Case("an escaped exclamation mark is a name", b"\\!a", (b"!a",), (b"a",)),
    Case("a hash opens a comment", b"#a\n #b", (b" #b",), (b"#a", b"a")),
    Case("a hash later is a hash", b"a#b\n!#c", (b"a#b",), (b"a",)),
    Case("an escaped hash is a name", b"\\#a", (b"#a",), (b"a",)),
    Case("trailing spaces go", b"a  \nb/ ", (b"a", b"b/"), (b"a ", b"a  ", b"b ")),
    Case("an escaped trailing space stays", b"a\\ ", (b"a ",), (b"a", b"a  ")),
    Case("spaces after an escaped one go", b"a\\   ", (b"a ",), (b"a", b"a   ")),
    Case("an escaped backslash frees the space", b"a\\\\ ", (b"a\\",), (b"a\\ ", b"a ")),
    Case("leading spaces stay", b" a", (b" a",), (b"a",)),
    Case("a trailing tab stays", b"a\t", (b"a\t",), (b"a",)),
    Case("a line of spaces is no rule", b"   \n", (), (b" ", b"   ", b"a")),
    Case("CRLF ends a line", b"a\r\nb/\r\n", (b"a", b"b/"), (b"a\r",)),
    Case("CR at the end of the file goes", b"a\r", (b"a",), (b"a\r",)),
    Case("only one CR goes", b"a\r\r\n", (b"a\r",), (b"a", b"a\r\r")),
    Case("CR inside stays", b"a\rb\n", (b"a\rb",), (b"a", b"b")),
    Case("spaces before CR go", b"a \r\n", (b"a",), (b"a ", b"a \r")),
    Case("a byte order mark is skipped", b"\xef\xbb\xbfa\nb", (b"a", b"b"), (b"\xef\xbb\xbfa",)),
    Case("a second mark is a name", b"a\n\xef\xbb\xbfb", (b"a", b"\xef\xbb\xbfb"), (b"b",)),
    Case("a zero byte ends a line early", b"a\0b\nc", (b"a", b"c"), (b"b", b"ab")),
    Case("a backslash makes literal", b"\\*\n\\?\n\\a", (b"*", b"?", b"a"), (b"b", b"\\a")),
    Case("a backslash at the end ruins a rule", b"a\\\nb\\/\n", (), (b"a", b"a\\", b"b/")),
    Case("a backslash hides a name from the dictionary", b"\\a\\b/c", (b"ab/c",), (b"ab/d",)),
    Case("a class", b"[ab]c", (b"ac", b"bc"), (b"cc", b"[ab]c")),
    Case("a range", b"x[b-d]", (b"xb", b"xc", b"xd"), (b"xa", b"xe", b"x-")),
    Case("a backward range is its first byte", b"x[d-b]", (b"xd",), (b"xb", b"xc", b"x-")),
    Case("! negates a class", b"x[!a-c]", (b"xd", b"x!"), (b"xa", b"xb")),
    Case("^ negates a class", b"x[^a]", (b"xb", b"x^"), (b"xa",)),
    Case("^ later is itself", b"x[a^]", (b"xa", b"x^"), (b"xb",)),
    Case("a negated class is no slash", b"x[!a]y", (b"xby",), (b"x/y", b"xay")),
    Case("a class with a slash matches none", b"x[/a]y", (b"xay",), (b"x/y",)),
    Case("a class of a slash is no slash", b"x[/]y\nx[/a]y/z", (b"xay/z",), (b"x/y/z", b"xy")),
    Case("] first is a member", b"x[]a]", (b"x]", b"xa"), (b"xb", b"x")),
    Case("] first after ! is a member", b"x[!]a]", (b"xb",), (b"x]", b"xa")),
    Case("] first can open a range", b"x[]-a]", (b"x]", b"x^", b"x`", b"xa"), (b"x-", b"xb")),
    Case("- first and last are members", b"x[-a]\ny[a-]", (b"x-", b"xa", b"y-", b"ya"), (b"xb",)),
    Case("- after a range is a member", b"x[a-c-e]", (b"xb", b"x-", b"xe"), (b"xd",)),
    Case("- can be a bound", b"x[--0]", (b"x-", b"x.", b"x0"), (b"x,", b"x1")),
    Case("escapes work in a class", b"x[\\]\\a-\\c]", (b"x]", b"xb"), (b"x\\", b"xd")),
    Case("wildcards in a class are literal", b"x[*?]", (b"x*", b"x?"), (b"xa",)),
    Case("an open class ruins a rule", b"[a\nx[\n*[b-\n!c[", (), (b"[a", b"a", b"x[", b"b")),
    Case("a named class", b"x[[:digit:]]", (b"x1",), (b"xa", b"x:", b"xd")),
    Case("a named class with company", b"x[a[:digit:]-]", (b"x1", b"xa", b"x-"), (b"xb", b"x:")),
    Case("no range from a named class", b"x[[:digit:]-c]", (b"x1", b"x-", b"xc"), (b"xb",)),
    Case("an unknown class ruins a rule", b"x[[:no:]a]\ny[[::]]", (), (b"xa", b"xn", b"y:")),
    Case("a half-open class is a set", b"x[[:]\ny[[:a]", (b"x[", b"x:", b"ya", b"y:"), (b"xa",)),
    Case("classes know ASCII only", b"x[[:alpha:]]", (b"xa",), (b"x\xe9", b"x\xc3")),
    Case("bytes need not be text", b"\xff*\n[\x80-\x8f]", (b"\xff", b"\xffa", b"\x85"), (b"\xfe",)),
    Case("tails", b"*.tar.gz\n*~\n*_x", (b"a.tar.gz", b".tar.gz", b"a~", b"a_x"), (b"a.gz", b"ax")),
    Case(
        "tails by class", b"*.py[co]\n*.[ab].z", (b"a.pyc", b"a.pyo", b"x.a.z"), (b"a.py", b"a.z")
    ),
    Case("a tail is a whole name too", b"*abc", (b"abc", b"xabc"), (b"abcx", b"bc")),
    Case("stars backtrack", b"*a*b*c", (b"abc", b"aabbcc", b"acbc"), (b"acb", b"bac", b"cba")),
    Case("stars backtrack in paths", b"*a*/b*b", (b"xax/bb", b"a/bxb"), (b"x/bb", b"a/b")),
    Case("** finds the later place", b"**/a/*b/c", (b"a/x/a/ab/c", b"a/b/c"), (b"a/x/c", b"a/a/c")),
]


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.why)
def test_a_rule_does_to_each_path_what_git_does(git: Git, case: Case) -> None:
    workspace = Workspace(frozenset(case.ignored + case.kept), {b"": case.rules})
    decided = assert_equal_to_git(git, workspace)
    ignored = {
        path
        for path in workspace.paths
        if any(_is_at_or_below(path, top) for top in decided.ignored)
    }
    assert ignored == set(case.ignored)


def _is_at_or_below(path: bytes, top: bytes) -> bool:
    return path == top or (top.endswith(b"/") and path.startswith(top))


@pytest.mark.requirement("CP-12")
def test_ignore_files_of_deeper_directories_win_and_count_from_where_they_lie(git: Git) -> None:
    workspace = Workspace(
        frozenset([b"a.log", b"x/a.log", b"x/y/a.log", b"x/y/z", b"x/z", b"y/z", b"x/y/k"]),
        {b"": b"*.log\n", b"x": b"!*.log\n/y/z\n", b"x/y": b"*.log\n"},
        exclude=b"k\n!a.log\n",
    )
    decided = assert_equal_to_git(git, workspace)
    assert decided.ignored == {b"a.log", b"x/y/a.log", b"x/y/z", b"x/y/k"}


@pytest.mark.requirement("CP-12")
def test_an_ignore_file_in_an_ignored_directory_is_not_heard(git: Git) -> None:
    workspace = Workspace(frozenset([b"x/a", b"y/a"]), {b"": b"x\n", b"x": b"!a\n", b"y": b"a\n"})
    decided = assert_equal_to_git(git, workspace)
    assert decided.ignored == {b"x/", b"y/a"}


CLASSES = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit".split()


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize("name", CLASSES)
def test_a_named_class_holds_the_bytes_it_holds_for_git(git: Git, name: str) -> None:
    text = f"x[[:{name}:]]\ny[![:{name}:]]".encode()
    Workspace(frozenset(), {b"": text}).write(git.root)
    stack = RuleStack.of(parse_rules(text, b"", ".gitignore"))
    paths = [
        first + bytes([byte])
        for first in (b"x", b"y")
        for byte in range(1, 256)
        if byte != ord("/")
    ]
    assert {path: verdict_of(stack.decide(path, False)) for path in paths} == git.verdicts(paths)


@pytest.mark.requirement("CP-12")
def test_a_class_of_any_two_bytes_holds_what_it_holds_for_git(git: Git) -> None:
    """Every pair of bytes that mean something in a class, each in a class of its own."""
    special = b"]![^-\\:*?a/"
    bodies = [bytes([one, two]) for one in special for two in special]
    text = b"\n".join(b"x%d[%b]" % (number, body) for number, body in enumerate(bodies))
    Workspace(frozenset(), {b"": text}).write(git.root)
    stack = RuleStack.of(parse_rules(text, b"", ".gitignore"))
    paths = [b"x%d%c" % (number, byte) for number in range(len(bodies)) for byte in b"]![^-\\:*?ab"]
    assert {path: verdict_of(stack.decide(path, False)) for path in paths} == git.verdicts(paths)
