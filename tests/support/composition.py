"""An engine put together by hand, where a test needs another file system or another clock."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.adapters.local import system as processes
from holdfast.adapters.local.identity import WorkspaceIdentity
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.local_store import LocalStore
from holdfast.adapters.local.system import RandomIds, SystemClock
from holdfast.bootstrap import workspace as bootstrap
from holdfast.bootstrap.keys import unlock_store
from holdfast.bootstrap.locations import holdfast_home
from holdfast.bootstrap.settings import gather_settings
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.outcomes import RestoreOutcome
from holdfast.domain.settings.schema import make_settings
from holdfast.engine.engine import Engine
from holdfast.engine.restore.hunks import choose_hunks
from holdfast.engine.save.workspace_tree import capture_policy
from holdfast.engine.scan.scan_meter import DiscardingWriter
from holdfast.engine.scan.scanner import Scan, Scanner, ScanRequest
from holdfast.engine.undo.undo import undo_request
from holdfast.engine.vault import Vault
from holdfast.ports.store import OpenStore
from holdfast.ports.system import Clock
from holdfast.testing.intercepted_filesystem import Disk

SESSION = SessionId("s")


class SteppedClock:
    """A wall clock that a test moves; waiting still runs on real time."""

    def __init__(self, now_ns: int) -> None:
        self.now = now_ns

    def now_ns(self) -> int:
        return self.now

    @staticmethod
    def monotonic_ns() -> int:
        return SystemClock.monotonic_ns()


@dataclass(frozen=True, slots=True)
class Composed:
    """An engine with the few verbs that tests of faults need."""

    engine: Engine
    store: OpenStore

    @property
    def local_store(self) -> LocalStore:
        assert isinstance(self.store, LocalStore)
        return self.store

    def save(self, reasoning: str = "why", *, name: str | None = None) -> Checkpoint:
        return self.engine.save(SESSION, make_intent(reasoning, name=name)).checkpoint

    def restore(
        self,
        reference: str | None,
        *paths: bytes,
        best_effort: bool = False,
        hunks: Sequence[int | str] = (),
    ) -> RestoreOutcome:
        request = self.engine.restore_request(
            SESSION, reference, paths=paths, best_effort=best_effort
        )
        if hunks:
            scan = self.engine.scan((request.target.tree,))
            request = choose_hunks(self.engine.vault, scan, request, hunks)
        return self.engine.restore(request)

    def undo(self) -> RestoreOutcome:
        return self.engine.restore(undo_request(self.engine.vault, SESSION))


@contextmanager
def composed(
    workspace: Path,
    *,
    fs: Disk | None = None,
    clock: Clock | None = None,
    file_filter: Callable[[Path], bool] | None = None,
) -> Iterator[Composed]:
    """The store of `workspace`, which is made with the real parts and used with the given ones."""
    fs, clock = fs or LocalFilesystem(), clock or SystemClock()
    identity = WorkspaceIdentity(LocalFilesystem(), holdfast_home(os.environ), RandomIds())
    layout = identity.find_or_create(workspace)
    store = bootstrap.open_store(
        fs,
        layout,
        workspace,
        clock,
        purpose="test",
        unlock=lambda layout: unlock_store(layout, os.environ),
    )
    try:
        store.make_ready()
        values = gather_settings(store.catalog.settings(), workspace, os.environ).values
        vault = Vault(
            workspace,
            store.workspace_id,
            fs,
            fs,
            store.objects,
            store.catalog,
            store.stat_cache,
            store,
            store.journal,
            store.space,
            store,
            store,
            clock,
            RandomIds(),
            processes,
            make_settings(values),
            open_packs=store.open_packs,
        )
        yield Composed(Engine(vault, file_filter=file_filter), store)
    finally:
        store.close()


def configure(workspace: Path, **settings: Any) -> None:
    """Set settings of a workspace in its store, as `holdfast config set` does."""
    with open_workspace(workspace, create=True) as opened:
        vault = opened.engine.vault
        with vault.lock.hold(), vault.catalog.transaction() as transaction:
            for key, value in settings.items():
                transaction.set_setting(key, json.dumps(value))


def scan_from_nothing(vault: Vault) -> Scan:
    """What a scan without any memory finds; nothing is stored."""
    with vault.open_root() as root_fd:
        request = ScanRequest(capture_policy(vault), DiscardingWriter(), vault.clock.now_ns())
        return Scanner(vault.fs, vault.objects, None).scan(root_fd, request, generation="none")
