"""Changed paths, hunks and cells as data."""

from typing import TYPE_CHECKING, NotRequired, TypedDict

from holdfast.domain.paths import to_text

if TYPE_CHECKING:
    from holdfast.api.diffs import ContentDiff, Difference
    from holdfast.domain.diff.hunk_choice import NumberedHunk
    from holdfast.domain.diff.hunks import Hunk
    from holdfast.domain.trees.changes import Change
    from holdfast.engine.compare.notebooks import CellChange

NO_NEWLINE = "\\ No newline at end of file"


class HunkView(TypedDict):
    """Changed lines, each with its mark, as in a unified diff."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    heading: str
    lines: list[str]


class NumberedHunkView(HunkView):
    """A hunk with the number and the id that `restore --hunk` accepts."""

    number: int
    id: str


class CellView(TypedDict):
    """A changed cell of a notebook."""

    old_index: int | None
    new_index: int | None
    type: str
    change: str
    hunks: list[HunkView]


class ChangeView(TypedDict):
    """A path that differs. `left_out` says why a rule keeps it out of checkpoints. The modes and
    `content`, the kind of content or `directory`, come with hunks."""

    path: str
    change: str
    old_path: NotRequired[str]
    left_out: NotRequired[str]
    old_mode: NotRequired[str]
    new_mode: NotRequired[str]
    content: NotRequired[str]
    cells: NotRequired[list[CellView]]


DifferenceView = TypedDict(  # not a class: `from` is a keyword
    "DifferenceView",
    {
        "from": str | None,
        "to": str,
        "reasons": NotRequired[dict[str, str]],
        "recorded": NotRequired[dict[str, list[str]]],
    },
)
"""The two ends of a difference; `reasons` where both are checkpoints. `recorded` has what differs
besides files and is never restored, such as tool versions, in lines by component."""


def difference_view(found: "Difference") -> DifferenceView:
    view: DifferenceView = {"from": found.old.id if found.old else None, "to": found.new_label}
    if found.old is not None and found.new is not None:
        ends = {"from": found.old, "to": found.new}
        view["reasons"] = {end: one.intent.reasoning for end, one in ends.items()}
    if found.recorded:
        view["recorded"] = {one.name: list(one.lines) for one in found.recorded}
    return view


def change_view(found: "Change", left_out: str | None = None) -> ChangeView:
    view: ChangeView = {"path": to_text(found.path), "change": found.type.value}
    if found.old_path is not None:
        view["old_path"] = to_text(found.old_path)
    if left_out is not None:
        view["left_out"] = left_out
    return view


def compared_view(
    found: "Change", left_out: str | None, content: "ContentDiff | None"
) -> ChangeView:
    """A change with its modes and the kind of its content; text hunks are left out."""
    view = change_view(found, left_out)
    if (modes := found.modes) is not None:
        view["old_mode"], view["new_mode"] = (f"{mode:04o}" for mode in modes)
    if content is not None:
        view["content"] = content.kind
        if content.kind == "notebook":
            view["cells"] = [_cell(cell) for cell in content.cells]
    elif found.is_directory:
        view["content"] = "directory"
    return view


def numbered_hunk_view(hunk: "NumberedHunk") -> NumberedHunkView:
    return {"number": hunk.number, "id": hunk.name, **hunk_view(hunk.hunk)}


def hunk_view(hunk: "Hunk") -> HunkView:
    lines: list[str] = []
    for line in hunk.lines:
        lines.append(line.kind + line.text.decode("utf-8", "surrogateescape"))
        if line.no_newline:
            lines.append(NO_NEWLINE)
    return {
        "old_start": hunk.old_start,
        "old_lines": hunk.old_count,
        "new_start": hunk.new_start,
        "new_lines": hunk.new_count,
        "heading": hunk.heading.decode("utf-8", "surrogateescape"),
        "lines": lines,
    }


def _cell(cell: "CellChange") -> CellView:
    return {
        "old_index": cell.index_old,
        "new_index": cell.index_new,
        "type": cell.cell_type,
        "change": cell.change,
        "hunks": [hunk_view(hunk) for hunk in cell.hunks],
    }
