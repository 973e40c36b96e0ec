"""The shim for OpenCode, run by a real JavaScript engine as OpenCode runs it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine

HOST = """
import { Holdfast } from %(shim)s
import { rmSync } from "node:fs"
const directory = %(directory)s
const hooks = await Holdfast({ directory, worktree: directory })
const sessionID = "ses_1"
await hooks.event({ event: { type: "session.created", properties: { info: { id: sessionID } } } })
await hooks.event({ event: { type: "something.else" } })
const parts = [{ type: "text", text: "tidy up" }]
await hooks["chat.message"]({ sessionID, messageID: "m1" }, { message: {}, parts })
const args = { command: "rm -rf src" }
await hooks["tool.execute.before"]({ tool: "bash", sessionID, callID: "c1" }, { args })
rmSync(directory + "/src", { recursive: true })
const output = { title: "", output: "done", metadata: { exit: 0 } }
await hooks["tool.execute.after"]({ tool: "bash", sessionID, callID: "c1", args }, output)
await hooks.event({ event: { type: "session.idle", properties: { sessionID } } })
console.log(JSON.stringify({ ...output, said: parts[0].text }))
"""


@pytest.mark.requirement("HK-1", "HK-2", "HK-4")
def test_the_shim_saves_before_a_tool_and_never_fails(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    (project / "src").mkdir(parents=True)
    (project / "src" / "app.py").write_text("price = 1\n")
    (project / "package.json").write_text("{}\n")
    cli = CommandLine(project)
    cli.json("install", "opencode")
    shim = project / ".opencode" / "plugins" / "holdfast.js"
    module = tmp_path / "holdfast.mjs"
    module.write_text(shim.read_text("utf-8"))
    assert _run(tmp_path, module, project) == {
        "title": "",
        "output": "done",
        "metadata": {"exit": 0},
        "said": "tidy up",
    }
    made = cli.json("log", "--session", "ses_1")
    risky = next(found for found in made if found["kind"] == "risky")
    assert "Before bash: rm -rf src" in risky["reasoning"]
    assert {found["kind"] for found in made} >= {"initial", "message", "risky"}
    cli.json("restore", risky["id"], "--session", "ses_1", "--yes")
    assert (project / "src" / "app.py").read_text() == "price = 1\n"


@pytest.mark.requirement("RB-10", "HK-4")
def test_everything_that_the_agent_has_to_know_reaches_it(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    (project / "src").mkdir(parents=True)
    told = _run(tmp_path, _shim_saying(tmp_path, "first", "second", "third"), project)
    assert told["said"] == "tidy up\n\nfirst"  # with the message: its answer may need no tool
    assert told["output"] == "done\n\nsecond\n\nthird"


@pytest.mark.requirement("RB-10", "HK-4")
def test_a_message_without_words_leaves_what_is_to_be_reported_to_the_next_result(
    tmp_path: Path,
) -> None:
    project = tmp_path / "shop"
    (project / "src").mkdir(parents=True)
    host = HOST.replace('{ type: "text", text: "tidy up" }', '{ type: "file" }')
    told = _run(tmp_path, _shim_saying(tmp_path, "first", "second", "third"), project, host)
    assert told["output"] == "done\n\nfirst\n\nsecond\n\nthird"


def _shim_saying(tmp_path: Path, to_message: str, before_tool: str, after_tool: str) -> Path:
    from holdfast.interfaces.agents.opencode import plugin

    hook = tmp_path / "hook"
    hook.write_text(
        "#!/bin/sh\ncase $(cat) in\n"
        f"""*chat.message*) echo '{{"context": "{to_message}"}}' ;;\n"""
        f"""*execute.before*) echo '{{"context": "{before_tool}"}}' ;;\n"""
        f"""*execute.after*) echo '{{"context": "{after_tool}"}}' ;;\n*) echo '{{}}' ;;\nesac\n"""
    )
    hook.chmod(0o755)
    module = tmp_path / "holdfast.mjs"
    module.write_text(plugin(str(hook)))
    return module


@pytest.mark.requirement("HK-2", "HK-7")
@pytest.mark.parametrize("broken", [False, True], ids=["missing", "broken"])
def test_without_the_command_the_agent_goes_on_and_is_notified_once(
    tmp_path: Path, broken: bool
) -> None:
    from holdfast.interfaces.agents.opencode import plugin

    project = tmp_path / "shop"
    (project / "src").mkdir(parents=True)
    program = tmp_path / "holdfast"
    if broken:
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
    module = tmp_path / "holdfast.mjs"
    module.write_text(plugin(str(program)))
    told = _run(tmp_path, module, project)
    said = f"{told['said']}{told['output']}"
    assert said.count("Holdfast is not protecting this session") == 1
    assert str(told["output"]).startswith("done")
    assert f"{program} cannot be run" in said


@pytest.mark.requirement("HK-7")
def test_a_command_that_is_missing_during_an_upgrade_is_waited_for(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    (project / "src").mkdir(parents=True)
    module = _shim_saying(tmp_path, "first", "second", "third")
    (tmp_path / "hook").rename(tmp_path / "new")
    host = HOST.replace(
        "const sessionID",
        'setTimeout(() => renameSync("%(new)s", "%(hook)s"), 500)\nconst sessionID',
    ).replace("import { rmSync }", "import { renameSync, rmSync }")
    host = host.replace("%(new)s", str(tmp_path / "new")).replace(
        "%(hook)s", str(tmp_path / "hook")
    )
    told = _run(tmp_path, module, project, host)
    assert (told["said"], told["output"]) == ("tidy up\n\nfirst", "done\n\nsecond\n\nthird")


def _run(tmp_path: Path, module: Path, project: Path, text: str = HOST) -> dict[str, object]:
    host = tmp_path / "host.mjs"
    host.write_text(text % {"shim": json.dumps(str(module)), "directory": json.dumps(str(project))})
    done = subprocess.run(
        ["node", str(host)], capture_output=True, env=dict(os.environ), check=True, text=True
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer
