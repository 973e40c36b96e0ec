"""The page as the server sends it: only its own files, compressed, and under a strict policy."""

from __future__ import annotations

import gzip
import re
from urllib.parse import quote

import pytest

from holdfast import SessionCheckpointer
from holdfast.interfaces.web.page_files import PAGE
from tests.interfaces.web.client import Client
from tests.interfaces.web.page.test_page_files import own_scripts

pytestmark = [pytest.mark.requirement("WB-3"), pytest.mark.in_memory]

ADDRESSES = [
    "/",
    "/s/work",
    "/s/work/abc/changes",
    "/search?q=x",
    "/settings",
    "/health",
    "/w/1/s/2",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_address_of_the_page_is_the_same_document(client: Client, address: str) -> None:
    reply = client("GET", address)
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.body == (PAGE / "index.html").read_bytes()


def test_the_policy_runs_only_what_is_shipped(client: Client) -> None:
    policy = client("GET", "/").headers["content-security-policy"]
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in policy


def test_scripts_and_styles_have_their_types_and_are_compressed(client: Client) -> None:
    for path in [*own_scripts(), *sorted((PAGE / "css").glob("*.css"))]:
        name = path.relative_to(PAGE).as_posix()
        reply = client("GET", f"/page/{name}", headers={"Accept-Encoding": "gzip"})
        assert reply.status == 200, name
        assert re.match("text/(javascript|css); charset=utf-8", reply.headers["content-type"])
        assert gzip.decompress(reply.body) == path.read_bytes()


def test_a_known_file_is_not_sent_again(client: Client) -> None:
    tag = client("GET", "/page/app.js").headers["etag"]
    again = client("GET", "/page/app.js", headers={"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "name",
    [
        "nothing.js",
        "../access.py",
        quote("../access.py", safe=""),
        "vendor/manifest.json",
        "",
        "css",
    ],
)
def test_nothing_else_can_be_asked_for(client: Client, name: str) -> None:
    assert client("GET", f"/page/{name}").status == 404


def test_the_page_is_there_before_anything_was_saved(client: Client) -> None:
    assert client.get("/api/sessions") == []
    assert client("GET", "/").status == 200


def test_the_page_changes_nothing(client: Client, session: SessionCheckpointer) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert client(method, "/", {}).status == 405, method
