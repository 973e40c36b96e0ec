"""Some hunks of a difference, chosen by number or by name, and the text with only those reverted.

    copy the new text up to a chosen hunk → expect its new lines, write its old ones → continue

A hunk's name depends on its place in the old text and on its lines. So it stays the same when other
parts of the new text change, and disappears when the hunk itself changes.

Guarantee: `revert_hunks` gives the new text byte for byte, with the chosen hunks as in the old one,
or raises. It holds one hunk and one piece of the text at a time.
Not guaranteed: that the result ever existed before. Hunks may depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast.domain.diff.hunks import Hunk, HunkMismatch, mismatch
from holdfast.domain.errors import UsageError
from holdfast.domain.trees.objects import digest_of
from holdfast.values.classes import dataclass

DEFAULT_CONTEXT = 3
# The name for choosing the file's mode.
MODE = "mode"
_NAME_DIGITS = 12
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class NumberedHunk:
    """A hunk with its number, counted from 1, and its name."""

    number: int
    name: str
    hunk: Hunk


@dataclass(frozen=True, slots=True)
class HunkChoice:
    """Hunks by name, for a diff with this many lines of context. With several files, names carry a
    file prefix, because two files can have the same hunk."""

    names: frozenset[str]
    context: int = DEFAULT_CONTEXT

    @property
    def hunk_count(self) -> int:
        return sum(not name.endswith(MODE) for name in self.names)

    def of(self, path: bytes, paths: Sequence[bytes]) -> frozenset[str]:
        """The chosen hunk names of one of these files; empty means the whole file."""
        if len(paths) == 1:
            return self.names
        own = name_in(path, "")
        return frozenset(name.removeprefix(own) for name in self.names if name.startswith(own))


def name_in(path: bytes, name: str) -> str:
    """A hunk's name with its file prefix, for a choice from several files."""
    return f"{digest_of(path).hex()[:_NAME_DIGITS]}:{name}"


def splits(hunk: Hunk) -> bool:
    """Whether unchanged lines separate its changes, so that each can be chosen on its own."""
    changes = "".join(line.kind for line in hunk.lines).strip()
    return " " in changes


def parts_of(hunk: Hunk, without_context: Iterable[NumberedHunk]) -> list[NumberedHunk]:
    """The hunks inside this one, from the same diff without context lines."""
    old, new = _ranges(hunk)
    return [part for part in without_context if _is_inside(_ranges(part.hunk), (old, new))]


def _is_inside(part: tuple[range, range], whole: tuple[range, range]) -> bool:
    pairs = zip(part, whole, strict=True)
    return all(outer.start <= inner.start and inner.stop <= outer.stop for inner, outer in pairs)


def _ranges(hunk: Hunk) -> tuple[range, range]:
    """The hunk's line ranges on both sides, counted from 0."""
    sides = ((hunk.old_start, hunk.old_count), (hunk.new_start, hunk.new_count))
    old, new = (range(start - bool(count), start - bool(count) + count) for start, count in sides)
    return old, new


def numbered(hunks: Iterable[Hunk]) -> Iterator[NumberedHunk]:
    for number, hunk in enumerate(hunks, 1):
        yield NumberedHunk(number, hunk_name(hunk), hunk)


def hunk_name(hunk: Hunk) -> str:
    lines = b"".join(line.kind.encode() + line.content() for line in hunk.lines)
    place = b"%d,%d\n" % (hunk.old_start, hunk.old_count)
    return digest_of(place + lines).hex()[:_NAME_DIGITS]


def hunk_key(text: str) -> int | str:
    """Parse a hunk number or name as the user wrote it; `UsageError` for anything else."""
    if text.isascii() and text.isdigit() and len(text) < _NAME_DIGITS and int(text) > 0:
        return int(text)
    if len(text) == _NAME_DIGITS and _HEX.issuperset(text):
        return text
    raise UsageError(
        f"{text!r} is not a hunk", hint="use numbers as holdfast diff shows them, such as 1 or 1,3"
    )


def revert_hunks(new: Iterable[bytes], hunks: Iterable[Hunk]) -> Iterator[bytes]:
    """The new text, given in pieces, with these hunks (in order) as in the old text."""
    complete = True
    for section in _sections(_Pieces(new), hunks):
        last = b""
        for piece in section:
            if not complete and not last:
                # Joined, the two would be one line that neither side ever had.
                raise HunkMismatch(
                    "lines would follow a last line that has no line end",
                    hint="also choose the hunk before or after it",
                )
            yield piece
            last = piece
        complete = last.endswith(b"\n") if last else complete


def _sections(new: _Pieces, hunks: Iterable[Hunk]) -> Iterator[Iterator[bytes]]:
    """Copied and reverted sections, alternating. Read each one before the next."""
    position = 0
    for hunk in hunks:
        begin = hunk.new_start - 1 if hunk.new_count else hunk.new_start
        if begin < position:
            raise mismatch(hunk, "comes before the hunk it follows")
        yield new.lines(begin - position, hunk)
        new.require(hunk)
        yield iter([line.content() for line in hunk.lines if line.kind != "+"])
        position = begin + hunk.new_count
    yield new.rest()


class _Pieces:
    """A text that is read once, in pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._coming = iter(pieces)
        self._piece = b""

    def _fill(self) -> bool:
        while not self._piece:
            piece = next(self._coming, None)
            if piece is None:
                return False
            self._piece = piece
        return True

    def lines(self, count: int, hunk: Hunk) -> Iterator[bytes]:
        """This many lines. A last line without a line end counts too."""
        unfinished = False
        while count:
            if not self._fill():
                if count == 1 and unfinished:
                    return
                raise mismatch(hunk, "is outside the text")
            ends = self._piece.count(b"\n")
            if ends < count:
                given, self._piece = self._piece, b""
                count -= ends
            else:
                end = 0
                for _ in range(count):
                    end = self._piece.index(b"\n", end) + 1
                given, self._piece = self._piece[:end], self._piece[end:]
                count = 0
            unfinished = not given.endswith(b"\n")
            yield given

    def require(self, hunk: Hunk) -> None:
        """Skip the new lines of a hunk, which must come next."""
        expected = b"".join(line.content() for line in hunk.lines if line.kind != "-")
        found = b""
        while len(found) < len(expected) and self._fill():
            missing = len(expected) - len(found)
            found += self._piece[:missing]
            self._piece = self._piece[missing:]
        at_line_end = not expected or expected.endswith(b"\n") or not self._fill()
        if found != expected or not at_line_end:
            raise mismatch(hunk, "expects other lines than the text has there")

    def rest(self) -> Iterator[bytes]:
        while self._fill():
            yield self._piece
            self._piece = b""
