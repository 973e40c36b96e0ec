"""Git state lives as long as its checkpoint: in checks, repairs, purges and bundles."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import RestoreConflict
from holdfast.domain.ids import Digest, SessionId
from holdfast.engine.components.manifests import named_objects, read_states
from holdfast.engine.repair.check import run_checks
from holdfast.engine.repair.repair import repair_damage
from holdfast.engine.retention.cleanup import cleanup, reachable
from holdfast.engine.retention.deletion import delete
from holdfast.ports.progress import NoProgress
from tests.behind_the_api import engine_of
from tests.components.git.repositories import commit, copied, git, picture, staged, with_history

EXACT = {"git": "exact"}


def references(place: Path) -> list[str]:
    return git(place, "for-each-ref", "--format=%(refname)", "refs/holdfast").split()


def manifest_of(session: SessionCheckpointer, reference: str) -> Digest:
    found = engine_of(session).resolve(SessionId("s"), reference).components
    assert found is not None
    return found


@pytest.mark.requirement("GT-1", "ST-2")
def test_everything_that_a_checkpoint_names_counts_as_needed(tmp_path: Path) -> None:
    staged(tmp_path / "project")
    with SessionCheckpointer(tmp_path / "project", "s") as session:
        first = session.checkpoint("why")
        vault = engine_of(session).vault
        needed = set(named_objects(vault.objects.read, manifest_of(session, first)))
        assert len(needed) >= 2
        assert needed <= reachable(vault)
        cleanup(engine_of(session), NoProgress())
        assert vault.objects.missing(needed) == set()


@pytest.mark.requirement("GT-1")
def test_references_go_with_the_last_checkpoint_that_needs_them(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("one")
        session.checkpoint("the same state of git")
        assert len(references(place)) == 1
        commit(place, "code.txt", "three\n")
        third = session.checkpoint("another state")
        assert len(references(place)) == 2
        git(place, "pack-refs", "--all")
        assert len(references(place)) == 2
        _delete(session, first)
        assert len(references(place)) == 2, "the second one still needs it"
        session.purge(third, force=True)
        assert len(references(place)) == 1
        _delete(session, "HEAD")
        [saved_first] = engine_of(session).vault.catalog.history(SessionId("s"), records=True)
        assert len(references(place)) == 1
        session.purge(saved_first.id, force=True)
        assert references(place) == []


@pytest.mark.requirement("GT-1", "GT-2")
def test_a_restore_that_is_refused_or_changes_nothing_leaves_no_reference_behind(
    tmp_path: Path,
) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("one")
        assert session.restore_checkpoint(first, components=EXACT).steps == ()
        assert len(references(place)) == 2, "its safety checkpoint is recorded, and keeps one"
        commit(place, "code.txt", "three\n")
        kept = references(place)
        (place / ".git/index.lock").write_text("")
        with pytest.raises(RestoreConflict, match=r"index\.lock exists"):
            session.restore_checkpoint(first, components=EXACT)
        assert references(place) == kept
        (place / ".git/index.lock").unlink()
        session.restore_checkpoint(first, components=EXACT)
        session.undo()
        assert "three" in git(place, "log", "-1", "--format=%s")


def _delete(session: SessionCheckpointer, reference: str) -> None:
    engine = engine_of(session)
    delete(engine, engine.resolve(SessionId("s"), reference))


@pytest.mark.requirement("GT-1")
def test_two_stores_of_one_repository_leave_each_others_references_alone(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    below = place / "docs"
    with SessionCheckpointer(place, "s") as one, SessionCheckpointer(below, "s") as other:
        first = one.checkpoint("above")
        other.checkpoint("below")
        assert len(references(place)) == 2
        _delete(one, first)
        assert len(references(place)) == 1
        git(place, "commit", "-q", "--allow-empty", "-m", "more")


@pytest.mark.requirement("ST-4", "GT-1")
def test_lost_git_state_is_found_named_and_marked_by_a_repair(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("why")
        vault = engine_of(session).vault
        (state,) = read_states(vault.objects, engine_of(session).resolve(SessionId("s"), first))
        index = state.content("index")
        assert index is not None
        vault.objects.forget([index.digest])
        problems = [p.problem for p in run_checks(vault, data=True, progress=NoProgress())]
        assert "the saved data of git is lost" in problems
        with vault.lock.hold():
            repair_damage(vault, "repair", history_is_incomplete=False)
        left = [p.problem for p in run_checks(vault, data=True, progress=NoProgress())]
        assert not any("lost" in problem for problem in left)
        with pytest.raises(RestoreConflict, match="lost because the store was damaged"):
            session.restore_checkpoint(first, components=EXACT)
        commit(place, "code.txt", "three\n")
        assert session.restore(first) == 1


@pytest.mark.requirement("ST-7", "GT-1")
def test_git_state_travels_and_needs_a_repository_that_has_the_commits(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    clone = copied(place, tmp_path / "clone")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("shared")
        commit(place, "code.txt", "only here\n")
        second = session.checkpoint("not shared")
        before = picture(place)
        session.export(tmp_path / "bundle")
    SessionCheckpointer.import_bundle(clone, tmp_path / "bundle", foreign=True)
    with SessionCheckpointer(clone, "s") as session:
        with pytest.raises(RestoreConflict, match="no longer in the repository"):
            session.restore_checkpoint(second, components=EXACT)
        git(clone, "checkout", "-q", "side")
        session.restore_checkpoint(first, components=EXACT)
        assert picture(clone).head == before.head
        assert session.save_checkpoint("after an import").degraded == ()


@pytest.mark.requirement("SE-5", "GT-1")
def test_a_commit_without_a_checkpoint_is_part_of_what_is_approved(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        (place / "code.txt").write_text("three\n")
        session.checkpoint("a step")
        git(place, "commit", "-qam", "three")
        approved = git(place, "rev-parse", "HEAD")
        session.approve("it works")
        commit(place, "code.txt", "four\n")
        session.restore_checkpoint("approved", components=EXACT)
    assert git(place, "rev-parse", "HEAD") == approved
    assert (place / "code.txt").read_text() == "three\n"
