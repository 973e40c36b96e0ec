"""`holdfast search`: what it answers, to people and to programs."""

from __future__ import annotations

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("SE-8", "CL-1")


def test_the_json_has_the_promised_shape(cli: CommandLine) -> None:
    made = cli.save("make the login wait", "--name", "login", "--tag", "x")
    found = cli.json("search", "login")
    assert list(found) == [
        "query",
        "hits",
        "suggestions",
        "complete",
        "warnings",
        "elapsed_ms",
    ]
    assert (found["query"], found["complete"], found["warnings"]) == ("login", True, [])
    [hit] = found["hits"]
    assert hit["checkpoint"]["id"] == made
    assert hit["session_id"] == hit["checkpoint"]["session_id"]
    assert hit["score"] > 0
    assert hit["matches"] == [
        {"field": "name", "text": "login", "spans": [[0, 5]]},
        {"field": "reasoning", "text": "make the login wait", "spans": [[9, 14]]},
    ]


@pytest.mark.requirement("CL-5")
def test_the_words_of_the_command_are_one_query(cli: CommandLine) -> None:
    one = cli.save("about login")
    two = cli.save("about login and timeout")
    assert [hit["checkpoint"]["id"] for hit in cli.json("search", "login", "timeout")["hits"]] == [
        two
    ]
    assert len(cli.json("search", "login", "-n", "1")["hits"]) == 1
    found = cli.json("search", "login", "kind:manual", "after:1h")["hits"]
    assert {hit["checkpoint"]["id"] for hit in found} == {one, two}


def test_people_see_what_matched(cli: CommandLine) -> None:
    made = cli.save("make the login wait", "--name", "first")
    answer = cli("search", "login")
    assert answer.status == 0
    lines = answer.out.splitlines()
    assert lines[0].startswith(f"{made} first  ")
    assert lines[0].endswith("  manual  make the login wait")
    assert lines[1:] == []
    coloured = cli.process("search", "login", environment={"FORCE_COLOR": "1"}).out
    assert "make the \x1b[1;33mlogin\x1b[0m wait" in coloured


def test_nothing_found_is_no_error_and_says_how_to_look(cli: CommandLine) -> None:
    cli.save("something")
    answer = cli("search", "nowhere")
    assert (answer.status, answer.out, answer.err) == (
        0,
        "",
        "nothing found\n  try fewer words, or browse: holdfast log --graph\n",
    )
    cli.save("nowhere else", "--session", "other")
    cli.save("here", "--session", "mine")
    answer = cli("search", "nowhere", "--session", "mine")
    assert (answer.status, answer.out) == (0, "")
    assert answer.err.startswith("nothing found in this session\n  try fewer words")
    assert "nowhere else" in cli("search", "nowhere").out
    for odd in ('"', "foo:bar", "(((", "AND", "-- -x"):
        assert cli("search", *odd.split()).status == 0


def test_without_a_query_the_newest_come_first_and_filters_work_alone(cli: CommandLine) -> None:
    made = [cli.save(f"step {n}", "--tag", "odd" if n % 2 else "even") for n in range(3)]
    for nothing in ((), ("",), ("   ",), ("kind:",)):
        hits = cli.json("search", *nothing)["hits"]
        assert [hit["checkpoint"]["id"] for hit in hits] == made[::-1]
    assert len(cli.json("search", "-n", "2")["hits"]) == 2
    hits = cli.json("search", "tag:even")["hits"]
    assert [hit["checkpoint"]["id"] for hit in hits] == [made[2], made[0]]
    session_id = hits[0]["session_id"]
    cli.save("elsewhere", "--session", "other")
    hits = cli.json("search", f"session:{session_id}")["hits"]
    assert [hit["checkpoint"]["id"] for hit in hits] == made[::-1]


@pytest.mark.parametrize("query", ['"', "☃", "(((", "* *"])
def test_nothing_but_punctuation_finds_nothing_and_says_why(cli: CommandLine, query: str) -> None:
    cli.save("something")
    answer = cli("search", query)
    assert (answer.status, answer.out) == (0, "")
    assert "nothing found" in answer.err
    assert "no letters or digits" in answer.err
    found = cli.json("search", query)
    assert (found["hits"], len(found["warnings"])) == ([], 1)


def test_the_number_has_to_be_one(cli: CommandLine) -> None:
    cli.save("something")
    for wrong in ("0", "-1", "many", "1.5"):
        assert cli("search", "x", "-n", wrong).status == 2
    assert cli("search", "something", "-n", "9" * 40).status == 0


@pytest.mark.requirement("RB-12")
def test_every_session_is_searched_unless_one_is_named(cli: CommandLine) -> None:
    mine = cli.save("about login", "--session", "mine")
    theirs = cli.json("checkpoint", "about login", "--session", "other")["id"]
    for everywhere in ((), ("--all-sessions",)):
        found = cli.json("search", "login", *everywhere)["hits"]
        assert {hit["checkpoint"]["id"] for hit in found} == {mine, theirs}
    assert "  other  about login" in cli("search", "login").out
    found = cli.json("search", "login", "--session", "mine")["hits"]
    assert [hit["checkpoint"]["id"] for hit in found] == [mine]
    assert cli("search", "login", "--session", "nobody").status == 4


def test_no_hit_suggests_queries_that_find_something(cli: CommandLine) -> None:
    cli.save("refreshing the tokens before the login")
    answer = cli("search", "tokns")
    assert (answer.status, answer.out) == (0, "")
    assert answer.err == "nothing found\n  did you mean: holdfast search tokens\n"
    assert cli.json("search", "tokns")["suggestions"] == ["tokens"]
    assert cli.json("search", "login banana")["suggestions"] == ["login"]
    for near in cli.json("search", "tokns logn")["suggestions"]:
        assert cli.json("search", near)["hits"]
    assert cli.json("search", "zzzzz")["suggestions"] == []


def test_what_was_found_cannot_play_tricks_on_a_terminal(cli: CommandLine) -> None:
    cli.save("login \x1b[31mred\x1b[0m \u202eback")
    answer = cli("search", "login")
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out


def test_a_word_that_other_tools_use_leads_here(cli: CommandLine) -> None:
    for word in ("find", "grep"):
        assert "holdfast search" in cli(word, "login").err


@pytest.mark.requirement("SE-8")
def test_a_mistyped_word_proposes_a_form_of_the_one_that_was_meant(cli: CommandLine) -> None:
    cli.save("refreshing the session cookies")
    answer = cli("search", "refesh")
    assert answer.status == 0
    assert "did you mean: holdfast search refreshing" in answer.err


@pytest.mark.requirement("SE-8")
def test_mistyped_short_words_and_several_words_are_mended_word_by_word(cli: CommandLine) -> None:
    cli.save("refreshing the tokens before the login")
    cli.save("the cookies of a session")

    def proposed(query: str) -> list[str]:
        return list(cli.json("search", query)["suggestions"])

    assert proposed("tokn") == ["tokens"]
    assert proposed("refresing tokn")[0] == "refreshing tokens"
    assert proposed("refresing zzzzz") == ["refreshing"]
    assert proposed('kind:manual  "before the"  tokn') == ['kind:manual  "before the"  tokens']
    # No checkpoint has both words, so each is proposed without the other.
    assert proposed("tokn cokies") == ["tokens", "cookies"]
    for query in ("tokn", "refresing tokn", "tokn cokies"):
        assert all(cli.json("search", near)["hits"] for near in proposed(query))


def test_each_fact_is_shown_once(cli: CommandLine) -> None:
    place = cli.workspace
    call = {"tool_name": "Bash", "tool_input": {"command": "rm README.md"}, "tool_use_id": "one"}
    for name in ("PreToolUse", "PostToolUse"):
        event = {"session_id": "s1", "cwd": str(place), "hook_event_name": name, **call}
        answer = call_hook("claude-code", event, place)
        assert answer.status == 0, answer
        (place / "README.md").unlink(missing_ok=True)
    cli.save("it was about something\n\nand a second paragraph about the login")
    shown = cli("search", "README").out.splitlines()
    headings = [place for place, line in enumerate(shown) if not line.startswith(" ")]
    for begin, end in zip(headings, [*headings[1:], len(shown)], strict=True):
        assert sum("README.md" in line for line in shown[begin:end]) == 1, shown
    assert sum("rm README.md" in shown[place] for place in headings) == 2
    longer = cli("search", "login").out.splitlines()
    assert longer[1].startswith("    reason: ")
    assert "paragraph about the login" in longer[1]
