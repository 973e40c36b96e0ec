"""The page's files, read and compressed once, and sent with a policy that runs nothing else.

The page handles its own addresses: every address below it gets the same document.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute

from holdfast.interfaces.web.problems import problem_response
from holdfast.interfaces.web.routing import entity_tag, is_known

PAGE = Path(__file__).parent / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_ADDRESSES = (
    "/",
    "/search",
    "/settings",
    "/health",
    "/s/{rest:path}",
    "/w/{workspace}",
    "/w/{workspace}/{rest:path}",
)


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file, plain and compressed."""

    content: bytes
    compressed: bytes
    media_type: str
    tag: str


def page_routes() -> list[BaseRoute]:
    documents: list[BaseRoute] = [StarletteRoute(one, _document) for one in _ADDRESSES]
    return [StarletteRoute("/page/{name:path}", _file), *documents]


@cache
def page_files() -> dict[str, PageFile]:
    """Page files by name; nothing else in the directory can be requested."""
    return {
        path.relative_to(PAGE).as_posix(): _read(path)
        for path in PAGE.rglob("*")
        if path.suffix in _TYPES and path.is_file()
    }


def _read(path: Path) -> PageFile:
    content = path.read_bytes()
    compressed = gzip.compress(content, 9, mtime=0)
    return PageFile(content, compressed, _TYPES[path.suffix], entity_tag(content))


def _document(request: Request) -> Response:
    return _response(request, page_files()["index.html"])


def _file(request: Request) -> Response:
    found = page_files().get(request.path_params["name"])
    if found is None:
        return problem_response(404, "not_found", "the page has no such file")
    return _response(request, found)


def _response(request: Request, file: PageFile) -> Response:
    headers = {
        "etag": file.tag,
        "cache-control": "private, no-cache",
        "content-security-policy": POLICY,
        "vary": "accept-encoding",
    }
    if is_known(request, file.tag):
        return Response(None, 304, headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(
            file.compressed, 200, {**headers, "content-encoding": "gzip"}, file.media_type
        )
    return Response(file.content, 200, headers, file.media_type)
