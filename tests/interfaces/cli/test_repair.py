"""`holdfast repair`: the plan first, then the deed; nothing sound is lost, nothing is deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import configure
from tests.support.hostile_trees import fill, noise

pytestmark = pytest.mark.requirement("ST-4", "CL-1")


def store_of(cli: CommandLine) -> Path:
    return Path(cli.json("init")["store"])


def hurt(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def test_a_sound_store_needs_no_repair(cli: CommandLine) -> None:
    cli.save()
    assert cli.json("repair") == {"ok": True, "done": False, "steps": [], "lost": []}
    assert "nothing to repair" in cli("repair", "--yes").out


def test_nothing_happens_without_a_yes(cli: CommandLine) -> None:
    cli.save()
    store = store_of(cli)
    (store / "store.json").write_bytes(b"no longer")
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    answer = cli("repair", "--json")
    assert answer.status == 5
    assert [step["type"] for step in answer.json["steps"]] == ["describe"]
    assert "holdfast repair --yes" in cli("repair").out
    after = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    assert {p for p in before if after.get(p) != before[p]} <= {store / "lock"}
    assert cli("repair", "--yes").status == 0
    assert cli.json("check", "--data")["ok"]
    (aside,) = (store / "set-aside").iterdir()
    assert (aside / "store.json").read_bytes() == b"no longer"


def test_lost_content_that_the_workspace_still_has_is_healed_from_there(cli: CommandLine) -> None:
    fill(cli.workspace / "precious", noise(50_000))
    cli.save()
    pack = next((store_of(cli) / "objects" / "packs").iterdir())
    hurt(pack, pack.stat().st_size // 2)
    assert cli("check", "--data").status == 6
    answer = cli("repair", "--yes", "--json")
    assert (answer.status, answer.json["lost"]) == (0, [])
    assert "heal" in [step["type"] for step in answer.json["steps"]]
    assert cli.json("check", "--data")["ok"]
    (cli.workspace / "precious").unlink()
    cli.json("restore", "HEAD", "--yes")
    assert (cli.workspace / "precious").read_bytes() == noise(50_000)


def test_a_lost_record_of_the_environment_is_not_reported_as_lost_files(cli: CommandLine) -> None:
    saved = cli.save()
    (pack,) = (store_of(cli) / "objects" / "packs").iterdir()
    pack.unlink()  # the workspace still has every file
    answer = cli("repair", "--yes", "--json")
    [loss] = answer.json["lost"]
    assert loss.startswith("everything besides files")
    [marked] = [step for step in answer.json["steps"] if step["lost"]]
    assert (answer.status, marked["type"]) == (3, "mark-damaged")
    assert marked["why"].startswith("its files are complete")
    assert cli.json("check", "--data")["ok"]
    (cli.workspace / "README.md").unlink()
    assert cli.json("restore", saved, "--yes")["created"] == 1


def test_what_a_healed_directory_names_is_healed_from_the_workspace_too(cli: CommandLine) -> None:
    fill(cli.workspace / "small", b"small")
    fill(cli.workspace / "below" / "deep" / "other", b"other")
    configure(cli.workspace, record_environment="never")  # no workspace can heal that
    cli.save()
    store = store_of(cli)
    (pack,) = (store / "objects" / "packs").iterdir()
    pack.unlink()
    answer = cli("repair", "--yes", "--json")
    assert (answer.status, answer.json["lost"]) == (0, [])
    assert cli.json("check", "--data")["ok"]
    fill(cli.workspace / "small", b"changed")
    (cli.workspace / "below" / "deep" / "other").unlink()
    cli.json("restore", "HEAD", "--yes")
    assert (cli.workspace / "small").read_bytes() == b"small"
    assert (cli.workspace / "below" / "deep" / "other").read_bytes() == b"other"


def test_a_damaged_checkpoint_restores_what_is_sound_and_names_what_is_lost(
    cli: CommandLine,
) -> None:
    fill(cli.workspace / "lost", noise(50_000))
    fill(cli.workspace / "kept", b"kept")
    cli.save("before", "--name", "damaged")
    pack = next((store_of(cli) / "objects" / "packs").iterdir())
    data = pack.read_bytes()
    hurt(pack, data.index(noise(50_000)[:1000]))
    (cli.workspace / "lost").unlink()
    answer = cli("repair", "--yes", "--json")
    assert answer.status == 3
    assert any(loss.startswith("lost of checkpoint") for loss in answer.json["lost"])
    assert cli.json("check", "--data")["ok"]
    fill(cli.workspace / "kept", b"changed")
    refused = cli("restore", "damaged", "--yes", "--json")
    assert refused.status == 5
    assert "lost" in refused.error["message"]
    assert (cli.workspace / "kept").read_bytes() == b"changed"
    done = cli("restore", "damaged", "--yes", "--best-effort", "--json")
    assert done.status == 3
    assert [one["path"] for one in done.json["skipped"]] == ["lost"]
    assert (cli.workspace / "kept").read_bytes() == b"kept"
    assert not (cli.workspace / "lost").exists()
    notes = list((store_of(cli) / "set-aside").glob("*/damaged-checkpoints.json"))
    assert json.loads(notes[0].read_bytes())["checkpoints"][0]["lost"] == ["lost"]


def test_a_lost_catalog_is_refused_and_its_states_come_back_in_a_session_of_their_own(
    cli: CommandLine,
) -> None:
    cli.save("one")
    fill(cli.workspace / "more", b"more")
    cli.save("two")
    store = store_of(cli)
    for path in store.glob("catalog.db*"):
        path.unlink()
    answer = cli("checkpoint", "would hide everything", "--json")
    assert (answer.status, answer.error["code"]) == (6, "store_damaged")
    assert "holdfast repair" in answer.error["hint"]
    assert cli("check").status == 6
    repaired = cli("repair", "--yes", "--json")
    assert repaired.status == 3
    assert cli.json("check", "--data")["ok"]
    recovered = cli.json("log", "--session", "recovered")
    assert len(recovered) == 2
    (cli.workspace / "more").unlink()
    newest = next(one for one in recovered if one["files"] == max(r["files"] for r in recovered))
    cli("restore", newest["id"], "--yes", "--session", "recovered")
    assert (cli.workspace / "more").read_bytes() == b"more"


def test_a_journal_that_cannot_be_read_is_set_aside_with_its_staging(cli: CommandLine) -> None:
    cli.save()
    store = store_of(cli)
    (store / "journal").write_bytes(b"half a journal")
    staging = cli.workspace / ".holdfast" / f".holdfast-staging-{store.name}-x"
    fill(staging / "0", b"perhaps the only copy")
    assert cli("log").status == 0  # whatever is left of a restore, a person can look and save
    assert cli("checkpoint", "going on").status in (0, 3)
    assert cli("restore", "HEAD", "--yes").status == 6
    assert cli("check").status == 6
    assert cli("repair", "--yes").status == 3
    assert cli.json("check")["ok"]
    assert cli("restore", "HEAD", "--yes").status == 0
    found = list((store / "set-aside").rglob("0"))
    assert [path.read_bytes() for path in found] == [b"perhaps the only copy"]
    assert next((store / "set-aside").rglob("journal")).read_bytes() == b"half a journal"
    assert not staging.exists()


@pytest.mark.requirement("RL-4")
def test_a_pack_that_is_cut_short_after_a_repair_is_noticed_by_the_quick_check(
    cli: CommandLine,
) -> None:
    fill(cli.workspace / "lost", noise(50_000))
    cli.save()
    fill(cli.workspace / "kept", noise(60_000)[50_000:])
    cli.save()
    pack = store_of(cli) / "objects" / "packs" / "00000001.pack"
    hurt(pack, pack.read_bytes().index(noise(50_000)[:1000]))
    (cli.workspace / "lost").unlink()
    assert cli("repair", "--yes").status == 3
    assert cli("check").status == 0
    pack.write_bytes(pack.read_bytes()[:-1])
    assert cli("check").status == 6


def test_a_store_that_is_out_of_reach_is_reported_as_by_every_command(cli: CommandLine) -> None:
    cli.save()
    store = store_of(cli)
    store.rename(store.with_name("elsewhere"))
    answers = [cli(*command) for command in (("repair", "--yes"), ("log",))]
    assert [answer.status for answer in answers] == [6, 6]
    assert answers[0].err == answers[1].err
