"""A working day of an agent in a small web shop, made with real hooks and the library.

It has what the page draws: messages, tool calls, a risky command, an abandoned experiment, a
restore, an approved round, notes, a name, a low confidence, a database, git and an image.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.forked_commands import call_hook, run_command

SESSION = "refactor-auth"
TITLE = "Refactor auth to async"
HOSTILE_NAME = "<img src=x onerror=alert(1)>.txt"

_REFRESH = '''"""Access tokens, refreshed before they expire."""

from .tokens import Token


class RefreshFailed(Exception):
    """The server did not give a new token."""


class TokenRefresher:
    def __init__(self, client):
        self.client = client

    def refresh(self, token: Token) -> Token:
        answer = self.client.post("/token", data=token.form())
        if answer.status_code != 200:
            raise RefreshFailed(answer)
        return Token.parse(answer.json())

    def refresh_all(self, tokens):
        """Every token that is about to expire."""
        fresh = []
        for token in tokens:
            if token.is_stale():
                fresh.append(self.refresh(token))
        return fresh


def retry(call, attempts=3):
    for attempt in range(attempts):
        try:
            return call()
        except RefreshFailed:
            if attempt == attempts - 1:
                raise
'''
_ASYNC = (
    _REFRESH.replace("    def refresh(", "    async def refresh(")
    .replace("answer = self.client", "answer = await self.client")
    .replace("RefreshFailed(answer)", "RefreshFailed(answer.status_code, answer.text)")
)
_RETRY = "except RefreshFailed:\n            if attempt"
_MIDDLEWARE = '''"""Every request gets its session here."""


def middleware(request, refresher):
    token = refresher.refresh(request.token)
    request.session = token.session
    return request
'''
_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


class SampleSession:
    """The workspace, and an agent that works in it through the hooks of Claude Code."""

    def __init__(
        self,
        place: Path,
        environment: Mapping[str, str],
        session: str = SESSION,
        name: str = "checkout-service",
    ) -> None:
        self.project = place / name
        self.session = session
        self._calls = 0
        self.environment = {
            **environment,
            "GIT_AUTHOR_NAME": "A. Developer",
            "GIT_AUTHOR_EMAIL": "dev@example.org",
            "GIT_COMMITTER_NAME": "A. Developer",
            "GIT_COMMITTER_EMAIL": "dev@example.org",
        }

    def make_project(self) -> None:
        for directory in ("src/auth", "src/session_store", "tests/auth", "docs", "node_modules/x"):
            (self.project / directory).mkdir(parents=True)
        files = {
            "src/auth/refresh.py": _REFRESH,
            "src/auth/middleware.py": _MIDDLEWARE,
            "src/auth/tokens.py": "class Token:\n    session = None\n",
            "src/session_store/__init__.py": '"""Sessions kept in Redis."""\n'
            "from .redis import RedisSessions\n",
            "src/session_store/redis.py": "class RedisSessions:\n    pass\n" * 12,
            "src/session_store/memory.py": "class MemorySessions:\n    pass\n" * 8,
            "tests/auth/test_refresh.py": "def test_refresh():\n    assert True\n",
            "README.md": "# Checkout service\n\nTakes orders and payments.\n",
            "docs/guide.md": "# Guide\n\n" + "A line of the guide.\n" * 40,
            ".gitignore": "node_modules/\n*.log\n",
            "node_modules/x/index.js": "module.exports = 1\n",
        }
        for path, content in files.items():
            (self.project / path).write_text(content)
        (self.project / "docs" / "logo.png").write_bytes(_PIXEL)
        with sqlite3.connect(self.project / "app.db") as database:
            database.execute("create table sessions (id integer primary key, user text)")
            database.executemany(
                "insert into sessions (user) values (?)", [(f"u{n}",) for n in range(214)]
            )
        database.close()
        self._git("init", "-q", "-b", "feature/async")
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "Checkout service")

    def work(self) -> None:
        """The whole day, to the state in which a person opens the page."""
        src = self.project / "src"
        self.event("SessionStart", source="startup")
        self.prompt("Let people log in with a token")
        self.holdfast("sessions", "rename", SESSION, TITLE)
        self.write("src/auth/tokens.py", "class Token:\n    session = None\n\n" + _TOKEN)
        self.write("docs/guide.md", "# Guide\n\nLog in with a token.\n" + "A line.\n" * 40)
        self.holdfast("approve", "-m", "login works", "--session", SESSION)
        self.prompt("Just drop the session table then")
        self.shell("rm -f docs/logo.png")
        self.holdfast("undo", "--yes")
        self.prompt("Make the token refresh async, and clean up the old session store")
        self.write("src/auth/refresh.py", _ASYNC)
        self.checkpoint("Refresh becomes a coroutine", confidence=0.48, goal="async-auth", task="3")
        self.checkpoint(
            "Nothing imports the old store now, so I am removing it before the refresh becomes "
            "async everywhere.",
            confidence=0.72,
            name="before the cleanup",
            note="Good place to come back to: tests were green here.",
        )
        self.shell("rm -rf src/session_store")
        self.write("src/auth/session.py", "SESSIONS = {}\n" * 30)
        self.holdfast("restore", "before the cleanup", "--yes", "--session", SESSION)
        self.write(
            "src/auth/middleware.py",
            _MIDDLEWARE.replace("def m", "async def m").replace("= refresher", "= await refresher"),
        )
        self.checkpoint("Awaited refresh in the middleware", confidence=0.95)
        (src / "auth" / "refresh.py").write_text(
            _ASYNC.replace(_RETRY, _RETRY.replace("RefreshFailed", "(RefreshFailed, OSError)"))
        )
        (self.project / "README.md").write_text("# Checkout service\n\nTakes orders, async.\n")

    def add_hostile_name(self) -> None:
        """A file whose name and content a careless page would run."""
        (self.project / "docs" / HOSTILE_NAME).write_text("<script>alert(1)</script>\n")

    def checkpoint(
        self,
        reason: str,
        *,
        confidence: float,
        name: str | None = None,
        note: str | None = None,
        goal: str | None = None,
        task: str | None = None,
    ) -> None:
        code = (
            "import json, sys; from pathlib import Path; from holdfast import SessionCheckpointer\n"
            "a = json.loads(sys.argv[1])\n"
            "s = SessionCheckpointer(Path('.'), a['session'])\n"
            "c = s.checkpoint(a['reason'], confidence=a['confidence'], name=a['name'],"
            " goal_id=a['goal'], task_id=a['task'])\n"
            "a['note'] and s.annotate(c, a['note'], 'you')\n"
        )
        fields = {
            "session": self.session,
            "reason": reason,
            "confidence": confidence,
            "name": name,
            "note": note,
            "goal": goal,
            "task": task,
        }
        self._run([sys.executable, "-c", code, json.dumps(fields)])

    def prompt(self, text: str) -> None:
        self.event("UserPromptSubmit", prompt=text)

    def write(self, path: str, text: str) -> None:
        place = self.project / path
        with self._call("Write", {"file_path": str(place), "content": text}):
            place.write_text(text)

    def shell(self, command: str) -> None:
        with self._call("Bash", {"command": command}):
            shell = shutil.which("bash") or "/bin/sh"
            self._run([shell, "-ec", command])

    @contextmanager
    def _call(self, tool: str, arguments: dict[str, str]) -> Iterator[None]:
        self._calls += 1
        call = {"tool_name": tool, "tool_input": arguments, "tool_use_id": f"call-{self._calls}"}
        self.event("PreToolUse", **call)
        yield
        self.event("PostToolUse", **call, tool_response={})

    def event(self, event: str, **fields: object) -> None:
        fields |= {"hook_event_name": event, "session_id": self.session, "cwd": str(self.project)}
        answer = call_hook("claude-code", fields, self.project, environment=self.environment)
        assert answer.status == 0, answer

    def holdfast(self, *arguments: str) -> str:
        done = run_command(arguments, self.project, self.environment, b"")
        if done.status != 0:
            raise RuntimeError(f"{arguments} failed: {done.err.decode() or done.out.decode()}")
        return done.out.decode()

    def _git(self, *arguments: str) -> None:
        self._run(["git", *arguments])

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            text=True,
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command[:6]} failed: {done.stderr or done.stdout}")


_TOKEN = """
    @classmethod
    def parse(cls, data):
        token = cls()
        token.session = data["session"]
        return token

    def form(self):
        return {"grant_type": "refresh_token", "session": self.session}

    def is_stale(self):
        return self.session is None
"""
