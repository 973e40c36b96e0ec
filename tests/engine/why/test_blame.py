"""Blame against models that keep the origin of each line while the history is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.compare.line_diff import align
from holdfast.engine.why.blame import blame

pytestmark = pytest.mark.requirement("BX-1")


@dataclass(frozen=True)
class Text:
    """A version that holds its lines; `came_from` is what a restore of some paths brought."""

    sequence: int
    lines: tuple[bytes, ...]
    parent: Text | None = None
    came_from: Text | None = None
    origins: tuple[int, ...] = field(default=(), compare=False)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.sequence,)

    @property
    def content(self) -> bytes:
        return b"\n".join((b"%d" % len(self.lines), *self.lines))


def _parents(text: Text) -> list[Text]:
    return [one for one in (text.parent, text.came_from) if one is not None]


def _blamed(newest: Text, wanted: Sequence[int] | None = None) -> list[int]:
    chosen = range(len(newest.lines)) if wanted is None else wanted
    found = blame(
        newest, chosen, _parents, lambda t: t.lines, most_versions=10**6, most_lines=10**9
    )
    assert not found.ended
    assert found.origins.keys() == set(chosen)
    return [found.origins[line].sequence for line in chosen]


@st.composite
def _unique_lines(draw: st.DrawFn) -> list[Text]:
    """Lines that are all different and keep their order: their origins are known beyond doubt.
    Lines that were removed may come back, and then belong to the step that brought them."""
    alphabet = [b"line %03d" % number for number in range(40)]
    history: list[Text] = []
    for sequence in range(draw(st.integers(1, 12))):
        before = history[-1] if history else None
        step = draw(st.sampled_from(["edit", "edit", "edit", "same", "restore", "back"]))
        older = draw(st.sampled_from(history)) if history else None
        if before is None or older is None or step == "edit":
            kept = draw(st.sets(st.sampled_from(alphabet)))
            known = {} if before is None else dict(zip(before.lines, before.origins, strict=True))
            lines = tuple(line for line in alphabet if line in kept)
            origins = tuple(known.get(line, sequence) for line in lines)
            history.append(Text(sequence, lines, before, None, origins))
        elif step == "same":
            history.append(Text(sequence, before.lines, before, None, before.origins))
        elif step == "restore":  # of this path: the work has not moved
            if before.lines == older.lines:
                older = before
            history.append(Text(sequence, older.lines, before, older, older.origins))
        else:  # of everything: the work goes on from there
            history.append(Text(sequence, older.lines, older, None, older.origins))
    return history


@given(_unique_lines())
def test_each_line_is_traced_to_who_wrote_it(history: list[Text]) -> None:
    assert _blamed(history[-1]) == list(history[-1].origins)


@given(_unique_lines(), st.data())
def test_one_line_is_traced_like_all_of_them(history: list[Text], data: st.DataObject) -> None:
    if newest := next((text for text in reversed(history) if text.lines), None):
        line = data.draw(st.integers(0, len(newest.lines) - 1))
        assert _blamed(newest, [line]) == [newest.origins[line]]


def _forward(versions: Sequence[tuple[bytes, ...]]) -> list[int]:
    """Origins carried forward version by version, by whole comparisons."""
    lines, origins = versions[0], [0] * len(versions[0])
    for sequence, after in enumerate(versions[1:], 1):
        carried, i = [sequence] * len(after), 0
        j = 0
        for change in (*align(lines, after).changes, None):
            end = len(lines) if change is None else change.old_start
            carried[j : j + end - i] = origins[i:end]
            if change is not None:
                i, j = change.old_end, change.new_end
        lines, origins = after, carried
    return origins


@given(st.lists(st.lists(st.sampled_from([b"", b"a", b"b", b"}"]), max_size=12), min_size=1))
def test_lines_that_repeat_are_traced_as_the_differ_pairs_them(
    versions: list[list[bytes]],
) -> None:
    told = [tuple(version) for version in versions]
    newest: Text | None = None
    for sequence, lines in enumerate(told):
        newest = Text(sequence, lines, newest)
    assert newest is not None
    assert _blamed(newest) == _forward(told)


def test_a_search_that_has_to_end_says_where() -> None:
    texts = [Text(0, (b"a",))]
    for number in range(1, 20):
        texts.append(Text(number, (b"a", b"%d" % number), texts[-1]))
    found = blame(texts[-1], [0, 1], _parents, lambda t: t.lines, most_versions=5, most_lines=10**9)
    assert {line: text.sequence for line, text in found.origins.items()} == {0: 14, 1: 19}
    assert found.ended == {(14,)}
    few = blame(texts[-1], [0, 1], _parents, lambda t: t.lines, most_versions=99, most_lines=10)
    assert few.origins[0].sequence == 16
    assert few.ended == {(16,)}


def test_every_version_is_compared_once_however_many_ways_lead_to_it() -> None:
    read: list[int] = []
    texts = [Text(0, tuple(b"%d" % n for n in range(8)))]
    for number in range(1, 18):
        changed = list(texts[-1].lines)
        changed[number % 8] = b"new %d" % number
        texts.append(Text(number, tuple(changed), texts[-1], texts[max(number - 2, 0)]))

    def lines(text: Text) -> tuple[bytes, ...]:
        read.append(text.sequence)
        return text.lines

    blame(texts[-1], range(8), _parents, lines, most_versions=99, most_lines=10**9)
    assert len(read) <= 4 * len(texts)
