"""Looking after a store that may not open: repairs, and a look at what is around it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bootstrap import (
    gather_settings,
    holdfast_home,
    nearest_workspace,
    open_workspace,
    store_of,
    unlock_store,
)
from holdfast.domain.errors import HoldfastError, NotFound
from holdfast.domain.settings import Settings, make_settings
from holdfast.engine.vault import Vault
from holdfast.store.local_filesystem import LocalFilesystem
from holdfast.store.system import RandomIds, SystemClock

if TYPE_CHECKING:
    from holdfast.domain.repair_plans import RepairPlan, StoryLosses
    from holdfast.store.catalog.sqlite import SqliteCatalog
    from holdfast.store.story.repairing import StoryFindings
    from holdfast.store.surroundings import Symptom


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """The plan, and whether it was carried out."""

    plan: RepairPlan
    done: bool


def repair_workspace(workspace: Path, *, act: bool) -> RepairOutcome:
    """Look at the store of a workspace, however damaged, and mend it if `act`.

    `NotFound` when the directory has no store; an encrypted one needs its key.
    """
    from holdfast.domain.repair_plans import Findings, plan_repair
    from holdfast.engine.repair import find, mend
    from holdfast.store.mending import StoreMender

    directory = workspace.expanduser().resolve()
    layout = store_of(directory)
    if layout is None:
        nearest_workspace(directory)  # says so if there was a store, and it is out of reach
        raise NotFound(f"{directory} has no store", hint="name the workspace: -C DIR")
    fs, clock = LocalFilesystem(), SystemClock()
    layout.require_own()
    occasion = f"{datetime.fromtimestamp(clock.now_ns() / 1e9, tz=UTC):%Y%m%dT%H%M%SZ}"
    keys = None
    if layout.keys.exists() or layout.keys_copy.exists():
        keys = unlock_store(layout, os.environ).keys
    mender = StoreMender(fs, layout, directory, clock, keys=keys)
    with mender.exclusive(), mender.examine() as bench:
        losses = bench.catalog_losses
        incomplete = losses is not None and losses.history_is_incomplete
        vault = Vault(
            directory,
            fs,
            bench.objects,
            bench.catalog,
            bench.stat_cache,
            bench.place,
            clock,
            RandomIds(),
            _settings_or_defaults(bench.catalog, directory),
        )
        content = find(vault, history_is_incomplete=incomplete)
        plan = plan_repair(
            Findings(
                bench.unfinished,
                bench.description_problem,
                losses,
                bench.index_problem,
                content.packs,
                len(content.lost),
                len(content.healable),
                content.damaged_states,
                content.unnamed,
                content.journal,
                _story_losses(bench.story),
            )
        )
        if not act or not plan.steps:
            return RepairOutcome(plan, done=False)
        mender.mend(bench, occasion)
    with open_workspace(directory, create=False, force=True, recover=False) as opened:
        vault = opened.engine.vault
        with vault.access.exclusive():
            mend(vault, occasion, history_is_incomplete=incomplete)
    return RepairOutcome(plan, done=True)


def _story_losses(found: StoryFindings | None) -> StoryLosses | None:
    from holdfast.domain.repair_plans import StoryLosses

    return None if found is None else StoryLosses(found.problem, found.lost_messages)


def examine_surroundings(directory: Path) -> list[Symptom]:
    """Everything around the store of a directory that may be wrong, whatever state it is in."""
    from holdfast.store.surroundings import BEFORE_OPENING, Surroundings, examine

    home, now_ns = holdfast_home(os.environ), SystemClock().now_ns()
    start = directory.expanduser().resolve()
    workspace = next((d for d in (start, *start.parents) if store_of(d) is not None), start)
    around = Surroundings(home, workspace, store_of(workspace), now_ns, None)
    found = examine(around, BEFORE_OPENING)
    try:
        with open_workspace(workspace, create=False, force=True, recover=False) as opened:
            vault = opened.engine.vault
            around = replace(
                around,
                newest_checkpoint_ns=max(
                    (c.created_at_ns for c in vault.catalog.roots()), default=None
                ),
                size_bytes=vault.access.size_bytes(),
                budget_bytes=vault.settings.budget,
            )
    except NotFound:
        pass
    except HoldfastError as error:
        around = replace(around, opening_error=error)
    opening, *others = examine(around)
    return [opening, *found, *others]


def _settings_or_defaults(catalog: SqliteCatalog, workspace: Path) -> Settings:
    """A repair does not stop at a setting that nobody can use."""
    try:
        return make_settings(gather_settings(catalog.settings(), workspace, os.environ)[0])
    except HoldfastError:
        return Settings()
