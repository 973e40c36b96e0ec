"""How quickly the HTTP API answers in a store with a long past, beside git for the same click.

    python -m bench.web_api [--checkpoints N] [--files N] [--rounds N]

A session gets most of its checkpoints as rows, as years of work would leave them, and the last
ones by real saves of five changed files each. As many checkpoints again are in other sessions.
`holdfast serve` runs in a process of its own. Each request is sent several times over one
connection. Printed are the median, the 95th percentile and the bound on it (PF-9). Then four
connections send mixed reads as fast as they can.

Tools with a shadow repository run `git log` for the list and `git diff` for a click. The same two
commands are timed in a repository with as many files and as many commits.
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
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from bench import trees
from bench.contest import Book
from bench.finding import fill
from bench.measure import Refusal, ratio
from bench.peers import HOLDFAST, REFERENCE
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

TIMELINE = "HTTP: a page of the timeline"
CHECKPOINT = "HTTP: a checkpoint"
DIFF = "HTTP: a diff of 5 files"
MIXED = f"HTTP: mixed reads of {CLIENTS} clients, time per request"
REQUESTS = {
    TIMELINE: f"{_CHECKPOINTS}/timeline?limit=100",
    "HTTP: a page of checkpoints": f"{_CHECKPOINTS}?limit=100",
    CHECKPOINT: f"{_CHECKPOINTS}/HEAD?files=0",
    "HTTP: a checkpoint with its first 1,000 files": f"{_CHECKPOINTS}/HEAD",
    DIFF: f"{_CHECKPOINTS}/HEAD/diff?with=before",
    "HTTP: a diff of 5 files with colours": f"{_CHECKPOINTS}/HEAD/diff?with=before&colours=true",
    "HTTP: the sessions": "/api/sessions",
}
LIMITS_MS = {
    TIMELINE: 50.0,
    "HTTP: a page of checkpoints": 50.0,
    CHECKPOINT: 50.0,
    DIFF: 150.0,
    MIXED: 1000 / LEAST_PER_SECOND,
}
MIXED_REQUESTS = [REQUESTS[name] for name in LIMITS_MS if name in REQUESTS]


def main() -> int:
    given = _parse()
    with tempfile.TemporaryDirectory(prefix="holdfast-web-") as directory:
        work = Path(directory)
        with plain_surroundings(work):
            os.environ["HOLDFAST_HOME"] = str(work / "holdfast")
            past = prepare(work, given.checkpoints, given.files)
            book = Book()
            with serving(past.workspace) as server:
                measure(book, server, given.rounds)
            measure_git(book, work, past.workspace, given.checkpoints, given.rounds)
            print(printed(book, LIMITS_MS))
    return 0


def printed(book: Book, limits_ms: dict[str, float]) -> str:
    """Each operation with its median, its 95th percentile, its bound and its ratio to git."""
    lines = [f"{'':<52} {'median':>11} {'p95':>11} {'x git':>6}"]
    for operation, page in book.pages.items():
        own = page[HOLDFAST.title]
        against_git = ratio(own, page.get(REFERENCE.title))
        words = f"{operation:<52} {own.median * 1000:8.1f} ms {own.p95 * 1000:8.1f} ms"
        words += f" {'' if isinstance(against_git, Refusal) else f'{against_git:.2f}':>6}"
        if (limit_ms := limits_ms.get(operation)) is not None:
            verdict = "within" if own.p95 * 1000 <= limit_ms else "OVER"
            words += f"  {verdict} {limit_ms:.3g} ms"
        lines.append(words)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Past:
    """A workspace with a long past; `saved` are the ids of its real saves, oldest first."""

    workspace: Path
    saved: Sequence[str]


def prepare(work: Path, checkpoints: int, files: int, saves: int = REAL_SAVES) -> Past:
    workspace = work / "project"
    trees.generate(workspace, files)
    changed = sorted(path for path in workspace.rglob("*") if path.is_file())[:FILES_CHANGED]
    saved = []
    with open_workspace(workspace, create=True, force=True) as opened:
        fill(opened.engine, 2 * max(checkpoints - saves, 1), 0)
        for number in range(saves):
            for path in changed:
                with path.open("a", encoding="utf-8") as file:
                    file.write(f"{line_of(number)}\n")
            reason = make_intent(f"real save {number}")
            saved.append(opened.engine.save(SessionId(SESSION), reason).checkpoint.id)
    return Past(workspace, saved)


def line_of(save: int) -> str:
    """The line that a real save finds at the end of each changed file."""
    return f"changed by save {save:04}"


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

    def login_link(self) -> str:
        """An address that signs a browser in, once."""
        request = urllib.request.Request(
            f"http://{self.host}/api/login-links",
            b"{}",
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            link: str = json.load(answer)["link"]
            return link


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


def measure(book: Book, server: Server, rounds: int, mixed_s: float = MIXED_S) -> None:
    connection = http.client.HTTPConnection(server.host)
    for operation, path in REQUESTS.items():
        server.ask(connection, path)
        taken = _samples(partial(server.ask, connection, path), rounds)
        book.at(operation, HOLDFAST.title).samples += taken
    connection.close()
    book.at(MIXED, HOLDFAST.title).samples.append(1 / mixed_reads(server, mixed_s))


def mixed_reads(server: Server, seconds: float) -> float:
    """Requests per second, of several clients at once."""
    counts: list[int] = []
    end = time.monotonic() + seconds

    def work(first: int) -> None:
        connection, sent = http.client.HTTPConnection(server.host), 0
        while time.monotonic() < end:
            server.ask(connection, MIXED_REQUESTS[(first + sent) % len(MIXED_REQUESTS)])
            sent += 1
        connection.close()
        counts.append(sent)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def measure_git(book: Book, work: Path, tree: Path, commits: int, rounds: int) -> None:
    """The same clicks in a shadow repository of the same tree."""
    place = work / "shadow"
    place.mkdir()
    run(["git", "init", "-q"], cwd=place)
    run(["git", "fast-import", "--quiet"], cwd=place, stdin=b"".join(_commits(tree, commits)))
    listing = ["git", "log", "-n", "100", "--format=%H %at %s", "work"]
    difference = ["git", "diff", "work~1", "work"]
    for operation, command in ((TIMELINE, listing), (DIFF, difference)):
        taken = _samples(partial(run, command, cwd=place), rounds)
        book.at(operation, REFERENCE.title).samples += taken


def _commits(tree: Path, number: int) -> Iterator[bytes]:
    """For `git fast-import`: the whole tree, then commits of five changed files each."""
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    for count in range(number):
        message = b"step %d of the work" % count
        yield b"commit refs/heads/work\n"
        yield b"committer bench <bench@example.invalid> %d +0000\n" % (1_700_000_000 + count)
        yield b"data %d\n%b\n" % (len(message), message)
        for path in files if count == 0 else files[:FILES_CHANGED]:
            content = path.read_bytes() + b"changed by step %d\n" % count
            name = os.fsencode(path.relative_to(tree))
            yield b"M 100644 inline %b\ndata %d\n%b\n" % (name, len(content), content)


def _samples(ask: Callable[[], object], rounds: int) -> list[float]:
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        ask()
        taken.append(time.perf_counter() - begun)
    return taken


def _parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.web_api")
    parser.add_argument("--checkpoints", type=int, default=10_000, metavar="N")
    parser.add_argument("--files", type=int, default=10_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=100, metavar="N")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
