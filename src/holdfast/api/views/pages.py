"""Differences, files, replays and conversations in pages."""

from typing import NotRequired, TypedDict

from holdfast.api.views.changes import ChangeView, NumberedHunkView
from holdfast.api.views.history import DamagedStepView, ReplayMessageView, ReplayStepView


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
        "total_directories": int,
        "next": str | None,
    },
)
DiffPageView.__doc__ = """A page of the files that differ between two ends; `next` asks for the
next page. `to` is `workspace` for the current files. `total_files` includes
`total_directories`: directories that are listed because nothing inside them is."""


class FileView(TypedDict):
    """A piece of a file, from `offset` on. `next` is the offset of the next piece. `encoding` says
    whether `content` is text or base64."""

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


class ReplayPageView(TypedDict):
    """Steps of a session from `first` on, oldest first. A step that cannot be read has `damage`.
    `position` is the last step; `next` is the first step of the next page."""

    session_id: str
    total: int
    position: int
    first: int
    steps: list[ReplayStepView | DamagedStepView]
    next: int | None


class MessagesView(TypedDict):
    """Messages of a session, by index; `next` is the index of the first one of the next page."""

    session_id: str
    messages: list[ReplayMessageView]
    next: int | None
