"""Pages of a difference as data: some files, and of each file some lines."""

from typing import NotRequired, TypedDict

from holdfast.api.views.changes import ChangeView, NumberedHunkView


class PagedHunkView(NumberedHunkView):
    """A hunk, or a part of one from `first_line` on. `colours` has, for each line, pairs of a
    colour class and a length."""

    first_line: int
    total_lines: int
    colours: list[list[list[str | int]]] | None


class FileDiffView(ChangeView):
    """A path that differs, with its first hunks. `hunks_next` asks for the following ones, as
    `hunks_from`. `cut_lines` counts lines that are shortened. `restorable`: single hunks can be
    restored. Line counts are null where not all hunks were read."""

    hunks: list[PagedHunkView]
    hunks_next: str | None
    cut_lines: int
    added_lines: int | None
    removed_lines: int | None
    old_size_bytes: int | None
    new_size_bytes: int | None
    restorable: bool


DiffPageView = TypedDict(  # not a class: `from` is a keyword
    "DiffPageView",
    {
        "from": str | None,
        "to": str,
        "reasons": NotRequired[dict[str, str]],
        "files": list[FileDiffView],
        "total_files": int,
        "next": str | None,
    },
)
DiffPageView.__doc__ = """A page of the files that differ between two ends; `next` asks for the
page after it. `to` is `workspace` for the files as they are now."""


class FileView(TypedDict):
    """A piece of a file, from `offset` on. `next` is the offset of the next piece. `content` is
    text, or base64 where `encoding` says so."""

    checkpoint: str
    path: str
    mode: int
    hash: str
    size_bytes: int
    offset: int
    encoding: str
    content: str
    next: int | None
    colours: list[list[list[str | int]]] | None
