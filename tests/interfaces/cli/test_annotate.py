"""`holdfast annotate`: words about a checkpoint, and `show` that tells them."""

from __future__ import annotations

import pytest

from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("SE-7", "CL-1", "CL-5")


def test_what_was_written_is_shown_with_its_checkpoint(cli: CommandLine) -> None:
    saved = cli.save("a state", "--name", "green")
    answer = cli("annotate", "green", "all tests pass", "--author", "ada")
    assert answer.status == 0
    assert "Annotated" in answer.out
    noted = cli.json("annotate", saved[:8], "only the slow ones fail", "--edit", "1")
    assert noted["checkpoint"] == saved
    assert (noted["number"], noted["revision"], noted["text"]) == (1, 2, "only the slow ones fail")
    cli.json("annotate", "green", "line one\nline two")
    shown = cli("show", "green").out
    assert "only the slow ones fail" in shown
    assert "all tests pass" not in shown
    assert "line two" in shown
    listed = cli.json("show", "green")["annotations"]
    assert [one["number"] for one in listed] == [1, 2]


def test_the_text_can_come_from_standard_input(cli: CommandLine) -> None:
    cli.save()
    assert cli("annotate", "HEAD", "-", stdin="from a pipe\n").status == 0
    assert cli.json("show")["annotations"][0]["text"] == "from a pipe"


def test_an_edit_stays_that_of_its_author_unless_another_is_named(cli: CommandLine) -> None:
    cli.save()
    cli.json("annotate", "HEAD", "tests pass", "--author", "ada")
    assert cli.json("annotate", "HEAD", "some pass", "--edit", "1")["author"] == "ada"
    assert "ada" in cli("show").out
    assert cli.json("annotate", "HEAD", "none", "--edit", "1", "--author", "bo")["author"] == "bo"


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("x" * 1_000_000, 1_000_000), ("x" * 100_001 + "\n", 100_001), ("ä" * 60_000, 120_000)],
)
def test_a_text_on_standard_input_that_is_too_long_is_reported_by_its_size(
    cli: CommandLine, text: str, size_bytes: int
) -> None:
    cli.save()
    answer = cli("--json", "annotate", "HEAD", "-", stdin=text)
    assert answer.status == 2
    said = f"the annotation has {size_bytes} bytes; the limit is 100000"
    assert answer.error["message"] == said
    assert "shorten it" in answer.error["hint"]
    assert cli.json("show")["annotations"] == []


def test_standard_input_that_does_not_end_is_not_waited_for(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.interfaces.cli import standard_input

    monkeypatch.setattr(standard_input, "READ_AT_MOST", 10)
    cli.save()
    answer = cli("--json", "annotate", "HEAD", "-", stdin="x" * 11)
    assert (answer.status, "longer than 10 characters" in answer.error["message"]) == (2, True)
    assert cli("annotate", "HEAD", "-", stdin="x" * 10).status == 0


def test_bytes_on_standard_input_that_are_no_text_are_kept_as_escapes(cli: CommandLine) -> None:
    import subprocess

    from tests.interfaces.cli.command_line import command

    cli.save()
    done = subprocess.run(
        command("annotate", "HEAD", "-"), cwd=cli.workspace, input=b"caf\xe9\n", check=False
    )
    assert done.returncode == 0
    assert cli.json("show")["annotations"][0]["text"] == "caf\\udce9"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("HEAD",), 2, "missing"),
        ((), 2, "missing"),
        (("HEAD", "two", "words"), 2, "unexpected argument"),
        (("nothing", "x"), 4, "nothing"),
        (("HEAD", "x", "--edit", "9"), 4, "no annotation 9"),
        (("HEAD", "x" * 100_001), 2, "100001 bytes"),
    ],
)
def test_a_mistake_is_named_with_the_way_out(
    cli: CommandLine, arguments: tuple[str, ...], status: int, words: str
) -> None:
    cli.save()
    answer = cli("--json", "annotate", *arguments)
    assert answer.status == status
    assert words in answer.error["message"]
    assert cli.json("show")["annotations"] == []


def test_escapes_in_an_annotation_do_not_reach_the_terminal(cli: CommandLine) -> None:
    cli.save()
    cli("annotate", "HEAD", "red \x1b[31m text")
    assert "\x1b" not in cli("show").out
