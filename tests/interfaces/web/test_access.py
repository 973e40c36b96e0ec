"""Only permitted clients use the server: no other site, no other user, no half request."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from holdfast import SessionCheckpointer
from holdfast.interfaces.mcp.connection_limits import MOST_CONNECTIONS, listen
from holdfast.interfaces.web.access import (
    LARGEST_BODY,
    OPEN_PATHS,
    SECURITY_HEADERS,
    Access,
    RateLimit,
)
from holdfast.interfaces.web.app import ROUTES
from holdfast.interfaces.web.peers import user_of
from tests.interfaces.cli.command_line import command, run
from tests.interfaces.web.client import Client, Reply, running

pytestmark = pytest.mark.requirement("WB-4")

SESSIONS = "/api/sessions"
CHECKPOINTS = "/api/sessions/work/checkpoints"


def _port(client: Client) -> int:
    return urlsplit(client.server.url).port or 0


def test_a_request_without_the_token_gets_nothing(
    client: Client, session: SessionCheckpointer
) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
        for path in (SESSIONS, CHECKPOINTS, "/openapi.json", "/metrics", "/"):
            reply = client("GET", path, headers=headers, token=False)
            assert reply.status == 401
            assert reply.problem["code"] == "not_signed_in"
            assert reply.headers["www-authenticate"].startswith("Bearer")


def test_the_token_is_in_a_file_that_only_its_user_can_read(client: Client) -> None:
    file = client.server.token_file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() == client.server.token


def test_a_token_in_the_address_does_not_count(client: Client) -> None:
    path = f"{SESSIONS}?token={client.server.token}&access_token={client.server.token}"
    assert client("GET", path, token=False).status == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost:1", "evil.example:{port}", "127.0.0.1.:{port}"]
)
def test_another_host_name_is_turned_away_even_with_the_token(client: Client, host: str) -> None:
    """DNS rebinding: a name of the attacker's leads here."""
    reply = client("GET", SESSIONS, headers={"Host": host.format(port=_port(client))})
    assert reply.status == 403
    assert reply.problem["code"] == "wrong_host"


def test_names_of_this_machine_are_accepted(client: Client) -> None:
    for name in ("127.0.0.1", "localhost", "[::1]"):
        assert client("GET", SESSIONS, headers={"Host": f"{name}:{_port(client)}"}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_from_other_sites_are_turned_away_even_with_the_token(
    client: Client, session: SessionCheckpointer, headers: dict[str, str]
) -> None:
    for method, path in (
        ("GET", SESSIONS),
        ("POST", CHECKPOINTS),
        ("DELETE", "/api/sessions/work"),
    ):
        reply = client(method, path, headers=headers)
        assert reply.status == 403
        assert reply.problem["code"] == "wrong_origin"
    assert session.checkpoint_count == 3


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, "wrong_host"),
        ({"Origin": "http://evil.example"}, "wrong_origin"),
        ({"Sec-Fetch-Site": "cross-site"}, "wrong_origin"),
    ],
)
def test_no_route_answers_to_another_site(
    client: Client, session: SessionCheckpointer, headers: dict[str, str], code: str
) -> None:
    """Whoever asks: with the token, with a cookie, and with a link that nobody has used."""
    cookie = {"Cookie": _signed_in(client).headers["set-cookie"].partition(";")[0]}
    link = client.server.new_link().removeprefix(client.server.url)
    routes = [(route.method, route.path) for route in ROUTES]
    routes += [("HEAD", route.path) for route in ROUTES if route.method == "GET"]
    pages = ("/", "/page/page.js", "/openapi.json", "/s/work", "/nothing", link)
    routes += [("GET", path) for path in pages]
    for method, path in routes:
        for known in (client.token_header, cookie):
            reply = client(method, path, headers={**known, **headers}, token=False)
            assert reply.status == 403, (method, path)
            assert method == "HEAD" or reply.problem["code"] == code
    assert client("GET", link, token=False).status == 303  # it is still good
    assert session.checkpoint_count == 3


def test_every_route_needs_a_token(client: Client, session: SessionCheckpointer) -> None:
    now = [0]
    client.server.access.failures = RateLimit(2, 10_000, lambda: now[0])
    for route in ROUTES:
        if route.path not in OPEN_PATHS:
            reply = client(route.method, route.path, token=False)
            assert (reply.status, reply.problem["code"]) == (401, "not_signed_in"), route
    for path in ("/", "/page/page.js", "/openapi.json", "/s/work", "/nothing"):
        assert client("GET", path, token=False).status == 401


def test_the_own_page_is_not_another_site(client: Client) -> None:
    headers = {"Origin": client.server.url, "Sec-Fetch-Site": "same-origin"}
    assert client("GET", SESSIONS, headers=headers).status == 200


def test_a_preflight_request_allows_nothing(client: Client) -> None:
    headers = {"Origin": client.server.url, "Access-Control-Request-Method": "POST"}
    reply = client("OPTIONS", CHECKPOINTS, headers=headers)
    assert reply.status == 405
    assert not [name for name in reply.headers if name.startswith("access-control")]


def _signed_in(client: Client) -> Reply:
    link = client.server.new_link()
    return client("GET", link.removeprefix(client.server.url), token=False)


def test_a_link_signs_a_browser_in_once(client: Client, session: SessionCheckpointer) -> None:
    link = client.server.new_link().removeprefix(client.server.url)
    reply = client("GET", link, token=False)
    assert (reply.status, reply.headers["location"]) == (303, "/")
    cookie = reply.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    assert client.server.token not in cookie
    sent = {"Cookie": cookie.partition(";")[0]}
    assert client("GET", CHECKPOINTS, headers=sent, token=False).status == 200
    again = client("GET", link, token=False)
    assert again.status == 401
    assert again.problem["code"] == "link_used"


def test_a_cookie_outlives_a_restart_and_a_forged_one_does_not_count(
    workspace: Path, session: SessionCheckpointer
) -> None:
    with running(workspace) as client:
        port = _port(client)
        sent = {"Cookie": _signed_in(client).headers["set-cookie"].partition(";")[0]}
    with running(workspace, port=port) as client:
        assert client("GET", CHECKPOINTS, headers=sent, token=False).status == 200
        name, _, value = sent["Cookie"].partition("=")
        until, code, signature = value.split(".")
        for forged in (
            f"{int(until) + 1}.{code}.{signature}",
            f"{until}.{code}.{'0' * 64}",
            f"{until}.{code}",
            "",
            "9",
        ):
            headers = {"Cookie": f"{name}={forged}"}
            assert client("GET", CHECKPOINTS, headers=headers, token=False).status == 401


def test_cookies_of_other_programs_do_not_sign_a_browser_out(
    client: Client, session: SessionCheckpointer
) -> None:
    """All ports of a machine share their cookies, well formed or not."""
    own = _signed_in(client).headers["set-cookie"].partition(";")[0]
    for others in ('theme={"dark": "yes, really"}', "a b=c", "=", "x=[1,2]; y", 'q="', "é=ü"):
        headers = {"Cookie": f"{others}; {own}; last=1"}
        assert client("GET", CHECKPOINTS, headers=headers, token=False).status == 200


_AS_ANOTHER_USER = """
import encodings.idna, http.client, json, os, sys
port, link, headers, user = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
if os.geteuid() == 0:
    os.setresuid(user, user, user)
for path in ("/api/sessions", "/livez", link):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    print(answer.status, json.loads(answer.read())["code"])
"""


def test_another_user_of_the_machine_gets_nothing_with_token_cookie_or_link(
    client: Client, session: SessionCheckpointer
) -> None:
    link = client.server.new_link().removeprefix(client.server.url)
    cookie = _signed_in(client).headers["set-cookie"].partition(";")[0]
    if os.geteuid() != 0:  # nobody else can be had, so that the server has to be somebody else's
        client.server.access.user += 1
    for headers in ({**client.token_header}, {"Cookie": cookie}, {"X-Forwarded-For": "10.0.0.1"}):
        given = [str(_port(client)), link, json.dumps(headers), "65534"]
        child = subprocess.run(
            [sys.executable, "-c", _AS_ANOTHER_USER, *given],
            capture_output=True,
            text=True,
            check=False,
        )
        assert child.stdout.splitlines() == ["403 wrong_user"] * 3, child.stderr
    client.server.access.user = os.geteuid()
    assert client("GET", link, token=False).status == 303


def test_the_owner_of_a_connection_is_known_on_linux() -> None:
    for host in ("127.0.0.1", "::1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with (
            socket.create_server((host, 0), family=family) as listening,
            socket.create_connection(listening.getsockname()[:2]) as client,
        ):
            ends = client.getsockname()[:2], listening.getsockname()[:2]
            assert user_of(*ends) == (os.geteuid() if sys.platform == "linux" else None)
            assert user_of(("203.0.113.1", 1), ("203.0.113.2", 2)) is None
            assert user_of(("not an address", 1), ends[1]) is None


def test_links_expire() -> None:
    now = [0]
    access = Access(
        "token",
        ["http://127.0.0.1:1"],
        port=1,
        user=0,
        new_code=lambda: "code",
        now_ns=lambda: now[0],
        monotonic_ns=lambda: now[0],
    )
    access.new_link()
    now[0] += 121 * 10**9
    assert not access.links.take("code")
    cookie = access.cookies.new("code")
    assert access.cookies.is_valid(cookie)
    now[0] += 31 * 86_400 * 10**9
    assert not access.cookies.is_valid(cookie)


def test_only_json_is_taken_from_browsers_and_programs(client: Client) -> None:
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        reply = client("POST", CHECKPOINTS, b"{}", headers={"Content-Type": media_type})
        assert reply.status == 415
    assert client.get(SESSIONS) == []


def test_large_bodies_are_refused_with_and_without_a_length(client: Client) -> None:
    sent = {"Content-Type": "application/json"}
    body = b'{"reasoning": "' + b"x" * LARGEST_BODY + b'"}'
    assert client("POST", CHECKPOINTS, body, headers=sent).status == 413
    connection = client.connection()
    connection.request(
        "POST", CHECKPOINTS, iter([body]), {**sent, **client.token_header}, encode_chunked=True
    )
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["code"]) == (413, "too_large")
    connection.close()
    assert b'errors_total{code="too_large"} 2.0' in client("GET", "/metrics").body
    assert client.get(SESSIONS) == []


def test_large_headers_are_refused(client: Client) -> None:
    reply = client("GET", SESSIONS, headers={"X-Long": "x" * 100_000})
    assert reply.status == 431


def test_headers_that_never_end_are_cut_off(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", _port(client))) as endless:
        endless.settimeout(60)
        endless.sendall(b"GET /api/sessions HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            endless.sendall((b"X-More: " + b"x" * 1000 + b"\r\n") * 100_000)
    assert client.get(SESSIONS) == []


def test_half_a_request_harms_no_other_client(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", _port(client))) as half:
        half.sendall(b"POST /api/sessions/work/checkpoints HTTP/1.1\r\nHost: ")
        assert client.get(SESSIONS) == []


def test_every_answer_tells_the_browser_not_to_run_frame_or_guess_it(client: Client) -> None:
    replies = [
        client("GET", SESSIONS),
        client("GET", "/nothing"),
        client("GET", SESSIONS, token=False),
        client("GET", SESSIONS, headers={"Host": "evil.example"}),
        client("GET", "/livez", token=False),
    ]
    for reply in replies:
        assert SECURITY_HEADERS.items() <= reply.headers.items()
        assert reply.headers["cache-control"] in ("no-store", "private, no-cache")
    policy = SECURITY_HEADERS["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_a_rate_limit_lets_a_burst_through_and_then_so_many_a_second() -> None:
    now = [0]
    limit = RateLimit(2, 3, lambda: now[0])
    assert [limit.allows() for _ in range(4)] == [True, True, True, False]
    now[0] += 10**9
    assert [limit.allows() for _ in range(3)] == [True, True, False]


def test_guessing_tokens_is_slowed_down(client: Client) -> None:
    now = [0]
    client.server.access.failures = RateLimit(2, 20, lambda: now[0])
    statuses = [
        client("GET", SESSIONS, headers={"Authorization": f"Bearer {n}"}, token=False).status
        for n in range(25)
    ]
    assert statuses == [401] * 20 + [429] * 5
    assert client("GET", SESSIONS).status == 200
    assert _signed_in(client).status == 303


def test_requests_without_a_token_do_not_use_up_the_rate_of_others(client: Client) -> None:
    now = [0]
    access = client.server.access
    access.requests = RateLimit(1, 2, lambda: now[0])
    access.probes = RateLimit(1, 2, lambda: now[0])
    for _ in range(3):
        client("GET", SESSIONS, token=False)
    statuses = [client("GET", SESSIONS).status for _ in range(3)]
    assert statuses == [200, 200, 429]
    probes = [client("GET", "/livez", token=False) for _ in range(3)]
    assert [probe.status for probe in probes] == [200, 200, 429]
    assert probes[2].headers["retry-after"] == "1"
    access.requests = RateLimit(1, 1, lambda: now[0])
    metrics = client("GET", "/metrics").body.decode()
    assert 'errors_total{code="not_signed_in"} 3.0' in metrics
    assert 'errors_total{code="too_many_requests"} 2.0' in metrics


def test_serve_prints_one_line_when_it_is_ready_and_ends_with_ctrl_c(workspace: Path) -> None:
    child = subprocess.Popen(
        command("-C", str(workspace), "serve", "--port", "0", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        ready = json.loads(child.stdout.readline())
        assert ready.keys() == {"url", "token"}
        port = urlsplit(ready["url"]).port or 0
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(f"GET /livez HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        child.send_signal(2)
        out, err = child.communicate(timeout=60)
        assert (out, err) == ("", "")
    finally:
        child.kill()
        child.communicate()


def test_ui_prints_the_link(workspace: Path) -> None:
    child = subprocess.Popen(
        command("-C", str(workspace), "ui", "--no-open"), stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    try:
        link = child.stdout.readline()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login\?code=[0-9a-f]{64}\n", link)
    finally:
        child.kill()
        child.communicate()


def test_answers_do_not_wait_for_acknowledgements() -> None:
    with (
        listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()) as client,
    ):
        accepted, _ = listening.accept()
        with accepted, client:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_other_machines_cannot_be_let_in(workspace: Path) -> None:
    answer = run("-C", str(workspace), "serve", "--host", "0.0.0.0", "--json")
    assert answer.status == 5


def test_the_old_use_of_serve_is_answered_with_the_new_name(workspace: Path) -> None:
    answer = run("-C", str(workspace), "serve", "--idle", "5", "--json")
    assert answer.status == 2
    assert answer.error["hint"] == "the background process is: holdfast daemon --idle MINUTES"


@pytest.mark.requirement("WB-3")
@pytest.mark.parametrize(
    ("receipt", "installer"),
    [
        ("uv-receipt.toml", "uv tool install"),
        ("pipx_metadata.json", "pipx install --force"),
        ("pyvenv.cfg", "pip install"),
    ],
)
def test_without_the_extra_one_line_says_what_to_install(
    workspace: Path, tmp_path: Path, receipt: str, installer: str
) -> None:
    hidden, prefix = tmp_path / "site", tmp_path / "prefix"
    hidden.mkdir()
    prefix.mkdir()
    (prefix / receipt).touch()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        f"sys.prefix = {str(prefix)!r}\n"
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'fastapi' else find(name)\n"
    )
    path = os.pathsep.join([str(hidden), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.run(
        [sys.executable, "-m", "holdfast", "-C", str(workspace), "serve"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 5
    assert child.stderr.splitlines() == [
        "error: the web server needs packages that are not installed",
        f"hint: install them: {installer} 'holdfast[web]'",
    ]


@pytest.mark.requirement("WB-1")
def test_a_server_with_too_much_to_do_says_so_as_a_problem(workspace: Path) -> None:
    with running(workspace) as client:
        client.server.limits.connections += MOST_CONNECTIONS
        reply = client("GET", "/api/sessions")
        client.server.limits.connections -= MOST_CONNECTIONS
        assert (reply.status, reply.problem["code"]) == (503, "overloaded")
        assert (reply.headers["retry-after"], reply.headers["connection"]) == ("5", "close")
        assert SECURITY_HEADERS.items() <= reply.headers.items()
        assert b'errors_total{code="overloaded"} 1.0' in client("GET", "/metrics").body
