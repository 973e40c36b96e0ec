"""The interactive view of `holdfast replay`, at a real terminal."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from unicodedata import east_asian_width

import pytest

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Position
from holdfast.domain.intent import make_intent
from holdfast.domain.story import Role
from holdfast.interfaces.cli.screen import KeyReader
from holdfast.interfaces.cli.text_layout import cut
from holdfast.ports.story import NewMessage
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.interfaces.cli.replay_viewer import Viewer, view
from tests.support.hostile_trees import git
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("SE-10")

_TAKEN, _GIVEN_BACK = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def _cells(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _damage(cli: CommandLine, reference: str) -> None:
    with open_workspace(cli.workspace, create=False) as opened, opened.store.hold():
        session = opened.engine.vault.catalog.current_session()
        assert session is not None
        found = opened.engine.resolve(session, reference)
        opened.engine.vault.objects.forget([found.tree])


def test_keys_step_forward_and_back_and_to_the_ends(told: CommandLine) -> None:
    with view(told) as screen:
        viewer = Viewer(screen)
        lines = viewer.see("4/4  restore")
        assert lines[-1] == (
            "q quit  n next  p previous  d diff  f files  m messages  ? help  g/G ends"
        )
        assert any("Restored to first" in line for line in lines)
        viewer.press("p", "3/4  checkpoint", "the third one")
        viewer.press("\x1b[D", "2/4", "the second one", "● 95% sure", "goal speed")
        viewer.press("g", "1/4", "the first one")
        viewer.press("p", "1/4", "this is the first step")
        viewer.press("n", "2/4")
        viewer.press("\x1b[C", "3/4")
        viewer.press("G", "4/4")
        viewer.press("n", "4/4", "this is the last step")
        viewer.press("\x1bOD", "3/4")
        screen.type("q")
        screen.finish()
        assert screen.status == 0


def test_pages_show_lines_files_and_help(told: CommandLine) -> None:
    with view(told, "second") as screen:
        viewer = Viewer(screen)
        viewer.see("2/4", "1 path changed since", "modified  src/app.py")
        viewer.press("d", "-    return 1", "+    return 2")
        viewer.press("p", "1/4", "+    return 1")
        viewer.press("f", "data.bin", "link -> README.md", "empty/", "files")
        viewer.press("m", "no messages for this step")
        viewer.press("?", "Keys", "n →", "next step")
        viewer.press("?", "the first one")
        viewer.press("f", "data.bin")
        viewer.press("\x1b", "the first one")
        screen.type("q")
        screen.finish()
        assert screen.status == 0


def test_a_long_page_scrolls_and_stays_on_the_screen(told: CommandLine) -> None:
    with view(told, "third") as screen:
        viewer = Viewer(screen)
        lines = viewer.see("60 paths changed")
        assert len(lines) == 24
        viewer.press(" ", "made-20")
        viewer.press("\x1b[6~", "made-40")
        viewer.press("\x1b[F", "made-59", "lines 46-66 of 66")
        viewer.press("\x1b[B", "lines 46-66 of 66")
        viewer.press("\x1b[A", "lines 45-65 of 66")
        viewer.press("\x1b[H", "lines 1-21 of 66")
        screen.type("q")
        screen.finish()


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (40, 10), (20, 5), (12, 3), (5, 2)])
def test_it_fits_terminals_of_any_size(told: CommandLine, columns: int, lines: int) -> None:
    (told.workspace / "文字文字文字文字文字文字文字文字文字文字").write_text(
        "wide\t文字" * 40 + "\n"
    )
    told.save("x" * 200 + " 文字" * 40)
    with view(told, columns=columns, lines=lines) as screen:
        viewer = Viewer(screen)
        for key in ("", "d", "f", "m", "?", "p", "n", " "):
            screen.type(key)
            shown = viewer.see("")
            assert len(shown) <= lines
            assert all(_cells(line) <= columns for line in shown), shown
        screen.type("q")
        screen.finish()
        assert screen.status == 0


def test_it_follows_the_size_of_the_terminal(told: CommandLine) -> None:
    with view(told, "third") as screen:
        viewer = Viewer(screen)
        assert len(viewer.see("3/4")) == 24
        screen.resize(60, 12)
        while len(shown := viewer.see("3/4")) != 12:
            pass
        assert shown[-1] == "q quit  n next  p previous  d diff  f files  m messages"
        screen.resize(100, 30)
        while len(viewer.see("3/4")) != 30:
            pass
        screen.type("q")
        screen.finish()


@pytest.mark.parametrize(
    ("ending", "status"),
    [("q", 0), ("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_the_terminal_gets_everything_back_however_it_ends(
    told: CommandLine, ending: str | signal.Signals, status: int
) -> None:
    with view(told) as screen:
        screen.read_until(_TAKEN)
        Viewer(screen).see("4/4")
        assert screen.modes() != screen.modes_before
        if isinstance(ending, str):
            screen.type(ending)
        else:
            screen.send(ending)
        shown = screen.finish()
        assert _GIVEN_BACK in shown
        assert screen.modes() == screen.modes_before
        assert screen.status == status


def test_it_ends_when_the_terminal_is_gone(told: CommandLine) -> None:
    with view(told) as screen:
        Viewer(screen).see("4/4")
        screen.hang_up()
        assert screen.status is not None


def test_stopping_and_going_on_draws_everything_again(told: CommandLine) -> None:
    with view(told) as screen:
        viewer = Viewer(screen)
        viewer.see("4/4")
        # Ctrl-Z must not leave the shell with a terminal that echoes nothing.
        screen.type("\x1a")
        screen.send(signal.SIGCONT)
        screen.read_until(_TAKEN)
        viewer.see("4/4")
        viewer.press("p", "3/4")
        screen.type("q")
        screen.finish()
        assert screen.modes() == screen.modes_before


def test_it_says_what_had_been_said(told: CommandLine) -> None:
    with open_workspace(told.workspace, create=False) as opened:
        session = opened.engine.vault.catalog.current_session()
        assert session is not None
        opened.engine.vault.story.add_messages(
            session,
            [
                NewMessage(Role.USER, "make it\nfaster \x1b[31m", at_ns=10**18),
                NewMessage(Role.ASSISTANT, "done", at_ns=10**18),
            ],
        )
        opened.engine.save(session, make_intent("with words"), position=Position(1, "tool-1"))
    with view(told) as screen:
        viewer = Viewer(screen)
        viewer.see("with words", "tool use tool-1", "message 2")
        viewer.press("m", "1 user, new in this step", "  faster \\x1b[31m", "2 assistant")
        screen.type("q")
        screen.finish()
    step = told.json("replay")["steps"][-1]
    assert (step["message_index"], step["tool_use_id"]) == (1, "tool-1")
    assert [message["content"] for message in step["messages"]] == [
        "make it\nfaster \x1b[31m",
        "done",
    ]
    assert step["messages"][0]["at"] == "2001-09-09T01:46:40.000000+00:00"


def test_a_damaged_step_is_named_and_the_others_are_shown(told: CommandLine) -> None:
    _damage(told, "second")
    with view(told, "second") as screen:
        viewer = Viewer(screen)
        viewer.see("2/4", "the second one", "damaged:", "the other steps can still be shown")
        for key in "df":
            viewer.press(key, "damaged:")
        viewer.press("\x1b", "the second one")
        viewer.press("p", "1/4", "added     src/app.py")
        viewer.press("G", "4/4", "61 paths changed")
        screen.type("q")
        screen.finish()
        assert screen.status == 0
    answer = told("--json", "replay")
    assert answer.status == 3
    damage = [step["damage"] and step["damage"]["code"] for step in answer.json["steps"]]
    assert damage == [None, "object_missing", "object_missing", None]
    assert answer.json["steps"][1]["changes"] is None
    plain = told("replay")
    assert plain.status == 3
    assert plain.out.count("damaged: ") == 2


def test_a_step_that_is_deleted_while_another_process_looks_is_named_and_passed(
    told: CommandLine,
) -> None:
    with view(told) as screen:
        viewer = Viewer(screen)
        viewer.see("4/4  restore")
        assert told("delete", "third", "--yes").status == 0
        viewer.press("p", "3/4  cannot be read", "no longer exists")
        for key in "dfm":
            viewer.press(key, "no longer exists")
        viewer.press("\x1b", "3/4  cannot be read")
        viewer.press("p", "2/4", "the second one")
        screen.type("q")
        screen.finish()
        assert screen.status == 0


def test_a_lost_list_of_components_does_not_hide_what_changed(told: CommandLine) -> None:
    git(told.workspace, "init")
    told.save("with git", "--name", "git")
    [said] = [s for s in told.json("replay")["steps"][-1]["components"] if s["name"] == "git"][:1]
    assert said["said"]
    with open_workspace(told.workspace, create=False) as opened, opened.store.hold():
        session = opened.engine.vault.catalog.current_session()
        assert session is not None
        manifest = opened.engine.resolve(session, "git").components
        assert manifest is not None
        opened.engine.vault.objects.forget([manifest])
    with view(told) as screen:
        Viewer(screen).see("with git", "damaged:", "0 paths changed since")
        screen.type("q")
        screen.finish()
    answer = told("--json", "replay")
    assert answer.status == 3
    last = answer.json["steps"][-1]
    assert (last["changes"], last["components"]) == ([], None)
    assert last["damage"]["code"] == "object_missing"


def test_the_workspace_and_the_temporary_directory_are_as_before(
    told: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "temporary").mkdir()
    before = describe(told.workspace, mtimes=True)
    directory = (told.workspace / "src").stat().st_mtime_ns
    environment = {"TMPDIR": str(tmp_path / "temporary")}
    with Screen(told.workspace, "replay", lines=24, environment=environment) as screen:
        viewer = Viewer(screen)
        viewer.see("4/4")
        for key, words in (("d", "diff"), ("f", "files"), ("p", "3/4")):
            viewer.press(key, words)
        screen.type("q")
        screen.finish()
    assert describe(told.workspace, mtimes=True) == before
    assert (told.workspace / "src").stat().st_mtime_ns == directory
    assert os.listdir(tmp_path / "temporary") == []


def test_a_long_conversation_is_shown_from_its_end(told: CommandLine) -> None:
    with open_workspace(told.workspace, create=False) as opened:
        session = opened.engine.vault.catalog.current_session()
        assert session is not None
        said = [NewMessage(Role.USER, f"number {index}", at_ns=1) for index in range(500)]
        opened.engine.vault.story.add_messages(session, said)
        opened.engine.save(session, make_intent("after it"), position=Position(499))
    with view(told) as screen:
        viewer = Viewer(screen)
        viewer.see("after it")
        viewer.press("m", "499 user", "number 499", "lines 381-401 of 401")
        viewer.press("\x1b[H", "… 300 earlier messages", "number 300")
        screen.type("q")
        screen.finish()


@pytest.mark.parametrize(
    ("parts", "keys"),
    [
        ([b"nq"], ["n", "q"]),
        ([b"\x1b[C\x1b[5~"], ["right", "page up"]),
        ([b"\x1b", b"[", b"C"], ["right"]),
        ([b"\x1b", b""], ["escape"]),
        ([b"\x1b\x1b[D"], ["escape", "left"]),
        ([b"\x1b[1;5C", b"n"], ["n"]),
        ([b"\x1bOA"], ["up"]),
        ([b"\x1b[", b""], ["escape", "["]),
        (["é文".encode()], ["é", "文"]),
        ([b"\xe6\x96", b"\x87n"], ["文", "n"]),
        ([b"\xe6\x96", b""], []),
        ([b"\xe6n\xff\x80n"], ["n", "n"]),
    ],
)
def test_keys_are_understood_in_whatever_parts_they_come(
    parts: list[bytes], keys: list[str]
) -> None:
    reader = KeyReader()
    assert [key for part in parts for key in reader.feed(part)] == keys


def test_a_line_is_cut_by_cells_and_marked() -> None:
    assert cut("short", 5) == "short"
    assert cut("longer", 5) == "long…"
    assert cut("文字文字", 5) == "文字…"
    assert cut("文字", 1) == ""
    assert cut("text", 0) == ""
