"""Parameters that routes share, with their limits, and the base of request bodies."""

from __future__ import annotations

from typing import Annotated, TypeAlias
from urllib.parse import unquote

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict

from holdfast.domain.ids import SESSION_ID_MAX_LENGTH

DECODED = BeforeValidator(unquote)
"""For path segments, in which `%` and `/` are still encoded; see `holdfast.interfaces.web.app`."""

SessionParameter: TypeAlias = Annotated[
    str,
    Path(min_length=1, max_length=SESSION_ID_MAX_LENGTH, description="The id of a session."),
    DECODED,
]
Reference: TypeAlias = Annotated[
    str,
    Path(
        min_length=1,
        max_length=300,
        description="A checkpoint: its id or the first characters, a name, or HEAD.",
    ),
    DECODED,
]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=1000, description="The size of a page.")]
Cursor: TypeAlias = Annotated[
    str | None, Query(max_length=5000, description="The cursor from the previous page.")
]
PathQuery: TypeAlias = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=5000,
        description="Relative to the workspace. Bytes that are not UTF-8 are percent-encoded.",
    ),
]
RequiredPath: TypeAlias = Annotated[
    str,
    Query(
        min_length=1,
        max_length=5000,
        description="Relative to the workspace. Bytes that are not UTF-8 are percent-encoded.",
    ),
]


class RequestBody(BaseModel):
    """A JSON body. Unknown fields are refused, and types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)
