"""Parameters that routes share, with their bounds."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Path, Query

SessionParameter: TypeAlias = Annotated[
    str, Path(min_length=1, max_length=128, description="The id of a session.")
]
Reference: TypeAlias = Annotated[
    str,
    Path(
        min_length=1,
        max_length=300,
        description="A checkpoint: its id or the first characters of it, a name, or HEAD.",
    ),
]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=1000, description="The size of a page.")]
Cursor: TypeAlias = Annotated[
    str | None, Query(max_length=5000, description="From the answer with the page before.")
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
