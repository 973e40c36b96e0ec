"""`holdfast cleanup`: what goes and why, before and after."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from holdfast.api.stores import lost_stores, remove_store
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import Refused
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.clocks import pass_days
from tests.support.hostile_trees import fill, noise

pytestmark = pytest.mark.requirement("ST-2", "CL-1")


def save_tools(cli: CommandLine, number: int) -> list[str]:
    made: list[str] = []
    with open_workspace(cli.workspace, create=True) as opened:
        for n in range(number):
            fill(cli.workspace / "large", noise(200_000, n))
            outcome = opened.engine.save(SessionId("s"), make_intent(f"{n}"), kind=Kind.TOOL)
            made.append(outcome.checkpoint.id)
    return made


def test_a_dry_run_tells_each_decision_and_changes_nothing(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = save_tools(cli, 5)
    cli.json("config", "set", "retention.tool", "{most = 2}")
    pass_days(monkeypatch, 2)
    plan = cli.json("cleanup", "--dry-run")
    verdicts = {one["id"]: (one["keep"], one["reason"]) for one in plan["decisions"]}
    assert [verdicts[one][0] for one in made] == [True, False, False, True, True]
    assert verdicts[made[0]][1] == "protected: it is the initial checkpoint of its session"
    assert verdicts[made[1]][1] == "2 newer tool checkpoints are kept"
    assert verdicts[made[4]][1] == "protected: it is the HEAD of its session"
    assert plan["unneeded_bytes"] > 390_000
    assert len(cli.json("log", "--session", "s")) == 5
    assert "Would delete 2 checkpoints and keep 3" in cli("cleanup", "--dry-run").out


def test_expired_checkpoints_are_gone_and_their_space_is_free(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = save_tools(cli, 5)
    cli.json("config", "set", "retention.tool", "{most = 2}")
    pass_days(monkeypatch, 2)
    refused = cli("cleanup", "--json")
    assert refused.error["code"] == "needs_confirmation"
    assert len(cli.json("log", "--session", "s")) == 5
    done = cli.json("cleanup", "--yes")
    assert (done["dropped"], done["kept"]) == (2, 3)
    assert done["freed_bytes"] > 390_000
    kept = [one["id"] for one in cli.json("log", "--session", "s")]
    assert kept == [made[4], made[3], made[0]]
    assert cli.json("check", "--data")["ok"]
    again = cli.json("cleanup")
    assert (again["dropped"], again["freed_bytes"]) == (0, 0)
    assert "Deleted 0 checkpoints, kept 3; 0 B freed" in cli("cleanup").out


def test_what_a_killed_process_left_is_cleared_away_after_a_while(cli: CommandLine) -> None:
    import os

    cli.save()
    store = Path(cli.json("init")["store"])
    for name, age_s in ((".journal.new", 7200), (".store.json.new", 0)):
        (store / name).write_bytes(b"half")
        seen = (store / name).stat().st_mtime - age_s
        os.utime(store / name, (seen, seen))
    assert cli.json("cleanup")["debris"] == [".journal.new"]
    assert not (store / ".journal.new").exists()
    assert (store / ".store.json.new").exists()


@pytest.mark.requirement("ST-3")
def test_rules_that_make_no_sense_are_refused_when_set_and_delete_nothing_when_read(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save()
    answer = cli("config", "set", "retention.tool", '{age = "-1 day"}', "--json")
    assert (answer.status, answer.error["code"]) == (2, "invalid_setting")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "holdfast" / "config.toml"
    file.parent.mkdir()
    file.write_text('[retention]\ntol = "forever"\n')
    answer = cli("cleanup", "--json")
    assert (answer.status, answer.json["dropped"]) == (0, 0)
    said = " ".join(cli("cleanup").err.split())
    assert "unknown kind of checkpoint: 'tol'" in said
    assert str(file) in said


@pytest.mark.requirement("ST-3")
def test_a_budget_below_the_present_size_says_what_will_happen(cli: CommandLine) -> None:
    cli.save()
    answer = cli("config", "set", "budget", "10000")
    assert answer.status == 0
    assert "already uses" in answer.err
    assert "holdfast cleanup --dry-run" in answer.err
    (warning,) = cli.json("config", "set", "budget", "10000")["warnings"]
    assert "already uses" in warning
    assert json.loads(cli("config", "get", "budget", "--json").out)["value"] == 10_000
    assert cli("checkpoint", "small changes go on", "--json").status == 0
    assert cli("config", "set", "budget", '"1 GB"').err == ""


@pytest.mark.requirement("CL-3")
def test_a_cleanup_that_stops_at_damage_says_that_it_is_done_in_part(cli: CommandLine) -> None:
    save_tools(cli, 5)
    cli.json("config", "set", "retention.tool", "{most = 2}")
    for pack in (Path(cli.json("init")["store"]) / "objects/packs").iterdir():
        data = bytearray(pack.read_bytes())
        data[-40] ^= 1
        pack.write_bytes(data)
    answer = cli("cleanup", "--json")
    assert answer.status == 3
    assert "no more space was freed" in answer.json["warnings"][0]


@pytest.mark.requirement("ST-3")
@pytest.mark.on_disk  # the doctor warns of a store in memory
def test_stores_of_workspaces_that_are_gone_are_listed_and_deleted_after_asking(
    cli: CommandLine, tmp_path: Path
) -> None:
    cli.save()
    gone = CommandLine(tmp_path / "gone")
    fill(gone.workspace / "large", noise(300_000))
    gone.save()
    store = Path(gone.json("init")["store"])
    assert cli.json("cleanup", "--stores") == {
        "dry_run": False,
        "stores": [],
        "freed_bytes": 0,
        "warnings": [],
    }
    shutil.rmtree(gone.workspace)
    assert cli.json("stats")["lost_stores"] == 1
    (found,) = [f for f in cli.json("doctor")["findings"] if f["subject"] == "other stores"]
    assert found["finding"].startswith("1 store has no workspace (")
    (listed,) = cli.json("cleanup", "--stores", "--dry-run")["stores"]
    assert listed["workspace"] == str(gone.workspace)
    assert listed["size_bytes"] > 300_000
    assert cli("cleanup", "--stores", "--json").error["code"] == "needs_confirmation"
    assert store.exists()
    done = cli.json("cleanup", "--stores", "--yes")
    assert [one["removed"] for one in done["stores"]] == [True]
    assert not store.exists()
    assert not list(store.parent.glob(".*"))
    assert len(cli.json("log")) == 1
    gone.workspace.mkdir()
    fill(gone.workspace / "file", b"a new project at the old place")
    gone.save()


@pytest.mark.requirement("ST-3")
@pytest.mark.parametrize("place", ["usual", "listed"])
def test_a_store_whose_disk_may_not_be_mounted_is_kept_until_the_user_insists(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    cli.save()
    disk = tmp_path / "my disk"
    away = CommandLine(disk / "project")
    removed = CommandLine(tmp_path / "worktrees/removed")
    for one in (away, removed):
        fill(one.workspace / "file", b"1")
        one.save()
    store = Path(away.json("init")["store"])
    shutil.rmtree(disk)
    shutil.rmtree(removed.workspace)
    if place == "usual":
        monkeypatch.setattr("holdfast.adapters.local.mounts._PLACES_OF_DISKS", (str(disk),))
    else:
        table = tmp_path / "fstab"
        listed = str(disk).replace(" ", "\\040")
        table.write_text(f"# disks\n/dev/sdb1 {listed} ext4 noauto 0 0\n/dev/sda1 / ext4 x 0 0\n")
        monkeypatch.setattr("holdfast.adapters.local.mounts._CONFIGURED", table)
    answer = cli("cleanup", "--stores", "--yes")
    assert f"{away.workspace} (its disk may not be mounted)" in " ".join(answer.out.split())
    assert "kept 1 store" in answer.err
    assert store.exists()
    (left,) = cli.json("cleanup", "--stores", "--dry-run")["stores"]
    assert (left["store"], left["may_be_unmounted"]) == (str(store), True)
    assert cli("cleanup", "--stores", "--yes", "--force").status == 0
    assert not store.exists()


@pytest.mark.requirement("ST-3")
def test_a_store_whose_workspace_came_back_is_not_deleted(cli: CommandLine) -> None:
    cli.save()
    elsewhere = cli.workspace.with_name("unmounted")
    cli.workspace.rename(elsewhere)
    (found,) = lost_stores()
    elsewhere.rename(cli.workspace)
    with pytest.raises(Refused, match="exists again"):
        remove_store(found)
    assert len(cli.json("log")) == 1


def test_status_tells_what_a_save_cleaned_up_automatically(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_tools(cli, 5)
    assert cli.json("status")["cleanup"] is None
    pass_days(monkeypatch, 8)
    cli.save("in another session, a week later")
    assert cli.json("status")["cleanup"]["deleted"] == 0
    pass_days(monkeypatch, 1)
    cli.save("a day later")
    told = cli.json("status")["cleanup"]
    assert told["deleted"] == 3
    assert told["freed_bytes"] > 500_000
    assert "deleted 3 expired checkpoints" in cli("status").out


def save_in_the_past(cli: CommandLine, days: float, number: int) -> list[str]:
    with pytest.MonkeyPatch.context() as past:
        pass_days(past, -days)
        return save_tools(cli, number)


@pytest.mark.parametrize(("answer", "left"), [("n", 5), ("\n", 5), ("y", 3)])
def test_at_a_terminal_it_lists_what_goes_and_asks(
    cli: CommandLine, answer: str, left: int
) -> None:
    made = save_in_the_past(cli, 2, 5)
    cli.json("config", "set", "retention.tool", "{most = 2}")
    with Screen(cli.workspace, "cleanup") as screen:
        shown = screen.read_until("[y/N]")
        assert "Delete 2 checkpoints for good?" in shown
        assert [one for one in made if one[:10] in shown] == made[1:3]
        screen.type(answer if answer == "\n" else f"{answer}\n")
        screen.finish()
    assert len(cli.json("log", "--session", "s")) == left
    assert (screen.status == 0) == (answer == "y")


def test_nothing_to_delete_asks_nothing(cli: CommandLine) -> None:
    save_tools(cli, 2)
    with Screen(cli.workspace, "cleanup") as screen:
        assert "Deleted 0 checkpoints, kept 2" in screen.finish()
    assert screen.status == 0


@pytest.mark.requirement("ST-3")
@pytest.mark.parametrize(("answer", "goes"), [("n", False), ("y", True)])
def test_over_the_budget_it_offers_what_only_ended_sessions_hold(
    cli: CommandLine, answer: str, goes: bool
) -> None:
    save_in_the_past(cli, 9, 1)
    (cli.workspace / "large").unlink()
    cli.save("today, and small")
    cli.json("config", "set", "budget", "100 KB")
    with Screen(cli.workspace, "cleanup") as screen:
        shown = screen.read_until("[y/N]")
        assert "over its budget. Delete 1 checkpoint of ended sessions too?" in shown
        screen.type(f"{answer}\n")
        rest = screen.finish()
    assert ("Deleted 1 checkpoint" in rest) == goes
    assert bool(cli.json("log", "--session", "s")) != goes
    assert cli.json("check", "--data")["ok"]


@pytest.mark.requirement("CL-2")
def test_what_stays_is_counted_on_a_terminal_and_listed_in_a_pipe(cli: CommandLine) -> None:
    for number in range(5):
        (cli.workspace / "README.md").write_text(str(number))
        cli.save(f"step {number}")
    assert cli("cleanup", "--dry-run").out.count("keep ") == 5 + 1, "and the sum"
    with Screen(cli.workspace, "cleanup", "--dry-run", columns=80) as screen:
        rows = [row for row in Screen.plain(screen.finish()) if row.strip()]
    assert "keep 3: its session was active in the last 24 hours" in rows
    assert len(rows) <= 4, rows
    assert rows[-1].startswith("Would delete 0 checkpoints and keep 5")
