"""Over HTTP a token is needed that is genuine, valid, for this server and wide enough."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jwt
import pytest
from mcp_types import CallToolResult

from holdfast.api.stores import TOKEN_FILE, local_token
from holdfast.bootstrap import stores
from holdfast.domain.errors import Refused, UsageError
from holdfast.interfaces.mcp.http import HttpPlace
from tests.support.hostile_trees import fill
from tests.support.mcp_servers import HttpServer, http_server
from tests.support.token_issuer import TokenIssuer, token_issuer

pytestmark = pytest.mark.requirement("MC-3")

ALL = ("holdfast:read", "holdfast:write", "holdfast:restore", "holdfast:admin")


@pytest.fixture(scope="module")
def issuer() -> Iterator[TokenIssuer]:
    with token_issuer() as issuer:
        yield issuer


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, issuer: TokenIssuer) -> Iterator[HttpServer]:
    workspace = tmp_path_factory.mktemp("served") / "project"
    fill(workspace / "file", b"1")
    fill(workspace / ".gitignore", b".env\n")
    fill(workspace / ".env", b"TOKEN=hunter2\n")
    port = free_port()
    home = tmp_path_factory.mktemp("home")
    before = os.environ.get("HOLDFAST_HOME")
    os.environ["HOLDFAST_HOME"] = str(home)
    try:
        with http_server(
            workspace,
            *("--port", str(port)),
            *("--issuer", issuer.url, "--url", f"http://127.0.0.1:{port}/mcp"),
        ) as server:
            yield server
    finally:
        if before is None:
            del os.environ["HOLDFAST_HOME"]
        else:
            os.environ["HOLDFAST_HOME"] = before


def call(server: HttpServer, token: str, name: str, **arguments: Any) -> CallToolResult:
    async def run() -> CallToolResult:
        async with server.client(token=token) as client:
            return await client.call_tool(name, arguments)

    return anyio.run(run)


def test_a_good_token_opens_every_tool_that_it_grants(
    server: HttpServer, issuer: TokenIssuer
) -> None:
    token = issuer.sign(issuer.claims(server.url, *ALL))
    assert not call(server, token, "checkpoint_create", reasoning="r").is_error
    assert not call(server, token, "checkpoint_cleanup").is_error


@pytest.mark.requirement("CP-14")
def test_a_token_reads_nothing_of_an_ignored_file(server: HttpServer, issuer: TokenIssuer) -> None:
    token = issuer.sign(issuer.claims(server.url, *ALL))
    assert not call(server, token, "checkpoint_create", reasoning="r").is_error
    answer = call(server, token, "checkpoint_why", path=".env")
    assert answer.is_error
    assert "content withheld" in str(answer.content)
    assert "hunter2" not in str(answer)


def test_audience_and_scopes_may_be_lists(server: HttpServer, issuer: TokenIssuer) -> None:
    claims = issuer.claims(server.url, scope=None, scp=list(ALL))
    claims["aud"] = ["https://other.example", server.url + "/"]
    assert not call(server, issuer.sign(claims), "checkpoint_list").is_error


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("checkpoint_create", "holdfast:write"),
        ("checkpoint_restore", "holdfast:restore"),
        ("checkpoint_undo", "holdfast:restore"),
        ("checkpoint_cleanup", "holdfast:admin"),
        ("checkpoint_auto_configure", "holdfast:admin"),
    ],
)
def test_a_tool_beyond_the_scopes_of_the_token_is_refused(
    server: HttpServer, issuer: TokenIssuer, name: str, needed: str
) -> None:
    others = [scope for scope in ALL if scope != needed]
    result = call(server, issuer.sign(issuer.claims(server.url, *others)), name, reasoning="r")
    assert result.is_error
    assert needed in result.content[0].text  # type: ignore[union-attr]


Make = Callable[[TokenIssuer, str], str]


def _signed(*scopes: str, **changed: Any) -> Make:
    return lambda issuer, url: issuer.sign(issuer.claims(url, *(scopes or ALL), **changed))


def _with_other_key(issuer: TokenIssuer, url: str) -> str:
    with token_issuer() as other:
        return other.sign(issuer.claims(url, *ALL))


def _without_signature(issuer: TokenIssuer, url: str) -> str:
    return jwt.encode(issuer.claims(url, *ALL), "", algorithm="none", headers={"kid": "first"})


def _with_the_public_key_as_secret(issuer: TokenIssuer, url: str) -> str:
    import base64
    import hashlib
    import hmac
    import json

    def part(value: bytes) -> bytes:
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    header = part(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "first"}).encode())
    body = header + b"." + part(json.dumps(issuer.claims(url, *ALL)).encode())
    signature = hmac.new(issuer.public_key("first"), body, hashlib.sha256).digest()
    return (body + b"." + part(signature)).decode()


def _altered(issuer: TokenIssuer, url: str) -> str:
    header, _, signature = issuer.sign(issuer.claims(url, "holdfast:read")).split(".")
    _, body, _ = issuer.sign(issuer.claims(url, *ALL)).split(".")
    return f"{header}.{body}.{signature}"


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_signed(exp=int(time.time()) - 120), id="expired"),
        pytest.param(_signed(exp=None), id="never expires"),
        pytest.param(_signed(nbf=int(time.time()) + 3600), id="not yet valid"),
        pytest.param(_signed(aud="https://other.example/mcp"), id="for another server"),
        pytest.param(_signed(aud=None), id="for nobody"),
        pytest.param(_signed(iss="https://other.example"), id="of another issuer"),
        pytest.param(_signed(iss=None), id="of nobody"),
        pytest.param(_with_other_key, id="signed with another key"),
        pytest.param(_without_signature, id="alg=none"),
        pytest.param(_with_the_public_key_as_secret, id="HS256 with the public key"),
        pytest.param(_altered, id="altered"),
        pytest.param(lambda issuer, url: "a.b.c", id="nonsense"),
        pytest.param(lambda issuer, url: "x" * 20_000, id="huge"),
        pytest.param(lambda issuer, url: ".".join(["e30"] * 3), id="empty objects"),
    ],
)
def test_a_token_that_is_not_in_order_is_refused_with_where_to_get_one(
    server: HttpServer, issuer: TokenIssuer, make: Make
) -> None:
    response = server.post(authorization=f"Bearer {make(issuer, server.url)}")
    assert response.status_code == 401
    assert "/.well-known/oauth-protected-resource/mcp" in response.headers["www-authenticate"]


def test_a_token_that_may_not_even_read_is_refused(server: HttpServer, issuer: TokenIssuer) -> None:
    token = issuer.sign(issuer.claims(server.url, "email"))
    response = server.post(authorization=f"Bearer {token}")
    assert response.status_code == 403
    assert "insufficient_scope" in response.headers["www-authenticate"]


def test_a_token_counts_in_the_header_and_nowhere_else(
    server: HttpServer, issuer: TokenIssuer
) -> None:
    token = issuer.sign(issuer.claims(server.url, *ALL))
    assert server.post().status_code == 401
    assert server.post(authorization=f"Basic {token}").status_code == 401
    for query in ("access_token", "token"):
        response = httpx2.post(f"{server.url}?{query}={token}", json={})
        assert response.status_code == 401


def test_the_server_tells_who_gives_out_tokens(server: HttpServer, issuer: TokenIssuer) -> None:
    url = server.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    described = httpx2.get(url).json()
    assert described["resource"] == server.url
    assert [one.rstrip("/") for one in described["authorization_servers"]] == [issuer.url]
    assert described["scopes_supported"] == list(ALL)
    assert described["bearer_methods_supported"] == ["header"]


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [("host", "evil.example", 421), ("origin", "http://evil.example", 403)],
)
def test_a_browser_that_was_led_here_is_turned_away(
    server: HttpServer, issuer: TokenIssuer, header: str, value: str, status: int
) -> None:
    token = issuer.sign(issuer.claims(server.url, *ALL))
    headers = {"authorization": f"Bearer {token}", header: value}
    assert server.post(**headers).status_code == status


def test_without_an_issuer_the_token_of_this_machine_is_needed(workspace: Path) -> None:
    with http_server(workspace) as server:
        assert server.post().status_code == 401
        assert server.post(authorization=f"Bearer {server.token[:-1]}").status_code == 401
        assert server.post(authorization=b"Bearer \xff").status_code == 401
        assert not call(server, server.token, "checkpoint_create", reasoning="r").is_error
        metadata = server.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
        assert httpx2.get(metadata).status_code == 404


def test_the_local_token_is_private_random_and_stays(tmp_path: Path) -> None:
    token, path = local_token(tmp_path / "home")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(token) == 64
    assert local_token(tmp_path / "home") == (token, path)
    assert local_token(tmp_path / "other")[0] != token


@pytest.mark.parametrize("content", ["", "\n"])
def test_an_empty_token_file_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / TOKEN_FILE).write_text(content)
    (tmp_path / TOKEN_FILE).chmod(0o600)
    token, path = local_token(tmp_path)
    assert len(token) == 64
    assert path.read_text() == token + "\n"
    assert os.listdir(tmp_path) == [TOKEN_FILE]


def test_the_token_file_appears_with_its_content_and_the_first_process_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_token, seen = stores.new_token, list[str]()

    def while_another_process_asks() -> str:
        monkeypatch.setattr(stores, "new_token", new_token)
        seen.append(local_token(tmp_path)[0])
        return new_token()

    monkeypatch.setattr(stores, "new_token", while_another_process_asks)
    assert local_token(tmp_path)[0] == seen[0]
    assert os.listdir(tmp_path) == [TOKEN_FILE]


@pytest.mark.parametrize("spoil", ["readable", "link", "directory", "short"])
def test_a_token_file_that_cannot_be_trusted_is_refused(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / TOKEN_FILE
    if spoil == "readable":
        path.write_text("x" * 64)
        path.chmod(0o644)
    elif spoil == "link":
        (tmp_path / "elsewhere").write_text("x" * 64)
        (tmp_path / "elsewhere").chmod(0o600)
        path.symlink_to("elsewhere")
    elif spoil == "directory":
        path.mkdir(mode=0o700)
    else:
        path.write_text("x")
        path.chmod(0o600)
    with pytest.raises(Refused, match="token file") as refused:
        local_token(tmp_path)
    assert refused.value.hint is not None
    assert "rm " in refused.value.hint


@pytest.mark.parametrize(
    "place",
    [
        HttpPlace("0.0.0.0", 0),
        HttpPlace("192.0.2.1", 0),
        HttpPlace("127.0.0.1", 0, public_url="https://x.example/mcp"),
        HttpPlace("127.0.0.1", 0, issuer="https://x.example"),
        HttpPlace("127.0.0.1", 0, issuer="http://x.example", public_url="https://x.example/mcp"),
        HttpPlace("127.0.0.1", 0, issuer="https://x.example", public_url="http://x.example/mcp"),
    ],
)
def test_a_place_that_would_not_be_safe_is_refused(place: HttpPlace) -> None:
    with pytest.raises((Refused, UsageError)):
        place.check()
