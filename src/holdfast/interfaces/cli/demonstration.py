"""The demonstration, step by step: each does one thing and proves it.

    project → checkpoint → good work → checkpoint → ruin → diff → restore → undo → redo

After each of the last three the tree is compared with what it was, by a hash of its own. The story
plays in a temporary directory with a store of its own and leaves nothing behind, even when it is
interrupted.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from holdfast.api.views.changes import change_view
from holdfast.api.views.setup import DemoStepView
from holdfast.api.workspace import Workspace, open_workspace
from holdfast.domain.ids import SessionId, short
from holdfast.domain.intent import make_intent
from holdfast.domain.trees.changes import Change
from holdfast.interfaces.cli.checkpoint_view import change_words, files_words
from holdfast.interfaces.cli.restore_view import summary
from holdfast.interfaces.cli.wording import count

if TYPE_CHECKING:
    from holdfast.api.restores import RestoreRequest

_MARKER = b".holdfast"
MODULES = ("cart", "catalogue", "invoice", "login", "search", "shipping", "stock", "tax")

# What the agent runs when it goes wrong: the lines of one script, as given to a shell tool.
RUIN = (
    "rm -rf docs tests current && rmdir uploads",
    'for file in src/*.py; do echo "# rewritten" > "$file"; done',
    'chmod 644 run.sh && chmod 777 .env && echo "KEY=" > .env',
    "mkdir -p tmp/debug && echo trace > tmp/debug/out.txt",
)

_MODULE = '''"""{title} of the shop."""


def {name}(items):
    total = 0
    for item in items:
        total += item.price * item.count
    return total
'''
Result = TypeVar("Result")
_SESSION = SessionId("demo")


def make_project(root: Path) -> None:
    for directory in ("src", "tests", "docs/guides", "uploads"):
        (root / directory).mkdir(parents=True)
    for name in MODULES:
        module = _MODULE.format(title=name.capitalize(), name=name)
        (root / "src" / f"{name}.py").write_text(module)
        (root / "tests" / f"test_{name}.py").write_text(f"from src.{name} import {name}\n")
        (root / "docs" / "guides" / f"{name}.md").write_text(f"# {name.capitalize()}\n")
    (root / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 16)
    (root / "run.sh").write_text("#!/bin/sh\nexec python -m src\n")
    (root / "run.sh").chmod(0o755)
    (root / ".gitignore").write_text(".env\n")
    (root / ".env").write_text("KEY=correct-horse-battery-staple\n")
    (root / ".env").chmod(0o600)
    (root / "current").symlink_to("docs/guides")


def improve(root: Path) -> None:
    """A step that went well."""
    login = root / "src" / "login.py"
    login.write_text(login.read_text() + "\n\ndef logout(session):\n    session.end()\n")
    (root / "tests" / "test_logout.py").write_text("def test_logout():\n    assert True\n")


def ruin(root: Path) -> None:
    """A step that did not: a real shell, started with an argument vector."""
    shell = shutil.which("bash") or "/bin/sh"
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    script = "set -e\n" + "\n".join(RUIN)
    subprocess.run([shell, "-c", script], cwd=root, check=True, env=environment)


def tree_hash(root: Path) -> str:
    """The same for two trees exactly when they hold the same, the marker of Holdfast apart."""
    top = os.fsencode(root)
    whole = hashlib.sha256()
    for directory, names, files in os.walk(top):
        if directory == top and _MARKER in names:
            names.remove(_MARKER)
        names.sort()
        for name in sorted([*names, *files]):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            described = (os.path.relpath(path, top), oct(status.st_mode), _content(path, status))
            whole.update(repr(described).encode())
    return whole.hexdigest()


def _content(path: bytes, status: os.stat_result) -> bytes:
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(status.st_mode):
        return b""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).digest()


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what was done, how long it took, what came of it, and whether that was right."""

    title: str
    commands: tuple[str, ...]
    elapsed_ms: float | None
    said: str
    verified: bool | None = None
    changes: tuple[Change, ...] = ()
    facts: DemoStepView = field(default_factory=DemoStepView)

    def view(self) -> DemoStepView:
        return {
            "title": self.title,
            "commands": list(self.commands),
            "elapsed_ms": None if self.elapsed_ms is None else round(self.elapsed_ms, 3),
            "result": self.said,
            "verified": self.verified,
            "changes": [change_view(change) for change in self.changes],
            **self.facts,
        }


class Story:
    """The steps, each given out when it is done."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._project = place / "shop"
        self._good = ""
        self._ruined = ""

    def steps(self) -> Iterator[Step]:
        self._project.mkdir()
        make_project(self._project)
        files = sum(path.is_symlink() or path.is_file() for path in self._project.rglob("*"))
        said = f"{count(files, 'file')}; one is a link, one a .env with a key, ignored by git"
        yield Step("A small project", (), None, said)
        with self._opened() as opened:
            ms, _ = _timed(lambda: opened.settings.set("include", [".env"]))
            command = "holdfast config set include '[\".env\"]'"
            said = "checkpoints keep .env as well, although git ignores it"
            yield Step("Its secrets are worth keeping too", (command,), ms, said)
        with self._opened() as opened:  # settings are read when a workspace is opened
            yield from self._work(opened)
            yield from self._way_back(opened)

    def _work(self, opened: Workspace) -> Iterator[Step]:
        yield _save(opened, "It is saved before the agent starts", "before")
        improve(self._project)
        yield _save(opened, "The agent adds a logout, and that is saved", "logout")
        self._good = tree_hash(self._project)
        ms, _ = _timed(lambda: ruin(self._project))
        yield Step("Then it runs something that it should not", RUIN, ms, "no questions asked")
        self._ruined = tree_hash(self._project)

    def _way_back(self, opened: Workspace) -> Iterator[Step]:
        head = opened.resolve(_SESSION, "HEAD")
        ms, changes = _timed(lambda: opened.diffs.changes(head, None))
        said = _changes_words(changes)
        yield Step("What happened?", ("holdfast status",), ms, said, changes=tuple(changes))
        back = opened.restores.request(_SESSION, "logout")
        yield self._restore(opened, "Take it back", "restore logout", back, to_good=True)
        undo = opened.restores.undo_request(_SESSION)
        yield self._restore(
            opened, "Undo the restore: the wreck again", "undo", undo, to_good=False
        )
        redo = opened.restores.redo_request(_SESSION)
        yield self._restore(opened, "And redo it", "redo", redo, to_good=True)

    def _restore(
        self, opened: Workspace, title: str, command: str, request: RestoreRequest, *, to_good: bool
    ) -> Step:
        wanted = self._good if to_good else self._ruined
        ms, outcome = _timed(lambda: opened.restores.restore(request))
        found = tree_hash(self._project)
        same = found == wanted
        words = (
            f"as {'before' if to_good else 'after'} the wreck" if same else "not as it should be"
        )
        said = f"{summary(outcome.steps)}; tree hash {found[:10]}, {words}"
        facts = DemoStepView(tree_hash=found, expected_tree_hash=wanted)
        commands = (f"holdfast {command} --yes",)
        return Step(title, commands, ms, said, same and outcome.verified, facts=facts)

    def _opened(self) -> Workspace:
        """Its own store and settings: nothing of the user is read or written."""
        environment = {
            "HOLDFAST_HOME": str(self._place / "home"),
            "XDG_CONFIG_HOME": str(self._place / "config"),
        }
        return open_workspace(self._project, create=True, environment=environment)


@contextmanager
def story() -> Iterator[Story]:
    """A place to tell the story in, gone afterwards, however it ends."""
    with TemporaryDirectory(prefix="holdfast-demo-") as place:
        yield Story(Path(place).resolve())


def _save(opened: Workspace, title: str, name: str) -> Step:
    intent = make_intent(title, name=name, confidence=0.9)
    ms, outcome = _timed(lambda: opened.save(_SESSION, intent))
    made = outcome.checkpoint
    said = f"saved {short(made.id)}: {files_words(made)}, {change_words(made.changed)}"
    commands = (f'holdfast checkpoint "…" --name {name}',)
    return Step(
        title, commands, ms, said, not outcome.failures, facts=DemoStepView(checkpoint=made.id)
    )


def _changes_words(changes: Sequence[Change]) -> str:
    """Counted as a restore counts: files, and directories apart."""
    kinds = Counter(change.type.value for change in changes if not change.is_directory)
    parts = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    words = f"{count(kinds.total(), 'file')} ({parts})"
    directories = len(changes) - kinds.total()
    if directories:
        words += f" and {count(directories, 'empty directory', 'empty directories')}"
    return words


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    begun = time.perf_counter()
    result = work()
    return (time.perf_counter() - begun) * 1000, result
