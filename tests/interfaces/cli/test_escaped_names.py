"""Names with newlines and control characters are shown escaped, whatever command shows them."""

from __future__ import annotations

import pytest

from tests.interfaces.cli.command_line import CommandLine

NAME = "we\nird\x1b[31m.py"
SHOWN = "we\\nird\\x1b[31m.py"


@pytest.mark.requirement("CL-2")
def test_no_command_lets_a_name_break_a_line_or_obey(cli: CommandLine) -> None:
    cli.save("before", "--name", "before")
    (cli.workspace / NAME).write_text("one\n")
    said = [
        cli("status"),
        cli("diff"),
        cli("diff", "--stat"),
        cli("restore", "before", "--dry-run"),
    ]
    cli.save("with it")
    said += [
        cli("show", "--files"),
        cli("show", "HEAD:."),
        cli("restore", "before"),
        cli("undo"),
    ]
    for answer in said:
        assert answer.status == 0, answer
        assert SHOWN in answer.out, answer
    said.append(cli("search", "path:we"))  # a piece of a text, in one line
    wrong = cli("show", f"before:{NAME}")
    assert (wrong.status, SHOWN in wrong.err) == (4, True)
    for answer in (*said, wrong):
        assert "\x1b" not in answer.out + answer.err
        assert "we\n" not in answer.out + answer.err
    assert cli.json("log", NAME)[0]["reasoning"] == "with it"
