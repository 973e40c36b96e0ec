"""Before a verb runs: help, global options, wrong words, and what is imported."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import __version__
from holdfast.interfaces.cli.verbs import TOPICS, VERBS, verbs_known_as
from tests.interfaces.cli.command_line import CommandLine, run
from tests.project.repository import commands

OTHER_WORDS = {
    word: " ".join(verbs_known_as(word))
    for verb in VERBS.values()
    for word in verb.known_as.split()
} | {"version": "--version"}
HEAVY = {"apsw", "blake3", "pygments", "rich", "pyfastcdc", "backports.zstd"}


@pytest.mark.requirement("CL-1")
def test_help_all_names_every_command_and_every_command_has_a_file() -> None:
    page = run("help", "all")
    assert (page.status, page.err) == (0, "")
    assert VERBS.keys() == commands().keys()
    for verb in VERBS:
        assert f"\n  {verb} " in page.out


@pytest.mark.requirement("CL-1")
def test_the_first_page_shows_about_a_dozen_commands_in_groups_and_no_plumbing() -> None:
    page = run("--help").out
    shown = re.findall(r"^  ([a-z]+) {2,}\S", page, re.MULTILINE)
    assert 10 <= len(shown) == len(set(shown)) <= 14
    assert set(shown) < VERBS.keys()
    assert shown[0] == "undo"
    assert not {"hook", "daemon", "mcp", "key", "completion"} & set(shown)
    assert len(re.findall(r"^[A-Z].*:$", page, re.MULTILINE)) >= 4
    assert len(page.splitlines()) <= 40
    assert "holdfast help all" in page


def test_help_all_has_the_options_of_every_command_and_the_aliases() -> None:
    page = run("help", "all").out
    for text in ("-C DIR", "--session ID", "--json", "--quiet", "save = checkpoint", *TOPICS):
        assert text in page


@pytest.mark.requirement("CL-1")
@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_command_has_an_example_and_the_options_of_every_command(verb: str) -> None:
    page = run(verb, "--help")
    assert (page.status, page.err) == (0, "")
    assert page.out.startswith(f"usage: holdfast {verb}")
    assert f"  $ holdfast {verb}" in page.out
    for option in ("-C DIR", "--session ID", "--json"):
        assert option in page.out
    assert max(len(line) for line in page.out.splitlines()) <= 100


def test_help_can_be_asked_for_in_three_ways() -> None:
    assert run("help", "diff").out == run("diff", "--help").out == run("-h", "diff").out
    assert run("help").out == run("--help").out


def test_the_version_is_shown() -> None:
    assert run("--version").out == f"holdfast {__version__}\n"


@pytest.mark.requirement("CL-3")
def test_no_command_at_all_is_a_usage_error_that_shows_the_overview() -> None:
    answer = run()
    assert (answer.status, answer.out) == (2, "")
    assert "usage: holdfast" in answer.err
    assert run("--json").error["code"] == "usage"


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("typed", "meant"), [("chekpoint", "checkpoint"), ("stauts", "status"), *OTHER_WORDS.items()]
)
def test_a_wrong_command_gets_a_suggestion(typed: str, meant: str) -> None:
    answer = run(typed, "--json")
    assert answer.status == 2
    assert answer.error["hint"].startswith("did you mean: ")
    for name in meant.split():
        assert f"holdfast {name}" in answer.error["hint"]


@pytest.mark.requirement("CL-1")
def test_the_overview_says_that_undo_is_for_anything_that_happened_and_begins_with_it() -> None:
    page = run("--help").out
    line = next(line for line in page.splitlines() if line.startswith("  undo "))
    assert "the last change (an agent's command, your edits, a restore)" in line
    assert page.partition("\nExamples:\n")[2].startswith("  holdfast undo\n")


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("version", "did you mean: holdfast --version"),
        ("recover", "did you mean: holdfast undo or holdfast restore"),
        ("rollback", "did you mean: holdfast undo or holdfast restore"),
        ("revert", "did you mean: holdfast undo or holdfast restore"),
    ],
)
def test_words_for_going_back_lead_to_undo_and_restore(typed: str, hint: str) -> None:
    assert run(typed, "--json").error["hint"] == hint


@pytest.mark.requirement("CL-1")
def test_the_options_of_every_command_come_before_or_after_the_verb(project: Path) -> None:
    before = run("-C", str(project), "--json", "--session", "one", "checkpoint", "first")
    after = run("checkpoint", "second", f"-C{project}", "--json", "--session=one")
    assert before.json["session_id"] == after.json["session_id"] == "one"
    assert after.json["parent"] == before.json["id"]


@pytest.mark.requirement("CL-3")
def test_an_option_that_does_not_exist_is_a_usage_error_in_both_forms(cli: CommandLine) -> None:
    plain = cli("log", "--nonsense")
    assert (plain.status, plain.out) == (2, "")
    assert plain.err == (
        "error: unknown option for log: --nonsense\nhint: see: holdfast log --help\n"
    )
    assert cli("log", "--nonsense", "--json").error["code"] == "usage"


@pytest.mark.requirement("PF-7")
def test_only_the_module_of_the_chosen_verb_is_imported() -> None:
    loaded = _modules_after("main(['status', '--help'])")
    chosen = {name for name in loaded if name.startswith("holdfast.interfaces.cli.commands.")}
    assert chosen == {"holdfast.interfaces.cli.commands.status"}
    assert loaded & HEAVY == set()


@pytest.mark.requirement("PF-7")
def test_plain_output_needs_neither_rich_nor_pygments(project: Path) -> None:
    where = ["-C", str(project)]
    calls = [
        f"main({['checkpoint', 'x', *where]!r})",
        f"main({['log', *where]!r})",
        f"main({['status', *where]!r})",
        f"main({['diff', *where]!r})",
    ]
    assert _modules_after("; ".join(calls)) & {"rich", "pygments"} == set()


def _modules_after(calls: str) -> set[str]:
    program = (
        "import sys\n"
        "from holdfast.interfaces.cli.main import main\n"
        f"{calls}\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(child.stderr.split())


FIRST_OF_A_COMMAND = "holdfast.interfaces.cli.arguments"
"""What is loaded first when Ctrl-C can be unwound."""


def _version_with(beforehand: str) -> subprocess.CompletedProcess[str]:
    """`holdfast --version` in a process of its own, where `beforehand` has run; `loading(name)`
    of it is called for each module that is about to be read."""
    program = (
        "import os, signal, sys\n"
        "sys.argv = ['holdfast', '--version']\n"
        "def interrupt(*_):\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "def loading(name): pass\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        loading(name)\n"
        f"{beforehand}\n"
        "from holdfast.__main__ import run\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.exit(run())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.mark.requirement("CL-3")
def test_ctrl_c_while_any_module_of_the_command_line_is_loading_ends_without_a_word() -> None:
    named = _version_with("def loading(name): sys.stderr.write(name + ' ')").stderr.split()
    before = named[: named.index(FIRST_OF_A_COMMAND)]
    assert "holdfast.interfaces.cli.main" in before
    for place in before:
        done = _version_with(f"def loading(name): name == {place!r} and interrupt()")
        assert (done.returncode, done.stdout, done.stderr) == (130, "", ""), place


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    "there",
    ["type('Dropping', (), {'__del__': interrupt})()", "type('M', (), {'part': Named()})"],
    ids=["dropped by Python", "wrapped by Python"],
)
def test_ctrl_c_while_loading_is_heard_where_python_hides_exceptions(there: str) -> None:
    done = _version_with(
        "Named = type('Named', (), {'__set_name__': interrupt})\n"
        f"def loading(name): name == 'holdfast.interfaces.cli.terminal' and {there}"
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.requirement("CL-3")
def test_a_background_job_that_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    done = _version_with(
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\ndef loading(name): interrupt()"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"holdfast {__version__}\n", "")


@pytest.mark.requirement("CL-3")
def test_nothing_is_loaded_before_ctrl_c_is_taken_but_the_two_modules_of_the_entry() -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from holdfast.__main__ import run\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["holdfast", "holdfast.__main__"]


@pytest.mark.requirement("PF-7")
@pytest.mark.parametrize(
    ("beforehand", "waits"),
    [
        ("pass", False),
        ("import atexit; atexit.register(lambda: None)", True),
        ("sys.setprofile(lambda *_: None)", True),
        (
            "import threading; go = threading.Event(); threading.Thread(target=go.wait).start()",
            True,
        ),
    ],
    ids=["nothing", "a function to call", "a profiler", "a thread"],
)
def test_a_command_ends_at_once_unless_something_waits_for_the_end(
    beforehand: str, waits: bool
) -> None:
    program = (
        "import sys\n"
        "sys.argv = ['holdfast', '--version']\n"
        f"{beforehand}\n"
        "from holdfast.__main__ import run\n"
        "status = run()\n"
        "print('Python goes on')\n"
        "'go' in vars() and go.set()\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    after_it = "Python goes on\n" if waits else ""
    assert (done.stdout, done.stderr) == (f"holdfast {__version__}\n{after_it}", "")


def _log_run_by(program: str) -> subprocess.CompletedProcess[str]:
    """`holdfast log` in a process of its own, with what `program` defines as `run`."""
    lines = (
        program,
        "from holdfast.interfaces.cli.commands import log",
        "log.run = run",
        "import sys",
        "from holdfast.__main__ import run",
        "sys.argv = ['holdfast', 'log']",
        "sys.exit(run())",
    )
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "interrupted by SIGTERM")]
)
def test_a_signal_that_comes_where_python_drops_exceptions_is_heard(
    number: signal.Signals, said: str
) -> None:
    program = (
        "import signal, threading\n"
        "class Dropping:\n"
        "    def __del__(self):\n"
        f"        signal.raise_signal({number:d})\n"
        "def run(invocation):\n"
        "    Dropping()\n"
        "    threading.Event().wait(60)\n"
        "    return 0\n"
    )
    done = _log_run_by(program)
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr.startswith(f"error: {said}\n")
    assert "Traceback" not in done.stderr


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "interrupted by SIGTERM")]
)
def test_a_signal_while_a_class_is_made_is_no_bug(number: signal.Signals, said: str) -> None:
    program = (
        "import signal\n"
        "class Named:\n"
        "    def __set_name__(self, owner, name):\n"
        f"        signal.raise_signal({number:d})\n"
        "def run(invocation):\n"
        "    type('Made', (), {'part': Named()})\n"
        "    return 0\n"
    )
    done = _log_run_by(program)
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr.startswith(f"error: {said}\n")


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    "beforehand",
    [
        "def loading(name): name == 'atexit' and interrupt()",
        "import atexit; atexit.register(interrupt)",
    ],
    ids=["at once", "while Python ends"],
)
def test_ctrl_c_when_everything_is_done_and_reported_changes_nothing_about_it(
    beforehand: str,
) -> None:
    done = _version_with(beforehand)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"holdfast {__version__}\n", "")


@pytest.mark.requirement("CL-7")
def test_an_alias_is_the_command_by_another_name(cli: CommandLine) -> None:
    for alias, verb in (("save", "checkpoint"), ("list", "log"), ("rewind", "restore")):
        assert cli(alias, "--help").out == cli(verb, "--help").out
    made = cli.json("save", "something", "--name", "first")["id"]
    assert [one["id"] for one in cli.json("list")] == [made]
    assert cli.json("rewind", "first", "--yes")["restored_to"] == made


@pytest.mark.requirement("CL-7")
def test_help_explains_commands_and_topics(cli: CommandLine) -> None:
    for verb in VERBS:
        assert cli("help", verb).out == cli(verb, "--help").out
    for topic in TOPICS:
        answer = cli("help", topic)
        assert (answer.status, answer.err) == (0, "")
        assert len(answer.out.splitlines()) > 3
        assert topic in cli("--help").out
    assert cli("help").out == cli("--help").out
    assert "did you mean: holdfast help checkpoint" in cli("help", "chekpoint").err
    assert cli("help", "refrences").err.splitlines() == [
        "error: unknown command or topic: 'refrences'",
        "hint: did you mean: holdfast help references",
    ]


@pytest.mark.requirement("CL-7")
def test_quiet_prints_errors_and_warnings_only(cli: CommandLine) -> None:
    for quiet in ("-q", "--quiet"):
        answer = cli("checkpoint", "something", quiet)
        assert (answer.status, answer.out, answer.err) == (0, "", "")
    (cli.workspace / "README.md").write_text("changed")
    assert cli("--quiet", "restore", "HEAD").out == ""
    assert (cli.workspace / "README.md").read_text() == "hello\n"
    assert len(cli("log", "-q").out.splitlines()) == 2
    assert cli("restore", "nowhere", "-q").err.startswith("error: ")
    assert cli.json("checkpoint", "something", "-q")["id"]


@pytest.mark.requirement("CL-7", "CL-2")
def test_colours_are_chosen_by_an_option(cli: CommandLine) -> None:
    cli.save("something")
    assert "\x1b[" not in cli("log").out
    assert "\x1b[" in cli("log", "--color", "always").out
    assert "\x1b[" in cli("--color=always", "log").out
    plain = cli.process("log", "--color", "never", environment={"FORCE_COLOR": "1"}).out
    assert "\x1b[" not in plain
    assert "seconds ago" in plain or "now" in plain
    wrong = cli("log", "--color", "green")
    assert wrong.status == 2
    assert "--color" in wrong.err
