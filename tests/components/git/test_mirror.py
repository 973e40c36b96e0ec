"""Each checkpoint is a commit of the mirror, which plain git reads, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.ids import SessionId
from holdfast.engine.retention.cleanup import cleanup
from holdfast.engine.retention.deletion import delete
from holdfast.ports.progress import NoProgress
from tests.behind_the_api import engine_of, store_of
from tests.components.git.accepted_work import files
from tests.components.git.mirrored_work import BRANCH, ids, names, others, trailer
from tests.components.git.repositories import (
    SCENES,
    git,
    new_repository,
    picture,
    write,
)
from tests.support.composition import configure
from tests.support.session_states import get_snapshot


@pytest.mark.requirement("GT-4")
def test_each_checkpoint_is_a_commit_with_its_intent_and_its_files(place: Path) -> None:
    configure(place, mirror=True)
    before = picture(place)
    with SessionCheckpointer(place, "refactor") as session:
        first = session.checkpoint("How it began")
        write(place / "code.txt", "three\n")
        (place / "docs/guide.txt").chmod(0o755)
        (place / "link").symlink_to("code.txt")
        (place / "other.txt").unlink()
        status = picture(place).status
        outcome = session.save_checkpoint(
            "Count to three\n\nBecause two was not enough.",
            goal_id="counting",
            task_id="t-3",
            tool_calls=["Edit", {"name": "Bash", "input": "make"}],
            confidence=0.93,
            name="three",
            tags=["numbers"],
        )
    assert outcome.warnings == ()
    assert others(picture(place))[:-1] == others(before)[:-1]
    assert picture(place).status == status
    assert git(place, "log", "--format=%s", BRANCH, "--").splitlines() == ["three", "How it began"]
    assert ids(place) == [outcome.checkpoint.id, first]
    assert git(place, "rev-list", "--max-parents=0", BRANCH).split() == [
        git(place, "rev-parse", f"{BRANCH}~1").strip()
    ], "an orphan branch"
    for key, values in {
        "Holdfast-Session": ["refactor"],
        "Holdfast-Kind": ["manual"],
        "Holdfast-Parent": [first],
        "Reasoning": ["Count to three Because two was not enough."],
        "Confidence": ["0.93"],
        "Goal": ["counting"],
        "Task": ["t-3"],
        "Tool": ["Edit", "Bash"],
        "Tag": ["numbers"],
    }.items():
        assert trailer(place, BRANCH, key) == values, key
    assert git(place, "diff", "--name-status", f"{BRANCH}~1", BRANCH).splitlines() == [
        "M\tcode.txt",
        "M\tdocs/guide.txt",
        "A\tlink",
        "D\tother.txt",
    ]
    assert git(place, "ls-tree", BRANCH, "link").split()[0] == "120000"
    assert git(place, "show", f"{BRANCH}:code.txt") == "three\n"
    assert git(place, "fsck", "--strict", "--full") == ""


@pytest.mark.requirement("GT-4", "SE-5")
def test_rounds_and_what_is_approved_have_names_that_git_can_compare(place: Path) -> None:
    configure(place, mirror=True)
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("How it began")
        write(place / "code.txt", "three\n")
        approved = session.approve("three is good").approved.id
        write(place / "code.txt", "four\n")
        session.checkpoint("four")
        write(place / "more.txt", "more\n")
        last = session.checkpoint("more")
        assert names(place) == {
            "approved": approved,
            "session_1": approved,
            "session_2": last,
            "sessions/s/approved": approved,
            "sessions/s/session_1": approved,
            "sessions/s/session_2": last,
        }
        compared = ("diff", "--name-only", f"{BRANCH}/approved..{BRANCH}/session_2")
        assert git(place, *compared).split() == ["code.txt", "more.txt"]
        session.reset()
        now = names(place)
        assert now["approved"] == approved
        assert git(place, "show", f"{BRANCH}/session_2:more.txt") == "more\n", "abandoned, not lost"
        assert git(place, "diff", f"{BRANCH}/approved..{BRANCH}/session_3") == ""


@pytest.mark.requirement("GT-4", "SE-5")
def test_approvals_are_merge_commits(place: Path) -> None:
    configure(place, mirror=True)
    approved = f"{BRANCH}/approved"
    merges = ("log", "--merges", "--first-parent", "--format=%s", approved)
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("How it began")
        for word in ("three", "four"):
            write(place / "code.txt", f"{word}\n")
            session.checkpoint(word)
            session.approve(f"{word} is good\n\nat last")
        write(place / "code.txt", "five\n")
        session.checkpoint("five")
        assert git(place, *merges).splitlines() == ["four is good", "three is good"]
        assert git(place, "show", f"{approved}:code.txt") == "four\n"
        assert git(place, "show", f"{approved}~1:code.txt") == "three\n"
        missing = ("log", "--format=%s", f"{approved}..{BRANCH}/session_3")
        assert git(place, *missing).splitlines() == ["five"]
        assert trailer(place, approved, "Holdfast-Approves") == ["session_2"]
        tip = git(place, "rev-parse", approved)
        for ref in git(place, "for-each-ref", "--format=%(refname)", f"refs/{BRANCH}").split():
            git(place, "update-ref", "-d", ref)
        git(place, "branch", "-D", BRANCH)
        session.checkpoint("built again")
        assert git(place, "rev-parse", approved) == tip
        write(place / "code.txt", "six\n")
        session.approve()
        assert git(place, *merges).splitlines()[0] == "Approved round 3"
        assert git(place, "rev-parse", f"{approved}^") == tip
    assert git(place, "fsck", "--strict", "--full") == ""


@pytest.mark.requirement("GT-4")
def test_names_can_be_tags_so_that_they_are_short(place: Path) -> None:
    git(place, "tag", "session_1")
    git(place, "tag", "mine")
    configure(place, mirror="story", mirror_refs="tags")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("How it began")
        write(place / "code.txt", "three\n")
        session.approve("three is good")
        write(place / "code.txt", "four\n")
        outcome = session.save_checkpoint("four")
        assert git(place, "diff", "--name-only", "approved..session_2").split() == ["code.txt"]
        git(place, "tag", "of-mine", "story")
        session.checkpoint("again")
    assert outcome.warnings == (
        "mirror: refs/tags/session_1 does not belong to this mirror and is kept",
    )
    assert (
        git(place, "rev-parse", "session_1", "mine").split()
        == [git(place, "rev-parse", "main").strip()] * 2
    )
    assert "of-mine" in git(place, "tag").split()


@pytest.mark.requirement("GT-4")
def test_it_can_be_turned_on_later_and_built_again_with_the_same_commits(place: Path) -> None:
    with SessionCheckpointer(place, "a") as one, SessionCheckpointer(place, "b") as two:
        for number in range(5):
            write(place / "code.txt", f"{number}\n")
            (one if number % 2 else two).checkpoint(f"state {number}")
    assert git(place, "branch", "--list", BRANCH) == ""
    configure(place, mirror=True)
    with SessionCheckpointer(place, "a") as one:
        last = one.checkpoint("now with a mirror")
        assert len(ids(place)) == 6
        assert ids(place)[0] == last
        tip = git(place, "rev-parse", BRANCH)
        told = names(place)
        git(place, "branch", "-q", "-D", BRANCH)
        git(place, "update-ref", "-d", f"refs/{BRANCH}/session_1")
        cleanup(engine_of(one), NoProgress())
    assert git(place, "rev-parse", BRANCH) == tip
    assert names(place) == told


@pytest.mark.requirement("GT-4")
def test_it_survives_a_collection_of_garbage(place: Path) -> None:
    configure(place, mirror=True)
    with SessionCheckpointer(place, "s") as session:
        for number in range(3):
            write(place / "code.txt", f"{number}\n")
            session.checkpoint(f"state {number}")
        git(place, "reflog", "expire", "--expire=now", "--all")
        git(place, "gc", "-q", "--prune=now")
        write(place / "code.txt", "after\n")
        session.checkpoint("after")
    assert [git(place, "show", f"{BRANCH}~{n}:code.txt") for n in range(4)] == [
        "after\n",
        "2\n",
        "1\n",
        "0\n",
    ]
    assert git(place, "fsck", "--strict") == ""
    assert git(place, "reflog", "list", check=False).count(BRANCH) == 0


@pytest.mark.requirement("GT-4", "GT-6")
@pytest.mark.parametrize("scene", SCENES)
def test_every_state_of_a_repository_can_have_a_mirror(tmp_path: Path, scene: str) -> None:
    place = tmp_path / "project"
    SCENES[scene](place)
    configure(place, mirror=True)
    before, before_files = picture(place), files(place)
    with SessionCheckpointer(place, "s") as session:
        assert session.save_checkpoint("first").warnings == ()
        write(place / "work.txt", "work\n")
        session.checkpoint("second")
        (place / "work.txt").unlink()
    assert others(picture(place)) == others(before)
    assert files(place) == before_files
    assert git(place, "show", f"{BRANCH}:work.txt") == "work\n"


@pytest.mark.requirement("GT-4")
def test_what_git_ignores_and_only_a_setting_protects_stays_out(place: Path) -> None:
    write(place / ".gitignore", ".env\nprivate/\n")
    configure(place, mirror=True, include=[".env", "private/"])
    write(place / ".env", "SECRET=1\n")
    write(place / "private/deep/key", "SECRET=2\n")
    with SessionCheckpointer(place, "s") as session:
        made = session.checkpoint("with secrets")
        assert {".env", "private/deep/key"} <= {
            a.path for a in get_snapshot(session, made).artifacts
        }
    assert git(place, "log", "--all", "-S", "SECRET", "--format=%H") == ""
    assert trailer(place, BRANCH, "Holdfast-Left-Out") == ["2"]


@pytest.mark.requirement("GT-4", "CP-14")
def test_an_ignored_file_that_a_tool_named_stays_out(place: Path) -> None:
    write(place / ".gitignore", ".env\n")
    configure(place, mirror=True)
    write(place / ".env", "SECRET=1\n")
    with SessionCheckpointer(place, "s") as session:
        store = store_of(session)
        with store.hold():
            store.named_paths.replace([b".env"])
        made = session.checkpoint("with a secret")
        assert ".env" in {a.path for a in get_snapshot(session, made).artifacts}
    assert git(place, "log", "--all", "-S", "SECRET", "--format=%H") == ""


@pytest.mark.requirement("GT-4", "ST-5")
def test_what_is_purged_leaves_the_mirror_too(place: Path) -> None:
    configure(place, mirror=True)
    write(place / "leak.txt", "PASSWORD-42\n")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("with a leak")
        (place / "leak.txt").unlink()
        session.checkpoint("without")
        assert git(place, "log", "--all", "-S", "PASSWORD-42", "--format=%H") != ""
        outcome = session.purge_paths("leak.txt")
    assert any("git gc --prune=now" in warning for warning in outcome.warnings)
    assert git(place, "log", "--all", "-S", "PASSWORD-42", "--format=%H") == ""
    assert len(ids(place)) == 2
    git(place, "gc", "-q", "--prune=now")
    blobs = git(place, "cat-file", "--batch-all-objects", "--batch-check").split()
    contents = [git(place, "cat-file", "-p", oid) for oid in blobs[0::3]]
    assert not any("PASSWORD-42" in text for text in contents)


@pytest.mark.requirement("GT-4", "ST-5", "BX-7")
def test_a_purge_names_every_other_ref_that_has_some_of_the_mirror(place: Path) -> None:
    configure(place, mirror=True)
    write(place / "leak.txt", "PASSWORD-42\n")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("with a leak")
        session.checkpoint("again")
    git(place, "tag", "of-the-first", f"{BRANCH}~1")
    git(place, "update-ref", f"refs/remotes/origin/{BRANCH}", BRANCH)
    git(place, "branch", "-q", "unrelated", "main")
    (place / "leak.txt").unlink()
    with SessionCheckpointer(place, "s") as session:
        outcome = session.purge_paths("leak.txt")
    named = {text.split()[1] for text in outcome.warnings if "contains mirror commits" in text}
    assert named == {"refs/tags/of-the-first", f"refs/remotes/origin/{BRANCH}"}
    holding = git(place, "log", "--all", "-S", "PASSWORD-42", "--format=%H").split()
    containing = git(place, "for-each-ref", "--format=%(refname)", f"--contains={holding[-1]}")
    assert set(containing.split()) == named


@pytest.mark.requirement("GT-4", "ST-5", "BX-7")
def test_a_purge_names_a_mirror_that_was_turned_off_or_renamed(place: Path) -> None:
    configure(place, mirror=True)
    write(place / "leak.txt", "PASSWORD-42\n")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("with a leak")
    configure(place, mirror="another")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("under another name")
        (place / "leak.txt").unlink()
        outcome = session.purge_paths("leak.txt")
    assert any(f"refs/heads/{BRANCH} contains mirror commits" in t for t in outcome.warnings)
    git(place, "branch", "-q", "-D", BRANCH)
    for ref in git(place, "for-each-ref", "--format=%(refname)", f"refs/{BRANCH}").split():
        git(place, "update-ref", "-d", ref)
    write(place / "key.txt", "PASSWORD-43\n")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("with another leak")
    configure(place, mirror="")
    (place / "key.txt").unlink()
    with SessionCheckpointer(place, "s") as session:
        outcome = session.purge_paths("key.txt")
        assert any("refs/heads/another contains mirror commits" in t for t in outcome.warnings)
        git(place, "branch", "-q", "-D", "another")
        for ref in git(place, "for-each-ref", "--format=%(refname)", "refs/another").split():
            git(place, "update-ref", "-d", ref)
        outcome = session.purge_paths("other.txt")
        assert not any("mirror" in text for text in outcome.warnings)


@pytest.mark.requirement("GT-4", "ST-2")
def test_what_is_deleted_or_dropped_by_retention_stays_in_the_mirror(place: Path) -> None:
    configure(place, mirror=True)
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("first")
        write(place / "code.txt", "second\n")
        second = session.checkpoint("second")
        write(place / "code.txt", "third\n")
        session.checkpoint("third")
        before = ids(place)
        engine = engine_of(session)
        delete(engine, engine.resolve(SessionId("s"), second))
        cleanup(engine, NoProgress())
        assert ids(place) == before
        assert git(place, "show", f"{BRANCH}~1:code.txt") == "second\n"
        session.purge("HEAD", force=True)
        assert second not in ids(place)
        assert len(ids(place)) == len(before) - 2


@pytest.mark.requirement("GT-4")
def test_a_linked_worktree_has_a_mirror_of_its_own_only_under_another_name(
    place: Path, tmp_path: Path
) -> None:
    there = tmp_path / "linked"
    git(place, "worktree", "add", "-q", str(there), "side")
    for workspace in (place, there):
        configure(workspace, mirror=True)
    with SessionCheckpointer(place, "s") as session:
        assert session.save_checkpoint("here").warnings == ()
    with SessionCheckpointer(there, "s") as session:
        outcome = session.save_checkpoint("there")
    assert "is not a mirror of this store" in outcome.warnings[0]
    configure(there, mirror="other-mirror")
    with SessionCheckpointer(there, "s") as session:
        assert session.save_checkpoint("there").warnings == ()
    assert (len(ids(place)), len(ids(place, "other-mirror"))) == (1, 2)


@pytest.mark.requirement("GT-4")
def test_an_unborn_branch_stays_unborn(tmp_path: Path) -> None:
    place = new_repository(tmp_path / "project")
    write(place / "a.txt", "a\n")
    configure(place, mirror=True)
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("a")
    assert git(place, "rev-parse", "-q", "--verify", "HEAD", check=False) == ""
    assert git(place, "show", f"{BRANCH}:a.txt") == "a\n"
