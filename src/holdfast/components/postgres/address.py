"""A database's address and credentials, from a URL that is never shown; and errors without secrets.

The URL comes from an environment variable or from a private file. It reaches the server's tools as
environment variables, never as an argument. It is not stored, and all output of a tool goes through
`Address.redacted` before it is shown.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from holdfast.components.files import READ_FLAGS
from holdfast.ports.component import ComponentProblem

MASK = "***"
_LARGEST_FILE_BYTES = 64 << 10
_OTHERS = 0o077
_ROOT = 0

_OPTIONS = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "passfile": "PGPASSFILE",
    "channel_binding": "PGCHANNELBINDING",
    "options": "PGOPTIONS",
    "sslmode": "PGSSLMODE",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcrl": "PGSSLCRL",
    "sslsni": "PGSSLSNI",
    "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
    "ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION",
    "gssencmode": "PGGSSENCMODE",
    "krbsrvname": "PGKRBSRVNAME",
    "requirepeer": "PGREQUIREPEER",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "application_name": "PGAPPNAME",
}


@dataclass(frozen=True, slots=True)
class Address:
    """`source` says where the URL came from, `shown` is the part that may be displayed."""

    source: str
    shown: str
    variables: Mapping[str, str] = field(repr=False)

    def redacted(self, text: str) -> str:
        for secret in self._secrets():
            text = text.replace(secret, MASK)
        return text

    def _secrets(self) -> list[str]:
        password = self.variables.get("PGPASSWORD", "")
        forms = {password, quote(password), quote(password, safe="")}
        return sorted((form for form in forms if form), key=len, reverse=True)


def find_address(source: str, environment: Mapping[str, str]) -> Address | None:
    """The address from a variable or a file; None for an unset variable."""
    if source.startswith(("/", "~")):
        return parse_url(_read_file(source, environment), source)
    url = environment.get(source, "").strip()
    return parse_url(url, source) if url else None


def _read_file(source: str, environment: Mapping[str, str]) -> str:
    path = source
    if source.startswith("~/"):
        path = os.path.join(environment.get("HOME", "/"), source[2:])
    try:
        fd = os.open(path, READ_FLAGS)
    except OSError as error:
        raise ComponentProblem(f"{source} cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise ComponentProblem(f"{source} is not a file")
        if status.st_uid not in (os.geteuid(), _ROOT) or status.st_mode & _OTHERS:
            raise ComponentProblem(f"{source} can be read by others: chmod 600 {source}")
        data = os.read(fd, _LARGEST_FILE_BYTES)
    finally:
        os.close(fd)
    try:
        return data.decode().strip()
    except UnicodeDecodeError:
        raise ComponentProblem(f"{source} contains no URL") from None


def parse_url(url: str, source: str) -> Address:
    """`ComponentProblem` describes the problem without showing the URL."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.partition("+")[0]  # may be followed by a driver's name
        if scheme not in ("postgres", "postgresql") or "\0" in url or "\n" in url:
            raise ValueError
        if "@" in parts.path + parts.query + parts.fragment:
            raise ValueError  # the text before it is probably part of a password
        credentials, _, hosts = parts.netloc.rpartition("@")
        user, _, password = credentials.partition(":")
        variables = _host_variables(hosts)
        variables["PGUSER"], variables["PGPASSWORD"] = unquote(user), unquote(password)
        variables["PGDATABASE"] = unquote(parts.path.removeprefix("/"))
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise ComponentProblem(
            f"{source} contains no database URL: postgresql://user:password@host:port/name (in "
            "names and passwords, write @ as %40, / as %2F, ? as %3F and # as %23)"
        ) from None
    for name, value in options:
        if name not in _OPTIONS:
            raise ComponentProblem(
                f"the URL in {source} has the option {name!r:.60}, which PostgreSQL's tools "
                "do not support; remove it"
            )
        variables[_OPTIONS[name]] = value
    variables = {name: value for name, value in variables.items() if value}
    if not variables.get("PGDATABASE"):
        raise ComponentProblem(f"the URL in {source} names no database")
    where = variables.get("PGHOST", "the local server")
    port = f":{variables['PGPORT']}" if "PGPORT" in variables else ""
    return Address(source, f"{variables['PGDATABASE']} at {where}{port}", variables)


def _host_variables(hosts: str) -> dict[str, str]:
    """One host or several, each with or without a port; `[...]` around an address with colons."""
    names, ports = [], []
    for host in hosts.split(",") if hosts else ():
        if host.startswith("["):
            name, closed, rest = host[1:].partition("]")
            if not closed or (rest and not rest.startswith(":")):
                raise ValueError
            port = rest.removeprefix(":")
        else:
            name, _, port = host.partition(":")
        if port and not port.isdecimal():
            raise ValueError
        names.append(unquote(name))
        ports.append(port)
    return {"PGHOST": ",".join(names), "PGPORT": ",".join(ports) if any(ports) else ""}


LOCKED = "55P03"
_SAID = re.compile(r"(?:ERROR|FATAL|PANIC):\s+(?:([0-9A-Z]{5}): )?(.+)")
_LONGEST_SAID = 300

_BY_STATE = {
    "28P01": "wrong password: correct the URL in {source}",
    "28000": "the server rejects this user: check its pg_hba.conf, or the URL in {source}",
    "3D000": "no such database: correct the URL in {source}",
    "42501": "permission denied: use the database owner in {source}",
    "53100": "the server's disk is full",
    "53200": "the server is out of memory or locks: raise max_locks_per_transaction",
    "53300": "the server has too many connections: close some, or raise max_connections",
    LOCKED: "another connection holds a lock (a migration, for example): wait for it and try again",
    "40P01": "other programs are using the database: stop them and try again",
    "40001": "other programs are using the database: stop them and try again",
    "57014": "it took too long or was cancelled; to allow more time, raise component_timeout",
    "57P01": "the server is shutting down",
    "57P03": "the server is starting or recovering: try again in a moment",
}
_BY_WORDS = (
    ("password authentication failed", _BY_STATE["28P01"]),
    ("no password supplied", "a password is required: add it to the URL in {source}"),
    ("no pg_hba.conf entry", _BY_STATE["28000"]),
    ("does not exist", _BY_STATE["3D000"]),
    ("Connection refused", "no server at that address: start it, or correct {source}"),
    ("No such file or directory", "no server is running here: start it, or correct {source}"),
    ("could not translate host name", "unknown host: correct the URL in {source}"),
    ("timeout expired", "the server does not respond: check that it runs and is reachable"),
    ("too many clients", _BY_STATE["53300"]),
    ("remaining connection slots", _BY_STATE["53300"]),
    ("starting up", _BY_STATE["57P03"]),
    ("shutting down", _BY_STATE["57P01"]),
    ("lock timeout", _BY_STATE[LOCKED]),
    ("server version mismatch", "the client tools and the server have different versions"),
    ("server closed the connection", "the server closed the connection: check its log"),
)


def failure(address: Address, doing: str, said: bytes) -> ComponentProblem:
    """From a tool's error output."""
    text = address.redacted(said.decode("utf-8", "replace"))
    found = list(_SAID.finditer(text))
    state, words = (found[0][1], found[0][2]) if found else (None, _last_line(text))
    fix = _BY_STATE.get(state or "")
    if fix is None and state is None:
        fix = next((hint for sign, hint in _BY_WORDS if sign in text), None)
    line = "".join(c for c in words.strip() if c.isprintable())[:_LONGEST_SAID]
    message = f"{address.shown}: {doing}: {line or 'it failed'}"
    if fix is not None:
        message += f"; {fix.format(source=address.source)}"
    return ComponentProblem(message)


def too_slow(address: Address, doing: str, timeout_s: float) -> ComponentProblem:
    return ComponentProblem(
        f"{address.shown}: {doing}: not finished within {timeout_s:g} seconds; to allow more "
        "time, raise component_timeout"
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    connection = [line for line in lines if "failed:" in line or "error:" in line]
    return (connection or lines or [""])[0]
