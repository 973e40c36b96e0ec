"""Verifying a store, one function per invariant; nothing is changed.

The quick check looks at structure: databases, rows, packs, that everything a checkpoint names is
there. With `data` every byte of every object is read and compared with its name, and the paths
that are lost by damage are named.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.errors import IndexDamaged, StoreDamaged
from holdfast.domain.findings import Problem
from holdfast.domain.ids import Digest
from holdfast.domain.paths import to_text
from holdfast.engine.repair.losses import LossFinder
from holdfast.engine.repair.repair import journal_problem
from holdfast.engine.vault import Vault
from holdfast.ports.progress import Progress

_MOST_PATHS = 20
_OBJECT = "object "


def run_checks(vault: Vault, *, data: bool, progress: Progress) -> Iterator[Problem]:
    """Every problem there is; a store without any gives none."""
    yield from check_place(vault)
    unreadable: set[Digest] = set()
    for problem in check_objects(vault, data=data, progress=progress):
        if problem.subject.startswith(_OBJECT):
            unreadable.add(Digest(bytes.fromhex(problem.subject.removeprefix(_OBJECT))))
        yield problem
    yield from check_catalog(vault)
    yield from check_reachability(vault, unreadable, progress)
    yield from check_journal(vault)
    yield from check_story(vault)


def check_place(vault: Vault) -> Iterator[Problem]:
    """The store is described as it was, and has everything that it acknowledged."""
    for text in vault.files.problems():
        yield Problem("I3", "store", text)


def check_objects(
    vault: Vault, *, data: bool, progress: Progress | None = None
) -> Iterator[Problem]:
    """I1 and I2: packs are whole, and (with `data`) bytes match their names."""
    for found in vault.objects.check(data=data, progress=progress):
        yield Problem(found.invariant, found.subject, found.problem)


def check_catalog(vault: Vault) -> Iterator[Problem]:
    """I3: rows are as they were written, and those that belong together are there together."""
    for text in vault.catalog.check():
        yield Problem("I3", "catalog", text)


def check_reachability(
    vault: Vault, unreadable: set[Digest], progress: Progress
) -> Iterator[Problem]:
    """I1: everything that a checkpoint names exists. Shared directories are looked at once."""
    finder = LossFinder(vault, unreadable)
    try:
        checkpoints = list(vault.catalog.roots())
        for number, checkpoint in enumerate(checkpoints):
            progress.advance("checkpoints", number, len(checkpoints))
            damage = finder.damage_of(checkpoint)
            if damage is None:
                continue
            subject = f"checkpoint {checkpoint.id}"
            if damage.report_lost:
                yield Problem("I1", subject, "the list of what was left out is missing")
            for name in damage.components_lost:
                yield Problem("I1", subject, f"what was captured of {name} is lost")
            for loss in damage.losses[:_MOST_PATHS]:
                what = "directory" if loss.is_directory else "content of"
                yield Problem("I1", subject, f"{what} {_place(loss.path)} is lost")
            if len(damage.losses) > _MOST_PATHS:
                yield Problem("I1", subject, f"{len(damage.losses) - _MOST_PATHS} more are lost")
    except IndexDamaged as error:
        yield Problem("index", "index.db", error.message)
    except StoreDamaged as error:
        yield Problem("I3", "catalog", error.message)


def _place(path: bytes) -> str:
    return to_text(path) or "at the top"


def check_journal(vault: Vault) -> Iterator[Problem]:
    """I4: an unfinished restore can be finished."""
    try:
        problem = journal_problem(vault)
    except StoreDamaged as error:
        problem = error.message
    if problem is not None:
        yield Problem("I4", "journal", problem)


def check_story(vault: Vault) -> Iterator[Problem]:
    """I3 for what was said and done around the checkpoints."""
    for text in vault.story.check():
        yield Problem("I3", "story", text)
