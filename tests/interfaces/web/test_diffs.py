"""Differences and files over HTTP, in pieces and never as something that a browser runs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.web.client import Client
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("WB-1")

CHECKPOINTS = "/api/sessions/work/checkpoints"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


def _changes(page: dict[str, object]) -> list[tuple[str, str]]:
    files = page["files"]
    assert isinstance(files, list)
    return [(one["path"], one["change"]) for one in files]


def test_a_checkpoint_is_compared_with_now_before_and_the_beginning(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    fill(workspace / "notes.txt", b"two\n")
    now = client.get(f"{CHECKPOINTS}/HEAD/diff")
    assert (now["to"], _changes(now)) == ("workspace", [("notes.txt", "modified")])
    [hunk] = now["files"][0]["hunks"]
    assert hunk["lines"] == ["-one", "+two"]
    assert (hunk["number"], now["files"][0]["restorable"]) == (1, True)
    before = client.get(f"{CHECKPOINTS}/HEAD/diff?with=before")
    assert _changes(before) == [("new.txt", "added")]
    assert before["reasons"] == {"from": "second", "to": "third"}
    beginning = client.get(f"{CHECKPOINTS}/HEAD/diff?with=beginning")
    assert _changes(beginning) == [("new.txt", "added"), ("src/app.py", "modified")]
    assert beginning["files"][1]["added_lines"] == beginning["files"][1]["removed_lines"] == 1
    first = client.get(f"{CHECKPOINTS}/start/diff?with=before")
    assert first["from"] is None
    assert _changes(first) == [("notes.txt", "added"), ("src/app.py", "added")]


def test_any_two_checkpoints_are_compared(client: Client, session: SessionCheckpointer) -> None:
    forth = client.get(f"{CHECKPOINTS}/start/diff/HEAD")
    back = client.get(f"{CHECKPOINTS}/HEAD/diff/start")
    assert _changes(forth) == [("new.txt", "added"), ("src/app.py", "modified")]
    assert _changes(back) == [("new.txt", "removed"), ("src/app.py", "modified")]
    plain = client.get(f"{CHECKPOINTS}/diff?from_id=start&to_id=HEAD")
    assert plain == {"new.txt": "added", "src/app.py": "modified"}
    assert client.get(f"{CHECKPOINTS}/diff") == plain


def test_a_difference_of_two_checkpoints_is_sent_once(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    path = f"{CHECKPOINTS}/start/diff/HEAD"
    tag = client("GET", path).headers["etag"]
    assert client("GET", path, headers={"If-None-Match": tag}).status == 304
    assert client("GET", f"{path}?limit=1", headers={"If-None-Match": tag}).status == 200
    fill(workspace / "new.txt", b"other\n")
    session.checkpoint("other")
    client.post(f"{CHECKPOINTS}/HEAD~1/rollback")
    session.checkpoint("the same files, for another reason")
    again = client("GET", path, headers={"If-None-Match": tag})
    assert again.json["reasons"]["to"] == "the same files, for another reason"


def test_files_and_hunks_of_a_difference_are_paged(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    fill(workspace / "long.txt", b"".join(b"%d\n" % n for n in range(5000)))
    session.checkpoint("long")
    path = f"{CHECKPOINTS}/HEAD~1/diff/HEAD?path=long.txt"
    lines: list[str] = []
    more: str | None = ""
    while more is not None:
        [file] = client.get(f"{path}{more and '&hunks_from=' + more}")["files"]
        for hunk in file["hunks"]:
            assert hunk["first_line"] == len(lines)
            assert hunk["total_lines"] == 5000
            lines += hunk["lines"]
        more = file["hunks_next"]
    assert lines == [f"+{n}" for n in range(5000)]
    page = client.get(f"{CHECKPOINTS}/start/diff/HEAD?limit=1")
    assert (_changes(page), page["next"]) == ([("long.txt", "added")], "long.txt")
    rest = client.get(f"{CHECKPOINTS}/start/diff/HEAD?cursor=long.txt")
    assert _changes(rest) == [("new.txt", "added"), ("src/app.py", "modified")]


def test_a_line_of_ten_megabytes_is_shortened(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    fill(workspace / "one-line", b"x" * 10_000_000)
    session.checkpoint("one line")
    reply = client("GET", f"{CHECKPOINTS}/HEAD/diff?with=before")
    [file] = reply.json["files"]
    assert file["path"] == "one-line"
    assert file["cut_lines"] == sum(len(hunk["lines"]) > 0 for hunk in file["hunks"])
    assert len(reply.body) < 20_000


def test_lines_get_the_colours_of_their_language(
    client: Client, session: SessionCheckpointer
) -> None:
    [file] = client.get(f"{CHECKPOINTS}/start/diff/HEAD?path=src/app.py&colours=true")["files"]
    [hunk] = file["hunks"]
    assert hunk["lines"] == ["-print(1)", "+print(2)"]
    for line, colours in zip(hunk["lines"], hunk["colours"], strict=True):
        assert sum(length for _, length in colours) == len(line) - 1
        assert colours[0] == ["nb", 5]
    shown = client.get(f"{CHECKPOINTS}/HEAD/file?path=src/app.py&colours=true")
    assert shown["content"] == "print(2)\n"
    assert shown["colours"][0][0] == ["nb", 5]


def test_a_large_file_is_shown_in_pieces(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    text = "ä" * 200_000
    fill(workspace / "large.txt", text.encode())
    session.checkpoint("large")
    shown, offset = "", 0
    while True:
        piece = client.get(f"{CHECKPOINTS}/HEAD/file?path=large.txt&offset={offset}")
        shown += piece["content"]
        if piece["next"] is None:
            break
        offset = piece["next"]
    assert shown == text


def test_a_directory_is_listed_as_it_was(client: Client, session: SessionCheckpointer) -> None:
    top = client.get(f"{CHECKPOINTS}/start/tree")
    assert [(one["path"], one["type"]) for one in top] == [
        ("notes.txt", "file"),
        ("src", "directory"),
    ]
    [below] = client.get(f"{CHECKPOINTS}/start/tree?path=src")
    assert below["path"] == "src/app.py"
    assert client("GET", f"{CHECKPOINTS}/start/tree?path=notes.txt").status == 404


@pytest.mark.requirement("WB-4")
@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("picture.png", PNG, "image/png"),
        ("page.html", b"<script>alert(1)</script>", "application/octet-stream"),
        ("picture.svg", b"<svg onload=alert(1)>", "application/octet-stream"),
        ("not-one.png", b"<script>alert(1)</script>", "application/octet-stream"),
    ],
)
def test_contents_are_never_something_that_a_browser_runs(
    client: Client,
    session: SessionCheckpointer,
    workspace: Path,
    name: str,
    content: bytes,
    kind: str,
) -> None:
    fill(workspace / name, content)
    session.checkpoint("content")
    fill(workspace / name, content + b"now")
    for path, expected in (
        (f"raw?path={name}", content),
        (f"raw/now?path={name}", content + b"now"),
    ):
        reply = client("GET", f"{CHECKPOINTS}/HEAD/{path}")
        assert (reply.status, reply.body) == (200, expected)
        assert reply.headers["content-type"] == kind
        assert reply.headers["content-disposition"].startswith("attachment")
        assert reply.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("asked", "status", "expected"),
    [
        ("bytes=0-3", 206, b"prin"),
        ("bytes=6-", 206, b"2)\n"),
        ("bytes=-2", 206, b")\n"),
        ("bytes=0-999", 200, b"print(2)\n"),
        ("bytes=1-2,4-5", 200, b"print(2)\n"),
        ("lines=1-2", 200, b"print(2)\n"),
        ("bytes=\xb2-", 200, b"print(2)\n"),
        ("bytes=1-\xb3", 200, b"print(2)\n"),
        ("bytes=50-60", 416, None),
        ("bytes=-0", 416, None),
    ],
)
def test_parts_of_a_file_can_be_asked_for(
    client: Client, session: SessionCheckpointer, asked: str, status: int, expected: bytes | None
) -> None:
    path = f"{CHECKPOINTS}/HEAD/raw?path=src/app.py"
    reply = client("GET", path, headers={"Range": asked})
    assert reply.status == status
    if expected is not None:
        assert reply.body == expected


def test_a_part_is_sent_only_of_the_version_that_the_client_has(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    """Otherwise an interrupted download would end with bytes of another file."""
    path = f"{CHECKPOINTS}/HEAD/raw?path=src/app.py"
    headers = {"Range": "bytes=6-", "If-Range": client("GET", path).headers["etag"]}
    assert client("GET", path, headers=headers).status == 206
    fill(workspace / "src" / "app.py", b"print(300)\n")
    session.checkpoint("HEAD has another one now")
    reply = client("GET", path, headers=headers)
    assert (reply.status, reply.body) == (200, b"print(300)\n")


@pytest.mark.requirement("CP-14")
def test_ignored_contents_are_withheld(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    fill(workspace / ".env", b"SECRET=1\n")
    session.opened.settings.set("include", [".env"])
    client.post(CHECKPOINTS, {"reasoning": "with a secret"}, 201)
    session.opened.settings.set("include", None)
    fill(workspace / ".gitignore", b".env\n")
    expected = {
        "file?path=.env": 409,
        "raw?path=.env": 409,
        "diff?with=before": 200,
        "files?content=true": 200,
    }
    for path, status in expected.items():
        reply = client("GET", f"{CHECKPOINTS}/HEAD/{path}")
        assert reply.status == status
        assert b".env" in reply.body
        assert b"SECRET" not in reply.body


def test_names_with_markup_and_odd_bytes_are_downloaded(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    name = '<img src=x>\r\n"\udcff'
    fill(workspace / name, b"x")
    session.checkpoint("names")
    sent = quote(name, safe="", errors="surrogateescape")
    reply = client("GET", f"{CHECKPOINTS}/HEAD/raw?path={sent}")
    assert reply.body == b"x"
    assert reply.headers["content-disposition"].endswith(sent)
