"""Holdfast itself, in process, as a program that imports it has it: durable on return."""

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bench.peers.contract import PeerKind, Ref, StoreSize, measure_store
from bench.peers.python_libraries import installed_version
from bench.processes import Failed
from bench.verify import Fingerprint, fingerprint
from holdfast.engine.settings import set_setting

if TYPE_CHECKING:
    from holdfast import SessionCheckpointer

OWN_NAMES = frozenset({b".holdfast"})


def own_version() -> str | None:
    found = importlib.util.find_spec("holdfast")
    if found is None or found.origin is None:
        return None
    return installed_version("holdfast") or "source tree"


class Holdfast:
    """One session on one workspace, its store in a home of its own."""

    def __init__(self, store: Path) -> None:
        self._home = store / "holdfast"
        self._tree = store
        self._opened: SessionCheckpointer | None = None

    def prepare(self, tree: Path) -> None:
        # Imported here: the other tools can be measured where Holdfast is not installed.
        from holdfast import SessionCheckpointer
        from holdfast.bootstrap.workspace import open_workspace

        self._tree = tree
        os.environ["HOLDFAST_HOME"] = str(self._home)
        with open_workspace(tree, create=True) as opened:
            set_setting(opened.engine, "max_manual_checkpoints", 0)
        self._opened = SessionCheckpointer(tree, "bench")

    @property
    def _session(self) -> "SessionCheckpointer":
        if self._opened is None:
            raise Failed("no session is open")
        return self._opened

    def save(self) -> Ref:
        return Ref(self._session.checkpoint("bench"))

    def restore(self, ref: Ref) -> None:
        self._session.restore(ref)

    def contents(self, ref: Ref, scratch: Path) -> Fingerprint:
        self.restore(ref)
        return fingerprint(self._tree, OWN_NAMES)

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        return frozenset(os.fsencode(path) for path in self._session.diff(before, after))

    def size(self) -> StoreSize:
        return measure_store(self._home)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


KIND = PeerKind("holdfast", "Holdfast", Holdfast, own_version, OWN_NAMES)
