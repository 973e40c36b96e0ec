"""The parts of the page that only compute, run in a browser as the server sends them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.interfaces.web.page.conftest import Tab

pytestmark = pytest.mark.requirement("WB-3")

Call = Callable[..., Any]
NOON = "2026-11-16T12:00:00+00:00"


@pytest.fixture
def call(tab: Tab) -> Call:
    """Calls a function of one of the page's modules. That needs no view, only the origin."""
    tab.page.goto(f"{tab.server.url}/page/words.js")

    def run(module: str, function: str, *arguments: Any) -> Any:
        return tab.page.evaluate(
            """async ([module, name, given]) =>
                (await import(`/page/${module}.js`))[name](...given)""",
            [module, function, list(arguments)],
        )

    return run


def event(kind: str = "checkpoint", **more: Any) -> dict[str, Any]:
    """An event of the timeline on the first lane."""
    plain = {"type": kind, "at": NOON, "lane": 0, "passing": [], "joins": []}
    return {**plain, "begins": False, "ends": False, **more}


def moment(identifier: str, **more: Any) -> dict[str, Any]:
    plain = {
        "id": identifier,
        "name": None,
        "kind": "manual",
        "parent": None,
        "reasoning": identifier,
        "confidence": 0.8,
        "changed": {"added": 0, "modified": 1, "removed": 0},
        "partial": False,
        "restores_from": None,
        "message_index": None,
        "round": "session_1",
        "is_head": False,
        "is_approved": False,
    }
    return {**plain, **more}


def test_a_message_heads_what_followed_it_and_days_part_the_rows(call: Call) -> None:
    said = {"role": "user", "content": "Do it", "message_index": 0, "lane": None}
    events = [
        event(checkpoint=moment("newest"), begins=True),
        event(checkpoint=moment("middle")),
        event("message", passing=[0], **said),
        event(checkpoint=moment("before"), at="2026-11-14T12:00:00+00:00", ends=True),
    ]
    rows = call("timeline-rows", "timelineRows", events, {"now_ms": 1_794_830_400_000})
    keys = [row["key"] for row in rows]
    assert keys[0].startswith("day ")
    assert keys[1:4] == ["message 0", "newest", "middle"]
    assert keys[4].startswith("day ")
    assert keys[5] == "before"
    assert rows[1]["above"] == []  # nothing is newer than the newest moment
    assert rows[4]["above"] == rows[4]["below"] == [0]  # its lane goes on through the day


def test_notes_and_approvals_are_marks_of_their_moment(call: Call) -> None:
    events = [
        event("approve", approved="kept", message="looks right", begins=True),
        event("annotation", lane=None, passing=[0], checkpoint_id="kept", number=1),
        event("edit", lane=None, passing=[0], status="kept", number=1, reason="Write: a"),
        event(checkpoint=moment("kept"), ends=True),
    ]
    rows = call("timeline-rows", "timelineRows", events)
    assert [row["type"] for row in rows] == ["day", "moment"]
    assert (rows[1]["notes"], rows[1]["approval"]) == (1, "looks right")
    assert rows[1]["above"] == []  # the approval above it has no row of its own


def test_a_persons_edits_are_told_from_the_agents(call: Call) -> None:
    def step(identifier: str, reasoning: str, kind: str = "tool", changed: int = 1) -> Any:
        counts = {"added": 0, "modified": changed, "removed": 0}
        return event(checkpoint=moment(identifier, kind=kind, reasoning=reasoning, changed=counts))

    edit = event("edit", lane=None, passing=[0], status="kept", number=1, reason="Write: a")
    events = [
        step("asked", "Before user message: more", "message"),
        step("after", "After Write: b"),
        edit,
        step("by the agent, with no checkpoint after it", "Before Write: b"),
        step("quick", "Before Bash: touch a", changed=0),
        step("by a person", "Before Bash: rm a", "risky"),
        step("nothing", "Before user message: do", "message", changed=0),
        step("started", "Start of the session", "initial"),
    ]
    rows = call("timeline-rows", "timelineRows", events)
    assert [row["key"] for row in rows if row["isPersons"]] == ["asked", "by a person"]


def test_the_words_that_changed_are_marked_and_colours_stay(call: Call) -> None:
    hunk = {
        "old_start": 3,
        "old_lines": 1,
        "new_start": 3,
        "new_lines": 1,
        "heading": "",
        "lines": ["-def go(x):", "+async def go(x):"],
        "colours": [[["k", 3], ["", 7]], [["k", 5], ["", 1], ["k", 3], ["", 7]]],
    }
    removed, added = call("diff-lines", "hunkLines", hunk)
    assert (removed["old"], removed["new"], added["old"], added["new"]) == (3, None, None, 3)
    assert [piece["text"] for piece in added["pieces"] if piece["changed"]] == ["async", " "]
    assert not any(piece["changed"] for piece in removed["pieces"])
    assert "".join(piece["text"] for piece in added["pieces"]) == "async def go(x):"
    assert [one["class"] for one in added["pieces"] if one["text"] in ("async", "def")] == ["k"] * 2
    rows = call("diff-lines", "sideBySide", [removed, added])
    assert [[side["kind"] for side in row] for row in rows] == [["r", "a"]]


def test_lines_that_have_little_in_common_are_not_marked(call: Call) -> None:
    lines = ["-return 1", "+raise ValueError(message)"]
    hunk = {"old_start": 1, "old_lines": 1, "new_start": 1, "new_lines": 1, "heading": ""}
    found = call("diff-lines", "hunkLines", {**hunk, "lines": lines})
    assert not any(piece["changed"] for line in found for piece in line["pieces"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\u202eb", "a‹202E›b"), ("a\x00b", "a‹0000›b"), ("a\tb", "a\tb"), ("é 日本", "é 日本")],
)
def test_characters_that_hide_others_are_made_visible(call: Call, text: str, shown: str) -> None:
    assert call("format", "visible", text) == shown


def test_durations_are_counted_by_size_with_their_median_and_95th_percentile(call: Call) -> None:
    times = [3.0, *[20.0] * 17, 80.0, 20_000.0]
    found = call("metrics", "durations", times)
    assert (found["count"], found["half"], found["most"]) == (20, 20, 80)
    counted = [bucket["count"] for bucket in found["buckets"]]
    assert (counted[0], counted[2], counted[4], counted[-1]) == (1, 17, 1, 1)
    assert sum(counted) == len(times)
    assert call("metrics", "durations", []) is None


def test_a_missing_line_end_is_shown_beside_its_own_line(call: Call) -> None:
    def line(kind: str) -> dict[str, Any]:
        return {"kind": kind, "old": None, "new": None, "text": kind, "pieces": []}

    both = [line("r"), line("x"), line("a"), line("x")]
    rows = call("diff-lines", "sideBySide", both)
    assert [[side["kind"] for side in row] for row in rows] == [["r", "a"], ["x", "x"]]
    rows = call("diff-lines", "sideBySide", [line("a"), line("x")])
    assert [[side and side["kind"] for side in row] for row in rows] == [[None, "a"], [None, "x"]]


def test_commands_that_ran_since_a_moment_are_quoted_in_full_and_once(call: Call) -> None:
    def ran(identifier: str, reasoning: str) -> Any:
        return event(checkpoint=moment(identifier, kind="tool", reasoning=reasoning))

    events = [
        ran("5", "Before Bash: git push"),
        ran("4", "After Bash: rm -rf src && make"),
        ran("3", "Before Bash: rm -rf src (risky: deletes src)"),
        ran("2", "After Write: a.txt"),
        ran("1", "After Bash: touch a"),
        ran("0", "Before Bash: touch a"),
    ]
    assert [one["command"] for one in call("restore-panel", "commandsSince", events, "1")] == [
        "git push",
        "rm -rf src && make",
    ]
    assert len(call("restore-panel", "commandsSince", events, "0")) == 3
    assert call("restore-panel", "commandsSince", events, "unknown") == []


@pytest.mark.parametrize(
    ("warning", "name"),
    [
        ("external: differs, and is not restored without --external: write /x", "external"),
        (
            "worktrees: /w has changed and is not restored; to restore its files: --with worktrees",
            "worktrees",
        ),
        ("a.txt has changes that are not committed in git; they are saved first", None),
    ],
)
def test_state_that_an_option_would_restore_is_offered_as_a_choice(
    call: Call, warning: str, name: str | None
) -> None:
    found = call("restore-components", "offerIn", warning)
    assert (None if found is None else found["name"]) == name
    assert found is None or "--" not in found["words"]


@pytest.mark.parametrize(
    ("remark", "without", "beside_choices"),
    [
        (
            "git is at main now; to restore git too: --git exact or --git branch",
            "Git is at main now.",
            "Git is at main now; to restore git too, choose how above.",
        ),
        (
            "branch idea is gone since that checkpoint; to restore it: --refs all",
            "Branch idea is gone since that checkpoint.",
            "Branch idea is gone since that checkpoint; to restore it, choose how above.",
        ),
        (
            "a merge was in progress; to resume it: --git exact",
            "A merge was in progress.",
            "A merge was in progress; to resume it, choose how above.",
        ),
        ("src/a.py stays", "src/a.py stays.", "src/a.py stays."),
    ],
)
def test_remarks_name_choices_of_the_page_not_of_the_command_line(
    call: Call, remark: str, without: str, beside_choices: str
) -> None:
    assert call("words", "remarkWords", remark) == without
    assert call("words", "remarkWords", remark, True) == beside_choices


def test_a_restore_of_chosen_paths_is_named_in_words(call: Call) -> None:
    said = "Restored to 1d55bf86df (37 selected paths)"
    assert call("words", "returnTitle", said, [], None) == "Restored 37 paths"
    assert call("words", "returnTitle", "Restored to 1d55bf86df", [], "Tests pass") == (
        "Back to “Tests pass”"
    )


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "or skip such paths: --best-effort",
            "or skip such paths in a terminal: holdfast restore REF --best-effort",
        ),
        (
            "restore more with --best-effort; then check",
            "restore more in a terminal: holdfast restore REF --best-effort; then check",
        ),
        (
            "commit it, or unstage it (git restore --staged PATH), then run accept again",
            "commit it, or unstage it (git restore --staged PATH), then check again",
        ),
        (
            "branch main is in /w; use --git branch, or remove that worktree",
            "branch main is in /w; restore git on a new branch, or remove that worktree",
        ),
    ],
)
def test_refusals_name_no_option_that_the_page_cannot_take(
    call: Call, tab: Tab, said: str, shown: str
) -> None:
    assert call("words", "withoutOptions", said) == shown
    problem = tab.page.evaluate(
        """async (said) => {
            const { Problem } = await import("/page/api.js");
            const { message, hint } = new Problem(409, { detail: said, hint: said });
            return [message, hint];
        }""",
        said,
    )
    assert problem == [shown, shown]
