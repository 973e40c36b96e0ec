"""Files outside the workspace that tools named, as a part of a checkpoint.

They are restored only on request. Modules that a save does not need are imported on first use.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.component_states import EXACT, SOME, ComponentState
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.paths import is_within
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    ComponentPreview,
    ComponentProblem,
    ContentSink,
    ContentSource,
    Remainder,
    RestoreOf,
)

if TYPE_CHECKING:
    from holdfast.components.external.named_paths import PathWalk
    from holdfast.components.external.restore import ExternalRestore
    from holdfast.ports.store import ExternalPaths

NAME = "external"
_SHOWN = 20


class ExternalComponent:
    """`paths` are those that tools named, `stores` the directory of Holdfast's own files."""

    name = NAME
    order = 60
    outside = False
    restored_by_default = False
    modes = (EXACT, SOME)

    def __init__(self, paths: ExternalPaths, *, stores: Path | None = None) -> None:
        self._paths = paths
        self._stores = stores

    def applies(self, workspace: Path) -> bool:
        return self._paths.exist()

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        from holdfast.components.external.capture import capture

        return capture(request, sink, self._path_walk(request.workspace).at(self._names()))

    def describe(self, state: ComponentState) -> Sequence[str]:
        paths, left_out = state.facts["paths"], state.facts["left_out"]
        lines = [str(path) for path in paths[:_SHOWN]] or ["no files"]
        more = len(paths) - len(paths[:_SHOWN]) + state.facts.get("more", 0)
        if more:
            lines.append(f"… and {more:,} more")
        return [*lines, *(f"not captured: {text}" for text in left_out)]

    def plan(self, request: RestoreOf) -> ComponentPreview:
        from holdfast.components.external.named_paths import display_path
        from holdfast.domain.external_paths import key_of

        steps = self._restorer(request, everything_known=True).steps()
        lines = list(steps.lines())
        return ComponentPreview(
            actions=tuple(line for _, line in lines),
            blocked=tuple(f"{display_path(path)}: {reason}" for path, reason in steps.left_alone()),
            choices=tuple((key_of(path), line) for path, line in lines),
        )

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        return ()

    def restore(self, request: RestoreOf) -> None:
        try:
            self._restorer(request).run()
        except OSError as error:
            named = "" if error.filename is None else f" ({error.filename!r:.200})"
            raise ComponentProblem(
                f"cannot write external files: {error.strerror}{named}"
            ) from error

    def verify(self, request: RestoreOf) -> Sequence[str]:
        return list(self._restorer(request).differences())

    def differing(
        self,
        one: ComponentState,
        its_contents: ContentSource,
        other: ComponentState,
        others_contents: ContentSource,
    ) -> Sequence[str]:
        from holdfast.components.external.states import differing

        return differing(one, its_contents, other, others_contents)

    def files(self, state: ComponentState, contents: ContentSource) -> Mapping[bytes, str]:
        from holdfast.components.external.states import read_index

        kept, known = read_index(contents).values(), state.by_name()
        return {one.path: one.content for one in kept if one.content in known}

    def without(
        self, state: ComponentState, contents: ContentSource, paths: Sequence[bytes]
    ) -> Remainder:
        from holdfast.components.external.states import without

        return without(state, contents, paths)

    def forget(self, paths: Sequence[bytes]) -> None:
        self._paths.drop(paths)

    def follows(self, path: bytes) -> bool:
        return any(is_within(path, name) for name in self._names())

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None:
        """Nothing is kept outside the store."""

    def _restorer(self, request: RestoreOf, *, everything_known: bool = False) -> ExternalRestore:
        from holdfast.components.external.restore import ExternalRestore

        walk = self._path_walk(request.workspace)
        return ExternalRestore(request, self._names(), walk, everything_known=everything_known)

    def _path_walk(self, workspace: Path) -> PathWalk:
        from holdfast.components.external.named_paths import PathWalk

        stores = [] if self._stores is None else [os.fsencode(self._stores)]
        return PathWalk([os.fsencode(workspace), *stores])

    def _names(self) -> list[bytes]:
        try:
            return self._paths.load()
        except StoreDamaged as error:
            raise ComponentProblem(error.message) from None
