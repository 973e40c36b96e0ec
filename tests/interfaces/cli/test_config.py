"""`holdfast config`: settings, where they come from, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.domain.settings.schema import EXAMPLES, KEYS, USER_ONLY
from tests.interfaces.cli.command_line import CommandLine


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


@pytest.mark.requirement("CL-6", "CP-12")
def test_entries_are_added_to_a_list_and_removed_from_it(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.json("config", "add", "include", ".env")["value"] == [".env"]
    added = cli.json("config", "add", "include", "two words, a comma", ".env", "[ab].db")
    assert added["value"] == [".env", "two words, a comma", "[ab].db"]
    assert cli.json("checkpoint", "with")["files"] == 7
    left = cli.json("config", "remove", "include", '["two words, a comma", "[ab].db"]')
    assert (left["value"], left["origin"]) == ([".env"], "store")
    assert cli.json("config", "remove", "include", ".env")["value"] == []
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "config" / "holdfast" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('ignore = ["*.tmp"]\n')
    assert cli.json("config", "add", "ignore", "*.iso")["value"] == ["*.tmp", "*.iso"]


@pytest.mark.requirement("CL-1")
def test_a_size_is_set_in_words_and_read_as_a_number(cli: CommandLine) -> None:
    assert cli("config", "set", "max_file_size", "2 GB").out == "2000000000  (2.0 GB)\n"
    assert cli("config", "get", "max_file_size").out == "2000000000\n"


@pytest.mark.requirement("CP-12")
def test_an_include_takes_effect_with_the_next_checkpoint(cli: CommandLine) -> None:
    assert cli.json("checkpoint", "without")["files"] == 6
    cli.json("config", "set", "include", '[".env"]')
    assert cli.json("checkpoint", "with")["files"] == 7


@pytest.mark.requirement("CL-6", "CL-5")
@pytest.mark.parametrize(
    ("key", "typed", "value"),
    [
        ("end_of_day", ("17:30",), "17:30"),
        ("end_of_day", ('"17:30"',), "17:30"),
        ("end_of_day", ("",), ""),
        ("budget", ("10GB",), 10_000_000_000),
        ("budget", ("10", "GB"), 10_000_000_000),
        ("budget", ("1.5 GiB",), 1_610_612_736),
        ("include", (".env",), [".env"]),
        ("include", (".env", "*.db"), [".env", "*.db"]),
        ("include", (".env, *.db",), [".env", "*.db"]),
        ("include", ('[".env", "*.db"]',), [".env", "*.db"]),
        ("ignore", ("'two words/*' x",), ["two words/*", "x"]),
        ("check_command", ("make test -k 'a,b'",), ["make", "test", "-k", "a,b"]),
        ("check_command", ("make", "test"), ["make", "test"]),
        ("watch", ("off",), "off"),
        ("daemon", ("false",), "off"),
        ("auto_interval", ("30",), 30.0),
        ("mirror", ("true",), "holdfast-checkpoints"),
        ("accept_template", ("{subject}",), "{subject}"),
        ("auto_merge", ("main",), ["main"]),
        ("postgres", ("DATABASE_URL",), ["DATABASE_URL"]),
    ],
)
def test_plain_words_need_no_quotes_and_toml_works_too(
    cli: CommandLine, key: str, typed: tuple[str, ...], value: object
) -> None:
    assert cli.json("config", "set", key, *typed)["value"] == value


@pytest.mark.requirement("CL-6")
def test_a_variable_of_the_environment_gives_a_setting_and_wins(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save()
    cli.json("config", "set", "auto_interval", "5")
    monkeypatch.setenv("HOLDFAST_AUTO_INTERVAL", "45")
    monkeypatch.setenv("HOLDFAST_INCLUDE", ".env, *.db")
    assert cli.json("config", "get", "auto_interval") == {
        "key": "auto_interval",
        "value": 45.0,
        "origin": "HOLDFAST_AUTO_INTERVAL",
    }
    assert cli.json("config", "get", "include")["value"] == [".env", "*.db"]
    assert cli.json("checkpoint", "with .env")["files"] == 7
    [warning] = cli.json("config", "set", "auto_interval", "6")["warnings"]
    assert "HOLDFAST_AUTO_INTERVAL" in warning
    monkeypatch.setenv("HOLDFAST_BUDGET", "lots")
    answer = cli("checkpoint", "with a budget that cannot be read")
    assert answer.status == 0
    assert "warning: HOLDFAST_BUDGET: budget cannot be 'lots'" in answer.err


@pytest.mark.requirement("CL-6")
def test_every_setting_can_be_given_by_the_environment(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in sorted({*KEYS} - {"key_file"}):
        example = EXAMPLES[key].split(" or ")[0]
        monkeypatch.setenv(f"HOLDFAST_{key.upper()}", example)
        assert cli.json("config", "get", key)["origin"] == f"HOLDFAST_{key.upper()}"


@pytest.mark.requirement("CL-6")
def test_settings_are_edited_in_the_editor_of_the_user(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    cli.json("config", "set", "watch", "off")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("VISUAL", "")
    script = f"""sed -i '/^watch/d; s/^# end_of_day = .*/end_of_day = "17:30"/; w {seen}'"""
    monkeypatch.setenv("EDITOR", script)
    assert cli("config", "edit").out == "Changed watch, end_of_day\n"
    assert cli.json("config", "get", "end_of_day")["value"] == "17:30"
    assert cli.json("config", "get", "watch")["origin"] == "default"
    assert "# budget = 5000000000" in seen.read_text()
    assert cli.json("config", "edit") == {"changed": []}
    monkeypatch.setenv("EDITOR", "sed -i 's/^end_of_day.*/end_of_day = 25/'")
    wrong = cli("config", "edit", "--json")
    assert (wrong.status, "end_of_day cannot be 25" in wrong.error["message"]) == (2, True)
    assert cli.json("config", "get", "end_of_day")["value"] == "17:30"
    monkeypatch.setenv("EDITOR", "false")
    assert cli("config", "edit").status == 2
    monkeypatch.setenv("EDITOR", "sed -i '1s/^/daemon_idle = 5\\n/'")
    assert cli("config", "edit", "--user").status == 0
    assert cli.json("config", "get", "daemon_idle")["value"] == 5.0


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
    cli.json("config", "trust")
    assert cli.json("config", "get", "budget")["origin"] == str(project)
    assert cli.json("config", "get", "setuid")["origin"] == str(user)
    assert cli.json("config", "set", "budget", '"4 GB"')["origin"] == "store"


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get", "nonsense"], "unknown setting: 'nonsense'"),
        (["set", "nonsense", "1"], "unknown setting: 'nonsense'"),
        (["unset", "nonsense"], "unknown setting: 'nonsense'"),
        (["set", "budget", '"x"'], "budget cannot be 'x'"),
        (["set", "budget", "true"], "budget cannot be True"),
        (["set", "include", "["], "is not a TOML value"),
        (["set", "budget", "1\nsetuid = 2"], "is more than one value"),
        (["set", "budget"], "config set: VALUE missing"),
        (["add", "include"], "config add: VALUE missing"),
        (["add", "budget", "10GB"], "budget is not a list"),
        (["add", "check_command", "make"], "check_command is not a list"),
        (["add", "retention.tool", "1"], "unknown setting"),
        (["add", "includ", ".env"], "unknown setting: 'includ'"),
        (["add", "include", "!.env"], "include cannot be"),
        (["remove", "include", ".env"], "'.env' not found in include"),
        (["get"], "config get: KEY missing"),
        (["frobnicate"], "unknown action: config 'frobnicate'"),
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


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("key", sorted({*KEYS} - USER_ONLY))
def test_a_value_that_a_setting_cannot_take_is_reported_with_one_that_it_can(
    cli: CommandLine, key: str
) -> None:
    answer = cli("config", "set", key, "{a = 1}", "--json")
    assert answer.status == 2
    example = answer.error["hint"].split("; ")[0].removeprefix("expected: ").split(" or ")[0]
    assert cli("config", "set", key, example).status == 0


@pytest.mark.requirement("CL-1")
def test_the_list_says_where_the_files_are_and_whether_there_is_one(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "config" / "holdfast" / "config.toml"
    project, user = cli("config").out.splitlines()[-2:]
    assert project == f"project's file {cli.workspace}/.holdfast/config.toml  (does not exist)"
    assert user == f"user's file    {file}  (does not exist)"
    file.parent.mkdir(parents=True)
    file.write_text('ignore = ["*.tmp"]\n')
    assert cli("config").out.splitlines()[-1] == f"user's file    {file}"
    assert cli.json("config", "get", "ignore")["origin"] == str(file)


@pytest.mark.requirement("CL-3")
def test_a_setting_that_is_misspelt_is_guessed(cli: CommandLine) -> None:
    for call in (("set", "includ", "[]"), ("get", "includ")):
        assert "did you mean: include" in cli("config", *call, "--json").error["hint"]
    assert "settings are: include, " in cli("config", "get", "zzz", "--json").error["hint"]
