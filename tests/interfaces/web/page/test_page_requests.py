"""Every request that the page can make is a route of the API, with that method."""

from __future__ import annotations

import re

import pytest

from holdfast.interfaces.web.app import ROUTES
from tests.interfaces.web.page.test_page_files import PAGE, own_scripts

pytestmark = pytest.mark.requirement("WB-3", "WB-1")

_CALL = re.compile(r"""\b(get|post|put|apiAddress)\(\s*[`"](/[^`"]*)[`"]""")
_METHODS = {"get": "GET", "post": "POST", "put": "PUT", "apiAddress": "GET"}
_SHORTENED = {
    "${ofSession(session)}": "/sessions/{}",
    "${ofMoment(session, moment)}": "/sessions/{}/checkpoints/{}",
    "${ofMoment(session, newer)}": "/sessions/{}/checkpoints/{}",
    "${ofMoment(session, older)}": "/sessions/{}/checkpoints/{}",
    '${ofMoment(session, older ?? "HEAD")}': "/sessions/{}/checkpoints/{}",
}


def _requests() -> set[tuple[str, str]]:
    text = (PAGE / "api.js").read_text("utf-8")
    for short, whole in _SHORTENED.items():
        text = text.replace(short, whole)
    text = re.sub(r"\$\{encodeURIComponent\([^)]*\)\}", "{}", text)
    text = text.replace("get(ofMoment(session, moment)", 'get("/sessions/{}/checkpoints/{}"')
    text = text.replace("put(ofMoment(session, moment)", 'put("/sessions/{}/checkpoints/{}"')
    return {(_METHODS[call], f"/api{path}") for call, path in _CALL.findall(text)}


def test_the_page_asks_only_for_routes_that_exist() -> None:
    routes = {(one.method, re.sub(r"\{[^}]*\}", "{}", one.path)) for one in ROUTES}
    asked = _requests()
    assert len(asked) > 20
    assert asked - routes == set()


def test_only_the_api_module_asks() -> None:
    for script in own_scripts():
        if script.name not in ("api.js", "events.js"):
            assert not re.search(r"\bfetch\(|XMLHttpRequest|EventSource", script.read_text())
