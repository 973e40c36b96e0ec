"""Notebooks by cell: which cells were added, removed, rewritten, or only run again.

Cells are paired in rounds, each between the pairs of the one before: equal id and source, equal id,
equal type and source, then the most similar of the rest. Each pair has its own change.

Guarantee: every difference in a cell's type, source, outputs, metadata or id is in the result. A
document that is too large, or not a notebook of format 4, gives `None`. Not guaranteed: that every
difference between the files is one between cells. `metadata_changed` reports changes of the
notebook's own metadata. JSON layout, key order and repeated keys are ignored.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from hashlib import blake2b
from typing import Literal

from holdfast.domain.diff.hunks import Change, Hunk
from holdfast.engine.compare.line_diff import align, line_hunks
from holdfast.values.classes import dataclass

# Documents are parsed whole: some 50 MB of memory at these limits, for any content.
NOTEBOOK_BYTES = 6 * 1024 * 1024
_VALUES = 500_000
_SOURCE_BYTES = 1024 * 1024
_CELLS = 5_000
_FORMAT = 4
# Pairing by similarity compares the lines of each old cell with those of each new one.
_SIMILARITY_STEPS = 500_000
_SIMILAR = 0.5
# Two cells at the same position are probably one that changed, even without a common line.
_SAME_PLACE = 0.1

CellChangeKind = Literal[
    "added", "removed", "modified", "outputs", "metadata", "outputs_and_metadata"
]


@dataclass(frozen=True, slots=True)
class CellChange:
    """One changed cell. Hunks are of its source; without hunks, the source is unchanged."""

    index_old: int | None
    index_new: int | None
    cell_type: str
    change: CellChangeKind
    hunks: tuple[Hunk, ...] = ()


@dataclass(frozen=True, slots=True)
class _Cell:
    """The source of a cell, and digests of the rest, for comparison."""

    cell_type: str
    cell_id: str | None
    source: bytes
    outputs: bytes
    metadata: bytes


_Notebook = tuple[tuple[_Cell, ...], bytes]
"""The cells, and a digest of everything else."""


def compare_notebooks(
    old: bytes | None, new: bytes | None, *, context: int
) -> tuple[tuple[CellChange, ...], bool] | None:
    """The changed cells of two documents, one of which may be missing, and whether the notebook's
    metadata changed; `None` if they must be compared as text.

    Cells come in the order of the new notebook, removed ones at their old position.
    """
    before = ((), b"") if old is None else _read_notebook(old)
    after = ((), b"") if new is None else _read_notebook(new)
    if before is None or after is None:
        return None
    metadata_changed = old is not None and new is not None and before[1] != after[1]
    return tuple(_changes(before[0], after[0], context)), metadata_changed


def _changes(old: Sequence[_Cell], new: Sequence[_Cell], context: int) -> Iterator[CellChange]:
    i = j = 0
    for pair_old, pair_new in [*_pairs(old, new), (len(old), len(new))]:
        for index in range(i, pair_old):
            hunks = tuple(line_hunks(old[index].source, b"", context=context))
            yield CellChange(index, None, old[index].cell_type, "removed", hunks)
        for index in range(j, pair_new):
            hunks = tuple(line_hunks(b"", new[index].source, context=context))
            yield CellChange(None, index, new[index].cell_type, "added", hunks)
        if pair_old < len(old) and (kind := _kind(old[pair_old], new[pair_new])):
            hunks = tuple(line_hunks(old[pair_old].source, new[pair_new].source, context=context))
            yield CellChange(pair_old, pair_new, new[pair_new].cell_type, kind, hunks)
        i, j = pair_old + 1, pair_new + 1


def _read_notebook(raw: bytes) -> _Notebook | None:
    """The notebook in these bytes, or `None` if they must be compared as text."""
    # Each value except the outermost follows one of these, so this is at least their number.
    if sum(raw.count(mark) for mark in (b",", b":", b"[", b"{")) > _VALUES:
        return None
    try:
        return _notebook(json.loads(raw.decode("utf-8")))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _notebook(document: object) -> _Notebook | None:
    if not isinstance(document, dict):
        return None
    cells, version = document.pop("cells"), document["nbformat"]
    if not isinstance(version, int) or version < _FORMAT:
        return None
    if not isinstance(cells, list) or len(cells) > _CELLS:
        return None
    read = tuple(_cell(cell) for cell in cells)
    if sum(len(cell.source) for cell in read) > _SOURCE_BYTES:
        return None
    return read, _digest(document)


def _cell(cell: object) -> _Cell:
    if not isinstance(cell, dict):
        raise TypeError("a cell is an object")
    cell_type, source = cell.pop("cell_type"), cell.pop("source")
    cell_id = cell.get("id")
    if not isinstance(cell_type, str) or not isinstance(source, str | list):
        raise TypeError("a cell has a type and a source")
    outputs = [cell.pop("outputs", None), cell.pop("execution_count", None)]
    return _Cell(
        cell_type,
        cell_id if isinstance(cell_id, str) else None,
        # JSON can contain halves of surrogate pairs, which a strict encoder refuses.
        "".join(source).encode("utf-8", "surrogatepass"),
        _digest(outputs),
        _digest(cell),
    )


def _digest(value: object) -> bytes:
    return blake2b(json.dumps(value, sort_keys=True).encode("ascii"), digest_size=16).digest()


def _kind(old: _Cell, new: _Cell) -> CellChangeKind | None:
    if (old.cell_type, old.source) != (new.cell_type, new.source):
        return "modified"
    if old.outputs == new.outputs:
        return "metadata" if old.metadata != new.metadata else None
    return "outputs" if old.metadata == new.metadata else "outputs_and_metadata"


def _pairs(old: Sequence[_Cell], new: Sequence[_Cell]) -> list[tuple[int, int]]:
    """Old and new index of each cell in both notebooks, rising on both sides."""
    rounds: tuple[Callable[[_Cell], Hashable], ...] = (
        lambda cell: (cell.cell_id, cell.cell_type, cell.source),
        lambda cell: cell.cell_id if cell.cell_id is not None else object(),
        lambda cell: (cell.cell_type, cell.source),
    )
    pairs: list[tuple[int, int]] = []
    for key in rounds:
        for gap in list(_gaps(pairs, len(old), len(new))):
            rows = [key(cell) for cell in old[gap.old_start : gap.old_end]]
            columns = [key(cell) for cell in new[gap.new_start : gap.new_end]]
            equal = align(rows, columns).pairs
            pairs += [(gap.old_start + i, gap.new_start + j) for i, j in equal]
        pairs.sort()
    # If any id is in both, the writing program keeps ids, and another id is another cell.
    ids_last = not {cell.cell_id for cell in old}.isdisjoint(
        cell.cell_id for cell in new if cell.cell_id is not None
    )
    for gap in list(_gaps(pairs, len(old), len(new))):
        pairs += _similar(old, new, gap, _SIMILAR if ids_last else 0.0)
    return sorted(pairs)


def _gaps(pairs: list[tuple[int, int]], old_count: int, new_count: int) -> Iterator[Change]:
    i = j = 0
    for pair_old, pair_new in [*pairs, (old_count, new_count)]:
        if i < pair_old and j < pair_new:
            yield Change(i, pair_old, j, pair_new)
        i, j = pair_old + 1, pair_new + 1


def _similar(
    old: Sequence[_Cell], new: Sequence[_Cell], gap: Change, threshold: float
) -> list[tuple[int, int]]:
    """Pairs of one type with the greatest total similarity, as an alignment of two sequences."""
    rows = [(old[i].cell_type, _line_counts(old[i])) for i in range(gap.old_start, gap.old_end)]
    columns = [(new[j].cell_type, _line_counts(new[j])) for j in range(gap.new_start, gap.new_end)]
    steps = sum(len(lines) for _, lines in rows) * len(columns)
    if steps + sum(len(lines) for _, lines in columns) * len(rows) > _SIMILARITY_STEPS:
        return []
    # best[i][j] is the best total of the cells from row i and column j on.
    best = [[0.0] * (len(columns) + 1) for _ in range(len(rows) + 1)]
    gain = [[0.0] * len(columns) for _ in rows]
    for i in range(len(rows) - 1, -1, -1):
        for j in range(len(columns) - 1, -1, -1):
            likeness = _likeness(rows[i][1], columns[j][1])
            if rows[i][0] == columns[j][0] and likeness >= threshold:
                gain[i][j] = _SAME_PLACE + likeness
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + gain[i][j])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(rows) and j < len(columns):
        if gain[i][j] and best[i][j] == best[i + 1][j + 1] + gain[i][j]:
            pairs.append((gap.old_start + i, gap.new_start + j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _line_counts(cell: _Cell) -> Counter[bytes]:
    return Counter(cell.source.split(b"\n"))


def _likeness(old: Counter[bytes], new: Counter[bytes]) -> float:
    """The share of lines that both have, from 0 to 1."""
    return 2 * (old & new).total() / (old.total() + new.total())
