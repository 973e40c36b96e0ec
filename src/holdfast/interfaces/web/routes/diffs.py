"""Differences, and the files in checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal
from urllib.parse import quote_from_bytes

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from holdfast.api.diff_pages import diff_page, file_piece, range_of
from holdfast.api.pages import file_in
from holdfast.api.views.checkpoints import DatabaseView, EntryView, database_view, entry_view
from holdfast.api.views.history import AgentsAtView, MemoryAtView, agents_at_view, memory_at_view
from holdfast.api.views.pages import DiffPageView, FileView
from holdfast.api.workspace import Workspace
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import HoldfastError, NotFound, UsageError
from holdfast.domain.paths import basename, join, to_text
from holdfast.domain.trees.changes import ChangeType
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.interfaces.web.access import OBSERVED_KEY
from holdfast.interfaces.web.highlighting import colour_diff, colour_file
from holdfast.interfaces.web.parameters import (
    Cursor,
    PathQuery,
    Reference,
    RequiredPath,
    SessionParameter,
)
from holdfast.interfaces.web.problems import Problem, problem_response
from holdfast.interfaces.web.routing import (
    OtherAnswer,
    Route,
    entity_tag,
    is_known,
    known_session,
    path_parameter,
    raw_parameter,
    served,
    served_checkpoint,
)

_FileLimit = Annotated[int, Query(ge=1, le=500, description="How many files.")]
_Context = Annotated[int, Query(ge=0, le=100, description="Lines around each change.")]
_HunksFrom = Annotated[
    str | None, Query(max_length=40, description="From hunks_next of a file; needs path.")
]
_Colours = Annotated[bool, Query(description="Add syntax colours.")]
_With = Annotated[
    Literal["now", "before", "beginning"],
    Query(
        alias="with",
        description="What to compare with: the current workspace, the previous checkpoint, or "
        "the first one of the session.",
    ),
]
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
)
_BINARY = "application/octet-stream"
_RAW_POLICY = "default-src 'none'; sandbox"


def compare_with(
    request: Request,
    session_id: SessionParameter,
    checkpoint_id: Reference,
    compare: _With = "now",
    path: PathQuery = None,
    limit: _FileLimit = 50,
    cursor: Cursor = None,
    hunks_from: _HunksFrom = None,
    context: _Context = 3,
    colours: _Colours = False,
) -> DiffPageView:
    with served(request) as workspace:
        session = known_session(workspace, session_id)
        found = workspace.resolve(session, checkpoint_id)
        old: Checkpoint | None
        if compare == "now":
            old, new = found, None
        elif compare == "before":
            old, new = _before(workspace, found), found
        else:
            old, new = workspace.resolve(session, "initial"), found
        return _page(request, workspace, old, new, limit, context, hunks_from, colours=colours)


def compare_two(
    request: Request,
    session_id: SessionParameter,
    checkpoint_id: Reference,
    other_id: Reference,
    path: PathQuery = None,
    limit: _FileLimit = 50,
    cursor: Cursor = None,
    hunks_from: _HunksFrom = None,
    context: _Context = 3,
    colours: _Colours = False,
) -> DiffPageView:
    with served(request) as workspace:
        session = known_session(workspace, session_id)
        old, new = (workspace.resolve(session, one) for one in (checkpoint_id, other_id))
        return _page(request, workspace, old, new, limit, context, hunks_from, colours=colours)


def _page(
    request: Request,
    workspace: Workspace,
    old: Checkpoint | None,
    new: Checkpoint | None,
    limit: int,
    context: int,
    hunks_from: str | None,
    *,
    colours: bool,
) -> DiffPageView:
    path = path_parameter(request)
    page = diff_page(
        workspace,
        old,
        new,
        paths=[] if path is None else [path],
        limit=limit,
        cursor=raw_parameter(request, "cursor"),
        hunks_from=hunks_from,
        context=context,
    )
    if colours:
        colour_diff(page)
    return page


def _before(workspace: Workspace, found: Checkpoint) -> Checkpoint | None:
    """The checkpoint before, without restore records; None before the first."""
    steps = workspace.history.ancestry(found)
    next(steps)
    return next(steps, None)


def changed_paths(
    request: Request,
    session_id: SessionParameter,
    from_id: Annotated[str | None, Query(max_length=300, description="Default: initial.")] = None,
    to_id: Annotated[str | None, Query(max_length=300, description="Default: HEAD.")] = None,
) -> dict[str, str]:
    """Each path with `added`, `modified` or `removed`."""
    with served(request) as workspace:
        session = known_session(workspace, session_id)
        old = workspace.resolve(session, from_id or "initial")
        new = workspace.resolve(session, to_id or "HEAD")
        changes = workspace.diffs.changes(old, new, renames=False)
        return {to_text(one.path): ChangeType(one.type).value for one in changes}


def list_directory(
    request: Request,
    session_id: SessionParameter,
    checkpoint_id: Reference,
    path: PathQuery = None,
) -> list[EntryView]:
    directory = path_parameter(request) or b""
    with served_checkpoint(request, session_id, checkpoint_id) as (workspace, found):
        if not isinstance(workspace.contents.entry(found, directory), DirectoryEntry):
            raise NotFound(f"{to_text(directory)} is not a directory in this checkpoint")
        names = workspace.contents.names(found, directory)
        return [entry_view(join(directory, name), entry) for name, entry in names]


def show_file(
    request: Request,
    session_id: SessionParameter,
    checkpoint_id: Reference,
    path: RequiredPath,
    offset: Annotated[int, Query(ge=0, description="`next` of the previous piece.")] = 0,
    colours: _Colours = False,
) -> FileView:
    wanted = path_parameter(request) or b""
    with served_checkpoint(request, session_id, checkpoint_id) as (workspace, found):
        entry = file_in(workspace, found, wanted)
        view = file_piece(workspace, found, wanted, entry, offset)
    if colours:
        colour_file(view)
    return view


def raw_file(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference, path: RequiredPath
) -> Response:
    """The bytes of a file in a checkpoint. Images have their own media type; all others are
    binary."""
    wanted = path_parameter(request) or b""
    with served_checkpoint(request, session_id, checkpoint_id) as (workspace, found):
        entry = file_in(workspace, found, wanted)
        start = b"".join(range_of(workspace.contents.read(entry), 0, 16))
    headers = _raw_headers(wanted, entity_tag(entry.digest)) | {"accept-ranges": "bytes"}
    if is_known(request, headers["etag"]):
        return Response(None, 304, headers)
    unchanged = request.headers.get("if-range", headers["etag"]) == headers["etag"]
    chosen = _range(request.headers.get("range") if unchanged else None, entry.size)
    if chosen is None:
        headers["content-range"] = f"bytes */{entry.size}"
        return problem_response(416, "range", "the range is not in the file", headers=headers)
    offset, length = chosen
    status = 200
    if (offset, length) != (0, entry.size):
        status = 206
        headers["content-range"] = f"bytes {offset}-{offset + length - 1}/{entry.size}"
    headers["content-length"] = str(length)

    def pieces() -> Iterator[bytes]:
        try:
            with served(request) as workspace:
                yield from range_of(workspace.contents.read(entry), offset, length)
        except HoldfastError as error:  # the status is sent, so abort the connection
            request.scope[OBSERVED_KEY]["code"] = error.code
            raise

    return StreamingResponse(pieces(), status, headers, _media_type(start))


def raw_present_file(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference, path: RequiredPath
) -> Response:
    """The current bytes of a file that differs from the checkpoint."""
    wanted = path_parameter(request) or b""
    with served_checkpoint(request, session_id, checkpoint_id) as (workspace, found):
        workspace.contents.require_shown(wanted, found)
        difference = workspace.diffs.compare(found, None, paths=[wanted])
        for change in difference.changes:
            new = difference.contents(change)[1] if change.path == wanted else None
            if new is not None:
                if new.size_bytes > _LARGEST_PRESENT:
                    raise UsageError(f"{to_text(wanted)} is too large to be shown")
                content = b"".join(new.chunks())
                headers = _raw_headers(wanted, entity_tag(content))
                return Response(content, 200, headers, _media_type(content))
    raise NotFound(f"{to_text(wanted)} does not differ from the checkpoint, or is gone")


_LARGEST_PRESENT = 64 << 20


def _raw_headers(path: bytes, tag: str) -> dict[str, str]:
    name = quote_from_bytes(basename(path), safe="")
    return {
        "etag": tag,
        "cache-control": "private, no-cache",
        "content-disposition": f"attachment; filename*=UTF-8''{name}",
        "content-security-policy": _RAW_POLICY,
    }


def _media_type(start: bytes) -> str:
    """By its first bytes, because names are unreliable. Only formats that cannot contain a
    script."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for sign, kind in _IMAGES if start.startswith(sign)), _BINARY)


def _range(header: str | None, size: int) -> tuple[int, int] | None:
    """Offset and length of one range; the whole file without one. None if the range is invalid."""
    unit, _, text = (header or "").partition("=")
    first, dash, last = text.partition("-")
    if unit.strip() != "bytes" or not dash or "," in text or not size:
        return 0, size
    digits = first + last
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 30:
        return 0, size
    if not first:
        length = min(int(last), size)
        return (size - length, length) if length else None
    offset = int(first)
    end = min(int(last), size - 1) if last else size - 1
    return (offset, end - offset + 1) if offset <= end else None


def agent_states(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference
) -> AgentsAtView:
    with served_checkpoint(request, session_id, checkpoint_id) as (workspace, found):
        return agents_at_view(found, workspace.contents.agent_states(found))


def agent_memory(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference
) -> MemoryAtView:
    with served_checkpoint(request, session_id, checkpoint_id) as (workspace, found):
        return memory_at_view(found, workspace.contents.memory_files(found))


def list_databases(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference
) -> list[DatabaseView]:
    with served_checkpoint(request, session_id, checkpoint_id) as (workspace, found):
        return [database_view(one) for one in workspace.contents.counted_databases(found)]


_ALL = "/api/sessions/{session_id}/checkpoints"
_ONE = f"{_ALL}/{{checkpoint_id}}"
_RAW: dict[str, Any] = {
    "tag": "files",
    "media_types": (_BINARY, "image/png", "image/jpeg", "image/gif", "image/bmp", "image/webp"),
    "other_answers": {
        206: OtherAnswer("A part of the file"),
        416: OtherAnswer("The range is not in the file", Problem),
    },
}
ROUTES = (
    Route(
        "GET",
        f"{_ONE}/diff",
        compare_with,
        DiffPageView,
        "Compare a checkpoint",
        tag="diffs",
        looks=True,
    ),
    Route(
        "GET",
        f"{_ONE}/diff/{{other_id}}",
        compare_two,
        DiffPageView,
        "Compare two checkpoints",
        tag="diffs",
    ),
    *(
        Route(
            "GET",
            path,
            changed_paths,
            dict[str, str],
            "List the paths that differ",
            tag="diffs",
        )
        for path in (f"{_ALL}/diff", "/api/sessions/{session_id}/diff")
    ),
    Route("GET", f"{_ONE}/tree", list_directory, list[EntryView], "List a directory", tag="files"),
    Route("GET", f"{_ONE}/file", show_file, FileView, "Show a file as it was", tag="files"),
    Route("GET", f"{_ONE}/raw", raw_file, None, "Download a file as it was", **_RAW),
    Route(
        "GET",
        f"{_ONE}/raw/now",
        raw_present_file,
        None,
        "Download a file from the workspace",
        looks=True,
        **_RAW,
    ),
    Route("GET", f"{_ONE}/agents", agent_states, AgentsAtView, "Show agents' states", tag="files"),
    Route(
        "GET",
        f"{_ONE}/databases",
        list_databases,
        list[DatabaseView],
        "Count database rows",
        tag="files",
    ),
    Route("GET", f"{_ONE}/memory", agent_memory, MemoryAtView, "Show agents' memory", tag="files"),
)
