"""`holdfast name`: a name and tags for a checkpoint that is already there."""

from __future__ import annotations

import pytest

from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("CL-7")


def test_a_checkpoint_is_named_renamed_and_unnamed(cli: CommandLine) -> None:
    made = cli.save("something")
    cli.save("something else", "--name", "taken")
    assert cli.json("name", made, "works")["name"] == "works"
    assert cli.json("show", "works")["id"] == made
    assert cli.json("rename", "works", "works-again")["name"] == "works-again"
    assert cli("show", "works").status == 4
    answer = cli("name", made, "taken", "--json")
    assert answer.status == 2
    assert "already has a checkpoint named 'taken'" in answer.error["message"]
    assert cli("rename", "works-again", "works").out == f"✓ Named {made} works\n"
    assert cli("name", "works", "--remove").out == f"✓ Removed the name of {made}\n"
    assert cli.json("show", made)["name"] is None
    assert cli("name", made, "HEAD").status == 2
    assert cli("check").status == 0


def test_tags_come_and_go(cli: CommandLine) -> None:
    made = cli.save("something", "--tag", "old")
    told = cli.json("name", "HEAD", "--tag", "new", "--tag", "more", "--untag", "old")
    assert (told["id"], told["tags"]) == (made, ["new", "more"])
    assert cli.json("show", made)["tags"] == ["new", "more"]
    assert cli.json("show", made)["reasoning"] == "something"
    assert cli("name", "HEAD", "--untag", "more").out == f"✓ Tagged {made} (tags: new)\n"
    assert cli("name", "HEAD", "--untag", "new").out == f"✓ Tagged {made} (tags: none)\n"


@pytest.mark.requirement("SE-8")
def test_a_new_name_is_found_and_the_old_one_is_not(cli: CommandLine) -> None:
    made = cli.save("something", "--name", "before")
    assert cli.json("search", "before")["hits"]
    cli.json("name", made, "afterwards", "--tag", "nightly")
    assert cli.json("search", "before")["hits"] == []
    for query in ("afterwards", "tag:nightly", "is:named"):
        assert [hit["checkpoint"]["id"] for hit in cli.json("search", query)["hits"]] == [made]


def test_a_named_checkpoint_does_not_expire(cli: CommandLine) -> None:
    cli.json("config", "set", "retention.manual", "{most = 1}")
    named = cli.save("one")
    cli.save("two")
    cli.save("three")
    cli.json("name", named, "stays")
    cli("cleanup", "--yes")
    assert named in [one["id"] for one in cli.json("log")]


def test_what_is_missing_is_said(cli: CommandLine) -> None:
    cli.save("something")
    assert "missing NAME" in cli("name", "HEAD").err
    assert cli("name", "HEAD", "x", "--remove").status == 2
    assert cli("name", "nowhere", "x").status == 4


@pytest.mark.requirement("CL-3")
def test_a_name_in_front_of_an_id_is_refused_and_nothing_is_renamed(cli: CommandLine) -> None:
    cli.save("one", "--name", "good")
    other = cli.save("two")
    error = cli("name", "good", other[:10], "--json").error
    assert error["hint"].endswith(f"holdfast name {other[:10]} good")
    assert cli.json("show", "good")["name"] == "good"


@pytest.mark.requirement("CL-3")
def test_a_word_alone_that_is_no_checkpoint_misses_the_checkpoint(cli: CommandLine) -> None:
    cli.save()
    error = cli("name", "good", "--json").error
    assert error["message"] == "missing REF: which checkpoint should be named 'good'?"
    assert error["hint"].endswith("holdfast name HEAD good")
    assert cli("name", "HEAD", "--json").error["message"] == "missing NAME"
