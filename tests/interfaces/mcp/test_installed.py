"""The server as the plugin of an agent starts it, from a wheel that was built and installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, PathDistribution, distribution
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from packaging.requirements import Requirement

from holdfast import SessionCheckpointer
from holdfast.interfaces.cli.verbs import VERBS

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = Path("holdfast/interfaces/agent_setup/shipped/plugin/.mcp.json")
QUIET = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    _run("hatchling", "build", "-t", "wheel", "-d", str(place), cwd=ROOT)
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`holdfast` in an environment that has the wheel, what it requires, and nothing else."""
    place = tmp_path_factory.mktemp("clean")
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    _run("pip", "--python", str(python), "install", *QUIET, str(wheel), cwd=place)
    (packages,) = place.glob("lib/python*/site-packages")
    (metadata,) = packages.glob("holdfast-*.dist-info")
    for name in _required(PathDistribution(metadata).requires or []):
        for file in distribution(name).files or []:
            first = file.parts[0]
            source = Path(str(distribution(name).locate_file(first)))
            if first not in ("..", "__pycache__") and not (packages / first).exists():
                (packages / first).symlink_to(source)
    return place / "bin" / "holdfast"


def _required(requirements: list[str]) -> set[str]:
    """The distributions that these requirements lead to, without any extra of Holdfast."""
    found: set[str] = set()
    ahead = [(Requirement(one), "") for one in requirements]
    while ahead:
        one, extra = ahead.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        for wanted in ("", *one.extras):
            if f"{one.name}[{wanted}]" in found:
                continue
            found.add(f"{one.name}[{wanted}]")
            try:
                further = distribution(one.name).requires or []
            except PackageNotFoundError:  # the test environment may be older than a marker
                continue
            ahead += [(Requirement(text), wanted) for text in further]
    return {name.partition("[")[0] for name in found}


@pytest.mark.requirement("MC-1")
def test_the_wheel_alone_serves_mcp_grades_commands_and_encrypts(
    program: Path, workspace: Path, tmp_path: Path
) -> None:
    environment = {
        "PATH": os.defpath,
        "HOME": str(tmp_path),
        "HOLDFAST_HOME": str(tmp_path / "home"),
        "HOLDFAST_DAEMON": "off",
    }

    def answer(*arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [str(program), *arguments],
            cwd=workspace,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    greeting = json.loads(answer("mcp", stdin=json.dumps(INITIALIZE) + "\n").splitlines()[0])
    assert greeting["id"] == 1
    assert greeting["result"]["serverInfo"]["name"] == "holdfast"
    answer("init", "--encrypt", "--key-file", str(tmp_path / "a.key"))
    python = program.with_name("python")
    names = "import tree_sitter, tree_sitter_bash, rich, pygments"
    subprocess.run([python, "-c", names], check=True, env=environment)


def test_the_wheel_has_no_extra_but_the_web_server(program: Path) -> None:
    (metadata,) = program.parent.parent.glob("lib/python*/site-packages/holdfast-*.dist-info")
    assert PathDistribution(metadata).metadata.get_all("Provides-Extra") == ["web"]


@pytest.mark.requirement("CL-7")
def test_the_wheel_has_a_manual_page_for_every_command(program: Path) -> None:
    manual = program.parent.parent / "share" / "man"
    pages = {page.name: page.read_text("utf-8") for page in (manual / "man1").iterdir()}
    assert pages.keys() == {"holdfast.1", *(f"holdfast-{verb}.1" for verb in VERBS)}
    for name, text in pages.items():
        assert text.startswith(f'.TH "{name[:-2].upper()}"'.replace("-", "\\-")), name
        assert [line for line in text.splitlines() if line.startswith("'")] == [], name
    assert "\\-\\-turn" in pages["holdfast-undo.1"]
    assert ".SH EXIT\\-CODES" in pages["holdfast.1"]


@pytest.mark.requirement("CL-7")
def test_man_finds_nothing_wrong_with_the_pages_where_it_is_installed(program: Path) -> None:
    pages = sorted((program.parent.parent / "share" / "man" / "man1").iterdir())
    viewer = shutil.which("man") if sys.platform == "linux" else None
    for page in pages if viewer is not None else []:
        done = subprocess.run(
            [str(viewer), "--warnings", "-l", str(page)],
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANWIDTH": "80"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == "", page.name
        assert page.name[:-2].upper() + "(1)" in done.stdout


@pytest.mark.requirement("MC-1", "HK-4")
def test_the_plugin_starts_the_installed_server_in_the_agents_project(
    workspace: Path, tmp_path: Path, holdfast_home: Path, wheel: Path
) -> None:
    installed, elsewhere = tmp_path / "installed", tmp_path / "elsewhere"
    elsewhere.mkdir()
    _run("pip", "install", *QUIET, "--target", str(installed), str(wheel), cwd=elsewhere)
    entry = json.loads((installed / PLUGIN).read_text())["mcpServers"]["holdfast"]
    server = StdioServerParameters(
        command=entry["command"],
        args=entry["args"],
        cwd=elsewhere,
        env={
            "PATH": os.pathsep.join((str(installed / "bin"), os.environ["PATH"])),
            "PYTHONPATH": str(installed),
            "HOME": os.environ["HOME"],
            "HOLDFAST_HOME": str(holdfast_home),
            # As Claude Code sets them for the servers of its plugins.
            "CLAUDE_PROJECT_DIR": str(workspace),
            "CLAUDE_CODE_SESSION_ID": "5f1c-of-the-agent",
        },
    )

    async def save() -> None:
        async with Client(server) as client:
            made = await client.call_tool("checkpoint_create", {"reasoning": "by the plugin"})
            assert not made.is_error
            why = await client.call_tool("checkpoint_why", {"path": "src/app.py"})
            assert not why.is_error

    anyio.run(save)
    with SessionCheckpointer.load(workspace, "5f1c-of-the-agent") as session:
        assert [one.intent.reasoning for one in session.history()] == ["by the plugin"]


def _run(module: str, *arguments: str, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        # What is built must not depend on where the tests find the package.
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
