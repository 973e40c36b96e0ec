"""A file that an agent remembers and that was removed for good is in no checkpoint and no byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.engine.repair.check import run_checks
from holdfast.ports.progress import NoProgress
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hostile_trees import fill
from tests.support.raw_search import places_of

pytestmark = pytest.mark.requirement("ST-5", "AG-1")

SECRET = b"the token of the deployment is hunter2-and-more\n"
WORD = b"hunter2-and-more"


class Desk:
    """A workspace whose agent remembers things in the home directory and in the workspace."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.workspace, self.home = root / "project", root / "home"
        monkeypatch.setenv("HOME", str(self.home))
        patterns = f'["~/.agent", "{self.home}/.agent/notes", ".memory"]'
        fill(self.workspace / "main.py", b"1")
        fill(self.workspace / ".gitignore", b".memory\n")
        fill(self.workspace / ".memory/inner.md", b"inner " + SECRET)
        fill(self.home / ".agent/notes/secret.md", SECRET)
        fill(self.home / ".agent/notes/plain.md", b"uses tabs\n")
        fill(self.home / ".agent/other.md", b"other\n")
        self.line = CommandLine(self.workspace)
        self.line.json("init")
        self.line.json("config", "set", "agent_state", patterns)
        with open_workspace(self.workspace, create=False) as opened:
            self.store = opened.store.directory
        with SessionCheckpointer(self.workspace, "s") as session:
            self.first = session.checkpoint("with the secret")
            fill(self.home / ".agent/notes/secret.md", SECRET * 2)
            session.checkpoint("with another version of it")

    def facts(self, reference: str) -> dict[str, Any]:
        shown = self.line.json("show", reference, "--session", "s")
        (state,) = [one for one in shown["components"] if one["name"] == "agents"]
        facts: dict[str, Any] = state["facts"]
        return facts

    def require_sound(self) -> None:
        with open_workspace(self.workspace, create=False) as opened:
            vault = opened.engine.vault
            assert list(run_checks(vault, data=True, progress=NoProgress())) == []


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def test_no_version_of_it_is_left_anywhere(desk: Desk) -> None:
    assert places_of(desk.store, [WORD])
    secret = desk.home / ".agent/notes/secret.md"
    with SessionCheckpointer(desk.workspace, "s") as session:
        outcome = session.purge_paths(str(secret), ".memory/inner.md")
        assert outcome.proof.traces == ()
        assert outcome.proof.samples > 0
        assert len(outcome.changed) == 2
        assert bytes(secret) in outcome.still_in_workspace
    assert places_of(desk.store, [WORD]) == []
    desk.require_sound()
    facts = desk.facts(desk.first)
    assert "~/.agent/notes/secret.md: purged" in facts["left_out"]
    assert ".memory/inner.md: purged" in facts["left_out"]
    assert facts["files"] == 2


def test_a_restore_leaves_that_path_alone_and_brings_the_others_back(desk: Desk) -> None:
    secret, plain = desk.home / ".agent/notes/secret.md", desk.home / ".agent/notes/plain.md"
    with SessionCheckpointer(desk.workspace, "s") as session:
        session.purge_paths(str(secret))
        fill(secret, b"mine")
        fill(plain, b"uses blanks\n")
        fill(desk.home / ".agent/new.md", b"new")
        session.restore(desk.first)
        assert secret.read_bytes() == b"mine"
        assert plain.read_bytes() == b"uses tabs\n"
        assert not (desk.home / ".agent/new.md").exists()
        session.undo()
        assert secret.read_bytes() == b"mine"
        assert plain.read_bytes() == b"uses blanks\n"
        assert (desk.home / ".agent/new.md").read_bytes() == b"new"


def test_a_directory_goes_with_all_below_it_and_is_left_alone_also_when_it_is_gone(
    desk: Desk,
) -> None:
    with SessionCheckpointer(desk.workspace, "s") as session:
        session.purge_paths(str(desk.home / ".agent/notes"))
        assert desk.facts(desk.first)["files"] == 2
        fill(desk.home / ".agent/notes/plain.md", b"mine")
        session.restore(desk.first)
        assert (desk.home / ".agent/notes/plain.md").read_bytes() == b"mine"
    desk.require_sound()


def test_the_command_names_it_by_any_way_that_leads_there(desk: Desk) -> None:
    planned = desk.line.json("purge", ".memory/inner.md", "--dry-run")
    assert len(planned["changed"]) == 2
    done = desk.line.json("purge", str(desk.home / ".agent/notes/secret.md"), "--yes")
    assert done["proof"]["traces"] == []
    done = desk.line.json("purge", ".memory", "--yes")
    assert done["proof"]["traces"] == []
    assert places_of(desk.store, [WORD]) == []
