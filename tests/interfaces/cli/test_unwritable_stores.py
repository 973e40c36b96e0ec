"""`status` and `doctor` when no checkpoint can be written: they say so, and what to do."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from tests.interfaces.cli.command_line import CommandLine
from tests.support.read_only import told_read_only
from tests.support.real_mounts import can_mount, mounted

pytestmark = [
    pytest.mark.requirement("HK-7", "CL-8"),
    pytest.mark.usefixtures("agent_homes"),
]

FULL = "no space left on the store's disk"
READ_ONLY = "its file system is read-only"


@pytest.fixture
def agent_homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))


@contextmanager
def full(store: Path) -> Iterator[None]:
    """The store on a disk of its own that somebody else has filled."""
    copy = store.with_name("copy")
    subprocess.run(["cp", "-a", store, copy], check=True)
    with mounted(store):
        subprocess.run(["cp", "-a", f"{copy}/.", store], check=True)
        with (store / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(os.urandom(1 << 16))
        yield
    subprocess.run(["rm", "-rf", copy], check=True)


WAYS = {"read-only": (told_read_only, READ_ONLY), "full": (full, FULL)}


@pytest.mark.parametrize("how", WAYS if can_mount() else ["read-only"])
def test_status_and_doctor_say_that_no_checkpoint_can_be_made(how: str, cli: CommandLine) -> None:
    assert cli("install", "claude-code", "--project").status == 0
    cli.save()
    store = Path(cli.json("init")["store"])
    assert "claude-code protected" in cli("status").out
    way, why = WAYS[how]
    with way(store):
        before = sorted(store.rglob("*"))
        shown, data = cli("status"), cli.json("status")
        (found,) = (
            one
            for one in cli("doctor", "--json").json["findings"]
            if one["subject"] == "protection" and one["status"] == "problem"
        )
        assert cli("doctor").status == 3
        assert sorted(store.rglob("*")) == before
    assert f"claude-code NOT protected: {found['finding']}" in shown.out
    assert f"next      make checkpoints possible again: {found['cure']}" in shown.out
    assert f"warning: {found['finding']}: {found['cure']}" in shown.err
    assert why in found["finding"]
    assert found["finding"] in data["warnings"]
    assert [one["protected"] for one in data["agents"]] == [False]
    assert cli.json("status")["agents"][0]["protected"]


def test_a_disk_with_less_free_space_than_is_left_to_others_protects_nothing(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalFilesystem, "free_bytes", staticmethod(lambda path: 2_700_000))
    installed = cli("install", "claude-code", "--project")
    assert "now saves" not in installed.out
    assert "not protected yet: the disk of the store is almost full" in installed.err
    before = cli("status")
    refused = cli("checkpoint", "why")
    assert refused.status == 7
    assert "only 2.7 MB are free, and Holdfast leaves the last 67 MB to other" in refused.err
    (cli.workspace / "README.md").write_text("changed\n")
    after, undone = cli("status"), cli("undo")
    for shown in (before, after):
        assert "claude-code NOT protected: the disk of the store is almost full" in shown.out
        assert "next      make checkpoints possible again: free some disk space" in shown.out
    assert undone.status != 0
    assert "Nothing to undo: no checkpoint yet" in undone.err
    assert "holdfast status" in undone.err


def test_status_says_before_the_first_checkpoint_that_none_can_be_made(
    cli: CommandLine, holdfast_home: Path
) -> None:
    assert cli("install", "claude-code", "--project").status == 0
    holdfast_home.mkdir(mode=0o700, exist_ok=True)
    with told_read_only(holdfast_home):
        shown = cli("status")
    assert "claude-code NOT protected" in shown.out
    assert READ_ONLY in shown.err
