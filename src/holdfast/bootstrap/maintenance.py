"""Maintenance of a store that may not open: repairs, and checks of its environment."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local import system as processes
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.system import RandomIds, SystemClock
from holdfast.app.open_workspace import SettingProblem
from holdfast.bootstrap.keys import unlock_store
from holdfast.bootstrap.locations import holdfast_home
from holdfast.bootstrap.settings import gather_settings
from holdfast.bootstrap.stores import nearest_workspace, store_of
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Skipped, SkipReason
from holdfast.domain.errors import HoldfastError, NotFound
from holdfast.domain.settings.schema import Settings, make_settings
from holdfast.domain.wording import count_words
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_checkpoints
from holdfast.values.classes import NamedTuple, dataclass, replace

if TYPE_CHECKING:
    from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
    from holdfast.adapters.local.story.repair import StoryFindings
    from holdfast.domain.repair_plan import RepairPlan, StoryLosses, Symptom


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """The plan, and whether it was carried out."""

    plan: RepairPlan
    done: bool


def repair_workspace(workspace: Path, *, act: bool) -> RepairOutcome:
    """Check a workspace's store, however damaged, and repair it if `act`.

    `NotFound` if the directory has no store; an encrypted one needs its key.
    """
    from holdfast.adapters.local.store_repair import StoreRepairer
    from holdfast.domain.repair_plan import Findings, plan_repair
    from holdfast.engine.repair.repair import find_damage, repair_damage

    directory = workspace.expanduser().resolve()
    layout = store_of(directory)
    if layout is None:
        nearest_workspace(directory)  # raises if there was a store that cannot be reached
        raise NotFound(f"{directory} has no store", hint="use -C DIR to choose the workspace")
    fs, clock = LocalFilesystem(), SystemClock()
    layout.require_own()
    occasion = f"{datetime.fromtimestamp(clock.now_ns() / 1e9, tz=UTC):%Y%m%dT%H%M%SZ}"
    keys = None
    if layout.keys.exists() or layout.keys_copy.exists():
        keys = unlock_store(layout, os.environ).keys
    mender = StoreRepairer(fs, layout, directory, clock, keys=keys)
    with mender.exclusive(), mender.examine() as bench:
        losses = bench.catalog_losses
        incomplete = losses is not None and losses.history_is_incomplete
        vault = Vault(
            directory,
            bench.place.workspace_id,
            fs,
            fs,
            bench.objects,
            bench.catalog,
            bench.stat_cache,
            bench.place,
            bench.place.journal,
            bench.place.space,
            bench.place,
            bench.place,
            clock,
            RandomIds(),
            processes,
            _settings_or_defaults(bench.catalog, directory),
            open_packs=bench.objects.maintenance,
        )
        content = find_damage(vault, history_is_incomplete=incomplete)
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
        with vault.lock.hold():
            repair_damage(vault, occasion, history_is_incomplete=incomplete)
    return RepairOutcome(plan, done=True)


def _story_losses(found: StoryFindings | None) -> StoryLosses | None:
    from holdfast.domain.repair_plan import StoryLosses

    return None if found is None else StoryLosses(found.problem, found.lost_messages)


def examine_surroundings(directory: Path) -> list[Symptom]:
    """Problems around a directory's store, whatever state the store is in."""
    from holdfast.adapters.local.environment_checks import (
        BEFORE_OPENING,
        Surroundings,
        examine,
    )
    from holdfast.bootstrap.workspace_choice import project_top
    from holdfast.domain.repair_plan import Gravity
    from holdfast.engine.repair.check import journal_problem

    home, now_ns = holdfast_home(os.environ), SystemClock().now_ns()
    start = directory.expanduser().resolve()
    known = (d for d in (start, *start.parents) if store_of(d) is not None)
    workspace = next(known, None) or project_top(start) or start
    around = Surroundings(home, workspace, store_of(workspace), now_ns, None)
    found = examine(around, BEFORE_OPENING)
    problems: tuple[SettingProblem, ...] = ()
    with suppress(HoldfastError):  # opening it below reports why
        problems = gather_settings({}, workspace, os.environ).problems
    try:
        with open_workspace(workspace, create=False, force=True, recover=False) as opened:
            vault = opened.engine.vault
            around = replace(
                around,
                newest_checkpoint_ns=max(
                    (c.created_at_ns for c in all_checkpoints(vault.catalog)), default=None
                ),
                size_bytes=vault.space.size_bytes(),
                budget_bytes=vault.settings.budget,
                restore_trouble=journal_problem(vault),
            )
            problems = opened.setting_problems
    except NotFound:
        pass
    except HoldfastError as error:
        around = replace(around, opening_error=error)
    opening, *others = examine(around)
    gaps = protection_gaps(workspace, problems)
    if all(one.subject != "leftovers" or one.gravity is Gravity.FINE for one in others):
        gaps += _ignored_now(workspace)
    return [opening, *found, *others, *_protection(gaps)]


class Gap(NamedTuple):
    """Something that weakens protection unexpectedly, and the fix. `stops_saves`: no checkpoint can
    be made."""

    finding: str
    cure: str
    stops_saves: bool = False


_written_ns: dict[Path, int] = {}
"""When this process could last write a test file, by its directory."""


def write_gaps(workspace: Path, *, tested_within_s: float = 0) -> list[Gap]:
    """Reasons why checkpoints cannot be written: a full disk, a read-only file system, permissions.
    Before the first checkpoint, reasons why the store cannot be created. This writes a test file,
    unless this process could write one within these seconds."""
    from holdfast.adapters.local.mounts import existing
    from holdfast.adapters.local.store_errors import write_trouble
    from holdfast.engine.save.space_limit import disk_almost_full
    from holdfast.ports.filesystem import DISK_RESERVE_BYTES

    layout, home = store_of(workspace), holdfast_home(os.environ)
    place = home if layout is None else layout.directory
    trouble, now_ns = None, SystemClock.monotonic_ns()
    written_ns = _written_ns.get(place)
    if place.is_dir() and (written_ns is None or now_ns - written_ns >= tested_within_s * 1e9):
        trouble = write_trouble(place)
        _written_ns.pop(place, None)
        if trouble is None:
            _written_ns[place] = now_ns
    elif not place.is_dir():
        from holdfast.adapters.local.environment_checks import future_home
        from holdfast.domain.repair_plan import Gravity

        future = future_home(place)
        if future.gravity is Gravity.PROBLEM:
            return [Gap(future.finding, future.cure or "", True)]
    free_bytes = LocalFilesystem.free_bytes(os.fsencode(existing(place)))
    if trouble is None and free_bytes <= DISK_RESERVE_BYTES:
        trouble = disk_almost_full(free_bytes)
    return [] if trouble is None else [Gap(trouble.message, trouble.hint or "", True)]


def protection_gaps(
    workspace: Path,
    setting_problems: Iterable[SettingProblem],
    *,
    tested_within_s: float = 0,
) -> list[Gap]:
    """An unwritable store (see `write_gaps`), invalid settings, project settings that are not
    applied, and a workspace that covers only part of its repository."""
    from holdfast.bootstrap.locations import project_settings_file
    from holdfast.bootstrap.settings import project_settings
    from holdfast.bootstrap.stores import former_store
    from holdfast.bootstrap.workspace_choice import repository_top

    gaps = write_gaps(workspace, tested_within_s=tested_within_s)
    gaps += [Gap(problem.finding, problem.cure) for problem in setting_problems]
    file, project = project_settings_file(workspace), project_settings(workspace, os.environ)
    if project.waiting:
        keys = ", ".join(project.waiting)
        finding = f"{file} sets {keys}, which can weaken protection; not applied"
        gaps.append(Gap(finding, "if you agree with the file: holdfast config trust"))
    for key, why in project.held_back.items():
        if key not in project.waiting:
            named = why if str(file) in why else f"{file}: {why}"
            gaps.append(Gap(f"{named}; not applied", "holdfast config edit --project"))
    former = former_store(workspace, os.environ)
    if former is not None and former.exists():
        finding = (
            f"the former store {former.directory} of {workspace} is back, but another one is in use"
        )
        gaps.append(Gap(finding, "to use it again: holdfast init --former-store"))
    elif former is not None:
        finding = f"earlier checkpoints are in the store {former.directory}, which is missing"
        gaps.append(
            Gap(finding, "make it available again, or ignore this if it was never on this machine")
        )
    top = repository_top(workspace)
    if top is not None and top != workspace and store_of(workspace) is not None:
        finding = f"{workspace} is part of the repository {top}, and the rest is not saved"
        gaps.append(Gap(finding, f"to protect all of it: holdfast init -C {shlex.quote(str(top))}"))
    return gaps


def ignored_by_far(skipped: Iterable[Skipped], files: int) -> Gap | None:
    """A `.holdfastignore` that excludes more than is saved."""
    ours = sum(s.reason is SkipReason.IGNORED and ".holdfastignore:" in s.detail for s in skipped)
    if ours <= files:
        return None
    left_out, saved = count_words(ours, "path"), count_words(files, "file")
    finding = f".holdfastignore excludes {left_out}, more than is saved ({saved})"
    return Gap(finding, "list them: holdfast status --skipped")


def _ignored_now(workspace: Path) -> list[Gap]:
    """Checked last, and not while the store is in use or has interrupted work: taking the lock
    would repair that."""
    with (
        suppress(HoldfastError, OSError),
        open_workspace(workspace, create=False, force=True, recover=False) as opened,
        opened.engine.vault.lock.hold(wait=False, read_only=True),
    ):
        scan = opened.engine.scan()
        ignored = ignored_by_far(scan.skipped, scan.files)
        return [] if ignored is None else [ignored]
    return []


def _protection(gaps: Iterable[Gap]) -> list[Symptom]:
    from holdfast.domain.repair_plan import Gravity, Symptom

    found = [
        Symptom(
            "protection",
            Gravity.PROBLEM if gap.stops_saves else Gravity.WARNING,
            gap.finding,
            gap.cure,
        )
        for gap in gaps
    ]
    return found or [Symptom("protection", Gravity.FINE, "no setting weakens it")]


def _settings_or_defaults(catalog: SqliteCatalog, workspace: Path) -> Settings:
    """A repair does not fail because of an invalid setting."""
    try:
        return make_settings(gather_settings(catalog.settings(), workspace, os.environ).values)
    except HoldfastError:
        return Settings()
