"""One case of the damage campaign: hurt a store, then hold every promise about it to account.

check finds it, or nothing that is alive was hit → no restore writes a wrong byte → checkpoints
that the damage did not reach restore exactly → repair says what is lost, keeps all the rest,
and leaves a store that has nothing more to say
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from holdfast import SessionCheckpointer
from holdfast.adapters.local.story.repair import LOST
from holdfast.bootstrap.maintenance import repair_workspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import SessionId
from holdfast.engine.repair.check import run_checks
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from tests.damage.victims import SESSION, Damage, Victim, rows_of
from tests.support.tree_hash import describe
from tests.torture.scenes import stored_state
from tests.torture.telling import Told, told_in

# As many rows as one page holds.
_MOST_LOST_BY_ONE_BYTE = 20


class Wrong(AssertionError):
    """A promise that one case broke."""


def problems(workspace: Path) -> list[str]:
    """What `check --data` says, one that cannot be opened included."""
    try:
        with open_workspace(workspace, create=False, recover=False) as opened:
            vault = opened.engine.vault
            found = run_checks(vault, data=True, progress=NoProgress())
            return [f"{p.invariant} {p.subject}: {p.problem}" for p in found]
    except HoldfastError as error:
        return [error.message]


def restorable(workspace: Path, victim: Victim) -> set[str]:
    """The checkpoints that come back exactly. One that does not must fail, and write nothing."""
    exact: set[str] = set()
    try:
        with SessionCheckpointer(workspace, SESSION) as session:
            for name, state in victim.states.items():
                if _comes_back(session, name, state):
                    exact.add(name)
    except HoldfastError:
        return exact
    return exact


def _comes_back(session: SessionCheckpointer, name: str, state: object) -> bool:
    before = describe(session.workspace)
    try:
        session.restore(name)
    except HoldfastError:
        if describe(session.workspace) != before:
            raise Wrong(f"a restore of {name} failed and left something behind") from None
        return False
    if describe(session.workspace) != state:
        raise Wrong(f"a restore of {name} wrote something else")
    return True


def story_of(workspace: Path) -> Told | None:
    """What can be read of it; None when that cannot be done as a whole."""
    try:
        with open_workspace(workspace, create=False, recover=False) as opened:
            return told_in(opened.engine.vault, SessionId(SESSION))
    except HoldfastError:
        return None


def _require_sound_story(victim: Victim, damage: Damage, left: Told | None) -> None:
    """After a repair: nothing that was never said, and all of it unless the damage was there."""
    if left is None:
        raise Wrong("the story cannot be read after the repair")
    for place, (said, was) in enumerate(zip(left.messages, victim.told.messages, strict=False)):
        if said != was and said[1] != LOST:
            raise Wrong(f"message {place} says {said!r:.80}")
    if len(left.messages) > len(victim.told.messages):
        raise Wrong("there are messages that nobody said")
    also: set[object] = {*left.annotations, *left.edits}
    if invented := also - {*victim.told.annotations, *victim.told.edits}:
        raise Wrong(f"the story tells what was never told: {invented}")
    lost = _missing(victim.told, left)
    if lost and not damage.touches("story"):
        raise Wrong(f"the story lost {lost} by damage elsewhere")
    if lost > _MOST_LOST_BY_ONE_BYTE and damage.kind in ("flipped", "one bit", "zeroed"):
        raise Wrong(f"one byte cost the story {lost}")


def _missing(was: Told, left: Told) -> int:
    kept = sum(said[1] != LOST for said in left.messages)
    rest = len(was.annotations) + len(was.edits) - len(left.annotations) - len(left.edits)
    return len(was.messages) - kept + rest


def run_case(victim: Victim, damage: Damage, place: Path) -> str:
    """ "dead", "whole" or "lossy"; `Wrong` when a promise is broken."""
    hurt = damage.apply(victim.files)
    if hurt == victim.files:
        return "unchanged"
    try:
        return _run(victim, damage, hurt, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def look_at(victim: Victim, damage: Damage, place: Path) -> str:
    """ "found", or "dead" where everything that was there is still there."""
    try:
        return look_at_laid_out(victim, victim.lay_out(place, damage.apply(victim.files)))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def look_at_laid_out(victim: Victim, workspace: Path) -> str:
    """The same for an existing store, damaged."""
    if problems(workspace):
        return "found"
    if (told := story_of(workspace)) != victim.told:
        raise Wrong(f"check found nothing, but the story is {told!r:.200}")
    with open_workspace(workspace, create=False, recover=False) as opened:
        vault = opened.engine.vault
        held = {c.name: stored_state(vault, c) for c in all_checkpoints(vault.catalog) if c.name}
    if held != victim.states:
        raise Wrong("check found nothing, but a checkpoint holds something else")
    return "dead"


def recover_from(victim: Victim, damage: Damage, place: Path, trees: Sequence[object]) -> str:
    """Open a store whose journal is damaged: "refused" by the recovery, or "recovered". The
    workspace is one of `trees` after it, and every checkpoint is as it was."""
    try:
        workspace = victim.lay_out(place, damage.apply(victim.files))
        outcome = "recovered"
        try:
            open_workspace(workspace, create=False).close()
        except HoldfastError:
            outcome = "refused"
            if not problems(workspace):
                raise Wrong("a recovery failed, and check found nothing") from None
        if (tree := describe(workspace)) not in trees:
            raise Wrong(f"the workspace is neither old nor new: {tree!r:.200}")
        with open_workspace(workspace, create=False, recover=False) as opened:
            vault = opened.engine.vault
            held = {
                c.name: stored_state(vault, c) for c in all_checkpoints(vault.catalog) if c.name
            }
        if held != victim.states:
            raise Wrong("a checkpoint holds something else")
        return outcome
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _run(victim: Victim, damage: Damage, hurt: dict[str, bytes], place: Path) -> str:
    found = problems(victim.lay_out(place / "checked", hurt))
    workspace = victim.lay_out(place / "restored", hurt)
    told = story_of(workspace)
    exact = restorable(workspace, victim)
    if damage.touches_only("story") and exact != victim.states.keys():
        raise Wrong(f"damage to the story cost {victim.states.keys() - exact}")
    if not found:
        if told != victim.told:
            raise Wrong(f"check found nothing, but the story is {told!r:.200}")
        if exact != victim.states.keys():
            raise Wrong(f"check found nothing, but {victim.states.keys() - exact} are gone")
        with SessionCheckpointer(workspace, SESSION) as session:
            if rows_of(session)[: len(victim.rows)] != victim.rows:
                raise Wrong("check found nothing, but the history is another one")
        return "dead"
    return _repair(victim, damage, hurt, place, exact)


def _repair(
    victim: Victim, damage: Damage, hurt: dict[str, bytes], place: Path, exact: set[str]
) -> str:
    workspace = victim.lay_out(place / "repaired", hurt)
    planned = repair_workspace(workspace, act=False)
    if planned.done:
        raise Wrong("a plan was carried out")
    outcome = repair_workspace(workspace, act=True)
    left = problems(workspace)
    if left:
        raise Wrong(f"after the repair: {left[:3]}; the plan was {outcome.plan.steps}")
    if repair_workspace(workspace, act=True).plan.steps:
        raise Wrong("a second repair found something to do")
    _require_sound_story(victim, damage, story_of(workspace))
    kept = restorable(workspace, victim)
    if not exact <= kept:
        raise Wrong(f"the repair lost {exact - kept}")
    lost = victim.states.keys() - kept
    if lost and not outcome.plan.lost:
        raise Wrong(f"{lost} are lost and the plan does not say so")
    return "lossy" if lost else "whole"
