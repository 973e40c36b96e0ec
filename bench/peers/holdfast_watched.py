"""Holdfast as its daemon has it: the workspace kept open and watched, so that a save costs what
changed. In process, so that what is timed is the save and not the way to the daemon."""

import os
from pathlib import Path

from bench.peers.contract import PeerKind, Ref
from bench.peers.holdfast_library import OWN_NAMES, Holdfast, own_version
from bench.processes import Failed


class HoldfastWatched(Holdfast):
    """The same session on the same kind of store; only the engine knows of every change."""

    def prepare(self, tree: Path) -> None:
        # Imported here: the other tools can be measured where Holdfast is not installed.
        from holdfast.api.automation import open_watcher

        super().prepare(tree)
        self._watcher = open_watcher()
        self._watch = self._watcher.open(os.fsencode(self._session.workspace))
        self._session.opened._opened.engine.use_watch(self._watch)

    def save(self) -> Ref:
        status = self._watch.status()
        if status.off:
            raise Failed(f"not watched: {status.doubt}")
        return super().save()

    def close(self) -> None:
        if self._opened is not None:
            self._watcher.close()
        super().close()


KIND = PeerKind("watched", "Holdfast watched", HoldfastWatched, own_version, OWN_NAMES)
