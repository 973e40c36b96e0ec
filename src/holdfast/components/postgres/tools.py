"""The server's own programs: found on absolute paths only, of the version that is needed.

A dump is only sure to be loadable by a server of the version whose tools made it, so `pg_dump` has
to be of the server's major version. Any `psql` can talk to any server.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cached_property
from glob import glob

from holdfast.ports.component import ComponentProblem

USUAL_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/usr/local/opt/libpq/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/opt/homebrew/opt/libpq/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)
_VERSION = re.compile(r"\(PostgreSQL\)\D*(\d+)")
_ASKING_S = 10
_WRAPPER = "pg_wrapper"
"""Debian puts a script in front of all versions, which costs more time than the program."""


class Tools:
    """`places` is where to look besides PATH."""

    def __init__(self, environment: Mapping[str, str], places: tuple[str, ...]) -> None:
        self._path = environment.get("PATH", os.defpath)
        self._places = places
        self._dumps: dict[int, str] = {}

    @cached_property
    def psql(self) -> str:
        found = list(self._all("psql"))
        if not found:
            raise ComponentProblem(
                "psql is not installed: install PostgreSQL's client programs, or put the directory "
                "that has them on PATH"
            )
        return next((path for path in found if not _is_wrapper(path)), found[0])

    def pg_dump(self, major: int) -> str:
        if major not in self._dumps:
            others = set()
            for program in self._all("pg_dump"):
                version = _major(program)
                if version == major:
                    self._dumps[major] = program
                    break
                others.add(version)
            else:
                raise _not_found(major, others)
        return self._dumps[major]

    def _all(self, name: str) -> Iterator[str]:
        """Those on PATH, then those of the usual places, newest first; never of a relative path,
        which could lead into the workspace."""
        places = [place for place in self._path.split(os.pathsep) if os.path.isabs(place)]
        for pattern in self._places:
            places += sorted(glob(pattern), key=_number, reverse=True)
        for place in dict.fromkeys(places):
            program = os.path.join(place, name)
            if os.path.isfile(program) and os.access(program, os.X_OK):
                yield program


def _is_wrapper(program: str) -> bool:
    return os.path.basename(os.path.realpath(program)) == _WRAPPER


def _number(place: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", place))


def _major(program: str) -> int | None:
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASKING_S,
            stdin=subprocess.DEVNULL,
            env={"LC_ALL": "C", "PATH": os.defpath},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stdout)
    return int(found[1]) if found else None


def _not_found(major: int, others: set[int | None]) -> ComponentProblem:
    numbers = sorted(version for version in others if version is not None)
    there = f"only {', '.join(map(str, numbers))} was found" if numbers else "none was found"
    return ComponentProblem(
        f"the server is PostgreSQL {major} and needs pg_dump of that version, but {there}: install "
        f"the client programs of PostgreSQL {major}, or put their directory on PATH"
    )
