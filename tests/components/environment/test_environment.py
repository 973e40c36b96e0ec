"""Tool versions and names of variables are recorded, compared, and never restored."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.components.environment.component import EnvironmentComponent
from holdfast.components.environment.tool_versions import tool_versions
from holdfast.domain.checkpoints import Kind
from holdfast.domain.component_states import ComponentState
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import session_id
from holdfast.domain.intent import make_intent
from holdfast.ports.component import RecordedComponent
from holdfast.testing.component_contract import RecordedComponentContract
from holdfast.tools import ToolHandlers
from tests.behind_the_api import engine_of
from tests.components.git.repositories import write
from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import configure

pytestmark = pytest.mark.requirement("DB-3")
SECRET = "hunter2-is-not-to-be-stored"


def virtual_environment(place: Path, version: str) -> None:
    write(place / ".venv/pyvenv.cfg", f"home = /usr/bin\nversion = {version}\n")


def program(path: Path, text: str = "\x7fELF") -> Path:
    write(path, text)
    path.chmod(0o755)
    return path


class TestEnvironment(RecordedComponentContract):
    def make_component(self) -> RecordedComponent:
        return EnvironmentComponent({"PATH": "/nowhere", "HOME": "/root"})

    def make_state(self, place: Path) -> None:
        virtual_environment(place, "3.11.7")

    def change_state(self, place: Path) -> None:
        virtual_environment(place, "3.12.1")

    def look_at_state(self, place: Path) -> object:
        return (place / ".venv/pyvenv.cfg").read_bytes()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_TEST_SECRET_KEY", SECRET)
    place = tmp_path / "project"
    write(place / "code.txt", "one\n")
    virtual_environment(place, "3.11.7")
    return place


@pytest.mark.requirement("CL-8")
def test_the_answer_of_checkpoint_and_show_have_the_environment(place: Path) -> None:
    cli = CommandLine(place)
    said = cli("checkpoint", "before the upgrade").out
    *_, line, _ = said.splitlines()  # before the way back
    assert line.startswith("  environment: ")
    assert "python in .venv 3.11.7" in line
    assert "variable names" in line
    assert "python in .venv 3.11.7" in cli("show", "HEAD").out
    write(place / "code.txt", "two\n")
    saved = cli.json("checkpoint", "as data")["environment"]
    assert saved["tools"]["python in .venv"] == "3.11.7"
    assert "HOLDFAST_TEST_SECRET_KEY" in saved["variables"]
    (shown,) = cli.json("show", "HEAD")["components"]
    assert shown["facts"] == saved
    assert SECRET not in json.dumps(shown)


def test_no_value_of_a_variable_is_stored(place: Path) -> None:
    values = {"PATH": "/secret-path", "TOKEN": SECRET}
    made = TestEnvironment()
    made.make_component = lambda: EnvironmentComponent(values)  # type: ignore[method-assign]
    state, contents = made.capture(place)
    assert state is not None
    assert state.facts["variables"] == ["PATH", "TOKEN"]
    assert not any(value in json.dumps(state.facts) for value in values.values())
    assert contents.stored() == ()


@pytest.mark.requirement("CP-4", "MC-1")
def test_a_diff_says_what_changed_in_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli = CommandLine(place)
    cli.save("old", "--name", "old")
    virtual_environment(place, "3.12.1")
    monkeypatch.setenv("HOLDFAST_TEST_ADDED", "1")
    monkeypatch.delenv("HOLDFAST_TEST_SECRET_KEY")
    wanted = [
        "python in .venv 3.11.7 → 3.12.1",
        "variables added: HOLDFAST_TEST_ADDED",
        "variables removed: HOLDFAST_TEST_SECRET_KEY",
    ]
    assert cli.json("diff", "old")["recorded"] == {"environment": wanted}, "with the present"
    cli.save("new", "--name", "new")
    assert cli.json("diff", "old", "new")["recorded"] == {"environment": wanted}
    assert [f"environment: {line}" for line in wanted] == [
        line for line in cli("diff", "old", "new").out.splitlines() if line.startswith("env")
    ]
    assert "recorded" not in cli.json("diff", "new")
    assert "recorded" not in cli.json("diff", "old", "--", "code.txt"), "only these paths"
    with SessionCheckpointer(place, "s") as session:
        tools = ToolHandlers(session)
        assert "Environment: " in tools.call("checkpoint_create", {}).output
        virtual_environment(place, "3.13.0")
        told = tools.call("checkpoint_diff", {}).output
        assert "No file differs" in told
        assert "environment: python in .venv 3.12.1 → 3.13.0" in told


@pytest.mark.requirement("RB-1", "BX-7")
def test_a_restore_names_it_and_leaves_it_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = CommandLine(place)
    saved = cli.save("old")
    write(place / "code.txt", "two\n")
    monkeypatch.setenv("HOLDFAST_TEST_ADDED", "1")  # that alone is no reason to say anything
    assert not [one for one in cli.json("restore", saved, "--dry-run")["warnings"] if "env" in one]
    virtual_environment(place, "3.12.1")
    assert not [one for one in cli.json("undo", "--dry-run")["warnings"] if "env" in one]
    plan = cli.json("restore", saved, "--dry-run")
    said = "environment: recorded, not restored; since then: python in .venv 3.11.7 → 3.12.1"
    assert said in plan["warnings"]
    assert said in plan["remarks"]
    assert [one for one in plan["components"] if one["name"] == "environment"] == []
    refused = cli("restore", saved, "--with", "environment", "--yes")
    assert refused.status == 2
    assert "environment is recorded, not restored" in refused.err
    assert cli("restore", saved, "--yes").status == 0
    assert (place / "code.txt").read_text() == "one\n"
    assert "3.12.1" in (place / ".venv/pyvenv.cfg").read_text()
    assert cli("undo", "--yes").status == 0
    assert (place / "code.txt").read_text() == "two\n"
    with SessionCheckpointer(place, "s") as session, pytest.raises(UsageError):
        session.plan_restore(session.checkpoint("why"), components={"environment": "exact"})


@pytest.mark.requirement("SE-12", "SE-5")
def test_only_manual_and_risky_checkpoints_have_it_and_others_serve_for_each_other(
    place: Path,
) -> None:
    with SessionCheckpointer(place, "s") as session:
        engine, intent = engine_of(session), make_intent("why")
        own = session_id(session.session_id)

        def recorded(kind: Kind, *, asked: bool = False) -> bool:
            made = engine.save(own, intent, kind=kind, record_environment=asked)
            return made.checkpoint.components is not None

        assert recorded(Kind.MANUAL, asked=True)
        again = engine.save(own, intent, kind=Kind.TOOL)
        assert again.deduplicated, "what it would not have is no reason for another"
        write(place / "code.txt", "two\n")
        assert not recorded(Kind.TOOL)
        assert not recorded(Kind.MANUAL), "programs that save often do not pay for it"
        assert recorded(Kind.RISKY)
        saved = session.save_checkpoint("asked for", record_environment=True).checkpoint
        assert session.approve().approved.id == saved.id, "no other is made to approve it"


@pytest.mark.parametrize(("setting", "wanted"), [("always", True), ("never", False)])
def test_the_setting_decides(place: Path, setting: str, wanted: bool) -> None:
    configure(place, record_environment=setting)
    with SessionCheckpointer(place, "s") as session:
        made = session.save_checkpoint("why", record_environment=not wanted).checkpoint
    assert (made.components is not None) == wanted


def test_versions_are_read_from_files_and_no_program_is_started(tmp_path: Path) -> None:
    bin_, place = tmp_path / "bin", tmp_path / "project"
    started = tmp_path / "started"
    place.mkdir()
    script = f"#!/bin/sh\ntouch {started}\n"
    installed = program(tmp_path / "versions/node/v20.11.0/bin/node", script)
    bin_.mkdir()
    (bin_ / "node").symlink_to(installed)
    packages = tmp_path / "lib/node_modules"
    (bin_ / "npm").symlink_to(program(packages / "npm/bin/npm-cli.js", script))
    write(packages / "npm/package.json", '{"version": "10.2.4", "name": "npm"}')
    (bin_ / "yarn").symlink_to(program(packages / "corepack/dist/yarn.js", script))
    write(packages / "corepack/package.json", '{"name": "corepack", "version": "0.20.0"}')
    program(tmp_path / "go/bin/go", script)
    write(tmp_path / "go/VERSION", "go1.21.5\ntime 2023\n")
    program(tmp_path / "jdk/bin/java", script)
    write(tmp_path / "jdk/release", 'IMPLEMENTOR="x"\nJAVA_VERSION="17.0.9"\n')
    program(tmp_path / "pyenv/shims/python3", script)
    write(tmp_path / "pyenv/version", "3.11.7\n")
    git = program(bin_ / "git", script)
    os.utime(git, (1_700_000_000, 1_700_000_000))
    program(bin_ / "ruby", script)
    write(place / ".tool-versions", "ruby 3.2.2\nyarn 1.22.19\n")
    path = [bin_, tmp_path / "go/bin", tmp_path / "jdk/bin", tmp_path / "pyenv/shims"]
    environment = {"PATH": os.pathsep.join(map(str, path))}
    assert tool_versions(environment, place) == {
        "python": "3.11.7",
        "node": "20.11.0",
        "npm": "10.2.4",
        "yarn": "1.22.19 (.tool-versions)",
        "git": "dated 2023-11-14",
        "go": "1.21.5",
        "java": "17.0.9",
        "ruby": "3.2.2 (.tool-versions)",
    }
    write(place / ".python-version", "3.12.1\n")
    assert tool_versions(environment, place)["python"] == "3.12.1 (.python-version)"
    virtual_environment(place, "3.12.2")
    program(place / ".venv/bin/python3", script)
    activated = {"PATH": f"{place / '.venv/bin'}{os.pathsep}{environment['PATH']}"}
    assert tool_versions(activated, place)["python"] == "3.12.2"
    assert not started.exists()


def test_a_search_path_of_nonsense_costs_no_checkpoint(place: Path) -> None:
    for path in ("", ".", "bin", "\0", "/nowhere", str(place / "code.txt")):
        assert "python in .venv" in tool_versions({"PATH": path}, place)


def test_an_unknown_version_is_said_to_be_one() -> None:
    component = EnvironmentComponent({})

    def state(git: str) -> ComponentState:
        return ComponentState("environment", {"tools": {"git": git}, "variables": []})

    old, new = state("dated 2025-10-07"), state("dated 2026-05-20")
    unknown = "git (version unknown, program file from 2025-10-07)"
    assert component.describe(old) == [f"{unknown}; 0 variable names"]
    [line] = component.restore_notes(old, new)
    assert line == f"{unknown} → (version unknown, program file from 2026-05-20)"
    assert component.restore_notes(old, state("dated 2025-10-07")) == []
