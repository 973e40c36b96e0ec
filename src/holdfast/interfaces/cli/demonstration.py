"""The demonstration, step by step: an agent deletes `src`, and `holdfast undo` brings it back.

    project → install → good work → rm -rf → undo → redo → undo → a bad turn → undo --turn

No model is involved. The steps send the events of Claude Code to `holdfast hook`, and make the
changes it would make. Every command runs in its own process, as a user runs it. After each undo and
redo the project is compared with a plain copy that Holdfast never saw.

Guarantees: everything is in a temporary directory, with its own home and store. Nothing is left
behind, even if the demonstration is interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.api.views.setup import DemoChangeView, DemoStepView
from holdfast.interfaces.cli.wording import count

_MARKER = b".holdfast"
_AGENT = "claude-code"
_SESSION = "demo"
MODULES = ("auth", "cart", "mail", "stock")

DELETION = "rm -rf src .env"
"""The command that goes wrong. Git could not restore `.env`, because it ignores it."""
SHELL_DAMAGE = (
    "chmod 777 run.sh && rm current && rmdir uploads",
    "mkdir -p tmp/debug && echo trace > tmp/debug/out.txt && mv logo.png tmp/",
)
"""Other changes that a shell can make: modes, links, empty directories, new and moved files."""

_MODULE = '''"""{title} of the shop."""


def {name}(items):
    return sum(item.price * item.count for item in items)
'''
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONIOENCODING", "TMPDIR")

Entry = tuple[int, bytes]
"""The mode of a file, link or directory, and a hash of its content."""


def make_project(root: Path) -> None:
    for directory in ("src", "docs", "uploads"):
        (root / directory).mkdir(parents=True)
    for name in MODULES:
        module = _MODULE.format(title=name.capitalize(), name=name)
        (root / "src" / f"{name}.py").write_text(module)
    (root / "README.md").write_text("# The shop\n")
    (root / "docs" / "guide.md").write_text("# Guide\n")
    (root / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 16)
    (root / "run.sh").write_text("#!/bin/sh\nexec python -m src\n")
    (root / "run.sh").chmod(0o755)
    (root / ".gitignore").write_text(".env\n")
    (root / ".env").write_text("KEY=correct-horse-battery-staple\n")
    (root / ".env").chmod(0o600)
    (root / "current").symlink_to("docs")


def contents(root: Path) -> dict[str, Entry]:
    """Every path below `root`, except Holdfast's own marker directory."""
    top = os.fsencode(root)
    found: dict[str, Entry] = {}
    for directory, names, files in os.walk(top):
        if directory == top and _MARKER in names:
            names.remove(_MARKER)
        for name in [*names, *files]:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            found[os.fsdecode(os.path.relpath(path, top))] = (
                status.st_mode,
                _content(path, status),
            )
    return found


def _content(path: bytes, status: os.stat_result) -> bytes:
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(status.st_mode):
        return b""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).digest()


def tree_hash(root: Path) -> str:
    """Equal for two trees if and only if their `contents` are equal."""
    return hashlib.sha256(repr(sorted(contents(root).items())).encode()).hexdigest()


def differences(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[DemoChangeView]:
    """The paths that were added, removed or modified, in order."""
    changes: list[DemoChangeView] = []
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            changes.append({"path": path, "change": "removed"})
        elif path not in before:
            changes.append({"path": path, "change": "added"})
        elif before[path] != after[path]:
            changes.append({"path": path, "change": "modified"})
    return changes


@dataclass(frozen=True, slots=True)
class Step:
    """A command and its result. `verified` is None for a step that checks nothing."""

    title: str
    commands: tuple[str, ...]
    elapsed_ms: float
    result: tuple[str, ...]
    by_agent: bool = False
    verified: bool | None = None
    changes: tuple[DemoChangeView, ...] = ()
    tree_hash: str = ""
    expected_tree_hash: str = ""

    def view(self) -> DemoStepView:
        view: DemoStepView = {
            "title": self.title,
            "commands": list(self.commands),
            "elapsed_ms": round(self.elapsed_ms, 3),
            "result": "\n".join(self.result),
            "verified": self.verified,
            "changes": list(self.changes),
        }
        if self.tree_hash:
            view["tree_hash"] = self.tree_hash
            view["expected_tree_hash"] = self.expected_tree_hash
        return view


class Demonstration:
    """The steps, each yielded as soon as it is done."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._project = place / "shop"
        self._calls = 0
        self._environment = {
            **{name: os.environ[name] for name in _INHERITED if name in os.environ},
            "HOME": str(place / "home"),
            "HOLDFAST_HOME": str(place / "store"),
            "HOLDFAST_DAEMON": "off",
            "NO_COLOR": "1",
        }

    def steps(self) -> Iterator[Step]:
        self._project.mkdir()
        (self._place / "home").mkdir()
        make_project(self._project)
        yield self._install()
        yield self._good_work()
        good = self._copy("good")
        yield self._deletion(good)
        deleted = self._copy("deleted")
        yield self._back("One command brings it back, .env included", "undo", good, whole=True)
        yield self._back("You can go forward again …", "redo", deleted)
        yield self._back("… and back", "undo", good)
        yield self._bad_turn(good)
        yield self._back("Undo the whole turn", "undo --turn", good)

    def _install(self) -> Step:
        ms, status, lines = self._holdfast("install", _AGENT)
        title = "A small project. Claude Code's hooks protect it"
        command = f"holdfast install {_AGENT}"
        return Step(title, (command,), ms, _conclusions(lines), verified=status == 0)

    def _good_work(self) -> Step:
        began = time.perf_counter()
        self._event("SessionStart", source="startup")
        self._prompt("Add a logout")
        path = self._project / "src" / "auth.py"
        self._write(path, path.read_text() + "\n\ndef logout(session):\n    session.end()\n")
        ms = _ms_since(began)
        _, _, saved = self._holdfast("log")
        return Step(
            "You ask the agent: add a logout",
            ("Write src/auth.py",),
            ms,
            (f"✓ Its hooks saved before and after: {count(len(saved), 'checkpoint')}.",),
            by_agent=True,
            verified=any("Before Write" in line for line in saved),
        )

    def _deletion(self, good: Path) -> Step:
        began = time.perf_counter()
        self._prompt("Remove the build output")
        self._shell(DELETION)
        changes = differences(contents(good), contents(self._project))
        return Step(
            "You ask it to clean up, and it goes wrong",
            (DELETION,),
            _ms_since(began),
            (f"✗ {_words(changes)}. Git ignores .env, so git cannot bring it back.",),
            by_agent=True,
            changes=tuple(changes),
        )

    def _bad_turn(self, good: Path) -> Step:
        began = time.perf_counter()
        self._prompt("Tidy up")
        self._write(self._project / "README.md", "rewritten\n")
        for command in SHELL_DAMAGE:
            self._shell(command)
        changes = differences(contents(good), contents(self._project))
        return Step(
            "One message, three bad calls: files, modes, links, directories",
            ("Write README.md", *SHELL_DAMAGE),
            _ms_since(began),
            (f"✗ {_words(changes)}.",),
            by_agent=True,
            changes=tuple(changes),
        )

    def _back(self, title: str, command: str, wanted: Path, *, whole: bool = False) -> Step:
        """Undo or redo, and compare with the copy. With `whole`, show every line of the output."""
        ms, status, lines = self._holdfast(*command.split(), "--yes")
        found, expected = tree_hash(self._project), tree_hash(wanted)
        same = status == 0 and found == expected
        files = count(len(contents(wanted)), "path")
        verdict = (
            f"✓ Identical to an independent copy: {files} compared."
            if same
            else "✗ Not identical to the independent copy."
        )
        return Step(
            title,
            (f"holdfast {command} --yes",),
            ms,
            (*(lines if whole else _conclusions(lines)), verdict),
            verified=same,
            tree_hash=found,
            expected_tree_hash=expected,
        )

    def _copy(self, name: str) -> Path:
        copy = self._place / name
        ignore = shutil.ignore_patterns(os.fsdecode(_MARKER))
        shutil.copytree(self._project, copy, symlinks=True, ignore=ignore)
        return copy

    def _prompt(self, text: str) -> None:
        self._event("UserPromptSubmit", prompt=text)

    def _write(self, path: Path, text: str) -> None:
        with self._call("Write", {"file_path": str(path), "content": text}):
            path.write_text(text)

    def _shell(self, command: str) -> None:
        with self._call("Bash", {"command": command}):
            shell = shutil.which("bash") or "/bin/sh"
            subprocess.run(
                [shell, "-ec", command], cwd=self._project, check=True, env=self._environment
            )

    @contextmanager
    def _call(self, tool: str, arguments: dict[str, str]) -> Iterator[None]:
        """The events of a tool call: before it starts, and after it ends."""
        self._calls += 1
        call = {
            "tool_name": tool,
            "tool_input": arguments,
            "tool_use_id": f"call-{self._calls}",
        }
        self._event("PreToolUse", **call)
        yield
        self._event("PostToolUse", **call, tool_response={})

    def _event(self, event: str, **fields: object) -> None:
        fields |= {"hook_event_name": event, "session_id": _SESSION, "cwd": str(self._project)}
        fields["transcript_path"] = str(self._place / "transcript.jsonl")
        self._holdfast("hook", _AGENT, stdin=json.dumps(fields))

    def _holdfast(self, *arguments: str, stdin: str = "") -> tuple[float, int, list[str]]:
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-P", "-m", "holdfast", *arguments],
            cwd=self._project,
            env=self._environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
        return _ms_since(began), done.returncode, done.stdout.splitlines()


@contextmanager
def demonstration() -> Iterator[Demonstration]:
    with TemporaryDirectory(prefix="holdfast-demo-") as place:
        yield Demonstration(Path(place).resolve())


def _conclusions(lines: list[str]) -> tuple[str, ...]:
    """The lines that state a command's result; all lines if there are none, as for an error."""
    return tuple(line for line in lines if line.startswith("✓")) or tuple(lines)


def _words(changes: list[DemoChangeView]) -> str:
    kinds = Counter(change["change"] for change in changes)
    return ", ".join(f"{count(number, 'path')} {kind}" for kind, number in sorted(kinds.items()))


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
