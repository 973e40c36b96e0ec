"""`holdfast init`, `config`, `delete`, `check`: the store and its settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine


def _store(cli: CommandLine) -> Path:
    return Path(cli.json("init")["store"])


@pytest.mark.requirement("CL-1")
def test_init_makes_the_store_and_the_marker_and_says_where(
    cli: CommandLine, holdfast_home: Path
) -> None:
    made = cli.json("init")
    assert made["workspace"] == str(cli.workspace)
    assert made["created"] is True
    assert Path(made["store"]).is_relative_to(holdfast_home)
    assert (Path(made["store"]) / "store.json").is_file()
    assert (cli.workspace / ".holdfast" / "workspace.json").is_file()
    assert made["store"] in cli("init").out


def test_init_again_changes_nothing(cli: CommandLine) -> None:
    first = cli.json("init")
    assert cli.json("init") == first | {"created": False}
    assert "already protects" in cli("init").out


def test_init_below_a_workspace_makes_one_of_its_own(cli: CommandLine) -> None:
    outer = cli.json("init")
    inner = CommandLine(cli.workspace / "src")
    assert f"It lies in {cli.workspace}" in inner("init").out
    assert inner.json("init")["store"] != outer["store"]


def test_after_init_there_is_a_status_and_no_checkpoint(cli: CommandLine) -> None:
    cli.json("init")
    status = cli.json("status")
    assert (status["session_id"], status["head"], status["checkpoints"]) == (None, None, 0)
    assert "no checkpoint yet" in cli("status").out


@pytest.mark.requirement("CL-1")
def test_a_setting_is_set_read_listed_and_taken_away(cli: CommandLine) -> None:
    default = {"key": "include", "value": [], "origin": "default"}
    assert cli.json("config", "get", "include") == default
    set_to = {"key": "include", "value": [".env", "*.db"], "origin": "store"}
    assert cli.json("config", "set", "include", '[".env", "*.db"]') == set_to
    listed = {one["key"]: one for one in cli.json("config", "list")}
    assert listed["include"]["value"] == [".env", "*.db"]
    assert all(one["help"] for one in listed.values())
    assert cli("config", "get", "include").out == '[".env", "*.db"]\n'
    assert cli.json("config", "unset", "include") == default


@pytest.mark.requirement("CP-12")
def test_an_include_takes_effect_with_the_next_checkpoint(cli: CommandLine) -> None:
    assert cli.json("checkpoint", "without")["files"] == 6
    cli.json("config", "set", "include", '[".env"]')
    assert cli.json("checkpoint", "with")["files"] == 7


def test_the_value_may_be_any_toml_and_a_bare_word_needs_no_quotes(cli: CommandLine) -> None:
    for typed, value in (
        ('"10 GB"', 10_000_000_000),
        ("10GB", 10_000_000_000),
        ("1_000_000", 1_000_000),
    ):
        assert cli.json("config", "set", "budget", typed)["value"] == value
    assert cli.json("config", "set", "setuid", "drop")["value"] == "drop"


def test_the_origin_is_the_file_a_value_comes_from(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    user = tmp_path / "config" / "holdfast" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text('budget = "2 GB"\nsetuid = "drop"\n')
    assert cli.json("config", "get", "budget") == {
        "key": "budget",
        "value": 2_000_000_000,
        "origin": str(user),
    }
    cli.json("init")
    project = cli.workspace / ".holdfast" / "config.toml"
    project.write_text('budget = "3 GB"\n')
    assert cli.json("config", "get", "budget")["origin"] == str(project)
    assert cli.json("config", "get", "setuid")["origin"] == str(user)
    assert cli.json("config", "set", "budget", '"4 GB"')["origin"] == "store"


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get", "nonsense"], "there is no setting 'nonsense'"),
        (["set", "nonsense", "1"], "there is no setting 'nonsense'"),
        (["unset", "nonsense"], "there is no setting 'nonsense'"),
        (["set", "budget", '"x"'], "budget cannot be 'x'"),
        (["set", "budget", "true"], "budget cannot be True"),
        (["set", "include", ".env"], "expects a list of patterns"),
        (["set", "include", "["], "is not a TOML value"),
        (["set", "budget", "1\nsetuid = 2"], "is more than one value"),
        (["set", "budget"], "config set takes 2"),
        (["get"], "config get takes 1"),
        (["frobnicate"], "config does not know 'frobnicate'"),
    ],
)
def test_a_wrong_setting_says_what_is_wrong_and_changes_nothing(
    cli: CommandLine, arguments: list[str], said: str
) -> None:
    cli.json("init")
    before = cli.json("config", "list")
    answer = cli("config", *arguments, "--json")
    assert answer.status == 2
    assert said in answer.error["message"]
    assert cli.json("config", "list") == before


@pytest.mark.requirement("CL-1")
def test_a_deleted_checkpoint_is_gone_and_the_others_stay(cli: CommandLine) -> None:
    kept = cli.save("kept")
    dropped = cli.save("dropped", "--name", "bad")
    done = cli.json("delete", "bad", "--yes")
    assert (done["deleted"], done["name"]) == (dropped, "bad")
    assert [one["id"] for one in cli.json("log")] == [kept]
    assert cli("show", "bad").status == 4


@pytest.mark.requirement("RB-8", "CL-3")
def test_deleting_always_needs_a_yes(cli: CommandLine) -> None:
    identifier = cli.save()
    answer = cli("delete", "HEAD", "--json")
    assert answer.status == 5
    assert answer.error["code"] == "needs_confirmation"
    assert "--yes" in answer.error["hint"]
    assert cli.json("log")[0]["id"] == identifier
    assert cli("delete", "--json").error["code"] == "usage"


@pytest.mark.requirement("CL-1")
def test_a_sound_store_has_no_problems(cli: CommandLine) -> None:
    cli.save()
    assert cli.json("check") == {"ok": True, "problems": []}
    assert cli.json("check", "--data") == {"ok": True, "problems": []}
    assert cli("check").out.startswith("✓ The store is sound: 0 problems, ")


@pytest.mark.requirement("CL-1", "CL-3")
def test_a_flipped_byte_of_content_is_found_and_named(cli: CommandLine) -> None:
    cli.save()
    pack = next((_store(cli) / "objects" / "packs").iterdir())
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 0xFF
    pack.write_bytes(data)
    answer = cli("check", "--data", "--json")
    assert answer.status == 6
    assert answer.json["ok"] is False
    for problem in answer.json["problems"]:
        assert problem.keys() == {"invariant", "subject", "problem"}
    assert cli("check", "--data").out.splitlines()[-1].startswith("✗ The store is damaged: ")


@pytest.mark.requirement("CL-3")
def test_a_damaged_catalog_is_exit_6_and_a_problem_that_check_tells(cli: CommandLine) -> None:
    cli.save()
    catalog = _store(cli) / "catalog.db"
    for log in catalog.parent.glob("catalog.db-*"):
        log.unlink()
    catalog.write_bytes(b"\x55" * 4096)
    answer = cli("log", "--json")
    assert answer.status == 6
    assert answer.error["code"] == "store_damaged"
    checked = cli("check", "--json")
    assert checked.status == 6
    assert checked.json["ok"] is False
    assert "catalog.db" in checked.json["problems"][0]["problem"]


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("verb", ["checkpoint", "log", "check", "init", "config"])
def test_a_store_of_a_later_version_is_refused_untouched(cli: CommandLine, verb: str) -> None:
    cli.save()
    store = _store(cli)
    described = json.loads((store / "store.json").read_bytes())
    (store / "store.json").write_text(json.dumps(described | {"format": 99}))
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    answer = cli(verb, *(["x"] if verb == "checkpoint" else []), "--json")
    assert answer.status == 6
    assert answer.error["code"] == "newer_store"
    assert "upgrade" in answer.error["hint"]
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before
