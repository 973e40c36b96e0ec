"""`holdfast show`: everything about one checkpoint."""

from __future__ import annotations

import pytest

from tests.interfaces.cli.command_line import CommandLine


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
