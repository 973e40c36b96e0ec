"""Errors as problem details (RFC 9457), with Holdfast's code and hint.

`type` is a URN with the code, so that programs can distinguish problems without reading text.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TypedDict

from starlette.responses import Response

from holdfast.domain.errors import (
    Busy,
    HoldfastError,
    NoSpace,
    NotFound,
    Refused,
    UsageError,
)

MEDIA_TYPE = "application/problem+json"
_STATUS_OF: tuple[tuple[type[HoldfastError], int, str], ...] = (
    (UsageError, 400, "The request is not valid"),
    (NotFound, 404, "Not found"),
    (Refused, 409, "Refused"),
    (NoSpace, 507, "No space left"),
    (Busy, 503, "The store is busy"),
    (HoldfastError, 500, "The store cannot be used"),
)
TITLES = {
    400: "The request is not valid",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "The method is not allowed here",
    413: "The request is too large",
    415: "Only JSON is accepted",
    429: "Too many requests",
    431: "The headers are too large",
    500: "A bug in Holdfast",
    503: "Not available now",
}


class Problem(TypedDict):
    """Why a request failed, and what to do."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str | None


def problem_of(error: BaseException) -> Problem:
    if not isinstance(error, HoldfastError):
        detail = f"a bug in Holdfast: {type(error).__name__}"
        return _problem("error", TITLES[500], 500, detail, "see the server's log")
    status, title = next(
        (status, title) for kind, status, title in _STATUS_OF if isinstance(error, kind)
    )
    return _problem(error.code, title, status, error.message, error.hint)


def log_bug(error: BaseException) -> None:
    """For work without a waiting request; errors with a code are reported to the client."""
    if not isinstance(error, HoldfastError):
        logging.getLogger("holdfast").error("a bug in Holdfast", exc_info=error)


def _problem(code: str, title: str, status: int, detail: str, hint: str | None) -> Problem:
    return {
        "type": f"urn:holdfast:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "hint": hint,
    }


def error_response(error: BaseException) -> ProblemResponse:
    problem = problem_of(error)
    headers = {"retry-after": "1"} if problem["status"] == 503 else {}
    return ProblemResponse(problem, headers)


def problem_response(
    status: int,
    code: str,
    detail: str,
    hint: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> ProblemResponse:
    title = TITLES.get(status, "The request failed")
    return ProblemResponse(_problem(code, title, status, detail, hint), headers or {})


class ProblemResponse(Response):
    """Problem details as an answer."""

    def __init__(self, problem: Problem, headers: Mapping[str, str]) -> None:
        content = json.dumps(problem).encode()
        super().__init__(content, problem["status"], dict(headers), MEDIA_TYPE)
        self.code = problem["code"]
