"""The paths outside the workspace that a tool is about to change: named, so that they are kept.

A name leads to a real file in the end: the links in its directories are resolved now, and a path
that is a link itself is named together with what it leads to, because a tool may change either.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.bootstrap import OpenWorkspace
from holdfast.interfaces.hooks.events import AgentEvent

if TYPE_CHECKING:
    from holdfast.domain.risk import Assessment


class Outside:
    """`named` are the paths as the tool wrote them, each with where it leads; `not_captured` says
    of which of them nothing is kept, and why."""

    def __init__(self, opened: OpenWorkspace, event: AgentEvent, risk: Assessment | None) -> None:
        from holdfast.domain.risk import join

        self._opened = opened
        self._workspace = str(opened.engine.vault.workspace)
        base = event.cwd or self._workspace
        named = {} if risk is None else dict(zip(risk.outside, risk.places, strict=True))
        for path in event.paths:
            place = join(base, path)
            if not self._is_inside(place):
                named.setdefault(path, place)
        self.named: dict[str, str] = named
        self.not_captured: dict[str, str] = {}

    def remember(self) -> None:
        """Let this checkpoint, and those that follow, hold them; called with the lock held."""
        vault = self._opened.engine.vault
        if not self.named:
            return
        if "external" not in vault.settings.components:
            self.not_captured = dict.fromkeys(self.named, "external files are not captured")
            return
        from holdfast.domain.errors import HoldfastError
        from holdfast.store.external_paths import StoredExternalPaths

        found = [path for named in self.named.items() for path in self._real(*named)]
        try:
            if found:
                StoredExternalPaths(self._opened.store).add(list(dict.fromkeys(found)))
        except HoldfastError as error:  # the files of the workspace are saved all the same
            self.not_captured |= dict.fromkeys(self.named, error.message)

    def _real(self, name: str, place: str) -> list[bytes]:
        from holdfast.domain.external_paths import NotFollowed, followed, require_kept

        try:
            path = followed(place, os.environ.get("HOME"))
            directory, _, last = path.rpartition("/")
            real = os.path.join(os.path.realpath(directory or "/"), last)
            places = [real]
            if os.path.islink(real):
                places.append(os.path.realpath(real))
            for one in places:
                require_kept(one)
        except (NotFollowed, OSError, ValueError) as error:
            self.not_captured[name] = str(error)
            return []
        return [os.fsencode(one) for one in places if not self._is_inside(one)]

    def _is_inside(self, place: str) -> bool:
        return f"{place}/".startswith(self._workspace.rstrip("/") + "/")
