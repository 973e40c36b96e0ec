"""A signed-in browser that visits hostile sites: they can neither read nor change anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page

from tests.interfaces.web.page.conftest import Tab
from tests.interfaces.web.page.sample_session import SESSION, SampleSession
from tests.support.tree_hash import describe

pytestmark = [pytest.mark.requirement("WB-4"), pytest.mark.in_memory]

_ATTACKS = """async ({target, session}) => {
  const found = {};
  const attempt = async (name, path, init) => {
    try {
      const answer = await fetch(target + path, {credentials: "include", ...init});
      found[name] = `${answer.type} ${answer.status} ${await answer.text()}`;
    } catch {
      found[name] = "refused";
    }
  };
  const plain = {method: "POST", body: "{}", headers: {"Content-Type": "text/plain"}};
  const json = {method: "POST", body: "{}", headers: {"Content-Type": "application/json"}};
  await attempt("read", "/api/sessions", {});
  await attempt("read blindly", "/api/sessions", {mode: "no-cors"});
  await attempt("undo", "/api/undo", json);
  await attempt("undo blindly", "/api/undo", {...plain, mode: "no-cors"});
  await attempt("save blindly", `/api/sessions/${session}/checkpoints`, {
    ...plain, mode: "no-cors", body: '{"reasoning": "forged"}'});
  await attempt("delete", `/api/sessions/${session}`, {method: "DELETE"});
  return found;
}"""

_FORM = """({target, session}) => {
  const form = document.createElement("form");
  form.method = "POST";
  form.enctype = "text/plain";
  form.action = `${target}/api/sessions/${session}/checkpoints`;
  const field = document.createElement("input");
  field.name = '{"reasoning": "forged", "ignored": "';
  field.value = '"}';
  form.append(field);
  document.body.append(form);
  form.submit();
}"""

_FRAME = """(target) => new Promise((resolve) => {
  const frame = document.createElement("iframe");
  frame.onload = () => resolve(null);
  frame.src = target;
  document.body.append(frame);
})"""

_STREAM = """(target) => new Promise((resolve) => {
  const events = new EventSource(target + "/api/events", {withCredentials: true});
  events.onopen = () => resolve("open");
  events.onerror = () => resolve("refused");
})"""


class _HostileSite(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>hostile</title><body></body>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hostile_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _HostileSite) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(10)


def _visit(tab: Tab, address: str) -> Page:
    page = tab.page.context.new_page()
    page.goto(address)
    return page


def _reasons(tab: Tab) -> str:
    """What the session holds, asked for by the signed-in page itself."""
    answer: str = tab.page.evaluate(
        f"fetch('/api/sessions/{SESSION}/checkpoints?limit=1000').then((one) => one.text())"
    )
    assert '"reasoning"' in answer
    return answer


# Ports do not part sites: a page on another port of this machine is sent the cookie.
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "evil.localhost"])
def test_another_origin_reads_and_changes_nothing(
    tab: Tab, sample: SampleSession, hostile_port: int, host: str
) -> None:
    tab.open_session()
    files, reasons = describe(sample.project), _reasons(tab)
    page = _visit(tab, f"http://{host}:{hostile_port}/")
    goal = {"target": tab.server.url, "session": SESSION}
    found = page.evaluate(_ATTACKS, goal)
    assert set(found.values()) == {"refused"}
    assert page.evaluate(_STREAM, tab.server.url) == "refused"
    page.evaluate(_FRAME, tab.server.url)
    assert all(not frame.url.startswith(tab.server.url) for frame in page.frames)
    with page.expect_navigation():
        page.evaluate(_FORM, goal)
    assert "forged" not in page.content()
    assert describe(sample.project) == files
    assert _reasons(tab) == reasons


def test_a_name_that_leads_to_this_machine_is_not_the_server(tab: Tab) -> None:
    """DNS rebinding: the attacker's own name resolves to the server's address."""
    tab.open_session()
    rebound = f"http://evil.localhost:{tab.server.port}"
    page = tab.page.context.new_page()
    answer = page.goto(rebound + "/")
    assert answer is not None
    assert answer.status == 403
    statuses = page.evaluate(
        """() => Promise.all(["/api/sessions", "/openapi.json", "/metrics"].map(
            (path) => fetch(path).then((one) => one.status)))"""
    )
    assert statuses == [403, 403, 403]
