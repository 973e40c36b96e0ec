"""An encrypted store that is missing is never replaced by one in the open without a word."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemon_calls import tool_call
from tests.support.daemons import daemon_here
from tests.support.forked_commands import call_hook

pytestmark = pytest.mark.requirement("ST-6", "HK-7")

SECRET = b"price = 2"


@pytest.fixture
def key(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of an encrypted store that has a checkpoint, and is gone."""
    monkeypatch.setenv("HOLDFAST_DAEMON", "off")
    path = tmp_path / "my.key"
    cli.json("init", "--encrypt", "--key-file", str(path))
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(path))
    cli.save("saved")
    shutil.rmtree(cli.json("status")["store"])
    return path


def hook_answer(project: Path) -> str:
    answer = call_hook("claude-code", tool_call(project, "t1"), project)
    assert (answer.status, answer.err) == (0, "")
    return json.dumps(answer.json)


def stores(home: Path) -> list[Path]:
    return sorted((home / "stores").iterdir())


def is_readable(store: Path) -> bool:
    return any(b"app.py" in file.read_bytes() for file in store.rglob("*") if file.is_file())


@pytest.mark.parametrize("marker", ["kept", "cleaned away"])
def test_with_its_key_an_agent_goes_on_in_a_new_encrypted_store(
    project: Path, cli: CommandLine, key: Path, holdfast_home: Path, marker: str
) -> None:
    if marker == "cleaned away":
        shutil.rmtree(project / ".holdfast")
    assert f"The new store is encrypted with the key file {key}" in hook_answer(project)
    (store,) = stores(holdfast_home)
    assert cli.json("init")["encrypted"]
    assert not is_readable(store)


@pytest.mark.parametrize("marker", ["kept", "cleaned away"])
def test_without_a_key_nothing_is_saved_and_the_agent_is_notified(
    project: Path,
    cli: CommandLine,
    key: Path,
    holdfast_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    marker: str,
) -> None:
    if marker == "cleaned away":
        shutil.rmtree(project / ".holdfast")
    key.unlink()
    said = hook_answer(project)
    assert "is missing" in said
    assert "holdfast init --new-store" in said
    assert stores(holdfast_home) == []
    monkeypatch.delenv("HOLDFAST_KEY_FILE")
    refused = cli("init", "--new-store")
    assert (refused.status, stores(holdfast_home)) == (5, [])
    assert "--no-encrypt" in refused.err
    assert cli.json("init", "--new-store", "--no-encrypt")["encrypted"] is False
    hook_answer(project)
    assert is_readable(stores(holdfast_home)[0])


def test_through_the_daemon_too(
    project: Path, runtime: Path, key: Path, holdfast_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DAEMON", "on")
    with daemon_here():
        assert "The new store is encrypted with the key file" in hook_answer(project)
        assert not is_readable(stores(holdfast_home)[0])


def test_an_encrypted_workspace_from_another_machine_is_saved_and_what_it_is_not_is_said(
    project: Path, key: Path, holdfast_home: Path
) -> None:
    shutil.rmtree(holdfast_home)
    key.unlink()
    assert "The new store is not encrypted" in hook_answer(project)
    assert len(stores(holdfast_home)) == 1


def test_a_store_from_before_such_records_is_recorded_when_it_is_opened(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holdfast_home: Path
) -> None:
    cli.json("init", "--encrypt", "--key-file", str(tmp_path / "my.key"))
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(tmp_path / "my.key"))
    (record,) = (holdfast_home / "by-path").iterdir()
    identifier = record.read_text().split(" ")[0]
    record.write_text(identifier)
    marker = cli.workspace / ".holdfast/workspace.json"
    marker.write_text(json.dumps({"id": identifier}))
    cli.json("status")
    assert record.read_text() == f"{identifier} encrypted"
    assert json.loads(marker.read_text()) == {"id": identifier, "encrypted": True}
