"""Compares two contents of one path: binary or text, and the hunks between them.

1. NUL in the first 8000 bytes of either side: binary. A notebook that parses: by cell.
2. Small contents are read and go to the line differ. For others, the equal start and end are found
   by streaming, so that a small edit in a huge file leaves a small middle.
3. A small middle goes to the line differ, because starting git takes longer (3 ms and more). A
   large one goes to git, which is faster there.

Guarantee: the hunks lead from old to new exactly, whichever differ computed them, even if git is
missing, fails or takes too long. Memory is bounded: contents are read in chunks, hunks come one at
a time, and long ones in parts. Content for which this is impossible is `too_large`. Not guaranteed:
anything about content that changes between two reads. If it ends early, `ContentChanged` is raised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, Protocol

from holdfast.domain.diff.hunks import Hunk, last_heading, lines_in, split_lines
from holdfast.domain.errors import ContentChanged, UsageError
from holdfast.engine.compare.git_diff import GitDiffFailed, GitProgram, find_git, git_hunks
from holdfast.engine.compare.line_diff import line_hunks, replacement_hunks
from holdfast.engine.compare.notebooks import NOTEBOOK_BYTES, CellChange, compare_notebooks
from holdfast.values.classes import dataclass, field

LONGEST_CONTEXT = 10_000
# Text with a longer line is not shown by lines.
LONGEST_LINE_BYTES = 4 * 1024 * 1024
_SNIFFED_BYTES = 8_000
_SMALL_BYTES = 64 * 1024
# The limit of the line differ without git, both sides together: some 50 MB of memory.
_OWN_BYTES, _OWN_LINES = 8 * 1024 * 1024, 200_000
# The limit for git, both sides together: it holds them in its own memory.
_GIT_BYTES, _GIT_LINES = 512 * 1024 * 1024, 10_000_000
_PIECE_BYTES = 256 * 1024
# Equal lines around a change beyond the context, which help the differ to place it well.
_SPARE_BYTES, _SPARE_LINES = 64 * 1024, 32

HunkSource = Callable[[], Iterator[Hunk]]


class Content(Protocol):
    """Bytes that can be read repeatedly, in chunks of any size."""

    @property
    def size_bytes(self) -> int: ...

    def chunks(self) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class BytesContent:
    """Content in memory."""

    data: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def chunks(self) -> Iterator[bytes]:
        for begin in range(0, len(self.data), _PIECE_BYTES):
            yield self.data[begin : begin + _PIECE_BYTES]


def _no_hunks() -> Iterator[Hunk]:
    return iter(())


@dataclass(frozen=True, slots=True)
class ContentDiff:
    """How one path's content changed; a side that does not exist has no size.

    A notebook has changed cells, and its hunks are those of the file as text. `too_large` content
    has no hunks, only `first_difference`, the offset of the first byte that differs. Ignored
    content is `withheld`: it has only sizes.
    """

    kind: Literal["text", "binary", "notebook", "too_large", "withheld"]
    old_size_bytes: int | None
    new_size_bytes: int | None
    cells: tuple[CellChange, ...] = ()
    notebook_metadata_changed: bool = False
    first_difference: int | None = None
    source: HunkSource = field(default=_no_hunks, repr=False, compare=False)

    def hunks(self) -> Iterator[Hunk]:
        """The hunks, computed while they are read."""
        return self.source()


def compare_content(
    path: bytes,
    old: Content | None,
    new: Content | None,
    *,
    context: int = 3,
    git: Callable[[], GitProgram | None] = find_git,
) -> ContentDiff:
    """Compare the old and new content of a path; `None` for a side that does not exist.

    `git` is looked up only if the contents are large enough to need it.
    """
    if (old is None and new is None) or not 0 <= context <= LONGEST_CONTEXT:
        raise UsageError(f"needs a content, and a context of 0 to {LONGEST_CONTEXT} lines")
    before = BytesContent(b"") if old is None else old
    after = BytesContent(b"") if new is None else new
    old_size = None if old is None else old.size_bytes
    new_size = None if new is None else new.size_bytes
    if _is_binary(before) or _is_binary(after):
        return ContentDiff("binary", old_size, new_size)
    source, first_difference = _hunk_source(before, after, context, git)
    if path.lower().endswith(b".ipynb") and max(old_size or 0, new_size or 0) <= NOTEBOOK_BYTES:
        documents = [None if side is None else _whole(side) for side in (old, new)]
        notebook = compare_notebooks(*documents, context=context)
        if notebook is not None:
            return ContentDiff("notebook", old_size, new_size, *notebook, None, source or _no_hunks)
    if source is None:
        return ContentDiff("too_large", old_size, new_size, first_difference=first_difference)
    return ContentDiff("text", old_size, new_size, source=source)


def _is_binary(content: Content) -> bool:
    head = b""
    for chunk in content.chunks():
        head += chunk[: _SNIFFED_BYTES - len(head)]
        if len(head) == _SNIFFED_BYTES:
            break
    return b"\0" in head


def _hunk_source(
    old: Content, new: Content, context: int, find: Callable[[], GitProgram | None]
) -> tuple[HunkSource | None, int]:
    """The differ to use for two texts, if any, and the offset of the first difference."""
    if max(old.size_bytes, new.size_bytes) <= _SMALL_BYTES:
        return lambda: line_hunks(_whole(old), _whole(new), context=context), 0
    middle = _find_middle(old, new, context)
    if middle is None:
        return _no_hunks, 0
    return _choose(middle, find), middle.first_difference


def _choose(middle: _Middle, find: Callable[[], GitProgram | None]) -> HunkSource | None:
    sizes = middle.old_end - middle.begin, middle.new_end - middle.begin
    if max(sizes) <= _SMALL_BYTES:
        return middle.own_hunks
    lines = 0
    for content, end in ((middle.old, middle.old_end), (middle.new, middle.new_end)):
        counted = _count_lines(_part(content, middle.begin, end))
        if counted is None:
            return None
        lines += counted
    if middle.is_one_sided():
        return middle.replacement
    own = sum(sizes) <= _OWN_BYTES and lines <= _OWN_LINES
    git = find() if sum(sizes) <= _GIT_BYTES and lines <= _GIT_LINES else None
    if git is not None:
        return partial(middle.git_hunks, git, middle.own_hunks if own else middle.replacement)
    return middle.own_hunks if own else None


@dataclass(frozen=True, slots=True)
class _Middle:
    """Where two texts differ, with some equal lines around it, and three ways to get its hunks.

    Offsets are those of old. After the change, offsets in new are `growth` larger.
    """

    old: Content
    new: Content
    context: int
    first_difference: int
    lines_before: int
    heading: bytes
    begin: int
    changed: int
    changed_end: int
    old_end: int

    @property
    def growth(self) -> int:
        return self.new.size_bytes - self.old.size_bytes

    @property
    def new_end(self) -> int:
        return self.old_end + self.growth

    def is_one_sided(self) -> bool:
        """Whether lines were only added or only removed."""
        return self.changed in (self.changed_end, self.changed_end + self.growth)

    def own_hunks(self) -> Iterator[Hunk]:
        return line_hunks(
            _read(self.old, self.begin, self.old_end),
            _read(self.new, self.begin, self.new_end),
            context=self.context,
            margin=self.context,
            lines_before=self.lines_before,
            heading=self.heading,
        )

    def git_hunks(self, git: GitProgram, otherwise: HunkSource) -> Iterator[Hunk]:
        old = _part(self.old, self.begin, self.old_end)
        new = _part(self.new, self.begin, self.new_end)
        try:
            yield from git_hunks(
                git,
                old,
                new,
                context=self.context,
                lines_before=self.lines_before,
                heading=self.heading,
            )
        except GitDiffFailed:
            yield from otherwise()

    def replacement(self) -> Iterator[Hunk]:
        """All old lines removed, then all new ones added: exact, in bounded memory, but long."""
        above = split_lines(_read(self.old, self.begin, self.changed))
        below = split_lines(_read(self.old, self.changed_end, self.old_end))
        kept = above[max(0, len(above) - self.context) :]
        return replacement_hunks(
            kept,
            lines_in(_part(self.old, self.changed, self.changed_end)),
            lines_in(_part(self.new, self.changed, self.changed_end + self.growth)),
            below[: self.context],
            lines_before=self.lines_before + len(above) - len(kept),
            heading=self.heading,
        )


def _find_middle(old: Content, new: Content, context: int) -> _Middle | None:
    """The part in which two contents differ, or `None` if they are equal."""
    size_bytes, lines, starts, tail = _equal_start(old, new, context + _SPARE_LINES)
    if size_bytes == old.size_bytes == new.size_bytes:
        return None
    changed = starts[-1]
    above = _kept([changed - start for start in reversed(starts)], context)
    begin = starts[-1 - above]
    ends = _equal_end(old, new, changed, context + _SPARE_LINES)
    changed_end = ends[0] if ends else old.size_bytes
    below = _kept([end - changed_end for end in ends], context)
    # The heading is searched only nearby; the first line there may be incomplete.
    near = split_lines(tail[: max(0, begin - size_bytes + len(tail))])
    return _Middle(
        old,
        new,
        context,
        first_difference=size_bytes,
        lines_before=lines - above,
        heading=last_heading(near if len(tail) == size_bytes else near[1:], b""),
        begin=begin,
        changed=changed,
        changed_end=changed_end,
        old_end=ends[below] if len(ends) > context else old.size_bytes,
    )


def _kept(distances: Sequence[int], context: int) -> int:
    """How many of the lines at these distances from the change are kept around it."""
    count = min(context, len(distances) - 1)
    while count + 1 < len(distances) and distances[count + 1] <= _SPARE_BYTES:
        count += 1
    return count


def _equal_start(old: Content, new: Content, keep: int) -> tuple[int, int, Sequence[int], bytes]:
    """The common start of two contents: bytes, lines, the starts of its last lines, last bytes.

    The last of the line starts is that of the line in which the contents differ.
    """
    size_bytes = lines = 0
    line_starts = deque([0], keep + 1)
    tail = b""
    for left, right in _equal_pieces(_from(old, 0), _from(new, 0)):
        equal = left[: _equal_prefix(left, right)]
        found: list[int] = []
        newline = len(equal)
        while len(found) <= keep and (newline := equal.rfind(b"\n", 0, newline)) >= 0:
            found.append(size_bytes + newline + 1)
        line_starts.extend(reversed(found))
        lines += equal.count(b"\n")
        size_bytes += len(equal)
        tail = tail[-_SPARE_BYTES:] + equal
        if len(equal) < len(left):
            break
    return size_bytes, lines, line_starts, tail


def _equal_end(old: Content, new: Content, changed: int, keep: int) -> list[int]:
    """Line starts in the common end of two contents, as offsets in old; the first ones only.

    Reads from the line end before the earliest line that can be equal on both sides.
    """
    growth = new.size_bytes - old.size_bytes
    position = max(changed, changed - growth) - 1
    starts: list[int] = []
    for left, right in _equal_pieces(_from(old, position), _from(new, position + growth)):
        begin = 0
        if left != right:
            starts.clear()
            begin = len(left) - _equal_prefix(left[::-1], right[::-1])
        while len(starts) <= keep and (newline := left.find(b"\n", begin)) >= 0:
            begin = newline + 1
            starts.append(position + begin)
        position += len(left)
    return starts


def _equal_prefix(left: bytes, right: bytes) -> int:
    """The length of the common start of two pieces of equal length."""
    if left == right:
        return len(left)
    low, high = 0, len(left)
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _equal_pieces(old: Iterator[bytes], new: Iterator[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Both streams in pieces of equal length, until one of them ends."""
    left = right = b""
    while (left := left or next(old, b"")) and (right := right or next(new, b"")):
        size = min(len(left), len(right))
        yield left[:size], right[:size]
        left, right = left[size:], right[size:]


def _from(content: Content, begin: int) -> Iterator[bytes]:
    if begin < 0:
        # Content starts with a line, as if a line end preceded it.
        yield b"\n"
    yield from _part(content, max(0, begin), content.size_bytes)


def _part(content: Content, begin: int, end: int) -> Iterator[bytes]:
    """The bytes from `begin` to `end`, in pieces that are never empty."""
    position = 0
    for chunk in content.chunks():
        stop = min(len(chunk), end - position)
        for start in range(max(0, begin - position), stop, _PIECE_BYTES):
            yield chunk[start : min(start + _PIECE_BYTES, stop)]
        position += len(chunk)
        if position >= end:
            return
    if position < end:
        raise ContentChanged(f"a content ended after {position} of {end} bytes")


def _read(content: Content, begin: int, end: int) -> bytes:
    return b"".join(_part(content, begin, end))


def _whole(content: Content) -> bytes:
    return _read(content, 0, content.size_bytes)


def _count_lines(pieces: Iterator[bytes]) -> int | None:
    """The number of lines, or `None` if one is too long."""
    lines = unfinished_bytes = 0
    for piece in pieces:
        first = piece.find(b"\n")
        unfinished_bytes += len(piece) if first < 0 else first
        if unfinished_bytes > LONGEST_LINE_BYTES:
            return None
        if first >= 0:
            lines += piece.count(b"\n")
            unfinished_bytes = len(piece) - piece.rfind(b"\n") - 1
    return lines + (unfinished_bytes > 0)
