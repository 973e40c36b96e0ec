"""A file outside the workspace that was removed for good is in no checkpoint and in no byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.store_notes import StoredExternalPaths
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import Refused, UsageError
from holdfast.engine.repair.check import run_checks
from holdfast.ports.progress import NoProgress
from tests.behind_the_api import local_store
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hostile_trees import fill
from tests.support.raw_search import places_of

pytestmark = pytest.mark.requirement("ST-5", "CP-13")

SECRET = b"machine example login me password hunter2-and-more\n"
WORD = b"hunter2-and-more"


class Desk:
    """A workspace with a history in which tools have named files beside it."""

    def __init__(self, root: Path) -> None:
        self.workspace, self.outside = root / "project", root / "home"
        fill(self.workspace / "main.py", b"1")
        fill(self.outside / "netrc", SECRET)
        fill(self.outside / "conf/key", b"another " + SECRET)
        fill(self.outside / "conf/plain", b"nothing to hide\n")
        with open_workspace(self.workspace, create=True) as opened, opened.store.hold():
            names = [bytes(self.outside / name) for name in ("netrc", "conf", "absent")]
            StoredExternalPaths(local_store(opened).notes).add(names)
            self.store = opened.store.directory
        with SessionCheckpointer(self.workspace, "s") as session:
            self.first = session.checkpoint("with the secret")
            fill(self.outside / "netrc", SECRET * 2)
            session.checkpoint("with another version of it")

    def path(self, name: str) -> str:
        return str(self.outside / name)

    def external(self, reference: str = "HEAD") -> dict[str, Any]:
        shown = CommandLine(self.workspace).json("show", reference, "--session", "s")
        (state,) = [one for one in shown["components"] if one["name"] == "external"]
        facts: dict[str, Any] = state["facts"]
        return facts

    def require_sound(self) -> None:
        with open_workspace(self.workspace, create=False) as opened:
            vault = opened.engine.vault
            assert list(run_checks(vault, data=True, progress=NoProgress())) == []


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_no_version_of_it_is_left_anywhere_and_it_is_followed_no_longer(desk: Desk) -> None:
    assert places_of(desk.store, [WORD])
    with SessionCheckpointer(desk.workspace, "s") as session:
        outcome = session.purge_paths(desk.path("netrc"), desk.path("conf/key"))
        assert outcome.proof.traces == ()
        assert outcome.proof.samples > 0
        assert len(outcome.changed) == 2
        assert outcome.still_in_workspace == (bytes(desk.outside / "conf/key"),)
    assert places_of(desk.store, [WORD]) == []
    desk.require_sound()
    with SessionCheckpointer(desk.workspace, "s") as session:
        fill(desk.outside / "conf/key", b"harmless by now")
        session.checkpoint("later")
    assert desk.path("netrc") not in str(desk.external()["paths"])
    assert places_of(desk.store, [WORD]) == []


def test_the_checkpoint_stays_and_a_restore_leaves_that_path_alone(desk: Desk) -> None:
    with SessionCheckpointer(desk.workspace, "s") as session:
        session.purge_paths(desk.path("netrc"), desk.path("conf/key"))
        facts = desk.external(desk.first)
        assert f"{desk.path('netrc')}: purged" in str(facts["left_out"])
        assert desk.path("conf/plain") in str(facts["paths"])
        fill(desk.outside / "netrc", b"mine")
        fill(desk.outside / "conf/key", b"mine")
        fill(desk.outside / "conf/plain", b"changed")
        fill(desk.outside / "conf/new", b"new")
        session.restore_checkpoint(desk.first, components={"external": "exact"})
        assert (desk.outside / "netrc").read_bytes() == b"mine"
        assert (desk.outside / "conf/key").read_bytes() == b"mine"
        assert (desk.outside / "conf/plain").read_bytes() == b"nothing to hide\n"
        assert not (desk.outside / "conf/new").exists()
        session.undo()
        assert (desk.outside / "conf/plain").read_bytes() == b"changed"
        assert (desk.outside / "conf/new").read_bytes() == b"new"


def test_a_directory_goes_with_all_that_is_below_it(desk: Desk) -> None:
    with SessionCheckpointer(desk.workspace, "s") as session:
        session.purge_paths(desk.path("conf"))
        assert desk.path("conf/plain") not in str(desk.external(desk.first)["paths"])
        fill(desk.outside / "conf/plain", b"changed")
        session.restore_checkpoint(desk.first, components={"external": "exact"})
        assert (desk.outside / "conf/plain").read_bytes() == b"changed"
        for gone in (desk.path("conf"), "/nowhere/at/all"):
            with pytest.raises(UsageError):
                session.purge_paths(gone)
    desk.require_sound()


def test_the_same_content_inside_and_outside_is_named_and_nothing_happens_unasked(
    desk: Desk,
) -> None:
    fill(desk.workspace / ".netrc", SECRET * 2)
    with SessionCheckpointer(desk.workspace, "s") as session:
        session.checkpoint("a copy inside")
        with pytest.raises(Refused, match=r"is also at .*home/netrc"):
            session.purge_paths(".netrc")
        with pytest.raises(Refused, match=r"is also at \.netrc"):
            session.purge_paths(desk.path("netrc"))
        assert places_of(desk.store, [SECRET * 2])
        kept = session.purge_paths(".netrc", keep_shared=True)
        assert kept.proof.elsewhere == ()
        (desk.workspace / ".netrc").unlink()
        fill(desk.workspace / "again", SECRET * 2)
        session.checkpoint("another copy")
        gone = session.purge_paths(desk.path("netrc"), desk.path("conf/key"), everywhere=True)
        assert gone.proof.traces == ()
        assert b"again" in gone.paths
    assert places_of(desk.store, [WORD]) == []
    desk.require_sound()


def test_nothing_of_a_purged_checkpoint_is_left_outside_either(desk: Desk) -> None:
    fill(desk.outside / "netrc", b"no secret any more")
    fill(desk.outside / "conf/key", b"nor here")
    with SessionCheckpointer(desk.workspace, "s") as session:
        session.checkpoint("clean")
        everything = [c.id for c in session.history(10)][1:]
        outcome = session.purge(*everything, force=True)
        assert outcome.proof.traces == ()
        assert outcome.proof.samples > 3
    assert places_of(desk.store, [WORD]) == []


def test_a_purge_that_was_interrupted_is_finished_and_follows_it_no_longer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, SessionCheckpointer(desk.workspace, "s") as session:
        patch.setattr("holdfast.engine.purge.purge._erase", killed)
        with pytest.raises(KeyboardInterrupt):
            session.purge_paths(desk.path("netrc"), desk.path("conf"))
    with SessionCheckpointer(desk.workspace, "s") as session:
        outcome = session.purge_paths(desk.path("netrc"), desk.path("conf"))
        assert outcome.resumed
        assert outcome.proof.traces == ()
        session.checkpoint("later")
    assert places_of(desk.store, [WORD]) == []
    assert desk.external()["paths"] == [desk.path("absent")]


def test_the_command_takes_the_path_as_people_write_it_and_asks_first(desk: Desk) -> None:
    cli = CommandLine(desk.workspace)
    (desk.outside.parent / "way").symlink_to("home")
    refused = cli("purge", "../home/netrc", "--json")
    assert refused.status == 5
    assert places_of(desk.store, [WORD])
    shown = cli("purge", "../home/netrc", "--dry-run")
    assert f"path        {desk.path('netrc')}" in shown.out
    done = cli("purge", "../way/netrc", desk.path("conf/key"), "--yes")
    assert (done.status, "nothing was found" in done.out) == (0, True)
    assert "is in a captured directory outside the workspace" in done.err
    assert cli("purge", "--yes", "--", "../home/conf").status == 0
    assert places_of(desk.store, [WORD]) == []
    assert cli("purge", "../home/netrc", "--yes").status == 4
