"""What a command does not need is not imported: the budget of the command line, as a list of names.

Times differ from machine to machine; the modules that a process has loaded do not.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.interfaces.agents import AGENTS

# Each costs more than a few milliseconds, or brings others that do.
HEAVY = frozenset(
    "apsw asyncio backports.zstd blake3 concurrent.futures email fastapi http importlib.metadata "
    "opentelemetry prometheus_client pydantic pyfastcdc pygments rich sqlite3 ssl starlette "
    "tomllib unittest urllib.request uvicorn".split()
)

# What a checkpoint in a directory of plain files does without; `dataclasses` brings `inspect`, and
# compiles six methods for every class (see holdfast.values.classes).
NOT_FOR_A_SAVE = frozenset(
    "ast asyncio concurrent.futures dataclasses difflib email fastapi hashlib http "
    "importlib.metadata inspect logging opentelemetry prometheus_client pyfastcdc pygments "
    "random rich secrets shutil socket sqlite3 ssl subprocess tempfile textwrap tokenize "
    "tomllib traceback urllib.request uuid".split()
)

# What a checkpoint of plain files by the command line does without, while other commands may not.
NOT_FOR_A_CHECKPOINT = frozenset(
    "copy select shlex signal zlib holdfast.adapters.local.mounts holdfast.domain.git.drift "
    "holdfast.engine.components.databases holdfast.engine.history.history "
    "holdfast.ports.agent_tools".split()
)

# Those that apply in few workspaces; the tools and variables of the process are recorded in each.
COMPONENTS = frozenset(
    f"holdfast.components.{name}.component"
    for name in "agents external git postgres worktrees".split()
)

HELP = """
import sys
sys.argv = ["holdfast", *{arguments}]
from holdfast.interfaces.cli.main import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
"""


def _loaded(program: str) -> set[str]:
    """The modules that the program leaves in a fresh interpreter."""
    child = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(child.stderr.split())


@pytest.mark.requirement("PF-7")
def test_importing_the_package_loads_nothing_heavy() -> None:
    assert _loaded("import holdfast") & HEAVY == set()


@pytest.mark.requirement("HK-2")
def test_a_hook_that_has_nothing_to_do_loads_next_to_nothing() -> None:
    event = '{"hook_event_name": "PreToolUse", "tool_name": "Read"}'
    program = f"import io, sys\nsys.stdin = io.StringIO({event!r})\n"
    loaded = _loaded(program + HELP.format(arguments=["hook", "claude-code"]))
    unwanted = HEAVY | {"argparse", "dataclasses", "datetime", "hashlib", "inspect", "pathlib"}
    assert loaded & unwanted == set()


@pytest.mark.requirement("HK-2")
@pytest.mark.parametrize("agent", AGENTS)
def test_a_hook_loads_the_description_of_its_own_agent_only(agent: str) -> None:
    event = '{"hook_event_name": "Notification", "prompt_id": "p"}'
    program = f"import io, sys\nsys.stdin = io.StringIO({event!r})\n"
    loaded = _loaded(program + HELP.format(arguments=["hook", agent]))
    package = "holdfast.interfaces.agents."
    described = {name.removeprefix(package) for name in loaded if name.startswith(package)}
    assert described == {"agent", agent.replace("-", "_")}


@pytest.mark.requirement("PF-7")
@pytest.mark.parametrize("arguments", [["--help"], ["checkpoint", "--help"], ["restore", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert _loaded(HELP.format(arguments=arguments)) & HEAVY == set()


# `compile` is how `typing` takes in an annotation that is a text (see holdfast.values.classes).
COMMAND = """
import builtins, sys
compiled, real = [], builtins.compile
def noted(source, filename, *others, **named):
    if filename == "<string>":
        compiled.append(source)
    return real(source, filename, *others, **named)
builtins.compile = noted
from holdfast.interfaces.cli.main import main
assert main([*{arguments}, "-C", {workspace!r}]) == 0
assert not compiled, compiled
"""


@pytest.mark.requirement("PF-7")
@pytest.mark.parametrize("output", [[], ["--json"]], ids=["people", "json"])
def test_a_checkpoint_loads_and_compiles_nothing_that_plain_files_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: list[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    workspace = tmp_path / "project"
    workspace.mkdir()
    loaded: set[str] = set()
    for text in ("the store is made", "one file is known", "another is new"):
        (workspace / text).write_text(text)
        arguments = ["checkpoint", "why", *output]
        loaded = _loaded(COMMAND.format(arguments=arguments, workspace=str(workspace)))
    assert loaded & (NOT_FOR_A_SAVE | NOT_FOR_A_CHECKPOINT | COMPONENTS) == set()


# A restore, an edit and an installation bring them; to be looked at, none of these is needed.
NOT_FOR_A_STATUS = frozenset(
    f"holdfast.{name}"
    for name in "domain.diff.hunks domain.tool_calls engine.components.restore engine.edits.guard "
    "engine.restore.conflicts engine.restore.journal engine.restore.plan engine.restore.preview "
    "domain.repair_plan interfaces.agent_setup.install_plan "
    "interfaces.agent_setup.json_text".split()
)


@pytest.mark.requirement("PF-7")
def test_a_status_loads_and_compiles_nothing_that_plain_files_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    workspace = tmp_path / "project"
    workspace.mkdir()
    for text in ("first", "second"):
        (workspace / "file").write_text(text)
        _loaded(COMMAND.format(arguments=["checkpoint", text], workspace=str(workspace)))
    (workspace / "file").write_text("third")
    loaded = _loaded(COMMAND.format(arguments=["status"], workspace=str(workspace)))
    unwanted = NOT_FOR_A_SAVE - {"hashlib"} | COMPONENTS | NOT_FOR_A_STATUS
    assert loaded & unwanted == set()


# `importlib.resources` brings `tempfile`, `shutil` and `zipfile` with it.
NOT_IN_A_REPOSITORY = frozenset(
    "dataclasses difflib importlib.resources inspect random shutil tempfile tomllib zipfile".split()
)

REPOSITORY = """
from holdfast.interfaces.cli.main import main
assert main([*{arguments}, "-C", {workspace!r}]) == 0
"""


@pytest.mark.requirement("PF-7")
@pytest.mark.parametrize(
    ("arguments", "besides"),
    [
        (["checkpoint", "why"], ["subprocess"]),
        (["status"], ["subprocess"]),
        (["restore", "HEAD~1", "--yes"], []),
        (["undo", "--yes"], []),
    ],
    ids=lambda words: words[0] if words else "",
)
def test_commands_in_a_git_repository_load_nothing_that_they_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], besides: list[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    workspace = tmp_path / "project"
    workspace.mkdir()
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    for text in ("first", "second", "settled"):
        (workspace / "file").write_text(text)
        _loaded(REPOSITORY.format(arguments=["checkpoint", text], workspace=str(workspace)))
        time.sleep(0.1)  # until the clock can tell the last change in git from a further one
    (workspace / "file").write_text("third")
    loaded = _loaded(REPOSITORY.format(arguments=arguments, workspace=str(workspace)))
    assert loaded & (NOT_IN_A_REPOSITORY | set(besides)) == set()


@pytest.mark.requirement("MC-2")
def test_what_a_server_offers_is_reported_without_the_engine() -> None:
    loaded = _loaded("import holdfast.interfaces.mcp.server, holdfast.interfaces.mcp.stdio")
    assert loaded & {"apsw", "holdfast.engine.engine", "holdfast.api.session"} == set()
