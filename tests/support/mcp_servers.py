"""Servers as agents start them: a process of their own, reached by the official client."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.support.forked_commands import program_of

Era = Literal["legacy", "auto"]
"""Clients that shake hands first (up to 2025-11-25), and those that do not (2026-07-28)."""


def command(workspace: Path, *arguments: str) -> list[str]:
    return program_of("-C", str(workspace), "mcp", *arguments)


@dataclass(frozen=True, slots=True)
class HttpServer:
    url: str
    token: str

    @asynccontextmanager
    async def client(
        self, era: Era = "auto", token: str | None = None, **options: Any
    ) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        # However loaded the machine is, an answer is waited for.
        async with httpx2.AsyncClient(headers=headers, timeout=None) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=era, **options) as client:
                yield client

    def post(self, body: Any = None, **headers: str | bytes) -> httpx2.Response:
        """A bare request, with the headers that every one needs."""
        usual = {b"accept": b"application/json, text/event-stream"}
        given = {
            name.encode(): value.encode() if isinstance(value, str) else value
            for name, value in headers.items()
        }
        return httpx2.post(self.url, headers=usual | given, json=body or {})


@contextmanager
def http_server(workspace: Path, *arguments: str) -> Iterator[HttpServer]:
    """Ended when the block ends."""
    port = () if "--port" in arguments else ("--port", "0")
    process = subprocess.Popen(
        command(workspace, "--http", "--json", *port, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stdout.readline()
        assert said, process.stderr.read()
        told = json.loads(said)
        token = Path(told["token_file"]).read_text().strip() if told["token_file"] else ""
        yield HttpServer(told["url"], token)
    finally:
        process.terminate()
        process.communicate(timeout=60)


@asynccontextmanager
async def stdio_client(workspace: Path, era: Era = "auto", **options: Any) -> AsyncIterator[Client]:
    name, *arguments = command(workspace)
    server = StdioServerParameters(command=name, args=arguments, env=dict(os.environ))
    async with Client(server, mode=era, **options) as client:
        yield client
