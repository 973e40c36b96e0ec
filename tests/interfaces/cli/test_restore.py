"""`holdfast restore`, `undo` and `redo`: preview, confirmation, paths, what they answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.adapters.local.system import RandomIds
from tests.interfaces.cli.command_line import CommandLine, run

KEYS = [
    "restored_to",
    "safety_checkpoint",
    "operations",
    "created",
    "restored",
    "deleted",
    "skipped",
    "conflicts",
    "verified",
    "compared",
    "elapsed_ms",
    "kept",
    "missing",
    "warnings",
    "remarks",
    "components",
    "git",
    "git_now",
    "dry_run",
]


@pytest.fixture
def saved(cli: CommandLine) -> str:
    """A checkpoint named `good`; after it one file is gone, one changed and one new."""
    identifier = cli.save("it works", "--name", "good")
    (cli.workspace / "README.md").unlink()
    (cli.workspace / "src" / "app.py").write_text("broken\n")
    (cli.workspace / "new.txt").write_text("new\n")
    return identifier


def _state(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): os.readlink(path).encode()
        if path.is_symlink()
        else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if (path.is_symlink() or path.is_file()) and ".holdfast" not in path.parts
    }


@pytest.mark.requirement("CL-1")
def test_the_json_of_a_restore_has_the_promised_shape(cli: CommandLine, saved: str) -> None:
    done = cli.json("restore", "good", "--yes")
    assert list(done) == KEYS
    assert done["restored_to"] == saved
    assert sorted((step["type"], step["path"]) for step in done["operations"]) == [
        ("create", "README.md"),
        ("delete", "new.txt"),
        ("restore", "src/app.py"),
    ]
    assert (done["created"], done["restored"], done["deleted"]) == (1, 1, 1)
    assert (done["skipped"], done["conflicts"], done["kept"]) == ([], [], [])
    assert (done["verified"], done["compared"], done["missing"]) == (True, 3, [])
    assert done["dry_run"] is False
    records = {one["id"]: one["kind"] for one in cli.json("log", "--records")}
    assert records[done["safety_checkpoint"]] == "safety"


@pytest.mark.requirement("RB-1")
def test_a_preview_shows_the_annotations_of_the_target(cli: CommandLine, saved: str) -> None:
    cli.json("annotate", "good", "the login works here")
    assert cli.json("restore", "good", "--dry-run")["annotations"] == ["the login works here"]
    assert "the login works here" in cli("restore", "good", "--dry-run").out


@pytest.mark.requirement("RB-1")
def test_a_dry_run_tells_what_would_be_done_and_does_nothing(cli: CommandLine, saved: str) -> None:
    before, history = _state(cli.workspace), cli.json("log", "--records")
    planned = cli.json("restore", "good", "--dry-run")
    assert list(planned) == KEYS
    assert (planned["dry_run"], planned["safety_checkpoint"]) == (True, None)
    assert planned["verified"] is None
    assert _state(cli.workspace) == before
    assert cli.json("log", "--records") == history
    done = cli.json("restore", "good", "--yes")
    assert planned["operations"] == done["operations"]


def test_a_dry_run_reads_like_this(cli: CommandLine, saved: str) -> None:
    answer = cli("restore", "good", "--dry-run")
    assert answer.status == 0
    assert answer.out == (
        f"Restoring good ({saved[:10]}) would change this:\n"
        "  delete   new.txt\n"
        "  create   README.md\n"
        "  restore  src/app.py\n"
        "3 files (1 created, 1 rewritten, 1 deleted), 31 B to write\n"
        "  3 paths changed since the last checkpoint; "
        "they are saved first, so undo restores them\n"
        "Nothing was changed (dry run).\n"
    )
    assert answer.err == ""
    assert "warning" not in cli("restore", "good", "--yes").err


@pytest.mark.requirement("RB-8", "CL-3")
def test_more_than_one_file_needs_a_yes_and_nothing_is_done_without(
    cli: CommandLine, saved: str
) -> None:
    before = _state(cli.workspace)
    answer = cli("restore", "good", "--json")
    assert answer.status == 5
    assert answer.error["code"] == "needs_confirmation"
    assert "3 files (1 created, 1 rewritten, 1 deleted)" in answer.error["message"]
    assert "--yes" in answer.error["hint"]
    assert cli("restore", "good").status == 5
    assert _state(cli.workspace) == before
    assert cli("restore", "good", "--yes").status == 0


@pytest.mark.requirement("RB-8")
def test_one_file_needs_no_yes(cli: CommandLine, saved: str) -> None:
    assert cli.json("restore", "good", "README.md")["created"] == 1
    assert (cli.workspace / "README.md").read_text() == "hello\n"
    assert (cli.workspace / "new.txt").exists()


@pytest.mark.requirement("RB-8")
def test_undo_and_redo_need_a_yes_as_well(cli: CommandLine, saved: str) -> None:
    wrecked = _state(cli.workspace)
    cli.json("restore", "good", "--yes")
    good = _state(cli.workspace)
    assert cli("undo").status == 5
    assert cli.json("undo", "--yes")["verified"] is True
    assert _state(cli.workspace) == wrecked
    assert cli("redo").status == 5
    assert cli.json("redo", "--dry-run")["dry_run"] is True
    assert list(cli.json("redo", "--yes")) == [*KEYS, "undone"]
    assert _state(cli.workspace) == good


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_nothing_to_undo_or_redo_is_not_found(cli: CommandLine, verb: str) -> None:
    cli.save()
    answer = cli(verb, "--json")
    assert answer.status == 4
    assert answer.error["code"] == "nothing_to_undo"


@pytest.mark.requirement("RB-7")
def test_paths_are_relative_to_where_one_stands(
    cli: CommandLine, saved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cli.workspace / "src")
    done = run("restore", "good", "app.py", "../README.md", "--yes", "--json").json
    assert sorted(step["path"] for step in done["operations"]) == ["README.md", "src/app.py"]
    assert (cli.workspace / "new.txt").exists()


@pytest.mark.requirement("RB-7")
def test_a_directory_may_be_named_in_any_spelling_and_options_may_follow_it(
    cli: CommandLine, saved: str, tmp_path: Path
) -> None:
    (tmp_path / "way").symlink_to(cli.workspace)
    spelling = str(tmp_path / "way" / "src") + "/"
    planned = run("restore", "good", "--dry-run", spelling, "--json", "-C", str(cli.workspace)).json
    assert [step["path"] for step in planned["operations"]] == ["src/app.py"]


@pytest.mark.requirement("RB-7")
def test_the_workspace_itself_means_everything(cli: CommandLine, saved: str) -> None:
    assert len(cli.json("restore", "good", ".", "--dry-run")["operations"]) == 3


@pytest.mark.requirement("RB-7")
def test_a_link_is_restored_itself_not_what_it_points_to(cli: CommandLine, saved: str) -> None:
    (cli.workspace / "link").unlink()
    (cli.workspace / "link").symlink_to("elsewhere")
    done = cli.json("restore", "good", "link")
    assert [step["path"] for step in done["operations"]] == ["link"]
    assert os.readlink(cli.workspace / "link") == "README.md"


@pytest.mark.requirement("RB-7", "CL-3")
@pytest.mark.parametrize(
    "path",
    ["..", "../other", "/etc/passwd", "src/../../x", "", ".git/config", ".holdfast/config.toml"],
)
def test_a_path_outside_the_workspace_or_inside_git_is_a_usage_error(
    cli: CommandLine, saved: str, path: str
) -> None:
    before = _state(cli.workspace)
    answer = cli("restore", "good", path, "--yes", "--json")
    assert answer.status == 2
    assert answer.error["code"] == "usage"
    assert _state(cli.workspace) == before


@pytest.mark.requirement("CL-3")
def test_an_unknown_path_is_not_found(cli: CommandLine, saved: str) -> None:
    answer = cli("restore", "good", "nobody", "--yes", "--json")
    assert answer.status == 4
    assert "'nobody' is neither in that checkpoint nor in the workspace" in answer.error["message"]


@pytest.mark.requirement("CL-3", "RB-2")
def test_the_newest_checkpoint_with_a_deleted_file_is_named(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = cli.workspace / "src" / "app.py"
    app.write_text("older\n")
    cli.save("older", "--session", "one")
    app.write_text("newest\n")
    newest = cli.save("newest", "--session", "two")
    app.unlink()
    cli.save("deleted", "--session", "one")
    cli.save("again", "--session", "three")
    command = f"holdfast restore {newest[:10]} src/app.py"
    for typed in (("src/app.py",), ("HEAD", "src/app.py")):
        error = cli("restore", *typed, "--yes", "--json").error
        assert error["hint"].endswith(command)
    assert cli("restore", "src/nosuch.py", "--json").error["hint"].endswith("holdfast log")
    monkeypatch.chdir(cli.workspace / "src")
    hint = run("restore", "HEAD", "app.py", "--json").error["hint"]
    assert hint.endswith(f"holdfast restore {newest[:10]} app.py")
    assert run(*hint.partition("holdfast ")[2].split()).status == 0
    assert app.read_text() == "newest\n"


@pytest.mark.requirement("RB-2", "CP-12")
def test_a_missing_file_that_another_checkpoint_has_comes_with_the_command(
    cli: CommandLine,
) -> None:
    rules = (cli.workspace / ".gitignore").read_text()
    (cli.workspace / ".gitignore").write_text("")
    saved = cli.save("not ignored yet")
    (cli.workspace / ".gitignore").write_text(rules)
    cli.save("ignored", "--name", "good")
    (cli.workspace / ".env").unlink()
    (cli.workspace / "README.md").unlink()
    command = f"holdfast restore {saved[:10]} .env"
    for how in ("--dry-run", "--yes"):
        lines = cli("restore", "good", how).out.splitlines()
        assert f"  to bring back .env: {command}" in lines
    assert cli(*command.split()[1:]).status == 0
    assert (cli.workspace / ".env").read_text() == "KEY=1\n"


@pytest.mark.requirement("CP-12", "CL-3")
@pytest.mark.parametrize("path", ["local.env", "cache", "cache/one/two"])
def test_a_path_that_is_left_out_is_said_to_be_so_instead_of_missing(
    cli: CommandLine, path: str
) -> None:
    (cli.workspace / ".gitignore").write_text("*.env\ncache/\n")
    (cli.workspace / "local.env").write_text("present")
    (cli.workspace / "cache/one").mkdir(parents=True)
    cli("checkpoint", "why", "--name", "ignoring")
    answer = cli("restore", "ignoring", path, "--yes", "--json")
    assert answer.status == 4
    assert "ignored (.gitignore:" in answer.error["message"]
    assert "nor in the workspace" not in answer.error["message"]
    assert "holdfast status --skipped" in answer.error["hint"]


@pytest.mark.requirement("RB-7")
def test_a_path_that_is_not_utf_8_comes_out_of_json_and_goes_back_in(cli: CommandLine) -> None:
    name = b"caf\xe9-\xff\n"
    odd = os.path.join(os.fsencode(cli.workspace), name)
    with open(odd, "wb") as file:
        file.write(b"one")
    cli.save("with an odd name", "--name", "odd")
    with open(odd, "wb") as file:
        file.write(b"two")
    answer = cli.process("diff", "--json")
    answer.out.encode("ascii")
    told = answer.json["changes"][0]["path"]
    assert os.fsencode(told) == name
    restored = cli.process("restore", "odd", told, "--json").json
    assert [os.fsencode(step["path"]) for step in restored["operations"]] == [name]
    with open(odd, "rb") as file:
        assert file.read() == b"one"


@pytest.mark.requirement("CL-3")
def test_what_is_in_the_way_is_refused_and_with_best_effort_skipped_and_listed(
    cli: CommandLine, saved: str
) -> None:
    os.mkfifo(cli.workspace / "README.md")
    refused = cli("restore", "good", "--yes", "--json")
    assert refused.status == 5
    assert refused.error["code"] == "restore_conflict"
    assert "README.md" in refused.error["message"]
    assert cli("restore", "good").err.startswith("error: restoring README.md would lose it: ")
    assert cli.json("restore", "good", "--dry-run")["conflicts"][0]["path"] == "README.md"
    done = cli("restore", "good", "--yes", "--best-effort", "--json")
    assert done.status == 3
    assert [skip["path"] for skip in done.json["skipped"]] == ["README.md"]
    assert (cli.workspace / "src" / "app.py").read_text() == "def main():\n    return 1\n"


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    "reference", ["nobody", "HEAD~9", "@{10 years ago}", "@{soon}", "approved"]
)
def test_a_reference_to_nothing_is_not_found(cli: CommandLine, saved: str, reference: str) -> None:
    answer = cli("restore", reference, "--json")
    assert answer.status == 4
    assert answer.error["code"] == "unknown_reference"
    assert answer.error["hint"]


@pytest.mark.requirement("CL-3")
def test_an_ambiguous_beginning_of_an_id_names_the_candidates(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = iter(f"abcd{number:016x}" for number in range(10))
    monkeypatch.setattr(RandomIds, "new_id", lambda *_: next(given))
    same = [cli.save(), cli.save()]
    answer = cli("show", "abcd", "--json")
    assert answer.status == 4
    assert answer.error["code"] == "ambiguous_reference"
    for identifier in same:
        assert identifier[:10] in answer.error["message"]


def test_the_plain_answer_says_how_to_get_back(cli: CommandLine, saved: str) -> None:
    answer = cli("restore", "good", "--yes")
    *steps, done, back = answer.out.splitlines()
    assert steps == ["  delete   new.txt", "  create   README.md", "  restore  src/app.py"]
    assert done.startswith(f"✓ Restored to good ({saved[:10]}): 3 files (1 created, 1 rewritten,")
    assert ", verified 3 files, " in done
    assert back.endswith("back: holdfast undo --yes")
    assert cli("undo", "--yes").out.splitlines()[-1].endswith("back: holdfast redo --yes")


@pytest.mark.requirement("RB-14")
def test_left_out_files_that_are_gone_are_listed_in_one_line(cli: CommandLine) -> None:
    cli("config", "set", "max_file_size", "1000")
    (cli.workspace / ".gitignore").write_text(".env\n*.log\n")
    (cli.workspace / ".env").write_text("SECRET=1\n")
    (cli.workspace / "model.bin").write_bytes(b"x" * 2000)
    cli.save("it works", "--name", "good")
    for name in (".env", "model.bin", "README.md"):
        (cli.workspace / name).unlink()
    answer = cli("restore", "good", "--yes")
    assert "  missing, and not in the checkpoint: .env, model.bin" in answer.out.splitlines()
    assert ", verified 1 file, " in answer.out
    again = cli("restore", "good", "--yes")
    assert "  missing, and not in the checkpoint: .env, model.bin" in again.out.splitlines()
    assert {gone["path"]: gone["reason"] for gone in cli.json("restore", "good")["missing"]} == {
        ".env": "ignored (.gitignore:1: .env)",
        "model.bin": "larger than max_file_size (2000 bytes)",
    }


@pytest.mark.requirement("RB-2")
def test_a_restore_with_nothing_to_do_says_so_and_is_undone_by_the_next_undo(
    cli: CommandLine, saved: str
) -> None:
    cli.json("restore", "good", "--yes")
    before = cli.json("log")
    assert cli("restore", "good").out == (
        f"✓ Nothing to do: the workspace already matches good ({saved[:10]})\n"
    )
    assert "this path already matches good" in cli("restore", "good", "README.md").out
    answer = cli.json("restore", "good")
    assert answer["operations"] == []
    assert answer["safety_checkpoint"] is not None
    assert cli.json("log") == before
    for _ in range(3):
        assert cli.json("undo")["operations"] == []
    assert len(cli.json("undo", "--yes")["operations"]) > 1
    cli.json("restore", "good", "--yes")
    assert "would change nothing in the workspace" in cli("restore", "good", "--dry-run").out


@pytest.mark.requirement("RB-3", "CL-3")
def test_a_restore_that_can_do_nothing_does_not_say_that_all_is_well(cli: CommandLine) -> None:
    saved = cli.save("good", "--name", "good")
    (cli.workspace / "README.md").unlink()
    os.mkfifo(cli.workspace / "README.md")
    answer = cli("restore", "good", "--yes", "--best-effort")
    assert answer.status == 3
    assert answer.out.splitlines() == [
        f"✗ Nothing was changed: the differences from good ({saved[:10]}) cannot be restored",
        "  not restored: README.md (the current version is not saved: special file (named pipe))",
    ]
    assert answer.err == "", "nothing was saved first either"


def test_a_long_restore_is_reported_in_short_and_as_json_whole(cli: CommandLine) -> None:
    for number in range(30):
        (cli.workspace / f"{number:02}").touch()
    cli.save("many", "--name", "many")
    for number in range(30):
        (cli.workspace / f"{number:02}").unlink()
    assert len(cli("restore", "many", "--dry-run").out.splitlines()) == 34
    assert len(cli.json("restore", "many", "--dry-run")["operations"]) == 30
    told = cli("restore", "many", "--yes").out.splitlines()
    assert told[20] == "  … and 10 more (--json lists all)"
    assert len(told) == 23


@pytest.mark.requirement("RB-8")
def test_without_a_yes_it_says_what_is_about_to_happen(cli: CommandLine, saved: str) -> None:
    said = cli("restore", "good").err
    assert said.startswith(
        f"error: restoring good ({saved[:10]}) needs confirmation: 3 files (1 created, "
    )
    cli.json("restore", "good", "--yes")
    what = "the restore to good (just now)"
    assert cli("undo").err.startswith(f"error: undoing {what} needs confirmation: 3 files")
    assert cli("undo", "--dry-run").out.startswith(f"Undoing {what} would change this:\n")
    cli.json("undo", "--yes")
    assert cli("redo").err.startswith(f"error: redoing {what} needs confirmation: 3 files")
