"""`holdfast completion`: what a real shell offers, and that the scripts say what the parsers do."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from holdfast.interfaces.cli.arguments import make_parser
from holdfast.interfaces.cli.completion_scripts import SHELLS, WORDS, Kind, verbs
from holdfast.interfaces.cli.verbs import VERBS
from tests.interfaces.cli.command_line import CommandLine, run

# Completes one command line as bash does when a person presses Tab.
_PRESS_TAB = """
eval "$(holdfast completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
_holdfast
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Bash:
    """A bash that has `holdfast` on its path and the completion loaded."""

    def __init__(self, directory: Path, programs: Path) -> None:
        self._directory = directory
        programs.mkdir()
        program = programs / "holdfast"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m holdfast "$@"\n')
        program.chmod(0o755)
        self._environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def offers(self, *words: str) -> list[str]:
        """What is offered for the last of the words."""
        bash = shutil.which("bash")
        assert bash, "the tests need bash"
        done = subprocess.run(
            [bash, "--norc", "-c", _PRESS_TAB, "bash", "holdfast", *words],
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return [line for line in done.stdout.splitlines() if line]


@pytest.fixture
def bash(cli: CommandLine, tmp_path: Path) -> Bash:
    return Bash(cli.workspace, tmp_path / "programs")


@pytest.mark.requirement("CL-1")
def test_bash_completes_commands_and_options(bash: Bash) -> None:
    assert bash.offers("") == [*VERBS, "help"]
    assert bash.offers("che") == ["checkpoint", "check"]
    assert bash.offers("restore", "--d") == ["--dry-run"]
    assert "--name" in bash.offers("checkpoint", "why", "-")
    assert bash.offers("--sess") == ["--session"]
    assert bash.offers("help", "und") == ["undo"]
    assert bash.offers("completion", "") == list(SHELLS)


@pytest.mark.requirement("CL-1")
def test_bash_completes_checkpoints_by_name_and_id(bash: Bash, cli: CommandLine) -> None:
    first = cli.save("one", "--name", "before-refactor")
    cli.save("two", "--name", "with space")
    for verb in ("restore", "show", "diff", "delete"):
        offered = bash.offers(verb, "")
        assert offered[:3] == ["HEAD", "HEAD~1", "initial"]
        assert {"before-refactor", first[:10]} <= set(offered)
    assert bash.offers("restore", "bef") == ["before-refactor"]
    assert bash.offers("diff", "HEAD", first[:4]) == [first[:10]]
    assert bash.offers("restore", "with") == ["with\\ space"]
    assert bash.offers("log", "--session", "") == [cli.json("status")["session_id"]]


@pytest.mark.requirement("CL-1")
def test_bash_completes_paths_also_of_what_is_gone(bash: Bash, cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "src" / "app.py").unlink()
    (cli.workspace / "src" / "new.py").touch()
    assert sorted(bash.offers("restore", "HEAD", "src/")) == ["src/app.py", "src/new.py"]
    assert bash.offers("diff", "--", "src/a") == ["src/app.py"]
    (cli.workspace / "src" / "new.py").unlink()
    (cli.workspace / "src").rmdir()
    assert bash.offers("restore", "HEAD", "s") == ["src/"]
    assert bash.offers("restore", "HEAD", "src/") == ["src/app.py"]
    assert bash.offers("-C", "em") == ["empty"]


@pytest.mark.requirement("CL-1")
def test_bash_completes_in_the_workspace_and_session_of_the_command_line(
    bash: Bash, cli: CommandLine, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "only-there").touch()
    run("-C", str(other), "checkpoint", "elsewhere", "--name", "elsewhere")
    cli.save("x", "--name", "mine", "--session", "two")
    assert bash.offers("-C", str(other), "restore", "else") == ["elsewhere"]
    assert bash.offers("-C", str(other), "restore", "HEAD", "") == ["only-there"]
    assert bash.offers("--session", "two", "show", "mi") == ["mine"]
    assert bash.offers("restore", "mi") == ["mine"]


@pytest.mark.requirement("CL-1")
def test_bash_completes_settings_and_leaves_free_text_alone(bash: Bash) -> None:
    actions = ["list", "get", "set", "add", "remove", "unset", "edit", "trust"]
    assert bash.offers("config", "") == actions
    assert bash.offers("config", "add", "inc") == ["include"]
    assert bash.offers("key", "") == ["list", "add", "change", "remove"]
    assert bash.offers("sessions", "") == ["rename", "end", "archive", "delete"]
    assert bash.offers("config", "set", "inc") == ["include"]
    assert bash.offers("checkpoint", "") == []
    assert bash.offers("checkpoint", "x", "--name", "") == []
    assert bash.offers("restore", "") == [], "there is no checkpoint yet"


@pytest.mark.requirement("CL-1")
@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_knows_every_command_and_option(shell: str) -> None:
    script = run("completion", shell).out
    for verb in VERBS:
        module = import_module(f"holdfast.interfaces.cli.commands.{verb}")
        for action in make_parser(verb, module.configure, width=80)._actions:
            for name in action.option_strings:
                as_fish = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                about = [line for line in script.splitlines() if verb in line]
                assert any(name in line or as_fish in line for line in about), (verb, name)


@pytest.mark.requirement("CL-1")
@pytest.mark.parametrize("verb", ["config", "key", "sessions"])
def test_zsh_and_fish_say_what_each_action_does(verb: str) -> None:
    actions = import_module(f"holdfast.interfaces.cli.commands.{verb}").ACTIONS
    zsh, fish = run("completion", "zsh").out, run("completion", "fish").out
    [offered] = [
        line.partition("found=(")[2]
        for line in zsh.partition("_holdfast_actions() {")[2].splitlines()
        if line.strip().startswith(f"{verb})")
    ][:1]
    assert shlex.split(offered.removesuffix(") ;;")) == [
        f"{action}:{said}" for action, said in actions.items()
    ]
    assert "_describe action found" in zsh
    begin = f"complete -c holdfast -n '__holdfast_word {verb} 0' -a"
    for action, said in actions.items():
        escaped = said.replace("'", "\\'")
        assert f"{begin} {action} -d '{escaped}'" in fish


def test_every_kind_of_word_is_known_to_completion() -> None:
    for verb in VERBS:
        module = import_module(f"holdfast.interfaces.cli.commands.{verb}")
        for action in make_parser(verb, module.configure, width=80)._actions:
            assert action.option_strings or action.metavar in WORDS
    assert {verb.name: verb.words for verb in verbs()}["restore"] == (Kind.CHECKPOINT, Kind.PATH)


@pytest.mark.requirement("CL-1", "CL-3")
def test_what_is_asked_while_typing_changes_nothing_and_never_fails(
    cli: CommandLine, holdfast_home: Path
) -> None:
    for kind in ("checkpoints", "sessions", "paths"):
        assert run("completion", kind, "-C", str(cli.workspace)).status == 0
        assert cli("completion", kind) == run("completion", kind, "-C", "/nonexistent")
    assert list(holdfast_home.iterdir()) == []
    cli.save()
    before = sorted(path for path in holdfast_home.rglob("*"))
    assert cli("completion", "paths", "--", "src/").out == "src/app.py\t\n"
    assert cli.json("completion", "sessions")[0]["description"] == "active"
    assert sorted(path for path in holdfast_home.rglob("*")) == before


@pytest.mark.requirement("CL-3")
def test_a_shell_that_is_not_known_is_a_usage_error() -> None:
    assert run("completion").status == 2
    answer = run("completion", "tcsh", "--json")
    assert answer.status == 2
    assert answer.error["hint"] == "supported shells: bash, zsh, fish"
    assert run("completion", "bash", "zsh").status == 2
    assert run("completion", "bash", "--json").json["script"] == run("completion", "bash").out


INSTALLED = {
    "bash": "data/bash-completion/completions/holdfast",
    "zsh": "data/zsh/site-functions/_holdfast",
    "fish": "config/fish/completions/holdfast.fish",
}


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("BASH_COMPLETION_USER_DIR", raising=False)
    return tmp_path


@pytest.mark.requirement("CL-1")
@pytest.mark.parametrize("shell", SHELLS)
def test_install_writes_the_file_where_the_shell_looks_and_twice_is_once(
    own_home: Path, shell: str
) -> None:
    target = own_home / INSTALLED[shell]
    dry = run("completion", shell, "--install", "--dry-run")
    assert (dry.status, dry.out) == (0, f"would write {target}\n")
    assert not target.exists()
    first = run("completion", shell, "--install")
    assert (first.status, first.err) == (0, "")
    assert first.out.startswith(f"✓ Wrote {target}\n  ")
    assert target.read_text() == run("completion", shell).out
    written = target.stat()
    assert run("completion", shell, "--install").out == f"✓ {target} is up to date.\n"
    assert target.stat().st_ino == written.st_ino
    assert [one.name for one in target.parent.iterdir()] == [target.name]


def test_install_renews_an_old_file_and_takes_the_shell_from_the_environment(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    target = own_home / INSTALLED["fish"]
    target.parent.mkdir(parents=True)
    target.write_text("# holdfast: completion for fish. Made by: an older version\n")
    answer = run("completion", "--install", "--json").json
    assert answer == {"shell": "fish", "file": str(target), "changed": True, "dry_run": False}
    assert target.read_text() == run("completion", "fish").out
    assert run("completion", "--install", "--json").json["changed"] is False


def test_install_keeps_a_file_that_holdfast_did_not_write(own_home: Path) -> None:
    target = own_home / INSTALLED["bash"]
    target.parent.mkdir(parents=True)
    target.write_text("my own\n")
    answer = run("completion", "bash", "--install")
    assert answer.status == 5
    assert "was not written by Holdfast" in answer.err
    assert target.read_text() == "my own\n"


@pytest.mark.parametrize(
    "typed",
    [["bash", "--dry-run"], ["tcsh", "--install"], ["--install"]],
    ids=["dry run of nothing", "unknown shell", "no shell known"],
)
def test_install_needs_a_shell_that_it_knows(
    own_home: Path, typed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHELL", raising=False)
    assert run("completion", *typed).status == 2
    assert list(own_home.iterdir()) == []


def test_the_installed_file_of_bash_completes(own_home: Path, bash: Bash) -> None:
    assert run("completion", "bash", "--install").status == 0
    script = f"source {own_home / INSTALLED['bash']}; complete -p holdfast"
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True
    )
    assert "_holdfast" in done.stdout
