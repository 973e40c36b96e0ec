"""An authorization server on loopback: it publishes its keys and signs whatever it is asked to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


class TokenIssuer:
    """Its address is the issuer; `requests` are the paths that were asked for."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[str] = []
        self.failing = False
        self.more_keys: list[Any] = []
        self._keys: dict[str, rsa.RSAPrivateKey] = {}
        self.add_key("first")

    def add_key(self, key_id: str) -> None:
        self._keys[key_id] = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def public_key(self, key_id: str) -> bytes:
        return (
            self._keys[key_id]
            .public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )

    def claims(self, audience: str, *scopes: str, **changed: Any) -> dict[str, Any]:
        """What a good token says; None takes a claim away."""
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "aud": audience,
            "sub": "ada",
            "client_id": "test",
            "iat": now,
            "exp": now + 600,
            "scope": " ".join(scopes),
        } | changed
        return {name: value for name, value in claims.items() if value is not None}

    def sign(self, claims: dict[str, Any], key_id: str = "first", **header: Any) -> str:
        key = self._keys[key_id]
        return jwt.encode(claims, key, algorithm="RS256", headers={"kid": key_id} | header)

    def answer(self, path: str) -> dict[str, Any] | None:
        self.requests.append(path)
        if self.failing:
            return None
        if path == "/.well-known/oauth-authorization-server":
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        if path == "/keys":
            return {"keys": [*map(self.published, self._keys), *self.more_keys]}
        return None

    def published(self, key_id: str) -> dict[str, Any]:
        public = self._keys[key_id].public_key()
        described: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(public))
        return described | {"kid": key_id, "use": "sig", "alg": "RS256"}


@contextmanager
def token_issuer() -> Iterator[TokenIssuer]:
    """Serves until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = issuer.answer(self.path)
            body = json.dumps(answer or {}).encode()
            self.send_response(404 if answer is None else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer = TokenIssuer(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
