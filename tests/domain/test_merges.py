"""The log of a branch tells a merge from other work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.git.branches import Unclear, main_branches, merged_since, read_moves

pytestmark = pytest.mark.requirement("AU-4")


def log(*moves: str) -> bytes:
    """Each move as `from to why`, with one letter for a commit."""
    lines = []
    for move in moves:
        old, new, why = move.split(" ", 2)
        lines.append(f"{old * 40} {new * 40} A User <a@b> 1790000000 +0000\t{why}\n")
    return "".join(lines).encode()


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        (["a b merge feature: Fast-forward"], "Merged feature"),
        (["a b merge fix/one: Merge made by the 'ort' strategy."], "Merged fix/one"),
        (["a b commit (merge): by hand"], "Merged a branch"),
        (["a b pull origin main: Fast-forward"], "Pulled"),
        (["a b pull: Merge made by the 'ort' strategy."], "Pulled"),
        (["a c commit: mine", "c b merge feature: Fast-forward"], "Merged feature"),
        (["a c merge feature: Fast-forward", "c b commit: more"], "Merged feature"),
        (["a b commit: merge the tables"], None),
        (["a b commit (amend): merge"], None),
        (["a b reset: moving to feature"], None),
        (["a c merge feature: Fast-forward", "c b reset: moving to HEAD~1"], None),
        (["a b rebase (finish): refs/heads/main onto b"], None),
        (["a b cherry-pick: x"], None),
        (["a b holdfast: restore"], None),
        (["z a merge older: Fast-forward", "a b commit: mine"], None),
        (["a b my own tool"], Unclear.UNCLEAR),
        (["a b "], Unclear.UNCLEAR),
        (["x y commit: of before"], Unclear.UNCLEAR),
        (["x b commit: the log begins late"], Unclear.UNCLEAR),
        ([], Unclear.UNCLEAR),
    ],
)
def test_what_was_merged_is_what_the_log_says_since_the_known_commit(
    moves: list[str], words: str | Unclear | None
) -> None:
    assert merged_since(read_moves(log(*moves)), "a" * 40, "b" * 40) == words


@given(st.binary(max_size=300))
def test_any_bytes_are_a_log(data: bytes) -> None:
    assert merged_since(read_moves(data), "a" * 40, "b" * 40) is not None


@pytest.mark.parametrize("value", ["main", 7, [""], ["a b"], ["-x"], ["a..b"], [1], ["m"] * 21])
def test_what_names_no_branches_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"expects|is not|at most"):
        main_branches(value)


def test_branches_are_named_once_each() -> None:
    assert main_branches(["trunk", "release/1", "trunk"]) == ("trunk", "release/1")
    assert main_branches([]) == ()
