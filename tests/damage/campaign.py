"""One case of the damage campaign: hurt a store, then hold every promise about it to account.

check finds it, or nothing that is alive was hit → no restore writes a wrong byte → checkpoints
that the damage did not reach restore exactly → repair says what is lost, keeps all the rest,
and leaves a store that has nothing more to say
"""

from __future__ import annotations

import shutil
from pathlib import Path

from holdfast import SessionCheckpointer
from holdfast.bootstrap import open_workspace
from holdfast.domain.errors import HoldfastError
from holdfast.engine.check import run_checks
from holdfast.ports.progress import NoProgress
from holdfast.upkeep import repair_workspace
from tests.damage.victims import SESSION, Damage, Victim, rows_of
from tests.support.tree_hash import describe


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


def run_case(victim: Victim, damage: Damage, place: Path) -> str:
    """ "dead", "whole" or "lossy"; `Wrong` when a promise is broken."""
    hurt = damage.apply(victim.files)
    if hurt == victim.files:
        return "unchanged"
    try:
        return _run(victim, hurt, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _run(victim: Victim, hurt: dict[str, bytes], place: Path) -> str:
    found = problems(victim.lay_out(place / "checked", hurt))
    workspace = victim.lay_out(place / "restored", hurt)
    exact = restorable(workspace, victim)
    if not found:
        if exact != victim.states.keys():
            raise Wrong(f"check found nothing, but {victim.states.keys() - exact} are gone")
        with SessionCheckpointer(workspace, SESSION) as session:
            if rows_of(session)[: len(victim.rows)] != victim.rows:
                raise Wrong("check found nothing, but the history is another one")
        return "dead"
    return _repair(victim, hurt, place, exact)


def _repair(victim: Victim, hurt: dict[str, bytes], place: Path, exact: set[str]) -> str:
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
    kept = restorable(workspace, victim)
    if not exact <= kept:
        raise Wrong(f"the repair lost {exact - kept}")
    lost = victim.states.keys() - kept
    if lost and not outcome.plan.lost:
        raise Wrong(f"{lost} are lost and the plan does not say so")
    return "lossy" if lost else "whole"
