"""The schema of a database as `pg_dump` gives it, without what differs from one run to the next."""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.components.postgres.addresses import Address
from holdfast.components.postgres.looking import Identity
from holdfast.components.postgres.running import TimeLimit, output_of
from holdfast.components.postgres.states import LARGEST_SCHEMA_BYTES
from holdfast.components.postgres.tools import Tools
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of

_BEGINNING = re.compile(
    rb"\A--\n-- PostgreSQL database dump\n--\n\n(?:\\restrict \w+\n\n)?"
    rb"(?:-- Dumped (?:from|by) .*\n)*"
)
_PUBLIC = re.compile(
    rb"^--\n-- Name: (?:SCHEMA )?public; Type: (?:SCHEMA|ACL|COMMENT); .*\n--\n(?:(?!--\n).*\n)*",
    re.MULTILINE,
)
_END = re.compile(rb"\\unrestrict \w+\s*\Z")


@dataclass(frozen=True, slots=True)
class Schema:
    """What has to be there before the rows, and what comes after them."""

    before: bytes
    after: bytes

    @property
    def shape(self) -> Digest:
        """Equal for equal schemas. Without the rights of `public`: a server never forgets that it
        was made anew, and says the same rights in other words from then on."""
        return digest_of(_PUBLIC.sub(b"", self.before) + b"\0" + _PUBLIC.sub(b"", self.after))


def dump_schema(
    tools: Tools,
    address: Address,
    environment: dict[str, str],
    identity: Identity,
    limit: TimeLimit,
    snapshot: str | None,
) -> Schema:
    program = tools.pg_dump(identity.major)

    def section(name: str) -> bytes:
        arguments = [
            program,
            f"--section={name}",
            f"--encoding={identity.client_encoding}",
            f"--lock-wait-timeout={limit.lock_wait_ms}",
            "--no-subscriptions",
            "--no-password",
        ]
        if snapshot is not None:
            arguments.append(f"--snapshot={snapshot}")
        doing = f"dumping the schema ({name})"
        return _settled(
            output_of(limit, arguments, address, environment, doing, LARGEST_SCHEMA_BYTES)
        )

    return Schema(section("pre-data"), section("post-data"))


def _settled(script: bytes) -> bytes:
    """Without the lines at both ends that name versions and guard `psql` by a random word."""
    return _END.sub(b"", _BEGINNING.sub(b"", script, count=1), count=1).strip() + b"\n"
