"""The user's additions to a Holdfast file stay the user's: separated where that is possible, else
kept and listed, with the way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.agent_setup.shipped_files import is_untouched, sealed
from tests.interfaces.cli.command_line import CommandLine
from tests.support.workspace_state import state_of

pytestmark = pytest.mark.requirement("HK-1")

LEFT = 3
REFUSED = 5


def _uninstalled(cli: CommandLine, agent: str, *, status: int = 0) -> dict[str, Any]:
    answer = cli("--json", "uninstall", agent)
    assert answer.status == status, answer
    told: dict[str, Any] = json.loads(answer.out)
    return told


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("const LONGEST_MS = 120000", "const LONGEST_MS = 5000"),
        ("export const Holdfast", "export const Mine = async () => ({})\n\nexport const Holdfast"),
        ("// holdfast: saves", "// saves"),
        ("\n", "\r\n"),
    ],
)
def test_a_shim_that_was_edited_is_left_and_named(
    old: str, new: str, project: Path, cli: CommandLine
) -> None:
    cli.json("install", "opencode")
    shim = project / ".opencode/plugins/holdfast.js"
    edited = shim.read_text().replace(old, new).encode()
    shim.write_bytes(edited)
    answer = cli("--json", "install", "opencode")
    assert answer.status == REFUSED
    assert "not only Holdfast's" in answer.error["message"]
    told = _uninstalled(cli, "opencode", status=LEFT)
    assert [file["change"] for file in told["files"]] == ["kept"]
    assert f"rm {shim}" in told["notes"][0]
    shown = cli("uninstall", "opencode")
    assert shown.status == LEFT
    assert str(shim) in shown.out + shown.err
    assert shim.read_bytes() == edited
    doctor = {f["subject"]: f for f in json.loads(cli("--json", "doctor").out)["findings"]}
    assert doctor["opencode (project)"]["status"] == "warning"
    shim.unlink()
    cli.json("install", "opencode")


def test_lines_that_were_added_to_a_script_stay_and_ours_go(
    project: Path, cli: CommandLine
) -> None:
    cli.json("install", "cline")
    script = project / ".clinerules/hooks/PreToolUse"
    shebang, sign, command = script.read_text().splitlines()
    mine = f"{shebang}\n# mine\n./guard.sh\n{sign}\n{command}\n./after.sh\n"
    script.write_text(mine)
    cli.json("install", "cline")
    assert script.read_text() == mine
    told = _uninstalled(cli, "cline")
    assert {Path(f["path"]).name: f["change"] for f in told["files"]}["PreToolUse"] == "changed"
    assert script.read_text() == f"{shebang}\n# mine\n./guard.sh\n./after.sh\n"
    assert script.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in script.parent.iterdir()] == ["PreToolUse"]


@pytest.mark.parametrize(
    "command",
    [
        "tee log | holdfast hook cline || echo '{\"cancel\": false}'",
        "HOLDFAST_HOME=/x holdfast hook cline || echo '{\"cancel\": false}'",
        "holdfast hook cline || echo '{\"cancel\": true}'",
        "holdfast hook cline",
    ],
)
def test_a_script_whose_command_was_edited_is_left_and_named(
    command: str, project: Path, cli: CommandLine
) -> None:
    cli.json("install", "cline")
    script = project / ".clinerules/hooks/PreToolUse"
    lines = script.read_text().splitlines()
    mine = "\n".join([*lines[:2], command, ""])
    script.write_text(mine)
    told = _uninstalled(cli, "cline", status=LEFT)
    assert len(told["notes"]) == 1
    assert script.read_text() == mine
    assert [path.name for path in script.parent.iterdir()] == ["PreToolUse"]


@pytest.mark.parametrize(
    ("agent", "place"),
    [
        ("copilot", ".github/hooks/holdfast.json"),
        ("goose", ".agents/plugins/holdfast/hooks/hooks.json"),
    ],
)
def test_hooks_that_were_added_to_a_holdfast_file_stay(
    agent: str, place: str, project: Path, cli: CommandLine
) -> None:
    cli.json("install", agent)
    file = project / place
    settings = json.loads(file.read_text())
    event = next(iter(settings["hooks"]))
    settings["hooks"][event].append({"type": "command", "command": "./mine.sh"})
    settings["hooks"]["Mine"] = [{"type": "command", "command": "./other.sh"}]
    file.write_text(json.dumps(settings, indent=2) + "\n")
    cli.json("install", agent)
    told = _uninstalled(cli, agent, status=LEFT if agent == "goose" else 0)
    left = json.loads(file.read_text())["hooks"]
    assert left == {
        event: [{"type": "command", "command": "./mine.sh"}],
        "Mine": [{"type": "command", "command": "./other.sh"}],
    }
    if agent == "goose":
        # Without it the remaining hooks would go unnoticed.
        assert (project / ".agents/plugins/holdfast/plugin.json").is_file()
        assert "needs it" in told["notes"][0]


def test_a_manifest_that_was_edited_is_left_and_named(project: Path, cli: CommandLine) -> None:
    cli.json("install", "goose")
    manifest = project / ".agents/plugins/holdfast/plugin.json"
    mine = json.dumps(json.loads(manifest.read_text()) | {"author": "me"})
    manifest.write_text(mine)
    _uninstalled(cli, "goose", status=LEFT)
    assert manifest.read_text() == mine
    assert not (project / ".agents/plugins/holdfast/hooks").exists()


@pytest.mark.requirement("CL-4")
def test_a_skill_that_was_edited_is_left_and_the_others_go(project: Path, cli: CommandLine) -> None:
    before = state_of(project)
    cli.json("install", "claude-code", "--skills")
    skill = project / ".claude/skills/restore/SKILL.md"
    mine = skill.read_text().replace("this is a preview", "this is my preview")
    assert mine != skill.read_text()
    skill.write_text(mine)
    told = _uninstalled(cli, "claude-code", status=LEFT)
    assert {f["change"] for f in told["files"]} == {"removed", "kept"}
    after = state_of(project)
    added = {path for path in after if path not in before and after[path][0] == "file"}
    assert added == {".claude/skills/restore/SKILL.md"}
    assert skill.read_text() == mine


def test_what_another_version_wrote_is_replaced_and_removed(
    project: Path, cli: CommandLine
) -> None:
    cli.json("install", "opencode")
    shim = project / ".opencode/plugins/holdfast.js"
    today = shim.read_text()
    shim.write_text(sealed('// holdfast: of an older version\nexport const Old = "holdfast"\n'))
    cli.json("install", "opencode")
    assert shim.read_text() == today
    shim.write_text(sealed('// holdfast: of an older version\nexport const Old = "holdfast"\n'))
    _uninstalled(cli, "opencode")
    assert not shim.exists()


def test_no_edit_of_a_sealed_text_goes_unseen() -> None:
    text = sealed("#!/bin/sh\n# holdfast: saves the workspace\nholdfast hook cline\n")
    assert is_untouched(text, text)
    for place in range(len(text)):
        other = "x" if text[place] != "x" else "y"
        assert not is_untouched(text[:place] + other + text[place + 1 :], text)
        assert not is_untouched(text[:place] + text[place + 1 :], text)


@pytest.mark.requirement("HK-4")
def test_a_plugin_that_was_edited_is_not_written_over(
    project: Path, cli: CommandLine, tmp_path: Path
) -> None:
    target = tmp_path / "plugin"
    for _ in range(2):
        cli.json("install", "claude-code", "--plugin", str(target))
    skill = target / "skills/restore/SKILL.md"
    skill.write_text("mine\n")
    before = state_of(target)
    answer = cli("--json", "install", "codex", "--plugin", str(target))
    assert (answer.status, str(skill) in answer.error["message"]) == (REFUSED, True)
    assert state_of(target) == before
