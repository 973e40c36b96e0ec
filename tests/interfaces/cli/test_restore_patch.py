"""`holdfast restore --patch`: each change is asked about, and all of them are one restore."""

from __future__ import annotations

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen

pytestmark = pytest.mark.requirement("RB-13", "RB-7")

OLD = [f"line {number}\n" for number in range(1, 41)]
NEW = ["FIRST\n", *OLD[1:19], "MIDDLE\n", *OLD[20:-1], "LAST\n"]


@pytest.fixture
def changed(cli: CommandLine) -> CommandLine:
    """Three hunks in each of two files, one file gone, one that is new, a binary one."""
    for name in ("one.txt", "two.txt"):
        (cli.workspace / name).write_text("".join(OLD))
    cli.save("before", "--name", "before")
    for name in ("one.txt", "two.txt"):
        (cli.workspace / name).write_text("".join(NEW))
    (cli.workspace / "README.md").unlink()
    (cli.workspace / "data.bin").write_bytes(b"\0other")
    (cli.workspace / "new.py").write_text("new\n")
    return cli


def _answer(cli: CommandLine, answers: str, *arguments: str) -> str:
    """Type one answer after the other; what was shown."""
    shown = ""
    with Screen(cli.workspace, "restore", "--patch", *arguments) as screen:
        for letter in answers:
            shown += screen.read_until("[y,n,a,d,q,?]?")
            screen.type(f"{letter}\n")
        shown += screen.finish()
    assert screen.status == 0, shown
    return shown


def _text(cli: CommandLine, name: str) -> list[str]:
    return (cli.workspace / name).read_text().splitlines(keepends=True)


def test_only_what_was_agreed_to_is_restored_and_undone_at_once(changed: CommandLine) -> None:
    before = {p: p.read_bytes() for p in changed.workspace.iterdir() if p.is_file()}
    # README.md, data.bin, new.py as a whole; then three hunks in each of two files.
    shown = _answer(changed, "ynnnynyny")
    assert "Restored to before" in "".join(Screen.plain(shown))
    assert _text(changed, "one.txt") == [*NEW[:19], OLD[19], *NEW[20:]]
    assert _text(changed, "two.txt") == [OLD[0], *NEW[1:-1], OLD[-1]]
    assert (changed.workspace / "README.md").read_text() == "hello\n"
    assert (changed.workspace / "data.bin").read_bytes() == b"\0other"
    assert (changed.workspace / "new.py").exists()
    assert changed("undo", "--yes").status == 0
    assert {p: p.read_bytes() for p in changed.workspace.iterdir() if p.is_file()} == before


def test_the_same_hunk_of_another_file_stays(changed: CommandLine) -> None:
    _answer(changed, "nnnynnny" + "n")
    assert _text(changed, "one.txt") == [OLD[0], *NEW[1:]]
    assert _text(changed, "two.txt") == [*NEW[:19], OLD[19], *NEW[20:]]


def test_all_and_none_of_the_rest_of_a_file(changed: CommandLine) -> None:
    _answer(changed, "nnnad", "before")
    assert _text(changed, "one.txt") == OLD
    assert _text(changed, "two.txt") == NEW


def test_quitting_keeps_what_was_agreed_to(changed: CommandLine) -> None:
    _answer(changed, "yq")
    assert (changed.workspace / "README.md").exists()
    assert _text(changed, "one.txt") == NEW


def test_ctrl_c_changes_nothing_of_what_was_agreed_to(changed: CommandLine) -> None:
    with Screen(changed.workspace, "restore", "--patch") as screen:
        screen.read_until("[y,n,a,d,q,?]?")
        screen.type("y\n")
        screen.read_until("[y,n,a,d,q,?]?")
        screen.type("\x03")
        lines = Screen.plain(screen.finish().replace("\r", ""))
    assert screen.status == 130
    assert lines[-1] == "error: cancelled; nothing was changed"
    assert not (changed.workspace / "README.md").exists()


def test_nothing_agreed_to_changes_nothing(changed: CommandLine) -> None:
    records = len(changed.json("log", "--records"))
    assert "Nothing was changed." in _answer(changed, "q")
    assert len(changed.json("log", "--records")) == records


def test_a_path_alone_is_compared_with_head(changed: CommandLine) -> None:
    shown = _answer(changed, "?yd", "one.txt")
    assert "a - restore this change and all later ones in the file" in shown
    assert "two.txt" not in shown
    assert _text(changed, "one.txt") == [OLD[0], *NEW[1:]]


def test_every_change_is_shown_before_it_is_asked_about(cli: CommandLine) -> None:
    cli.save("before", "--name", "before")
    (cli.workspace / "README.md").unlink()
    (cli.workspace / "link").unlink()
    (cli.workspace / "link").symlink_to("elsewhere")
    (cli.workspace / "new.py").write_text("line\n" * 60)
    (cli.workspace / "run.sh").chmod(0o700)
    lines = Screen.plain(_answer(cli, "nnnn").replace("\r", ""))
    assert lines[:3] == ["removed README.md", "@@ -1 +0,0 @@", "-hello"]
    assert "modified link (symbolic link)" in lines
    assert {"-README.md", "+elsewhere"} <= set(lines)
    assert lines.count("+line") == 38
    assert "… 22 more lines" in lines
    assert "modified run.sh (mode 0755 → 0700)" in lines


@pytest.mark.parametrize(
    ("answers", "mode", "text"),
    [
        ("nyyy", 0o755, OLD),
        ("ynnn", 0o644, NEW),
        ("ynyn", 0o644, [*NEW[:19], OLD[19], *NEW[20:]]),
        ("a", 0o644, OLD),
        ("yyyy", 0o644, OLD),
        ("na", 0o755, OLD),
    ],
)
def test_the_mode_of_a_file_is_asked_about_beside_its_hunks(
    cli: CommandLine, answers: str, mode: int, text: list[str]
) -> None:
    file = cli.workspace / "one.txt"
    file.write_text("".join(OLD))
    file.chmod(0o644)
    cli.save("before", "--name", "before")
    file.write_text("".join(NEW))
    file.chmod(0o755)
    assert "Restore the mode 0644" in _answer(cli, answers)
    assert file.stat().st_mode & 0o777 == mode
    assert _text(cli, "one.txt") == text
    cli.json("undo", "--yes")
    assert (file.stat().st_mode & 0o777, _text(cli, "one.txt")) == (0o755, NEW)


def test_the_mode_of_one_file_and_hunks_of_another_go_together(changed: CommandLine) -> None:
    for name in ("one.txt", "two.txt"):
        (changed.workspace / name).chmod(0o755)
    before = {p: p.read_bytes() for p in changed.workspace.iterdir() if p.is_file()}
    _answer(changed, "nnn" + "yd" + "nyd")
    assert (changed.workspace / "one.txt").stat().st_mode & 0o777 == 0o644
    assert (changed.workspace / "two.txt").stat().st_mode & 0o777 == 0o755
    before[changed.workspace / "two.txt"] = "".join([OLD[0], *NEW[1:]]).encode()
    assert {p: p.read_bytes() for p in changed.workspace.iterdir() if p.is_file()} == before


def test_a_file_and_a_directory_that_took_each_others_place_come_back_as_a_whole(
    cli: CommandLine,
) -> None:
    (cli.workspace / "was_dir").mkdir()
    (cli.workspace / "was_dir" / "inside").write_text("inside\n")
    (cli.workspace / "was_file").write_text("file\n")
    cli.save("before", "--name", "before")
    (cli.workspace / "was_dir" / "inside").unlink()
    (cli.workspace / "was_dir").rmdir()
    (cli.workspace / "was_dir").write_text("now a file\n")
    (cli.workspace / "was_file").unlink()
    (cli.workspace / "was_file").mkdir()
    (cli.workspace / "was_file" / "new").write_text("new\n")
    shown = _answer(cli, "ny")
    assert "with everything in it" in shown
    assert "(deletes the directory and everything in it)" in shown
    assert "Delete it" not in shown
    assert (cli.workspace / "was_dir").read_text() == "now a file\n"
    assert (cli.workspace / "was_file").read_text() == "file\n"


@pytest.mark.requirement("CL-3")
def test_it_needs_a_terminal(changed: CommandLine) -> None:
    answer = changed("restore", "--patch", "--json")
    assert answer.status == 2
    assert "needs a terminal" in answer.error["message"]
    assert changed("restore", "HEAD", "one.txt", "--patch", "--hunk", "1").status == 2


CLOSE = ["FIRST\n", OLD[1], "THIRD\n", *OLD[3:5], "SIXTH\n", *OLD[6:]]


def _split(cli: CommandLine, answers: str, *arguments: str) -> str:
    """As `_answer`, where each question may offer to split."""
    shown = ""
    with Screen(cli.workspace, "restore", "--patch", "before", "one.txt", *arguments) as screen:
        for letter in answers:
            shown += screen.read_until(",a,d,q,?]?")
            screen.type(f"{letter}\n")
        shown += screen.finish()
    assert screen.status == 0, shown
    return shown


@pytest.fixture
def close(changed: CommandLine) -> CommandLine:
    """Three changes in one hunk."""
    (changed.workspace / "one.txt").write_text("".join(CLOSE))
    return changed


@pytest.mark.parametrize(
    ("answers", "lines"),
    [
        ("syny", [OLD[0], OLD[1], CLOSE[2], *OLD[3:]]),
        ("snyd", [CLOSE[0], *OLD[1:5], CLOSE[5], *OLD[6:]]),
        ("syyy", OLD),
        ("sa", OLD),
        ("snnn", CLOSE),
        ("n", CLOSE),
    ],
)
def test_a_hunk_can_be_split(close: CommandLine, answers: str, lines: list[str]) -> None:
    shown = _split(close, answers)
    assert ("hunk 1 of 3" in shown) == ("s" in answers)
    assert _text(close, "one.txt") == lines
    if lines != CLOSE:
        assert close("undo", "--yes").status == 0
        assert _text(close, "one.txt") == CLOSE


def test_hunks_that_were_not_split_are_restored_beside_parts_of_one(close: CommandLine) -> None:
    (close.workspace / "one.txt").write_text("".join([*CLOSE[:-1], "LAST\n"]))
    _split(close, "synny")
    assert _text(close, "one.txt") == [OLD[0], *CLOSE[1:-1], OLD[-1]]


def test_a_hunk_with_one_change_is_not_offered_to_be_split(changed: CommandLine) -> None:
    assert ",s," not in _answer(changed, "q")


def test_the_number_of_context_lines_is_heeded(close: CommandLine) -> None:
    assert "hunk 1 of 3" in _split(close, "ynn", "-U", "0")
    assert _text(close, "one.txt") == [OLD[0], *CLOSE[1:]]
    refused = close("restore", "before", "one.txt", "-U", "0")
    assert refused.status == 2
    assert "-U requires --patch or --hunk" in refused.err
