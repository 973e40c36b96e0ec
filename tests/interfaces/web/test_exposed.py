"""Other machines: only over TLS, and tokens of an authorization server allow what they say."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from holdfast import SessionCheckpointer
from holdfast.domain.errors import Refused, UsageError
from holdfast.interfaces.web.access import OPEN_PATHS
from holdfast.interfaces.web.app import ROUTES
from holdfast.interfaces.web.server import Place
from tests.interfaces.web.client import Client, running
from tests.support.token_issuer import TokenIssuer, token_issuer

pytestmark = pytest.mark.requirement("WB-4")

CHECKPOINTS = "/api/sessions/work/checkpoints"
RESOURCE = "https://127.0.0.1"
NEEDED = {
    "read": ("GET", CHECKPOINTS),
    "write": ("POST", f"{CHECKPOINTS}/start/annotations"),
    "restore": ("POST", f"{CHECKPOINTS}/start/rollback"),
    "admin": ("DELETE", f"{CHECKPOINTS}/start"),
}

_QUERY = "path=notes.txt&q=first"
_BODIES: dict[str, dict[str, object]] = {
    f"{CHECKPOINTS.replace('work', '{session_id}')}/{{checkpoint_id}}/annotations": {"text": "x"},
    "/api/dialogs/{dialog_id}/restore": {"checkpoint_id": "start"},
}
"""Parameters that some routes do not do without."""


def _own(client: Client) -> str:
    [own] = client.get("/api/workspaces")["workspaces"]
    return str(own["id"])


def _certificate(directory: Path) -> tuple[Path, Path]:
    """For 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "holdfast test")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = directory / "certificate.pem", directory / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, secret


@pytest.fixture
def issuer() -> Iterator[TokenIssuer]:
    with token_issuer() as issuer:
        yield issuer


@pytest.fixture
def exposed(
    workspace: Path, session: SessionCheckpointer, issuer: TokenIssuer, tmp_path: Path
) -> Iterator[Client]:
    certificate, key = _certificate(tmp_path)
    place = Place("127.0.0.1", 0, certificate, key, issuer.url, RESOURCE)
    trust = ssl.create_default_context(cafile=str(certificate))
    with running(workspace, place=place, trust=trust) as client:
        # The public URL has no port here, so that the host is the second origin.
        client.host = client.server.origins[1].removeprefix("https://")
        yield client


def _token(issuer: TokenIssuer, *scopes: str, audience: str = RESOURCE) -> dict[str, str]:
    claims = issuer.claims(audience, *(f"holdfast:{scope}" for scope in scopes))
    return {"Authorization": f"Bearer {issuer.sign(claims)}"}


@pytest.mark.parametrize("needed", NEEDED)
def test_a_token_allows_what_its_scopes_say(
    exposed: Client, issuer: TokenIssuer, needed: str
) -> None:
    method, path = NEEDED[needed]
    body = {"text": "note"} if needed == "write" else None
    others = _token(issuer, *(scope for scope in NEEDED if scope != needed))
    refused = exposed(method, path, body, headers=others, token=False)
    assert (refused.status, refused.problem["code"]) == (403, "insufficient_scope")
    assert "insufficient_scope" in refused.headers["www-authenticate"]
    allowed = exposed(method, path, body, headers=_token(issuer, needed), token=False)
    assert allowed.status in (200, 201)


@pytest.mark.parametrize("needed", NEEDED)
def test_every_route_needs_the_scope_that_it_is_described_with(
    exposed: Client, issuer: TokenIssuer, needed: str
) -> None:
    """A token with every other scope is refused."""
    others = _token(issuer, *(scope for scope in NEEDED if scope != needed))
    routes = [one for one in ROUTES if one.scope == needed and one.path not in OPEN_PATHS]
    assert len(routes) >= 3
    for route in routes:
        body = None if route.method == "GET" else _BODIES.get(route.path, {})
        path = route.path.replace("{session_id}", "work").replace("{step}", "0")
        path = re.sub(r"{\w+}", "start", path)
        for place in (path, path.replace("/api/", f"/api/workspaces/{_own(exposed)}/", 1)):
            given = f"{place}?{_QUERY}"
            refused = exposed(route.method, given, body, headers=others, token=False)
            assert (refused.status, refused.problem["code"]) == (403, "insufficient_scope"), place
    assert exposed.get(CHECKPOINTS)


def test_routes_that_change_something_need_more_than_to_read() -> None:
    looks = ("/rollback/preview", "/api/check")
    for route in ROUTES:
        changes = route.method != "GET" and not route.path.endswith(looks)
        assert (route.scope != "read") == changes, route
        assert route.method != "DELETE" or route.scope == "admin", route


def test_a_token_of_another_server_cannot_sign_a_browser_in(
    exposed: Client, issuer: TokenIssuer
) -> None:
    """The cookie would allow everything, for longer than the token is valid."""
    for scopes in (["admin"], list(NEEDED)):
        headers = _token(issuer, *scopes)
        reply = exposed("POST", "/api/login-links", headers=headers, token=False)
        assert (reply.status, reply.problem["code"]) == (403, "insufficient_scope")
    assert exposed.post("/api/login-links")["link"]


def test_tokens_for_others_and_of_others_do_not_count(exposed: Client, issuer: TokenIssuer) -> None:
    with token_issuer() as other:
        wrong = [
            _token(issuer, "read", audience="https://elsewhere.example"),
            _token(other, "read"),
            {"Authorization": "Bearer nonsense"},
            {},
        ]
        for headers in wrong:
            reply = exposed("GET", CHECKPOINTS, headers=headers, token=False)
            assert reply.status == 401
            assert f"{RESOURCE}/.well-known/" in reply.headers["www-authenticate"]


def test_events_need_a_scope_too(exposed: Client, issuer: TokenIssuer) -> None:
    reply = exposed("GET", "/api/events", headers=_token(issuer, "admin"), token=False)
    assert reply.status == 403


def test_clients_learn_who_issues_tokens(exposed: Client, issuer: TokenIssuer) -> None:
    reply = exposed("GET", "/.well-known/oauth-protected-resource", token=False)
    assert reply.json["authorization_servers"] == [issuer.url]
    assert reply.json["resource"] == RESOURCE


def test_the_local_token_and_a_browser_are_let_in_over_tls(exposed: Client) -> None:
    assert exposed("GET", CHECKPOINTS).status == 200
    link = exposed.server.new_link()
    assert link.startswith("https://")
    reply = exposed("GET", link[link.index("/login") :], token=False)
    assert "Secure" in reply.headers["set-cookie"]


def test_other_machines_need_tls_and_a_name(tmp_path: Path) -> None:
    certificate = key = tmp_path / "file"
    for place in (Place("0.0.0.0", 0), Place("192.0.2.1", 0, issuer="x", public_url="https://h")):
        with pytest.raises(Refused):
            place.check()
    for place in (
        Place("192.0.2.1", 0, certificate),
        Place("0.0.0.0", 0, certificate, key),
        Place("127.0.0.1", 0, issuer="https://issuer"),
        Place("127.0.0.1", 0, jwks_url="https://keys"),
    ):
        with pytest.raises(UsageError):
            place.check()
    Place("192.0.2.1", 0, certificate, key).check()
    Place("0.0.0.0", 0, certificate, key, public_url="https://h.example").check()


def test_only_the_names_of_the_server_are_its_origins() -> None:
    place = Place("192.0.2.1", 0, Path("c"), Path("k"), None, "https://h.example/")
    assert place.origins(7348) == ["https://h.example", "https://192.0.2.1:7348"]
    assert Place("0.0.0.0", 0, public_url="https://h.example").origins(1) == ["https://h.example"]
