"""Looking after a store that may not open: repairs, and a look at what is around it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bootstrap import (
    gather_settings,
    holdfast_home,
    nearest_workspace,
    open_workspace,
    store_of,
)
from holdfast.domain.errors import HoldfastError, NotFound, Refused, StoreDamaged
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

    `NotFound` when the directory has no store.
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
    if layout.keys.exists() or layout.keys_copy.exists():
        try:
            return _repair_content(directory, occasion, act=act)
        except StoreDamaged as error:
            raise StoreDamaged(
                f"of an encrypted store only the content can be repaired: {error.message}",
                hint="take the damaged file from a backup",
            ) from error
    mender = StoreMender(fs, layout, directory, clock)
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


def _repair_content(workspace: Path, occasion: str, *, act: bool) -> RepairOutcome:
    """Of an encrypted store only the content and the story: its index and keys are mended when it
    is opened, and without a sound catalog it does not open."""
    from holdfast.domain.repair_plans import Findings, plan_repair
    from holdfast.engine.repair import find, mend

    with open_workspace(workspace, create=False, force=True, recover=False) as opened:
        vault = opened.engine.vault
        story = opened.store.story_mender()
        with vault.access.exclusive(), story.exclusive():
            if (problem := next(vault.catalog.check(), None)) is not None:
                raise StoreDamaged(problem)
            content = find(vault, history_is_incomplete=False)
            if content.journal is not None:
                raise Refused(
                    "the journal of an encrypted store cannot be repaired: " + content.journal,
                    hint="what was staged lies in the directory .holdfast of the workspace",
                )
            told = story.examine(vault.access.directory)
            plan = plan_repair(
                Findings(
                    False,
                    None,
                    None,
                    None,
                    content.packs,
                    len(content.lost),
                    len(content.healable),
                    content.damaged_states,
                    content.unnamed,
                    None,
                    _story_losses(told),
                )
            )
            if not act or not plan.steps:
                return RepairOutcome(plan, done=False)
            if told is not None:
                story.mend(told, occasion)
            mend(vault, occasion, history_is_incomplete=False)
    return RepairOutcome(plan, done=True)


def _story_losses(found: StoryFindings | None) -> StoryLosses | None:
    from holdfast.domain.repair_plans import StoryLosses

    return None if found is None else StoryLosses(found.problem, found.lost_messages)


def examine_surroundings(directory: Path) -> list[Symptom]:
    """Everything around the store of a directory that may be wrong, whatever state it is in."""
    from holdfast.store.surroundings import Surroundings, examine

    environment = os.environ
    start = directory.expanduser().resolve()
    workspace = next((d for d in (start, *start.parents) if store_of(d) is not None), start)
    newest_ns: int | None = None
    failure: HoldfastError | None = None
    try:
        with open_workspace(workspace, create=False, force=True, recover=False) as opened:
            times = [c.created_at_ns for c in opened.engine.vault.catalog.roots()]
            newest_ns = max(times, default=None)
    except NotFound:
        pass
    except HoldfastError as error:
        failure = error
    home = holdfast_home(environment)
    return examine(
        Surroundings(
            home, workspace, store_of(workspace), SystemClock().now_ns(), newest_ns, failure
        )
    )


def _settings_or_defaults(catalog: SqliteCatalog, workspace: Path) -> Settings:
    """A repair does not stop at a setting that nobody can use."""
    try:
        return make_settings(gather_settings(catalog.settings(), workspace, os.environ)[0])
    except HoldfastError:
        return Settings()
