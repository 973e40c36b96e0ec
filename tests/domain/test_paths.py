"""Paths inside a workspace: bytes in, bytes out, and nothing that leads out of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import UsageError
from holdfast.domain.paths import (
    InvalidPath,
    basename,
    from_text,
    is_safe_name,
    is_within,
    join,
    parent,
    require_safe_path,
    to_text,
)

names = st.binary(min_size=1, max_size=6).filter(is_safe_name)
safe_paths = st.lists(names, min_size=1, max_size=4).map(b"/".join)


@given(path=safe_paths)
def test_a_path_of_safe_names_is_safe_and_comes_apart_again(path: bytes) -> None:
    assert require_safe_path(path) == path
    assert join(parent(path), basename(path)) == path


@given(data=st.binary(max_size=30))
def test_any_bytes_survive_as_text_and_as_json(data: bytes) -> None:
    text = to_text(data)
    assert from_text(text) == data
    assert from_text(json.loads(json.dumps(text))) == data


@given(path=safe_paths, directory=safe_paths)
def test_within_means_itself_or_below_it(path: bytes, directory: bytes) -> None:
    above = {path}
    while path:
        above.add(path)
        path = parent(path)
    whole = max(above, key=len)
    assert is_within(whole, directory) == (directory in above)
    assert is_within(whole, b"")
    assert not is_within(whole + b"x", whole)


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/",
        b"/etc/passwd",
        b"..",
        b"../x",
        b"a/../b",
        b"a/..",
        b".",
        b"./a",
        b"a/.",
        b"a//b",
        b"a/",
        b".git",
        b".git/config",
        b"a/.git/hooks/x",
        b"a\0b",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(path: bytes) -> None:
    with pytest.raises(InvalidPath) as refusal:
        require_safe_path(path)
    assert isinstance(refusal.value, UsageError)
    assert isinstance(refusal.value, ValueError)


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize("name", [b"", b".", b"..", b".git", b"a/b", b"\0"])
def test_a_name_that_is_none_is_refused(name: bytes) -> None:
    assert not is_safe_name(name)


@pytest.mark.parametrize(
    "name", [b"...", b".gitignore", b".github", b"git", b"..a", b"\xff", b" ", b"\n"]
)
def test_a_name_that_only_looks_odd_is_allowed(name: bytes) -> None:
    assert is_safe_name(name)
