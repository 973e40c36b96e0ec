"""Store maintenance: expired checkpoints, purges, size, and repair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.bootstrap.maintenance import RepairOutcome as RepairOutcome
    from holdfast.domain.checkpoints import Checkpoint, Kind
    from holdfast.domain.ids import SessionId
    from holdfast.domain.purges import PurgeOutcome
    from holdfast.domain.retention import Decision
    from holdfast.engine.purge.plan import PurgePlan as PurgePlan
    from holdfast.engine.purge.plan import PurgeRequest as PurgeRequest
    from holdfast.engine.purge.plan import TextPurgePlan as TextPurgePlan
    from holdfast.engine.retention.cleanup import CleanupOutcome, CleanupPlan
    from holdfast.engine.statistics import Usage as Usage
    from holdfast.ports.progress import Progress


def repair_workspace(workspace: Path, *, act: bool) -> RepairOutcome:
    """Examine a workspace's store, however damaged, and repair it if `act`. `NotFound` if the
    directory has no store. An encrypted store needs its key."""
    from holdfast.bootstrap.maintenance import repair_workspace

    return repair_workspace(workspace, act=act)


class Totals(NamedTuple):
    """Checkpoints of a workspace by kind, the number of sessions with checkpoints, and the time of
    the newest one."""

    by_kind: Mapping[Kind, int]
    sessions: int
    latest: datetime | None


class Upkeep:
    """Store maintenance in an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._store = opened.engine, opened.store

    def size_bytes(self) -> int:
        """The size of the store on disk."""
        return self._store.space.size_bytes()

    @property
    def budget_bytes(self) -> int:
        return self._engine.vault.settings.budget

    def statistics(self, session_id: SessionId) -> dict[str, int]:
        """Statistics of a session and of the store."""
        from holdfast.engine.statistics import session_statistics

        return session_statistics(self._engine.vault, session_id)

    def content_growth(self) -> list[tuple[int, int]]:
        """Stored bytes of checkpoints over time: times in nanoseconds, and bytes."""
        from holdfast.engine.statistics import content_growth

        return content_growth(self._engine.vault)

    def save_times_ns(self) -> list[int]:
        """How long the last saves through this opened workspace took."""
        return list(self._engine.save_times_ns)

    def restore_times_ns(self, most: int) -> list[int]:
        """How long the last restores took, by any process: from the safety checkpoint to the
        verified result. As far as the log knows it."""
        from holdfast.engine.statistics import restore_times_ns

        return restore_times_ns(self._engine.vault, most)

    def usage(self) -> Usage:
        """How the workspace's checkpoints are used. Counted locally, never sent anywhere."""
        from holdfast.engine.statistics import workspace_usage

        return workspace_usage(self._engine.vault)

    def totals(self) -> Totals:
        """Checkpoints of all sessions by kind, without restore records."""
        catalog = self._engine.vault.catalog
        by_kind: Counter[Kind] = Counter()
        sessions = 0
        for session in catalog.sessions():
            found = [one.kind for one in catalog.milestones(session.id) if not one.kind.is_record]
            by_kind.update(found)
            sessions += bool(found)
        newest = next(iter(catalog.history(None, limit=1)), None)
        return Totals(by_kind, sessions, None if newest is None else newest.created_at)

    def plan_cleanup(self) -> CleanupPlan:
        """What `cleanup` would do now."""
        from holdfast.engine.retention.cleanup import plan_cleanup

        return plan_cleanup(self._engine)

    def retention_decisions(self) -> Sequence[Decision]:
        """What the retention rules decide about each checkpoint."""
        from holdfast.engine.retention.cleanup import decisions

        with self._engine.recovered(read_only=True):
            return decisions(self._engine.vault)

    def cleanup(self, progress: Progress) -> CleanupOutcome:
        """Delete expired checkpoints and free their space."""
        from holdfast.engine.retention.cleanup import cleanup

        return cleanup(self._engine, progress)

    def over_budget(self) -> Sequence[Checkpoint]:
        """What would have to be deleted for the store to fit its budget."""
        from holdfast.engine.retention.eviction import over_budget

        return over_budget(self._engine)

    def evict(self, checkpoints: Sequence[Checkpoint]) -> tuple[int, int]:
        """Delete these checkpoints, which a person agreed to. Returns their number and the freed
        bytes."""
        from holdfast.engine.retention.eviction import evict

        return evict(self._engine, checkpoints)

    def is_saved_path(self, path: bytes) -> bool:
        """Whether any checkpoint has this path, inside or outside the workspace."""
        from holdfast.engine.purge.plan import is_known_path

        return is_known_path(self._engine.vault, path)

    def purge_request(
        self,
        paths: Sequence[bytes],
        checkpoints: Sequence[Checkpoint],
        *,
        everywhere: bool = False,
        keep_shared: bool = False,
        force: bool = False,
    ) -> PurgeRequest:
        """A request to purge paths in every checkpoint, or whole checkpoints. `everywhere` also
        removes the same content from other paths, and `keep_shared` keeps it there. `force` ignores
        protection."""
        from holdfast.engine.purge.plan import PurgeRequest

        return PurgeRequest(tuple(paths), tuple(checkpoints), everywhere, keep_shared, force)

    def plan_purge(self, request: PurgeRequest) -> PurgePlan:
        """What `purge` would do now."""
        from holdfast.engine.purge.plan import plan_purge, with_holders

        with self._engine.recovered(read_only=True):
            return with_holders(self._engine.vault, plan_purge(self._engine.vault, request))

    def purge(self, request: PurgeRequest) -> PurgeOutcome:
        """Remove content permanently, then search the store for traces of it."""
        from holdfast.engine.purge.purge import purge

        return purge(self._engine, request)

    def plan_text_purge(self, text: str) -> TextPurgePlan:
        from holdfast.engine.purge.purge import plan_text_purge

        return plan_text_purge(self._engine, text)

    def purge_text(self, text: str) -> PurgeOutcome:
        """Replace a text in messages, reasons and notes, then search the store for traces of it."""
        from holdfast.engine.purge.purge import purge_text

        return purge_text(self._engine, text)

    def finish_purge(self) -> PurgeOutcome | None:
        """Finish an interrupted purge, if there is one."""
        from holdfast.engine.purge.purge import finish_purge

        return finish_purge(self._engine)
