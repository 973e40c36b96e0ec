"""Sessions, checkpoints and timelines over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from holdfast import SessionCheckpointer
from holdfast.api.contents import Contents
from holdfast.domain.errors import ObjectDamaged
from holdfast.domain.trees.entries import FileEntry
from tests.behind_the_api import store_of
from tests.interfaces.web.client import Client, running
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("WB-1")

CHECKPOINTS = "/api/sessions/work/checkpoints"


def test_a_workspace_without_checkpoints_has_no_sessions_and_gets_no_store(
    client: Client, workspace: Path
) -> None:
    assert client.get("/api/sessions") == []
    assert client("GET", CHECKPOINTS).status == 404
    assert not (workspace / ".holdfast").exists()


def test_sessions_are_listed_with_their_state(client: Client, session: SessionCheckpointer) -> None:
    [listed] = client.get("/api/sessions")
    assert (listed["id"], listed["checkpoints"], listed["unapproved"]) == ("work", 3, 3)
    assert client.get("/api/sessions/work") == listed


def test_a_session_is_renamed_ended_and_deleted(
    client: Client, session: SessionCheckpointer
) -> None:
    assert client.put("/api/sessions/work", {"title": "Login"})["title"] == "Login"
    assert client.put("/api/sessions/work", {"status": "ended"})["status"] == "ended"
    assert client("DELETE", "/api/sessions/work").json["checkpoints"] == 3
    assert client.get("/api/sessions") == []


def test_checkpoints_are_paged_by_cursor_newest_first(
    client: Client, session: SessionCheckpointer
) -> None:
    seen: list[str] = []
    path: str | None = f"{CHECKPOINTS}?limit=2"
    while path is not None:
        reply = client("GET", path)
        seen += [one["reasoning"] for one in reply.json]
        link = reply.headers.get("link")
        path = None if link is None else link.partition(">")[0].removeprefix("<")
    assert seen == ["third", "second", "first"]


def test_a_list_has_the_newest_note_and_the_head(
    client: Client, session: SessionCheckpointer
) -> None:
    session.annotate("start", "earlier")
    session.annotate("start", "later")
    third, second, first = client.get(CHECKPOINTS)
    assert (first["annotation"], second["annotation"]) == ("later", None)
    assert [third["is_head"], second["is_head"]] == [True, False]
    assert (second["confidence"], second["tags"]) == (0.95, ["auth"])


def test_a_checkpoint_is_shown_with_its_files(client: Client, session: SessionCheckpointer) -> None:
    shown = client.get(f"{CHECKPOINTS}/HEAD")
    paths = ["new.txt", "notes.txt", "src/app.py"]
    assert [one["path"] for one in shown["files"]] == paths
    assert [one["path"] for one in shown["artifacts"]] == paths
    assert [row[0] for row in shown["manifest"]] == paths
    assert shown["files_next"] is None
    assert (shown["files"][0]["content"], shown["files"][0]["encoding"]) == ("new\n", "utf-8")
    assert "content" not in client.get(f"{CHECKPOINTS}/HEAD?content=false")["files"][0]
    assert client.get(f"{CHECKPOINTS}/HEAD?files=0")["files"] == []
    [first] = client.get(f"{CHECKPOINTS}/start?files=1")["files"]
    assert first["path"] == "notes.txt"


def test_a_damaged_file_does_not_hide_the_others(
    client: Client, session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Contents.read

    def read_others(self: Contents, entry: FileEntry) -> Iterator[bytes]:
        if entry.name == b"notes.txt":
            raise ObjectDamaged("its content does not match its digest")
        return read(self, entry)

    monkeypatch.setattr(Contents, "read", read_others)
    found = {one["path"]: one["content"] for one in client.get(f"{CHECKPOINTS}/HEAD")["files"]}
    assert found == {"new.txt": "new\n", "notes.txt": None, "src/app.py": "print(2)\n"}


def test_files_are_paged_in_order_and_with_contents_if_asked_for(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    fill(workspace / "src" / "app" / "deep.bin", b"\xff\x00")
    session.checkpoint("binary")
    seen, cursor = [], ""
    while True:
        page = client.get(f"{CHECKPOINTS}/HEAD/files?limit=1&content=true{cursor}")
        seen += page["files"]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert [one["path"] for one in seen] == [
        "new.txt",
        "notes.txt",
        "src/app/deep.bin",
        "src/app.py",
    ]
    assert (seen[0]["content"], seen[0]["encoding"]) == ("new\n", "utf-8")
    assert (seen[2]["content"], seen[2]["encoding"]) == ("/wA=", "base64")
    below = client.get(f"{CHECKPOINTS}/HEAD/files?path=src/app")
    assert [one["path"] for one in below["files"]] == ["src/app/deep.bin"]


def test_names_that_are_not_text_come_and_go_unharmed(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    (workspace / "d\udcff").mkdir()
    fill(workspace / "d\udcff" / "<b>\u202e", b"x")
    session.checkpoint("odd names")
    [odd] = client.get(f"{CHECKPOINTS}/HEAD/files?path=d%FF")["files"]
    assert odd["path"] == "d\udcff/<b>\u202e"


@pytest.mark.parametrize("path", ["..%2f..%2fetc", "/etc", "a//b", ".", "src/..", "a%00b"])
def test_paths_outside_the_workspace_are_refused(
    client: Client, session: SessionCheckpointer, path: str
) -> None:
    reply = client("GET", f"{CHECKPOINTS}/HEAD/files?path={path}")
    assert reply.status == 400
    assert "not a path" in reply.problem["detail"]


def test_a_checkpoint_is_made_named_annotated_and_deleted(client: Client, workspace: Path) -> None:
    made = client.post(CHECKPOINTS, {"name": "mine", "annotation": "because"}, 201)
    assert (made["name"], made["annotation"], made["type"]) == ("mine", "because", "manual")
    assert made["file_count"] == 2
    changed = client.put(f"{CHECKPOINTS}/mine", {"annotation": "really", "name": "ours"})
    assert (changed["name"], changed["annotation"]) == ("ours", "really")
    assert client.put(f"{CHECKPOINTS}/ours", {"name": None})["name"] is None
    fill(workspace / "notes.txt", b"two\n")
    client.post(CHECKPOINTS, {"reasoning": "next"}, 201)
    notes = client.get(f"{CHECKPOINTS}/{made['id']}/annotations")
    assert [(note["text"], note["revision"]) for note in notes] == [("really", 2)]
    gone = client("DELETE", f"{CHECKPOINTS}/{made['id']}").json
    assert gone["deleted"] == made["id"]
    assert client("GET", f"{CHECKPOINTS}/{made['id']}").status == 404


@pytest.mark.requirement("CP-8")
def test_a_session_cannot_delete_the_checkpoint_of_another(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    fill(workspace / "notes.txt", b"theirs\n")
    with SessionCheckpointer(workspace, "theirs") as theirs:
        first = theirs.checkpoint("theirs")
    for reference in (first, first[:8]):
        assert client("DELETE", f"{CHECKPOINTS}/{reference}").status == 404
    assert client.get(f"/api/sessions/theirs/checkpoints/{first}")["id"] == first


def test_an_annotation_is_replaced_however_often_it_is_put(client: Client) -> None:
    made = client.post(CHECKPOINTS, {"reasoning": "why"}, 201)
    place = f"{CHECKPOINTS}/{made['id']}"
    for text in ("first", "second", "second"):
        assert client.put(place, {"annotation": text})["annotation"] == text
    client.post(f"{place}/annotations", {"text": "another"}, 201)
    client.put(place, {"annotation": "the second again", "number": 1})
    assert client.put(place, {"annotation": "the other"})["annotation"] == "the other"
    notes = client.get(f"{place}/annotations")
    assert [note["text"] for note in notes] == ["the second again", "the other"]


@pytest.mark.parametrize("name", ["work", "日本", "a b?#%"])
def test_a_made_checkpoint_says_where_it_is(
    client: Client, session: SessionCheckpointer, name: str
) -> None:
    for place in ("/api", _own_address(client)):
        reply = client("POST", f"{place}/sessions/{quote(name)}/checkpoints", {"reasoning": "why"})
        assert reply.status == 201
        assert reply.headers["location"].startswith(f"{place}/sessions/")
        assert client.get(reply.headers["location"])["id"] == reply.json["id"]


def _own_address(client: Client) -> str:
    """The server's own workspace by its id, as every other one is addressed."""
    [own] = client.get("/api/workspaces")["workspaces"]
    return f"/api/workspaces/{own['id']}"


def test_long_work_and_next_pages_stay_in_their_workspace(
    client: Client, session: SessionCheckpointer
) -> None:
    place = _own_address(client)
    reply = client("GET", f"{place}/sessions/work/checkpoints?limit=1")
    assert reply.headers["link"].startswith(f"<{place}/sessions/work/checkpoints?")
    path = f"{place}/sessions/work/checkpoints/start/rollback"
    with store_of(session).hold():
        reply = client("POST", path, headers={"Prefer": "respond-async"})
        assert reply.headers["location"].startswith(f"{place}/operations/")
        assert client.get(reply.headers["location"])["status"] == "running"


def test_a_timeline_is_paged(client: Client, session: SessionCheckpointer) -> None:
    first = client("GET", f"{CHECKPOINTS}/timeline?limit=2")
    assert [one["checkpoint"]["reasoning"] for one in first.json["events"]] == ["third", "second"]
    path = first.headers["link"].partition(">")[0].removeprefix("<")
    [last] = client.get(path)["events"]
    assert last["checkpoint"]["reasoning"] == "first"
    assert len(client.get("/api/timeline")["events"]) == 3


def test_long_texts_are_cut_in_lists_and_whole_in_details(
    client: Client, session: SessionCheckpointer
) -> None:
    session.add_message("user", "m" * 5000)
    made = session.checkpoint("r" * 5000)
    session.annotate(made, "a" * 5000)
    [first] = client.get(f"{CHECKPOINTS}?limit=1")
    assert (len(first["reasoning"]), len(first["annotation"])) == (2000, 2000)
    shown = client.get(f"{CHECKPOINTS}/{made}")
    assert len(shown["reasoning"]) == len(shown["intent"]["reasoning"]) == 5000
    assert len(shown["annotations"][0]["text"]) == 5000
    events = client.get(f"{CHECKPOINTS}/timeline")["events"]
    texts = [event.get("content") or event.get("text") or "" for event in events]
    assert sorted(map(len, texts))[-2:] == [2000, 2000]
    [message] = client.get("/api/sessions/work/messages")["messages"]
    assert len(message["content"]) == 5000


def test_messages_are_paged(client: Client, session: SessionCheckpointer) -> None:
    for number in range(3):
        session.add_message("user", f"message {number}")
    page = client.get("/api/sessions/work/messages?limit=2")
    assert ([one["index"] for one in page["messages"]], page["next"]) == ([0, 1], 2)
    page = client.get("/api/sessions/work/messages?limit=2&first=2")
    assert ([one["content"] for one in page["messages"]], page["next"]) == (["message 2"], None)


def test_an_answer_that_the_client_has_is_not_sent_again(
    client: Client, session: SessionCheckpointer
) -> None:
    first = client("GET", f"{CHECKPOINTS}/HEAD")
    again = client("GET", f"{CHECKPOINTS}/HEAD", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    session.annotate("HEAD", "new")
    changed = client("GET", f"{CHECKPOINTS}/HEAD", headers={"If-None-Match": first.headers["etag"]})
    assert changed.status == 200


@pytest.mark.parametrize("name", ["feature/login", "50%", "a%2Fb", "a b?c#d", "../x", "über/😀"])
def test_any_name_and_any_session_id_has_an_address(
    client: Client, workspace: Path, name: str
) -> None:
    place = f"/api/sessions/{quote(name, safe='')}/checkpoints"
    client.post(place, {"reasoning": "first", "name": name}, 201)
    reply = client("POST", place, {"reasoning": "second"})
    assert client.get(reply.headers["location"])["session_id"] == name
    found = client.get(f"{place}/{quote(name, safe='')}")
    assert (found["name"], found["session_id"]) == (name, name)
    page = client("GET", f"{place}?limit=1")
    link = page.headers["link"].partition(">")[0].removeprefix("<")
    assert [one["reasoning"] for one in client.get(link)] == ["first"]
    [own] = client.get("/api/workspaces")["workspaces"]
    inside = place.replace("/api", f"/api/workspaces/{own['id']}")
    assert client.get(f"{inside}/{quote(name, safe='')}") == found


def test_a_session_id_can_be_as_long_as_elsewhere(client: Client, workspace: Path) -> None:
    with SessionCheckpointer(workspace, "x" * 200) as session:
        session.checkpoint("long")
        assert len(client.get(f"/api/sessions/{'x' * 200}/checkpoints")) == 1


def test_head_answers_as_get_does_without_the_content(
    client: Client, session: SessionCheckpointer
) -> None:
    for path in (
        "/api/sessions",
        f"{CHECKPOINTS}/HEAD",
        f"{CHECKPOINTS}/HEAD/raw?path=notes.txt",
        "/livez",
        "/",
        "/openapi.json",
        f"{CHECKPOINTS}/nothing",
    ):
        full, head = client("GET", path), client("HEAD", path)
        assert (head.status, head.body) == (full.status, b"")
        assert head.headers == full.headers
    stream = client("HEAD", "/api/events")
    assert (stream.status, stream.body) == (200, b"")
    assert stream.headers["content-type"].startswith("text/event-stream")
    tag = client("HEAD", "/api/sessions").headers["etag"]
    assert client("HEAD", "/api/sessions", headers={"If-None-Match": tag}).status == 304


def test_a_wrong_method_is_answered_with_the_right_ones(client: Client) -> None:
    reply = client("DELETE", CHECKPOINTS)
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, POST")
    assert reply.problem["code"] == "method"
    assert client("POST", f"{CHECKPOINTS}/HEAD").headers["allow"] == "DELETE, GET, HEAD, PUT"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/sessions/nobody/checkpoints", "not_found"),
        (f"{CHECKPOINTS}/nothing", "unknown_reference"),
        (f"{CHECKPOINTS}?limit=0", "usage"),
        (f"{CHECKPOINTS}?limit=many", "usage"),
        (f"{CHECKPOINTS}?cursor=x", "usage"),
        ("/api/nothing", "no_route"),
        ("/api/workspaces/none/sessions", "not_found"),
    ],
)
def test_what_is_unknown_or_wrong_is_a_problem_with_a_code(
    client: Client, session: SessionCheckpointer, path: str, code: str
) -> None:
    reply = client("GET", path)
    assert reply.status in (400, 404)
    assert reply.problem["code"] == code


def test_a_workspace_without_checkpoints_has_empty_lists_and_no_session(client: Client) -> None:
    assert client.get("/api/sessions") == []
    timeline = client.get("/api/timeline")
    assert (timeline["events"], timeline["head"], timeline["next"]) == ([], None, None)
    found = client.get("/api/search?q=anything")
    assert (found["query"], found["hits"], found["complete"]) == ("anything", [], True)
    for path in (CHECKPOINTS, "/api/sessions/work/timeline", "/api/search?q=x&session=work"):
        reply = client("GET", path)
        assert (reply.status, reply.problem["code"]) == (404, "not_found")
        assert "no checkpoints yet" in reply.problem["detail"]
    made = client("POST", CHECKPOINTS, {"reasoning": "first"})
    assert made.status == 201
    assert len(client.get(CHECKPOINTS)) == 1
    assert client("GET", "/api/sessions/another/checkpoints").status == 404


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"unknown": 1}', b'{"name": 5}', b'{"confidence": 2}', b"\xff"]
)
def test_a_body_that_makes_no_sense_is_refused(client: Client, body: bytes) -> None:
    reply = client("POST", CHECKPOINTS, body, headers={"Content-Type": "application/json"})
    assert reply.status == 400
    assert reply.problem["code"] == "usage"
    assert client.get("/api/sessions") == []


def test_other_workspaces_are_served_by_their_ids(
    tmp_path: Path, session: SessionCheckpointer
) -> None:
    elsewhere = tmp_path / "other"
    fill(elsewhere / "x", b"1")
    with SessionCheckpointer(elsewhere, "there") as other:
        made = other.checkpoint("elsewhere")
    with running(session.workspace) as client:
        listed = client.get("/api/workspaces")["workspaces"]
        own, there = sorted(listed, key=lambda one: not one["is_own"])
        assert (own["path"], there["path"]) == (str(session.workspace), str(elsewhere))
        place = f"/api/workspaces/{there['id']}/sessions"
        assert [one["id"] for one in client.get(place)] == ["there"]
        reply = client("GET", f"{place}/there/checkpoints?limit=1")
        assert reply.json[0]["id"] == made
        assert client("GET", f"{CHECKPOINTS}/{made}").status == 404
        assert client("GET", "/api/sessions/there/checkpoints").status == 404


def test_changed_settings_count_from_the_next_request_on(
    client: Client, session: SessionCheckpointer
) -> None:
    client.get(CHECKPOINTS)
    session.opened.settings.set("max_file_size", "1kB")
    fill(session.workspace / "large", b"x" * 2000)
    made = client.post(CHECKPOINTS, {"reasoning": "after"}, 201)
    assert [one["path"] for one in made["skipped"] if one["path"] == "large"] == ["large"]
