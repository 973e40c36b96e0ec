"""`holdfast show`: everything about one checkpoint."""

from __future__ import annotations

import base64
import re
import subprocess

import pytest

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Position
from holdfast.domain.intent import make_intent
from holdfast.domain.story import Role
from holdfast.ports.story import NewMessage
from tests.interfaces.cli.command_line import CommandLine, command


@pytest.mark.requirement("CL-1")
def test_show_tells_everything_about_a_checkpoint(cli: CommandLine) -> None:
    first = cli.save("first", "--name", "one", "--tag", "a")
    cli.save("second")
    shown = cli.json("show", "one")
    assert shown["id"] == first
    assert (shown["is_head"], shown["partial"], shown["tags"]) == (False, False, ["a"])
    assert [skip["path"] for skip in shown["skipped"]] == [".env", ".holdfast"]
    assert cli.json("show")["reasoning"] == "second"
    assert cli.json("show", first[:6])["name"] == "one"


def test_show_can_list_every_path(cli: CommandLine) -> None:
    cli.save()
    entries = {entry["path"]: entry for entry in cli.json("show", "--files")["entries"]}
    assert entries["link"] == {"path": "link", "type": "symlink", "target": "README.md"}
    assert entries["empty"] == {"path": "empty", "type": "directory", "mode": "0755"}
    assert (entries["run.sh"]["mode"], entries["run.sh"]["size"]) == ("0755", 10)
    plain = cli("show", "--files").out
    assert "0755           10 run.sh\n" in plain
    assert "link            - link -> README.md\n" in plain


@pytest.mark.requirement("SE-2", "SE-5", "SE-7")
def test_show_tells_the_round_the_place_in_the_conversation_and_the_notes(cli: CommandLine) -> None:
    cli.save("began")
    with open_workspace(cli.workspace, create=False) as opened:
        engine = opened.engine
        session = engine.vault.catalog.sessions()[0].id
        new = NewMessage(Role.USER, "please fix it\nall of it", 1)
        engine.vault.story.add_messages(session, [new])
        position = Position(0, "toolu_17")
        made = engine.save(session, make_intent("Before Edit"), position=position).checkpoint.id
        engine.vault.story.annotate(session, made, "broke the tests", author="ada", at_ns=1)
    cli.json("approve")
    shown = cli.json("show", made)
    assert (shown["round"], shown["is_approved"]) == ("session_1", True)
    assert (shown["message_index"], shown["tool_use_id"]) == (0, "toolu_17")
    assert shown["message"] == {"role": "user", "content": "please fix it\nall of it"}
    (note,) = shown["annotations"]
    assert note["at"].startswith("1970-01-01T00:00:00")
    del note["at"]
    assert note == {"number": 1, "revision": 1, "text": "broke the tests", "author": "ada"}
    text = cli("show", made).out
    assert f"checkpoint  {made}  HEAD  approved\n" in text
    assert "round       1\n" in text
    assert "message     1, user: please fix it\n" in text
    assert "tool use    toolu_17\n" in text
    assert text.count("message  ") == 1
    assert "annotation 1 by ada, 1970-01-01" in text
    assert text.endswith("    broke the tests\n")
    plain = cli.json("show", "initial")
    assert (plain["message"], plain["message_index"], plain["tool_use_id"]) == (None, None, None)
    assert (plain["annotations"], plain["is_approved"]) == ([], False)


@pytest.mark.requirement("CL-7")
def test_an_old_file_is_written_byte_by_byte(cli: CommandLine) -> None:
    cli.save("one", "--name", "one", "--session", "mine")
    (cli.workspace / "data.bin").unlink()
    done = subprocess.run(
        command("show", "one:data.bin"), cwd=cli.workspace, capture_output=True, check=True
    )
    assert done.stdout == bytes(range(256))
    assert cli("show", "one:src/app.py").out == "def main():\n    return 1\n"
    assert cli("show", "mine:one:src/app.py").out == "def main():\n    return 1\n"
    assert cli("show", "HEAD:link").out == "README.md\n"
    assert "src/app.py" in cli("show", "one:src").out
    told = cli.json("show", "one:src/app.py")
    assert told["content"] == "def main():\n    return 1\n"
    assert (told["path"], told["type"], told["mode"]) == ("src/app.py", "file", "0644")
    assert base64.b64decode(cli.json("show", "one:data.bin")["base64"]) == bytes(range(256))


@pytest.mark.requirement("CL-7")
def test_an_old_file_is_found_from_a_subdirectory(cli: CommandLine) -> None:
    cli.save("one")
    inside = CommandLine(cli.workspace / "src")
    for typed in ("HEAD:app.py", "HEAD:src/app.py", "HEAD::/src/app.py", "HEAD:../src/app.py"):
        assert inside("show", typed).out.startswith("def main"), typed


@pytest.mark.requirement("CL-7", "CL-2")
def test_people_see_an_old_file_in_colour_and_harmless(cli: CommandLine) -> None:
    (cli.workspace / "src" / "app.py").write_text("def main():\n    return '\x1b[31m'\n")
    cli.save("one")
    shown = cli("show", "HEAD:src/app.py", "--color", "always").out
    assert "\\x1b" in shown
    assert "\x1b[31m'" not in shown
    assert re.search(r"\x1b\[[0-9;]+mdef", shown)
    assert "binary file, 256 B" in cli("show", "HEAD:data.bin", "--color", "always").out


@pytest.mark.requirement("CL-3")
def test_a_file_that_a_checkpoint_does_not_have_is_named(cli: CommandLine) -> None:
    made = cli.save("one")
    answer = cli("show", "HEAD:nowhere", "--json")
    assert answer.status == 4
    assert answer.error["message"] == f"nowhere is not in checkpoint {made[:10]}"
    assert cli("show", "nobody:README.md").status == 4
