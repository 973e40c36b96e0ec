"""A git bundle of a session is cloned by plain git, and holds what the checkpoints hold."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import NotFound, Refused
from tests.components.git.repositories import git, picture, with_history, write
from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import configure

BRANCH = "holdfast-checkpoints"


def clone(bundle: Path, to: Path) -> Path:
    git(bundle.parent, "clone", "-q", str(bundle), str(to))
    git(to, "bundle", "verify", str(bundle))
    return to


def worked(place: Path, name: str = "s") -> SessionCheckpointer:
    session = SessionCheckpointer(place, name)
    session.checkpoint("How it began")
    write(place / "code.txt", "three\n")
    (place / "run.sh").write_text("#!/bin/sh\n")
    (place / "run.sh").chmod(0o755)
    (place / "link").unlink(missing_ok=True)
    (place / "link").symlink_to("code.txt")
    session.approve("three is good")
    write(place / "code.txt", "four\n")
    session.checkpoint("four")
    return session


@pytest.mark.requirement("GT-5")
def test_a_bundle_is_cloned_and_its_rounds_are_compared_by_plain_git(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    bundle = tmp_path / "work.bundle"
    with worked(place) as session:
        before = picture(place)
        outcome = session.export_git_bundle(bundle)
        assert picture(place) == before, "the repository of the workspace is not needed for it"
    assert (outcome.commits, outcome.warnings) == (3, ())
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    there = clone(bundle, tmp_path / "clone")
    assert git(there, "branch", "--show-current").strip() == BRANCH
    assert git(there, "log", "--format=%s").splitlines() == [
        "four",
        "three is good",
        "How it began",
    ]
    assert git(there, "diff", "--name-only", "approved..session_2").split() == ["code.txt"]
    assert (there / "code.txt").read_text() == "four\n"
    assert os.readlink(there / "link") == "code.txt"
    assert (there / "run.sh").stat().st_mode & 0o111
    assert git(there, "fsck", "--strict") == ""
    assert git(there, "for-each-ref", "--format=%(refname)", "refs/heads").split() == [
        f"refs/heads/{BRANCH}"
    ]


@pytest.mark.requirement("GT-5")
def test_a_bundle_needs_no_repository_and_is_the_same_as_the_mirror(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    write(plain / "a.txt", "a\n")
    with SessionCheckpointer(plain, "s") as session:
        session.checkpoint("first")
        session.export_git_bundle(tmp_path / "plain.bundle")
        subprocess.run(["git", "init", "-q"], cwd=plain, check=True)
    configure(plain, mirror=True)
    with SessionCheckpointer(plain, "s") as session:
        session.checkpoint("second")
        session.export_git_bundle(tmp_path / "both.bundle", everything=True)
    there = clone(tmp_path / "both.bundle", tmp_path / "clone")
    assert git(there, "rev-parse", "HEAD") == git(plain, "rev-parse", BRANCH)
    once = clone(tmp_path / "plain.bundle", tmp_path / "once")
    assert git(once, "rev-parse", "HEAD") == git(plain, "rev-parse", f"{BRANCH}~1")


@pytest.mark.requirement("GT-5")
def test_sessions_are_chosen_and_a_file_is_not_replaced_unasked(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    bundle = tmp_path / "work.bundle"
    with worked(place, "one") as one, worked(place, "two") as two:
        assert one.export_git_bundle(bundle).commits == 3
        data = bundle.read_bytes()
        with pytest.raises(Refused, match="already exists"):
            two.export_git_bundle(bundle)
        assert bundle.read_bytes() == data
        assert two.export_git_bundle(bundle, everything=True, replace=True).commits == 6
    with SessionCheckpointer(place, "empty") as empty, pytest.raises(NotFound):
        empty.export_git_bundle(tmp_path / "none.bundle")
    assert not (tmp_path / "none.bundle").exists()


@pytest.mark.requirement("GT-5", "CL-1")
def test_the_command_writes_a_bundle(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    cli = CommandLine(place)
    cli.save("How it began")
    bundle = tmp_path / "work.bundle"
    told = cli.json("export", "--git-bundle", str(bundle))
    assert told["file"] == str(bundle)
    assert (told["commits"], told["warnings"]) == (1, [])
    assert told["file_bytes"] == bundle.stat().st_size
    clone(bundle, tmp_path / "clone")
    answer = cli("export", "--git-bundle", str(bundle), "--all", "--force")
    assert (answer.status, "Exported 1 checkpoint to" in answer.out) == (0, True)
    assert cli("export", "--git-bundle", str(bundle), "--json").status == 5
    assert cli("export", "--git-bundle", "-", "--json").status == 2
    assert cli("export", "--git-bundle", str(bundle), "HEAD", "--json").status == 2


@pytest.mark.requirement("GT-5", "CL-3")
def test_an_import_of_one_names_what_reads_it(tmp_path: Path) -> None:
    cli = CommandLine(with_history(tmp_path / "project"))
    cli.save("How it began")
    bundle = tmp_path / "work.bundle"
    cli.json("export", "--git-bundle", str(bundle))
    answer = cli("import", str(bundle), "--json")
    assert (answer.status, answer.error["code"]) == (5, "bundle_refused")
    assert "this is a git bundle" in answer.error["message"]
    assert "git clone" in answer.error["hint"]
