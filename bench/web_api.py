"""How quickly the HTTP API answers in a store with a long past, beside git for the same click.

    python -m bench.web_api [--checkpoints N] [--files N] [--rounds N]

A workspace gets most of its checkpoints as rows, as years of work would leave them, and the last
ones by real saves of five changed files each. `holdfast serve` runs in a process of its own. Each
request is sent several times over one connection; printed are the median and the 95th of a hundred,
and the bound on that (PF-9). Then four connections send mixed reads as fast as they can.

Tools with a shadow repository run `git log` for the list and `git diff` for a click. The same two
commands are timed in a repository with as many commits.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench import trees
from bench.finding import fill
from bench.measure import Measurement
from bench.processes import plain_surroundings, run
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent

SESSION = "session-0"
REAL_SAVES = 10
FILES_CHANGED = 5
CLIENTS = 4
MIXED_S = 5.0
LEAST_PER_SECOND = 300
_HOLDFAST = (sys.executable, "-m", "holdfast")
_CHECKPOINTS = f"/api/sessions/{SESSION}/checkpoints"

REQUESTS = {
    "a page of the timeline": (f"{_CHECKPOINTS}/timeline?limit=100", 50.0),
    "a page of checkpoints": (f"{_CHECKPOINTS}?limit=100", 50.0),
    "a checkpoint": (f"{_CHECKPOINTS}/HEAD?files=0", 50.0),
    "a checkpoint with its first 1,000 files": (f"{_CHECKPOINTS}/HEAD", None),
    "a diff of 5 files": (f"{_CHECKPOINTS}/HEAD/diff?with=before", 150.0),
    "a diff of 5 files with colours": (f"{_CHECKPOINTS}/HEAD/diff?with=before&colours=true", None),
    "the sessions": ("/api/sessions", None),
}
MIXED = [path for path, _ in list(REQUESTS.values())[:3]] + [REQUESTS["a diff of 5 files"][0]]


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of the report, in milliseconds."""

    name: str
    median_ms: float
    p95_ms: float
    limit_ms: float | None = None

    def __str__(self) -> str:
        words = f"{self.name:<44} {self.median_ms:8.1f} ms {self.p95_ms:8.1f} ms"
        if self.limit_ms is None:
            return words
        verdict = "within" if self.p95_ms <= self.limit_ms else "OVER"
        return f"{words}  {verdict} {self.limit_ms:g} ms"


def main() -> int:
    given = _parse()
    with tempfile.TemporaryDirectory(prefix="holdfast-web-") as directory:
        work = Path(directory)
        with plain_surroundings(work):
            os.environ["HOLDFAST_HOME"] = str(work / "holdfast")
            workspace = prepare(work, given.checkpoints, given.files)
            print(f"{'':<44} {'median':>11} {'p95':>11}")
            with serving(workspace) as server:
                for line in measure(server, given.rounds):
                    print(line, flush=True)
                rate = mixed_reads(server, MIXED_S)
                verdict = "within" if rate >= LEAST_PER_SECOND else "UNDER"
                print(f"mixed reads: {rate:,.0f} per second  {verdict} {LEAST_PER_SECOND}")
            for line in measure_git(work / "shadow", given.checkpoints, given.rounds):
                print(line)
    return 0


def prepare(work: Path, checkpoints: int, files: int) -> Path:
    """The workspace with its long past."""
    workspace = work / "project"
    trees.generate(workspace, files)
    changed = sorted(path for path in workspace.rglob("*") if path.is_file())[:FILES_CHANGED]
    with open_workspace(workspace, create=True, force=True) as opened:
        fill(opened.engine, max(checkpoints - REAL_SAVES, 1), 0)
        for number in range(REAL_SAVES):
            for path in changed:
                with path.open("ab") as file:
                    file.write(b"changed %d\n" % number)
            opened.engine.save(SessionId(SESSION), make_intent(f"real save {number}"))
    return workspace


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers."""

    host: str
    token: str

    def ask(self, connection: http.client.HTTPConnection, path: str) -> bytes:
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {content[:200]!r}")
        return content


@contextmanager
def serving(workspace: Path) -> Iterator[Server]:
    """`holdfast serve`, until the block ends."""
    command = [*_HOLDFAST, "-C", str(workspace), "--force", "serve", "--port", "0", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        ready = json.loads(child.stdout.readline())
        yield Server(urlsplit(ready["url"]).netloc, ready["token"])
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)


def measure(server: Server, rounds: int) -> Iterator[Line]:
    connection = http.client.HTTPConnection(server.host)
    for name, (path, limit_ms) in REQUESTS.items():
        server.ask(connection, path)

        def ask(path: str = path) -> object:
            return server.ask(connection, path)

        yield _line(f"HTTP: {name}", ask, rounds, limit_ms)
    connection.close()


def mixed_reads(server: Server, seconds: float) -> float:
    """Requests per second, of several clients at once."""
    counts: list[int] = []
    end = time.monotonic() + seconds

    def work(first: int) -> None:
        connection, sent = http.client.HTTPConnection(server.host), 0
        while time.monotonic() < end:
            server.ask(connection, MIXED[(first + sent) % len(MIXED)])
            sent += 1
        connection.close()
        counts.append(sent)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def measure_git(place: Path, commits: int, rounds: int) -> Iterator[Line]:
    """The same clicks in a shadow repository."""
    place.mkdir()
    run(["git", "init", "-q"], cwd=place)
    run(["git", "fast-import", "--quiet"], cwd=place, stdin=b"".join(_commits(commits)))

    def git(*arguments: str) -> Callable[[], object]:
        return lambda: run(["git", *arguments], cwd=place)

    listing = git("log", "-n", "100", "--format=%H %at %s", "work")
    yield _line("git log, 100 commits", listing, rounds)
    yield _line("git diff of 5 files", git("diff", "work~1", "work"), rounds)


def _commits(number: int) -> Iterator[bytes]:
    """As many commits, each of five changed files, as `git fast-import` takes them."""
    for count in range(number):
        message = b"step %d of the work" % count
        yield b"commit refs/heads/work\n"
        yield b"committer bench <bench@example.invalid> %d +0000\n" % (1_700_000_000 + count)
        yield b"data %d\n%b\n" % (len(message), message)
        for file in range(FILES_CHANGED):
            content = b"content %d\n" % count
            yield b"M 100644 inline file-%d\ndata %d\n%b\n" % (file, len(content), content)


def _line(name: str, ask: Callable[[], object], rounds: int, limit_ms: float | None = None) -> Line:
    measured = Measurement(samples=list(_samples(ask, rounds)))
    return Line(name, measured.median * 1000, measured.p95 * 1000, limit_ms)


def _samples(ask: Callable[[], object], rounds: int) -> Iterator[float]:
    for _ in range(rounds):
        begun = time.perf_counter()
        ask()
        yield time.perf_counter() - begun


def _parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.web_api")
    parser.add_argument("--checkpoints", type=int, default=10_000, metavar="N")
    parser.add_argument("--files", type=int, default=10_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=100, metavar="N")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
