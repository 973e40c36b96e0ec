"""Ignored files that a command deletes without naming them come back: each command is announced by
a hook, run by a real bash, and undone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.app.automation.test_named_files import announce, execute, snapshot
from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("CP-13", "RB-11")


@pytest.fixture
def shop(project: Path) -> Path:
    """A project with files that its `.gitignore` leaves out, and that no tool has named yet."""
    (project / ".gitignore").write_text(".env\n*.db\nprivate/\nnode_modules/\n")
    for path in ("shop.db", "src/local.db", "private/key", "private/deep/er/key"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(f"all of {path}\n")
    (project / "node_modules" / "left-pad").mkdir(parents=True)
    (project / "node_modules" / "left-pad" / "index.js").write_text("a tool makes it again\n")
    return project


def saved(project: Path) -> dict[str, tuple[object, ...]]:
    """All that is worth something: what a package manager installs is not."""
    found = snapshot(project)
    return {path: what for path, what in found.items() if not path.startswith("node_modules")}


COMMANDS = [
    "rm -rf *",
    "rm -rf ./*",
    'rm -rf "$PWD"/*',
    'rm -rf "$PWD"/* "$PWD"/.env',
    "rm -rf ./* .[a-z]nv",
    "rm -rf ./* .[!.g]*",
    "rm -r -f -- src private",
    "rm -rf {src,private}",
    "rm -rf src/../private/",
    "rm *.db && rm -rf priv*",
    "cd src && rm -rf ../*",
    "cd / && rm -rf '@'/*",
    "rm -rf '@'/*",
    "rm -rf '@'/../shop/*",
    'for f in *; do rm -rf "$f"; done',
    "bash -c 'rm -rf ./*'",
    "sudo -n true; command rm -rf ./*",
    "mv private ../away",
    "mv * ../",
    "mkdir ../away && mv -t ../away src private shop.db",
    "find . -name .git -prune -o -type f -exec rm {} +",
    "find src private shop.db ! \\( -name '*.py' -o -name '*.md' \\) -type f -delete",
    "git clean -fdxq",
    "git clean -fdX",
    "git clean -ffdx .",
    "git clean -qfdx -e notes.txt -- src private",
    "cd src && git clean -fdxq",
    "git -C src clean -fdxq",
    "git stash -aq",
    "git stash push --all -q",
    "git stash save -a -q 'put aside'",
    "cd src/deep && git stash -aq",
    "find . -type f -not -path './.git/*' -delete",
    "find . -name '*.db' -delete",
    'find . -name "*.$(echo db)" -delete',
    "N='*.db'; find . -name \"$N\" -delete",
    "find . -iname '*.DB' -delete",
    "find private -type f -exec rm {} +",
    "find . -path './private/*' -type f -delete",
    "find . -type d -name private -prune -exec rm -rf {} \\;",
    "find . -name '*.db' -print0 | xargs -0 rm -f",
    'find . -name key | while read f; do rm "$f"; done',
    "rm $(find . -name '*.db')",
    "ls | grep -v src | xargs rm -rf",
    "ls -A private | xargs -I{} rm -rf private/{}",
    "mkdir ../new && rsync -a --delete ../new/ src/ 2>/dev/null || rm -rf src",
    "python3 -c \"import shutil; shutil.rmtree('private')\"",
    "python3 -c \"import glob, os; [os.remove(f) for f in glob.glob('*.db')]\"",
    "python3 - <<'EOF'\nimport shutil\nshutil.rmtree('private')\nEOF",
    "python3 -c 'import os; [os.remove(f) for f in os.listdir() if os.path.isfile(f)]'",
    "node -e \"require('fs').rmSync('private', {recursive: true})\"",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_ignored_files_that_a_command_deletes_come_back(
    shop: Path, cli: CommandLine, command: str
) -> None:
    command = command.replace("@", str(shop))
    before = saved(shop)
    announce(shop, command)
    execute(shop, command)
    assert saved(shop) != before, "this changes nothing"
    cli.json("undo", "--yes")
    assert saved(shop) == before


def test_a_directory_with_the_name_of_a_cache_marker_does_not_make_a_cache(
    shop: Path, cli: CommandLine
) -> None:
    (shop / "private" / "CACHEDIR.TAG").mkdir()
    (shop / "private" / "CACHEDIR.TAG" / "file").write_text("mine")
    before = saved(shop)
    announce(shop, "rm -rf private")
    execute(shop, "rm -rf private")
    cli.json("undo", "--yes")
    assert saved(shop) == before


def test_the_first_command_of_many_is_undone_with_its_ignored_files(
    shop: Path, cli: CommandLine
) -> None:
    before = saved(shop)
    announce(shop, "rm -rf *", "t1")
    execute(shop, "rm -rf *")
    announce(shop, "ls", "t2")
    cli.json("undo", "--yes")
    assert saved(shop) == before


@pytest.mark.parametrize("command", ["rm -rf '@'", "cd .. && rm -rf shop", "rm -rf ../shop"])
def test_a_workspace_that_was_deleted_comes_back_into_an_empty_directory(
    shop: Path, cli: CommandLine, command: str
) -> None:
    command = command.replace("@", str(shop))
    before = saved(shop)
    announce(shop, command)
    execute(shop, command)
    assert not shop.exists()
    shop.mkdir()
    answer = cli("undo", "--yes")
    assert (answer.status, saved(shop)) == (3, before)
    assert "missing, and not in the checkpoint: .git\n" in answer.out


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf node_modules",
        "rm -rf node_modules/*",
        "rm -rf empty",
        "rm notes.txt",
        "rm -rf src/deep",
        "git clean -fd",
        "git clean -fdxn",
        "git stash -u",
        "find . -name '*.pyc' -delete",
        "find . -type f -exec grep price {} +",
        "find . -name key | xargs ls -l",
        "mv notes.txt src",
        "ls *",
        "mkdir -p private",
    ],
)
def test_a_command_that_deletes_no_ignored_file_has_none_captured(
    shop: Path, cli: CommandLine, command: str
) -> None:
    announce(shop, command)
    assert captured_although_ignored(cli) == 0


def captured_although_ignored(cli: CommandLine) -> int:
    counts = cli.json("status", "--skipped")["skipped_counts"]
    return int(counts.get("ignored, but captured because a tool named it", 0))


def test_paths_that_the_user_left_out_are_not_captured(shop: Path, cli: CommandLine) -> None:
    (shop / ".holdfastignore").write_text("private/\n")
    cli.json("config", "set", "ignore", "*.db")
    announce(shop, "rm -rf * .env")
    assert captured_although_ignored(cli) == 1


def test_nothing_more_is_captured_when_the_setting_is_off(shop: Path, cli: CommandLine) -> None:
    cli.json("config", "set", "capture_named_ignored", "off")
    announce(shop, "git clean -fdxq")
    assert captured_although_ignored(cli) == 0


def test_it_is_reported_once_what_is_captured(shop: Path) -> None:
    told = announce(shop, "git clean -fdX", "t1")["systemMessage"]
    files = ".env, private/deep/er/key, private/key, shop.db, src/local.db"
    assert f"now captures {files}, although they are ignored" in told
    assert "because this command may delete them" in told
    assert "captures" not in str(announce(shop, "git clean -fdX", "t2"))


def test_of_very_many_files_the_smallest_are_captured_and_the_rest_is_reported(
    shop: Path, cli: CommandLine
) -> None:
    for number in range(1_000):
        (shop / "private" / f"{number}.log").write_text("line\n")
    (shop / "private" / "largest.log").write_text("line\n" * 1_000)
    before = saved(shop)
    told = announce(shop, "rm -rf private")["systemMessage"]
    assert "does not capture private/deep/er/key, private/key, private/largest.log" in told
    assert "The limit for such files is 1,000 files and 64 MB." in told
    shutil.rmtree(shop / "private")
    assert cli("undo", "--yes").status == 3
    lost = {"private/deep", "private/deep/er", "private/deep/er/key", "private/key"}
    assert before.keys() - saved(shop).keys() == {*lost, "private/largest.log"}
