"""Include patterns: what they bring back, and which ignored directories have to be searched."""

from __future__ import annotations

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from holdfast.domain.ignore.includes import IncludePatterns
from tests.domain.ignore_workspaces import FREE_PATTERNS, PATHS


@pytest.mark.requirement("CP-12")
def test_no_patterns_include_nothing() -> None:
    none = IncludePatterns.parse(())
    assert not none.matches(b".env", False)
    assert not none.may_match_below(b"x", ignored_by_default_rule=False)


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (".env", [b".env", b"api/.env"], [b".env.local", b"env"]),
        (".env*", [b".env", b"api/.env.local"], [b"a.env"]),
        ("/.env", [b".env"], [b"api/.env"]),
        ("data/*.db", [b"data/a.db"], [b"a.db", b"data/x/a.db", b"x/data/a.db"]),
        ("data/**/*.db", [b"data/a.db", b"data/x/y/a.db"], [b"a.db"]),
        ("secrets/", [b"secrets/"], [b"secrets"]),
        ("a\\ ", [b"a "], [b"a"]),
        ("caf\u00e9", ["caf\u00e9".encode()], [b"cafe"]),
        ("\udcff*", [b"\xffa"], [b"a"]),
    ],
)
def test_patterns_have_the_syntax_of_an_ignore_file_in_the_root(
    pattern: str, matching: list[bytes], other: list[bytes]
) -> None:
    includes = IncludePatterns.parse([pattern])
    for path in matching:
        assert includes.matches(path.rstrip(b"/"), path.endswith(b"/")), path
    for path in other:
        assert not includes.matches(path.rstrip(b"/"), path.endswith(b"/")), path


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize(
    "pattern",
    [
        *("", "   ", "/", "//", "!.env", "#a", "a\nb", "a\r", "a\0b", "[a", "a\\", "a//b"),
        *("x[[:no:]]", "./.env", "../x", "a/./b", "a/..", ".", "..", "\ud800"),
    ],
)
def test_a_pattern_that_cannot_do_what_it_says_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        IncludePatterns.parse([".env", pattern])


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize(
    ("pattern", "directory", "by_user", "by_default"),
    [
        # A name can be anywhere, but it is not looked for in node_modules and the like.
        (".env", b"build", True, False),
        ("secrets/", b"build", True, False),
        # A pattern with a slash is looked for wherever it leads.
        ("build/.env", b"build", True, True),
        ("build/.env", b"dist", False, False),
        ("build/.env", b"build/x", False, False),
        ("build/x", b"build/x", False, False),
        ("build/x", b"build/x/y", False, False),
        ("/.env", b"build", False, False),
        ("build/x/y/.env", b"build/x", True, True),
        ("build/x/y/.env", b"build/z", False, False),
        ("b*d/?/.env", b"build/x", True, True),
        ("b*d/?/.env", b"build/xy", False, False),
        ("build/**", b"build", True, True),
        ("build/**", b"build/x/y", True, True),
        ("build/**/.env", b"build/x/y", True, True),
        ("build/**/.env", b"dist/x/y", False, False),
        ("**/.env", b"node_modules/x", True, True),
        ("build**/.env", b"build-x/y", True, True),
        ("build**/.env", b"dist/y", False, False),
        ("node_modules/mine/", b"node_modules", True, True),
        ("node_modules/mine/", b"node_modules/other", False, False),
    ],
)
def test_an_ignored_directory_is_entered_only_where_a_pattern_can_match(
    pattern: str, directory: bytes, by_user: bool, by_default: bool
) -> None:
    includes = IncludePatterns.parse([pattern])
    assert includes.may_match_below(directory, ignored_by_default_rule=False) is by_user
    assert includes.may_match_below(directory, ignored_by_default_rule=True) is by_default


@pytest.mark.requirement("CP-12")
@given(pattern=FREE_PATTERNS, path=PATHS, is_dir=st.booleans())
def test_no_included_path_is_below_a_directory_that_is_not_entered(
    pattern: bytes, path: bytes, is_dir: bool
) -> None:
    try:
        includes = IncludePatterns.parse([pattern.decode("utf-8", "surrogateescape")])
    except ValueError:
        reject()
    directory = path
    while includes.matches(path, is_dir) and directory:
        directory = directory.rpartition(b"/")[0]
        assert includes.may_match_below(directory, ignored_by_default_rule=False)
        has_slash = b"/" in pattern.rstrip(b" ").removesuffix(b"/")
        assert includes.may_match_below(directory, True) or not has_slash


@pytest.mark.requirement("CP-12")
def test_a_fingerprint_follows_the_patterns() -> None:
    prints = [IncludePatterns.parse(each).fingerprint for each in ([], [".env"], [".env", "*.db"])]
    assert len(set(prints)) == 3
    assert IncludePatterns.parse([".env "]).fingerprint == prints[1]
