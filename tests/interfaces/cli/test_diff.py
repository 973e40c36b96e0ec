"""`holdfast diff`: which sides, which paths, and each of its forms."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine, run


def _paths(answer: Any) -> dict[str, str]:
    return {change["path"]: change["change"] for change in answer["changes"]}


@pytest.mark.requirement("CL-1")
def test_the_sides_are_head_and_workspace_or_what_is_named(cli: CommandLine) -> None:
    readme = cli.workspace / "README.md"
    first = cli.save("first")
    (cli.workspace / "second.txt").write_text("2\n")
    second = cli.save("second")
    readme.unlink()
    assert cli.json("diff") == {
        "from": second,
        "to": "workspace",
        "changes": [{"path": "README.md", "change": "removed"}],
    }
    assert _paths(cli.json("diff", "HEAD~1")) == {"README.md": "removed", "second.txt": "added"}
    between = cli.json("diff", first[:8], "HEAD")
    assert (between["from"], between["to"]) == (first, second)
    assert _paths(between) == {"second.txt": "added"}
    assert _paths(cli.json("diff", "HEAD", first)) == {"second.txt": "removed"}


@pytest.mark.requirement("CL-1")
def test_renames_are_found_and_name_both_paths(cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "data.bin").rename(cli.workspace / "src" / "data.bin")
    assert cli.json("diff")["changes"] == [
        {"path": "src/data.bin", "change": "renamed", "old_path": "data.bin"}
    ]
    assert cli("diff").out == "renamed data.bin → src/data.bin (content unchanged)\n"


def test_paths_behind_two_dashes_limit_it(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save()
    for name in ("README.md", "src/app.py", "run.sh"):
        (cli.workspace / name).write_text("changed\n")
    monkeypatch.chdir(cli.workspace / "src")
    assert _paths(run("diff", "--json", "--", ".").json) == {"src/app.py": "modified"}
    assert _paths(run("diff", "HEAD", "--json", "--", "../run.sh").json) == {"run.sh": "modified"}
    assert len(run("diff", "--json", "--", "..").json["changes"]) == 3
    assert run("diff", "--", "/etc").status == 2


@pytest.mark.requirement("CL-2")
def test_for_people_it_is_words_and_lines(cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "src" / "app.py").write_text("def main():\n    return 2\n")
    (cli.workspace / "src" / "app.py").chmod(0o600)
    (cli.workspace / "data.bin").write_bytes(b"\0" * 2000)
    (cli.workspace / "run.sh").chmod(0o644)
    (cli.workspace / "empty").rmdir()
    (cli.workspace / "link").unlink()
    (cli.workspace / "link").write_text("now a file\n")
    assert cli("diff").out == (
        "modified data.bin\n"
        "  binary, 256 B → 2.0 kB\n"
        "removed empty/ (directory)\n"
        "removed link (symbolic link)\n"
        "-README.md\n"
        "added link\n"
        "@@ -0,0 +1 @@\n"
        "+now a file\n"
        "modified run.sh (mode 0755 → 0644)\n"
        "modified src/app.py (mode 0644 → 0600)\n"
        "@@ -1,2 +1,2 @@\n"
        " def main():\n"
        "-    return 1\n"
        "+    return 2\n"
    )
    assert cli("diff", "-U0", "--", "src").out.endswith(
        "@@ -2 +2 @@ def main():\n-    return 1\n+    return 2\n"
    )


def test_notebooks_are_shown_by_cell(cli: CommandLine) -> None:
    book = cli.workspace / "book.ipynb"
    book.write_text(_notebook("x = 1", "y = 2"))
    cli.save()
    book.write_text(_notebook("x = 1", "y = 3"))
    assert cli("diff").out == (
        "modified book.ipynb\n"
        "@@ cell 2 (code) modified @@\n"
        "-y = 2\n"
        "\\ No newline at end of file\n"
        "+y = 3\n"
        "\\ No newline at end of file\n"
    )
    told = cli.json("diff", "--patch")["changes"][0]
    assert told["content"] == "notebook"
    assert [(cell["new_index"], cell["change"]) for cell in told["cells"]] == [(1, "modified")]
    assert "cell 2 (code) modified" in cli("diff", "--side-by-side").out


@pytest.mark.requirement("CP-12")
def test_what_one_side_left_out_is_not_reported_as_removed_or_new_without_the_reason(
    cli: CommandLine,
) -> None:
    (cli.workspace / "notes.log").write_text("n\n")
    (cli.workspace / "out").mkdir()
    (cli.workspace / "out" / "a").write_text("a\n")
    (cli.workspace / "really").write_text("r\n")
    cli.save("old", "--name", "old")
    (cli.workspace / "really").unlink()
    (cli.workspace / "README.md").unlink()
    os.mkfifo(cli.workspace / "README.md")
    (cli.workspace / ".holdfastignore").write_text("*.log\nout/\n")
    reasons = {
        "notes.log": "ignored (.holdfastignore:1: *.log)",
        "out/a": "ignored (.holdfastignore:2: out/)",
        "README.md": "special file (named pipe)",
        "really": None,
    }
    for number, ends in enumerate((["old"], ["old", "new"], ["new", "old"])):
        told = cli.json("diff", *ends)["changes"] + cli.json("diff", *ends, "-p")["changes"]
        found = [(one["path"], one.get("left_out")) for one in told]
        assert all(found.count(item) == 2 for item in reasons.items()), found
        for form in ([], ["--side-by-side"]):
            shown = " ".join(cli("diff", *ends, *form).out.split())
            word, when = ("added", "then") if ends[0] == "new" else ("removed", "now")
            for path, reason in reasons.items():
                assert f"{word} {path}" in shown
                assert reason is None or f"(left out {when}: {reason})" in shown
            assert shown.count("left out") == 3
        if number == 0:
            cli.save("new", "--name", "new")


@pytest.mark.requirement("CL-2")
def test_what_changed_in_a_notebook_besides_its_sources_is_reported_in_each_view(
    cli: CommandLine,
) -> None:
    book = cli.workspace / "book.ipynb"
    book.write_text(_notebook("x = 1", "y = 2"))
    cli.save()
    plain = book.read_text()
    ran_again = plain.replace('"outputs": []', '"outputs": [{"output_type": "stream"}]', 1)
    told = {
        ran_again: "cell 1 (code) outputs changed",
        plain.replace('"metadata": {}', '"metadata": {"a": 1}'): "notebook metadata changed",
        plain.replace(", ", ","): "no cell changed, only the formatting of the file",
    }
    for text, words in told.items():
        book.write_text(text)
        for form in ([], ["--side-by-side"]):
            assert words in cli("diff", *form).out, form


def _notebook(*sources: str) -> str:
    cells = [
        {"cell_type": "code", "id": str(n), "metadata": {}, "outputs": [], "source": source}
        for n, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.requirement("CL-1")
def test_hunks_are_in_the_json_only_when_asked_for(cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "README.md").write_bytes(b"hello\nworld \xff")
    assert cli.json("diff")["changes"] == [{"path": "README.md", "change": "modified"}]
    told = cli.json("diff", "--patch")["changes"]
    assert told == [
        {
            "path": "README.md",
            "change": "modified",
            "content": "text",
            "hunks": [
                {
                    "number": 1,
                    "id": "4a743d062ae1",
                    "old_start": 1,
                    "old_lines": 1,
                    "new_start": 1,
                    "new_lines": 2,
                    "heading": "",
                    "lines": [" hello", "+world \udcff", "\\ No newline at end of file"],
                }
            ],
        }
    ]


@pytest.mark.requirement("CL-2")
def test_stat_counts_lines(cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "README.md").write_text("one\ntwo\n")
    (cli.workspace / "run.sh").chmod(0o700)
    (cli.workspace / "data.bin").unlink()
    assert cli("diff", "--stat").out == (
        " README.md |     3 ++-\n"
        " data.bin  | binary, 256 B\n"
        " run.sh    | mode 0755 → 0700\n"
        " 3 paths changed, 2 lines added, 1 line removed\n"
    )


def test_names_only_are_one_a_line(cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "README.md").unlink()
    (cli.workspace / "a\nb").write_text("x")
    assert cli("diff", "--name-only").out == "README.md\na\\nb\n"


def test_no_difference_is_no_output(cli: CommandLine) -> None:
    cli.save()
    for form in ([], ["--patch"], ["--name-only"], ["--side-by-side"]):
        assert cli("diff", *form).out == ""


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    "arguments",
    [
        ["HEAD", "HEAD", "HEAD", "--", "x"],
        ["-U", "x"],
        ["-U-1"],
        ["--stat", "--patch"],
        ["-U", "99999999"],
    ],
)
def test_wrong_arguments_are_usage_errors(cli: CommandLine, arguments: list[str]) -> None:
    cli.save()
    answer = cli("diff", "--json", *arguments)
    assert answer.status == 2
    assert answer.error["code"] == "usage"


def test_a_patch_in_a_pipe_is_exact_and_git_takes_it(cli: CommandLine, tmp_path: Path) -> None:
    odd = os.path.join(os.fsencode(cli.workspace), b"t\xc3\xa4b\there \xff.txt")
    with open(odd, "wb") as file:
        file.write(b"\x1b[31m\tred\r\nlast \xff")
    (cli.workspace / "gone.txt").write_text("gone\n")
    (cli.workspace / "moved.txt").write_text("moved\n" * 5)
    cli.save("old", "--name", "old")
    before = tmp_path / "before"
    subprocess.run(["cp", "-a", cli.workspace, before], check=True)
    with open(odd, "ab") as file:
        file.write(b"\nmore\n")
    (cli.workspace / "gone.txt").unlink()
    (cli.workspace / "new.sh").write_text("#!/bin/sh\n")
    (cli.workspace / "new.sh").chmod(0o755)
    (cli.workspace / "moved.txt").rename(cli.workspace / "src" / "moved.txt")
    (cli.workspace / "link").unlink()
    (cli.workspace / "link").symlink_to("src/app.py")
    (cli.workspace / "run.sh").chmod(0o644)
    (cli.workspace / "blank").touch()
    patch = cli.process("diff", "--patch").out.encode("utf-8", "surrogateescape")
    subprocess.run(["git", "apply", "-p1", "-"], cwd=before, input=patch, check=True)
    subprocess.run(
        ["diff", "-r", "--no-dereference", "-x.holdfast", before, cli.workspace], check=True
    )
    assert os.stat(before / "new.sh").st_mode & 0o100
    assert not os.stat(before / "run.sh").st_mode & 0o100


@pytest.mark.requirement("CL-5")
def test_a_patch_in_a_pipe_carries_binary_files_forwards_and_back(
    cli: CommandLine, tmp_path: Path
) -> None:
    noise = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(9000))
    contents = {"grown": b"\0short", "shrunk": noise, "gone": b"\0" * 27, "text": b"a text\n"}
    for name, data in contents.items():
        (cli.workspace / name).write_bytes(data)
    cli.save("old", "--name", "old")
    before, after = tmp_path / "before", tmp_path / "after"
    subprocess.run(["cp", "-a", cli.workspace, before], check=True)
    (cli.workspace / "gone").unlink()
    (cli.workspace / "run.sh").unlink()
    (cli.workspace / "run.sh").symlink_to("text")
    changed = {"grown": noise, "shrunk": b"\0", "text": b"\0 no text", "new": bytes(range(53))}
    for name, data in changed.items():
        (cli.workspace / name).write_bytes(data)
    subprocess.run(["cp", "-a", cli.workspace, after], check=True)
    in_between = cli.process("diff", "--patch").out.encode("utf-8", "surrogateescape")
    cli.save("new", "--name", "new")
    stored = cli.process("diff", "old", "new", "--patch").out.encode("utf-8", "surrogateescape")
    assert stored == in_between
    assert cli("diff", "old", "--patch", "--json").status == 0
    for way, wanted in (((), after), (("-R",), cli.workspace)):
        subprocess.run(["git", "apply", *way], cwd=before, input=stored, check=True)
        subprocess.run(
            ["diff", "-r", "--no-dereference", "-x.holdfast", before, wanted], check=True
        )
        cli("restore", "old", "--yes")


@pytest.mark.requirement("CL-2")
def test_side_by_side_shows_old_and_new_in_one_row(cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "src" / "app.py").write_text("def main():\n    return 2\n    # more\n")
    rows = cli("diff", "--side-by-side").out.splitlines()
    assert rows[0] == "modified src/app.py"
    cells = [row.split() for row in rows[2:]]
    assert cells[0] == ["1", "def", "main():", "1", "def", "main():"]
    assert cells[1] == ["2-", "return", "1", "2+", "return", "2"]
    assert cells[2] == ["3+", "#", "more"]


def test_the_new_target_of_a_link_is_no_file_without_a_newline(cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "link").unlink()
    (cli.workspace / "link").symlink_to("elsewhere")
    assert cli("diff").out == "modified link (symbolic link)\n-README.md\n+elsewhere\n"
    assert "No newline" in cli("diff", "--patch").out, "git apply needs it"


@pytest.mark.requirement("CL-2")
def test_tabs_stay_tabs_in_lines_and_columns_keep_their_distance(cli: CommandLine) -> None:
    (cli.workspace / "Makefile").write_text("all:\n\tone\ttwo\n")
    cli.save()
    (cli.workspace / "Makefile").write_text("all:\n\tone\tthree\n")
    assert cli("diff").out.endswith("-\tone\ttwo\n+\tone\tthree\n")
    assert "2-         one     two" in cli("diff", "-y").out


@pytest.mark.requirement("CL-7")
def test_a_range_and_paths_need_no_dashes_where_they_mean_one_thing(cli: CommandLine) -> None:
    cli.save("one", "--name", "one")
    (cli.workspace / "README.md").write_text("changed\n")
    (cli.workspace / "src" / "app.py").write_text("changed\n")
    cli.save("two", "--name", "two")
    (cli.workspace / "README.md").write_text("again\n")

    def paths(*arguments: str) -> list[str]:
        return cli("diff", "--name-only", *arguments).out.splitlines()

    assert paths("one..two") == ["README.md", "src/app.py"] == paths("one", "two")
    assert paths("one..") == ["README.md", "src/app.py"]
    assert paths("..one") == ["README.md", "src/app.py"]
    assert paths("one..two", "src") == ["src/app.py"] == paths("one..two", "--", "src")
    assert paths("two", "src") == []
    assert paths("README.md") == ["README.md"] == paths("two", "README.md")
    (cli.workspace / "src" / "app.py").unlink()
    assert paths("one", "src/app.py") == ["src/app.py"]
    wrong = cli("diff", "one", "nowhere", "--json")
    assert (wrong.status, wrong.error["code"]) == (4, "unknown_reference")
    assert cli("diff", "one..nowhere").status == 4


@pytest.mark.requirement("CL-7", "CL-5")
def test_a_word_that_is_a_checkpoint_and_a_path_means_the_checkpoint(cli: CommandLine) -> None:
    cli.save("one", "--name", "src")
    (cli.workspace / "README.md").write_text("changed\n")
    cli.save("two")
    answer = cli("diff", "--name-only", "src")
    assert answer.out == "README.md\n"
    assert answer.err == (
        "note: src is both a checkpoint and a path; for the path: holdfast diff -- src\n"
    )
    said = cli("diff", "--name-only", "src", "--")
    assert (said.out, said.err) == ("README.md\n", "")
    assert cli("diff", "--name-only", "--", "src").out == ""
