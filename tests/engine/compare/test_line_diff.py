"""Our own differ: as good as git's on real edits, and bounded on hostile ones."""

from __future__ import annotations

import argparse
import inspect
import json.decoder
import random
import textwrap
from collections.abc import Callable, Sequence

import pytest

from holdfast.domain.diff.hunks import Hunk, split_lines
from holdfast.engine.compare.git_diff import find_git, git_hunks
from holdfast.engine.compare.line_diff import align, line_hunks
from tests.support.hunk_model import apply_hunks

pytestmark = pytest.mark.requirement("CP-4")

LINES = 100_000
# Each line may be looked at this often; a quadratic search would need thousands of times as much.
STEPS_PER_LINE = 40


def changed_lines(hunks: Sequence[Hunk]) -> int:
    return sum(line.kind != " " for hunk in hunks for line in hunk.lines)


def shown(hunks: Sequence[Hunk]) -> str:
    lines = (f"{line.kind}{line.text.decode()}" for hunk in hunks for line in hunk.lines)
    return "\n".join(lines)


def edit(lines: list[bytes], rng: random.Random) -> list[bytes]:
    """What people and agents do to a file: rewrite, remove, add, repeat and move some lines."""
    lines = list(lines)
    for _ in range(rng.randint(1, 12)):
        at, count = rng.randrange(len(lines)), rng.randint(1, 8)
        match rng.choice(["rewrite", "remove", "add", "repeat", "move", "indent"]):
            case "rewrite":
                lines[at] = lines[at].replace(b"e", b"E").replace(b"self", b"this")
            case "remove":
                del lines[at : at + count]
            case "add":
                lines[at:at] = [b"    added_%d = %d\n" % (number, at) for number in range(count)]
            case "repeat":
                lines[at:at] = lines[at : at + count]
            case "move":
                block = lines[at : at + count]
                del lines[at : at + count]
                to = rng.randrange(len(lines))
                lines[to:to] = block
            case _:
                lines[at : at + count] = [b"    " + line for line in lines[at : at + count]]
    return lines


def test_on_real_edits_it_changes_about_as_many_lines_as_git(rng: random.Random) -> None:
    git = find_git()
    assert git is not None
    ours = theirs = 0
    for module in (argparse, json.decoder, textwrap) * 10:
        source = split_lines(inspect.getsource(module).encode())
        old, new = b"".join(source), b"".join(edit(source, rng))
        if old == new:
            continue
        own = list(line_hunks(old, new, context=3))
        assert apply_hunks(old, own) == new
        by_git = list(git_hunks(git, [old], [new], context=3))
        assert changed_lines(own) <= 1.5 * changed_lines(by_git) + 10
        ours += changed_lines(own)
        theirs += changed_lines(by_git)
    assert ours <= 1.1 * theirs


def test_hunks_and_headings_are_those_of_git() -> None:
    git = find_git()
    assert git is not None
    old = b"".join(
        b"def function_%d(value):\n    total = %d\n    for item in value:\n        total += item\n"
        b"    return total\n\n\n" % (number, number)
        for number in range(40)
    )
    new = old.replace(b"total = 7\n", b"total = 8\n").replace(b"    total = 21\n", b"")
    new = new.replace(b"def function_30(", b"def other(value):\n    pass\n\n\ndef function_30(")
    for context in (0, 1, 3, 10):
        own = list(line_hunks(old, new, context=context))
        assert own == list(git_hunks(git, [old], [new], context=context))
        assert any(hunk.heading for hunk in own)


def test_an_added_function_is_shown_as_one_function() -> None:
    old = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
    new = old.replace("def two", "def half():\n    return 2\n\n\ndef two")
    hunks = list(line_hunks(old.encode(), new.encode(), context=1))
    assert shown(hunks) == " \n+def half():\n+    return 2\n+\n+\n def two():"


def test_a_removed_block_is_shown_from_its_first_line() -> None:
    old = "{\n    if (a) {\n        x();\n    }\n    if (b) {\n        y();\n    }\n}\n"
    new = "{\n    if (a) {\n        x();\n    }\n}\n"
    hunks = list(line_hunks(old.encode(), new.encode(), context=0))
    assert shown(hunks) == "-    if (b) {\n-        y();\n-    }"


def shuffled(rng: random.Random) -> tuple[list[int], list[int]]:
    lines = list(range(LINES))
    return lines, rng.sample(lines, LINES)


def few(kinds: int) -> Callable[[random.Random], tuple[list[int], list[int]]]:
    def make(rng: random.Random) -> tuple[list[int], list[int]]:
        return rng.choices(range(kinds), k=LINES), rng.choices(range(kinds), k=LINES)

    return make


def anchored(rng: random.Random) -> tuple[list[int], list[int]]:
    """A unique line now and then, and nothing but repetition between."""
    old, new = few(3)(rng)
    for index in range(0, LINES, 1_000):
        old[index] = new[index] = 10 + index
    return old, new


def one_anchor_a_round(_: random.Random) -> tuple[list[int], list[int]]:
    """Each unique line found makes exactly one more unique in what is left: rounds without end."""
    nested = [1]
    for number in range(2, LINES // 4):
        nested += [number, number - 1]
    old: list[int] = []
    new: list[int] = []
    for index, line in enumerate(nested):
        old += [-2 * index - 1, line]
        new += [-2 * index - 2, line]
    return old, new


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda _: ([0] * LINES, [0] * (LINES // 2)), id="all lines equal"),
        pytest.param(lambda _: (range(LINES), range(LINES, 2 * LINES)), id="nothing in common"),
        pytest.param(lambda _: (range(LINES), range(LINES)[::-1]), id="upside down"),
        pytest.param(
            lambda _: ([n % 7 for n in range(LINES)], [n % 5 for n in range(LINES)]), id="periodic"
        ),
        pytest.param(
            lambda _: ([n % 2 for n in range(LINES)], [1 - n % 2 for n in range(LINES)]),
            id="out of step",
        ),
        pytest.param(
            lambda _: ([0] * LINES + [1] * LINES, [1] * LINES + [0] * LINES), id="halves swapped"
        ),
        pytest.param(shuffled, id="shuffled"),
        pytest.param(few(2), id="two kinds of lines"),
        pytest.param(few(50), id="fifty kinds of lines"),
        pytest.param(few(5_000), id="five thousand kinds of lines"),
        pytest.param(anchored, id="few unique lines"),
        pytest.param(one_anchor_a_round, id="unique lines one by one"),
    ],
)
def test_hostile_lines_are_aligned_in_linear_steps(
    make: Callable[[random.Random], tuple[Sequence[int], Sequence[int]]], rng: random.Random
) -> None:
    old, new = make(rng)
    alignment = align(old, new)
    assert alignment.steps <= STEPS_PER_LINE * (len(old) + len(new))
    rebuilt: list[int] = []
    position = 0
    for change in alignment.changes:
        rebuilt += old[position : change.old_start]
        rebuilt += new[change.new_start : change.new_end]
        position = change.old_end
    assert [*rebuilt, *old[position:]] == list(new)


def test_small_differences_are_found_shortest(rng: random.Random) -> None:
    """Where nothing is unique, as many lines are kept as can be kept."""
    for _ in range(300):
        old = rng.choices(range(2), k=rng.randint(0, 30)) * 2
        new = rng.choices(range(2), k=rng.randint(0, 30)) * 2
        changes = align(old, new).changes
        kept = len(old) - sum(change.old_end - change.old_start for change in changes)
        assert kept == longest_common(old, new)


def longest_common(old: Sequence[int], new: Sequence[int]) -> int:
    """The length of the longest common subsequence, by the definition."""
    row = [0] * (len(new) + 1)
    for line in old:
        above = row
        row = [0]
        for index, other in enumerate(new):
            row.append(above[index] + 1 if line == other else max(above[index + 1], row[index]))
    return row[-1]
