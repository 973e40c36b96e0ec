"""`holdfast init --encrypt` and `holdfast key`: making an encrypted store and changing its keys."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from holdfast.adapters.local.encryption import key_slots
from tests.adapters.local.tree_pictures import picture
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.encrypted_stores import files_with

pytestmark = pytest.mark.requirement("ST-6")

NEED_THE_STORE = (
    *("init", "status", "checkpoint why", "log", "show", "diff", "restore name --yes", "undo"),
    *("redo", "delete name --yes", "config", "config set budget 1GB", "key", "stats", "check"),
)
WORDS = "correct horse battery"


@pytest.fixture(autouse=True)
def quick_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process; commands that are run as processes of their own take their time."""
    monkeypatch.setattr(key_slots, "_SCRYPT", {"n": 1 << 4, "r": 8, "p": 1})


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "my.key"


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words"
    path.touch(0o600)
    path.write_text(WORDS + "\n")
    return path


@pytest.fixture
def encrypted(cli: CommandLine, key: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    cli.json("init", "--encrypt", "--key-file", str(key))
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key))
    return cli


@pytest.mark.requirement("CL-1")
def test_init_makes_the_key_and_says_what_its_loss_means(cli: CommandLine, key: Path) -> None:
    answer = cli("init", "--encrypt", "--key-file", str(key))
    assert answer.status == 0
    assert "The store is encrypted." in answer.out
    assert "the data cannot be recovered" in answer.out
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.read_text().strip() not in answer.out + answer.err
    assert f"  For later commands: export HOLDFAST_KEY_FILE={key}\n" in answer.out


def test_a_changed_key_comes_with_the_way_to_find_it(
    encrypted: CommandLine, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "a new.key"
    told = encrypted("key", "change", "--key-file", str(new)).out
    assert f"  For later commands: export HOLDFAST_KEY_FILE='{new}'\n" in told
    assert encrypted("log", "--json").error["code"] == "wrong_key"
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(new))
    assert "told of it" not in encrypted("key", "change", "--key-file", str(new)).out
    told = encrypted("key", "change", "--passphrase-file", str(words)).out
    assert f"export HOLDFAST_PASSPHRASE_FILE={words}\n" in told


def test_init_tells_whether_the_store_is_encrypted(
    cli: CommandLine, encrypted: CommandLine, tmp_path: Path
) -> None:
    assert encrypted.json("init")["encrypted"] is True
    assert encrypted.json("init", "--encrypt")["created"] is False
    plain = CommandLine(tmp_path / "plain")
    plain.workspace.mkdir()
    assert plain.json("init")["encrypted"] is False
    refused = plain("init", "--encrypt", "--json", "--key-file", str(tmp_path / "k"))
    assert refused.status == 5
    assert refused.error["code"] == "refused"
    assert not (tmp_path / "k").exists()


def test_one_key_file_serves_many_stores(encrypted: CommandLine, key: Path, tmp_path: Path) -> None:
    other = CommandLine(tmp_path / "other")
    other.workspace.mkdir()
    before = key.read_bytes()
    other.json("init", "--encrypt", "--key-file", str(key))
    assert key.read_bytes() == before
    other.save()


def test_the_commands_work_and_show_nothing_in_the_store(
    encrypted: CommandLine, holdfast_home: Path
) -> None:
    first = encrypted.save("a-telling-reason", "--name", "tell-tale")
    (encrypted.workspace / "README.md").write_text("changed\n")
    encrypted.save("second")
    encrypted.json("config", "set", "include", '["hidden-pattern"]')
    encrypted.json("restore", first, "--yes")
    assert (encrypted.workspace / "README.md").read_text() == "hello\n"
    encrypted.json("undo", "--yes")
    assert encrypted.json("check", "--data") == {"ok": True, "problems": []}
    needles = (b"a-telling-reason", b"tell-tale", b"README", b"hello", b"hidden-pattern")
    assert list(files_with(holdfast_home, *needles)) == []


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("line", NEED_THE_STORE)
def test_without_the_key_every_command_says_what_is_missing_and_changes_nothing(
    encrypted: CommandLine, holdfast_home: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    encrypted.save("why", "--name", "name")
    monkeypatch.delenv("HOLDFAST_KEY_FILE")
    before = picture(encrypted.workspace), picture(holdfast_home)
    answer = encrypted(*line.split(), "--json")
    assert answer.status == 5, answer
    assert answer.error["code"] == "key_needed"
    assert "HOLDFAST_KEY_FILE" in answer.error["hint"]
    assert (picture(encrypted.workspace), picture(holdfast_home)) == before


@pytest.mark.requirement("CL-3")
def test_a_wrong_key_has_its_own_code(
    encrypted: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "wrong"
    wrong.touch(0o600)
    wrong.write_bytes(b"w" * 40)
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(wrong))
    answer = encrypted("status", "--json")
    assert (answer.status, answer.error["code"]) == (5, "wrong_key")
    assert str(wrong) in answer.error["message"]


def test_keys_are_added_listed_changed_and_removed(
    encrypted: CommandLine, key: Path, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encrypted.save()
    (first,) = encrypted.json("key")["keys"]
    assert first == {"id": first["id"], "kind": "key file", "used": True}
    assert "Added a key" in encrypted("key", "add", "--passphrase-file", str(words)).out
    kinds = [(k["kind"], k["used"]) for k in encrypted.json("key", "list")["keys"]]
    assert kinds == [("key file", True), ("passphrase", False)]

    monkeypatch.delenv("HOLDFAST_KEY_FILE")
    monkeypatch.setenv("HOLDFAST_PASSPHRASE_FILE", str(words))
    new = tmp_path / "new.key"
    encrypted.json("key", "change", "--key-file", str(new))
    assert encrypted("log", "--json").error["code"] == "key_needed"
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(new))
    encrypted.json("key", "remove", first["id"])
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key))
    assert encrypted("log", "--json").error["code"] == "wrong_key"
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(new))
    (last,) = encrypted.json("key")["keys"]
    assert encrypted("key", "remove", last["id"], "--json").status == 5
    assert len(encrypted.json("log")) == 1
    listed = encrypted("key").out
    assert f"{last['id']}  key file  (the one used now)" in listed


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["key", "frobnicate"], 2),
        (["key", "remove"], 2),
        (["key", "list", "--key-file", "x"], 2),
        (["key", "add", "--key-file", "x", "--passphrase-file", "y"], 2),
        (["key", "add"], 5),
        (["key", "remove", "ffffffff"], 4),
        (["init", "--key-file", "x"], 2),
        (["init", "--encrypt", "--key-file", "x", "--passphrase-file", "y"], 2),
    ],
)
def test_what_makes_no_sense_is_refused(
    encrypted: CommandLine, arguments: list[str], status: int
) -> None:
    answer = encrypted(*arguments, "--json")
    assert answer.status == status
    assert answer.error["hint"] or answer.error["message"]


@pytest.mark.parametrize("action", ["list", "add"])
def test_without_a_store_there_are_no_keys(cli: CommandLine, action: str) -> None:
    answer = cli("key", action, "--json")
    assert answer.status == 4
    assert answer.error["message"].endswith("has no store yet, so it has no keys")
    assert answer.error["hint"] == "create an encrypted store: holdfast init --encrypt"


def test_a_key_file_in_a_missing_directory_says_how_to_create_it(
    cli: CommandLine, tmp_path: Path
) -> None:
    missing = tmp_path / "my keys"
    answer = cli("init", "--encrypt", "--key-file", str(missing / "key"), "--json")
    assert answer.status == 5
    assert f"the directory {missing} does not exist" in answer.error["message"]
    command = answer.error["hint"].removeprefix("create it: ")
    subprocess.run(shlex.split(command), check=True)
    assert missing.stat().st_mode & 0o777 == 0o700
    cli.json("init", "--encrypt", "--key-file", str(missing / "key"))


def test_a_plain_store_has_no_keys(cli: CommandLine) -> None:
    cli.json("init")
    answer = cli("key", "--json")
    assert answer.status == 5
    assert "not encrypted" in answer.error["message"]


def test_no_terminal_is_a_refusal_and_no_store(cli: CommandLine, holdfast_home: Path) -> None:
    answer = cli("init", "--encrypt", "--json")
    assert (answer.status, answer.error["code"]) == (5, "key_needed")
    assert list(holdfast_home.iterdir()) == []
    assert not (cli.workspace / ".holdfast").exists()


def test_a_passphrase_is_asked_for_unseen_and_opens_the_store(cli: CommandLine) -> None:
    with Screen(cli.workspace, "init", "--encrypt") as screen:
        screen.read_until("New passphrase: ")
        screen.type(WORDS + "\n")
        screen.read_until("Repeat the passphrase: ")
        screen.type(WORDS + "\n")
        shown = screen.finish()
        assert screen.status == 0
        assert "The store is encrypted." in shown
        assert WORDS not in shown
    with Screen(cli.workspace, "config", "set", "budget", "1GB") as screen:
        shown = screen.read_until("Passphrase: ")
        screen.type(WORDS + "\n")
        shown += screen.finish()
        assert screen.status == 0, "and it is asked for once, although the store is opened twice"
        assert WORDS not in shown
    with Screen(cli.workspace, "log") as screen:
        screen.read_until("Passphrase: ")
        screen.type("something else\n")
        assert "does not open the store" in screen.finish()
        assert screen.status == 5


@pytest.mark.parametrize(
    ("typed", "said"), [(("short",), "fewer than 8"), ((WORDS, WORDS + "x"), "do not match")]
)
def test_a_passphrase_that_was_mistyped_or_is_weak_makes_no_store(
    cli: CommandLine, holdfast_home: Path, typed: tuple[str, ...], said: str
) -> None:
    with Screen(cli.workspace, "init", "--encrypt") as screen:
        for question, answer in zip(
            ("New passphrase: ", "Repeat the passphrase: "), typed, strict=False
        ):
            screen.read_until(question)
            screen.type(answer + "\n")
        assert said in screen.finish()
        assert screen.status == 5
    assert list(holdfast_home.iterdir()) == []


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("present", ["none", "wrong", "missing"])
def test_who_lost_every_key_is_shown_how_to_go_on_and_can_come_back(
    encrypted: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: str
) -> None:
    encrypted.save("before the loss")
    old = Path(encrypted.json("status")["store"])
    key = os.environ["HOLDFAST_KEY_FILE"]
    wrong = tmp_path / "wrong"
    wrong.touch(0o600)
    wrong.write_bytes(b"w" * 40)
    chosen = {"wrong": str(wrong), "missing": str(tmp_path / "missing")}
    if present == "none":
        monkeypatch.delenv("HOLDFAST_KEY_FILE")
    else:
        monkeypatch.setenv("HOLDFAST_KEY_FILE", chosen[present])
    answer = encrypted("status", "--json")
    assert answer.status == 5
    assert " away" not in answer.error["hint"]
    assert "set HOLDFAST_KEY_FILE to its key file" in answer.error["hint"]
    assert answer.error["hint"].endswith("holdfast help lost-keys")
    assert "holdfast init --new-store" in encrypted("help", "lost-keys").out

    old.rename(tmp_path / old.name)
    encrypted.json("init", "--new-store", "--encrypt", "--key-file", str(tmp_path / "new.key"))
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(tmp_path / "new.key"))
    encrypted.save("after the loss")
    assert [c["reasoning"] for c in encrypted.json("log")] == ["after the loss"]

    (tmp_path / old.name).rename(old)
    marker = encrypted.workspace / ".holdfast/workspace.json"
    marker.write_text(json.dumps({"id": old.name}))
    monkeypatch.setenv("HOLDFAST_KEY_FILE", key)
    assert [c["reasoning"] for c in encrypted.json("log")] == ["before the loss"]


@pytest.mark.requirement("ST-7")
@pytest.mark.parametrize("option", [(), ("--git-bundle",)])
def test_an_export_from_an_encrypted_store_warns_that_it_is_none(
    encrypted: CommandLine, tmp_path: Path, option: tuple[str, ...]
) -> None:
    encrypted.save("why")
    answer = encrypted("export", *option, str(tmp_path / "one"))
    assert answer.status == 0
    assert "the store is encrypted, but this file is not" in answer.err
    (warning,) = encrypted.json("export", *option, str(tmp_path / "two"))["warnings"]
    assert warning in answer.err


def test_an_export_from_a_plain_store_has_nothing_to_warn_of(
    cli: CommandLine, tmp_path: Path
) -> None:
    cli.save("why")
    assert cli.json("export", str(tmp_path / "one"))["warnings"] == []


@pytest.mark.requirement("ST-6", "CL-3")
def test_a_key_file_that_is_too_short_leads_to_the_right_one(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = tmp_path / "short.key"
    short.write_text("too short\n")
    short.chmod(0o600)
    refused = cli("--json", "init", "--encrypt", "--key-file", str(short))
    assert "a key has at least" in refused.error["message"]
    assert "does not exist yet" in refused.error["hint"]
    key = tmp_path / "the.key"
    assert cli("init", "--encrypt", "--key-file", str(key)).status == 0
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(short))
    refused = cli("--json", "log")
    assert "a key has at least" in refused.error["message"]
    assert "init" not in refused.error["hint"]
    assert "set HOLDFAST_KEY_FILE to its key file" in refused.error["hint"]
