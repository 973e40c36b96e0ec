"""Whatever two agents and a person did, in any order: undo and redo arrive at the promised copy.

The model knows nothing of the engine. It keeps a description of every state that a hook or a
command had to save, in one line, and what was undone, and says where undo and redo lead.
HEAD has to be the same for `status`, `log` and references after each step.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.hooks.in_process import answer
from tests.interfaces.cli.command_line import Answer, CommandLine
from tests.support.tree_hash import Node, describe, differences

_NAMES = ("a.txt", "b.py", "src/one.py", "src/two.py", "src/deep/three.py", "docs/four.md")
_SESSIONS = ("s1", "s2")
_EXAMPLES = 3
_STEPS = 24
_LINES = 20

Tree = dict[bytes, Node]


@dataclass(frozen=True)
class Change:
    """Something to do, with a number of its own."""

    number: int
    do: Callable[[], None]


@dataclass
class Moment:
    """A state in the line; `message` says that a message was sent in it, `restored` that a restore
    led to it."""

    tree: Tree
    message: bool = False
    restored: bool = False


@dataclass
class Model:
    """Where undo and redo lead."""

    past: list[Moment] = field(default_factory=list)
    future: list[list[Moment]] = field(default_factory=list)
    has_undone_messages: bool = False

    def saved(self, tree: Tree) -> None:
        if not self.past or self.past[-1].tree != tree:
            self.past.append(Moment(tree))
            self.future.clear()

    def message(self, tree: Tree) -> None:
        self.saved(tree)
        self.past[-1].message = True

    def restored(self, before: Tree, after: Tree) -> None:
        self.saved(before)
        self.past.append(Moment(after, restored=True))
        self.future.clear()

    def undo(self, present: Tree, *, turn: bool = False) -> Tree | None:
        place = self._target(present, turn=turn)
        if place is None:
            return None
        kept = list(self.future) if self._only_has_more(present) else []
        self.saved(present)
        self.future = self.future or kept
        self.future.append(self.past[place + 1 :])
        self.has_undone_messages |= any(moment.message for moment in self.future[-1])
        del self.past[place + 1 :]
        return self.past[-1].tree

    def redo(self, present: Tree) -> Tree | None:
        if not self.future:
            return None
        group = self.future.pop()
        if self.past[-1].tree != present:  # saved first, and a step of its own
            group = [Moment(present), Moment(group[-1].tree, restored=True)]
        self.past += group
        return self.past[-1].tree

    def _only_has_more(self, present: Tree) -> bool:
        """New files beside those of the last state leave alone what can be redone."""
        return self.past[-1].tree.items() <= present.items()

    def _target(self, present: Tree, *, turn: bool) -> int | None:
        for place in range(len(self.past) - 1, -1, -1):
            moment = self.past[place]
            if moment.tree != present and (moment.message or not turn):
                return place
            if moment.restored and place and not turn:
                return place - 1  # a restore that changed nothing
        return None


class Work:
    """Two agents and a person in one project."""

    def __init__(self, project: Path, chance: random.Random) -> None:
        self.project = project
        self.chance = chance
        self.cli = CommandLine(project)
        self.model = Model()
        self.done: list[str] = []
        self.named: dict[str, Tree] = {}
        self.approved: dict[str, Tree] = {}
        self.changes = 0

    def one_thing(self) -> None:
        things: list[tuple[int, Callable[[], None]]] = [
            (6, self.call),
            (2, self.two_calls_at_once),
            (2, self.call_with_something_in_between),
            (2, self.message),
            (4, self.own_edit),
            (2, self.checkpoint),
            (3, self.restore),
            (4, self.restore_some),
            (3, self.restore_hunk),
            (2, self.restore_head),
            (1, self.delete),
            (2, self.approve),
            (1, self.reset),
            (9, self.undo),
            (5, self.redo),
            (2, self.turn),
            (1, self.commit),
            (1, self.write_ignored),
            (1, self.touch),
        ]
        weights = [weight for weight, _ in things]
        self.chance.choices([thing for _, thing in things], weights)[0]()

    # what agents do

    def begin(self) -> None:
        for session in _SESSIONS:
            self._send(session, "SessionStart", source="startup")
            self.approved[session] = self.now
        self.model.saved(self.now)

    def call(self) -> None:
        session = self.chance.choice(_SESSIONS)
        change = self._change()
        self._hook(session, "PreToolUse", change)
        change.do()
        self._hook(session, "PostToolUse", change)

    def two_calls_at_once(self) -> None:
        one, two = self._change(), self._change()
        self._hook("s1", "PreToolUse", one)
        self._hook("s2", "PreToolUse", two)
        one.do()
        self._hook("s1", "PostToolUse", one)
        two.do()
        self._hook("s2", "PostToolUse", two)

    def call_with_something_in_between(self) -> None:
        """A person does not wait for the agent."""
        change = self._change()
        self._hook("s1", "PreToolUse", change)
        change.do()
        self.chance.choice((self.undo, self.redo, self.restore, self.own_edit))()
        self._hook("s1", "PostToolUse", change)

    def message(self) -> None:
        session = self.chance.choice(_SESSIONS)
        self._send(session, "UserPromptSubmit", prompt=f"request {len(self.done)}")
        self.model.message(self.now)
        self._note(f"message {session}")

    # what a person does

    def own_edit(self) -> None:
        self._change().do()
        self._note("own edit")

    def write_ignored(self) -> None:
        """Something that no checkpoint has, so that there is nothing to undo."""
        cache = self.project / "__pycache__"
        cache.mkdir(exist_ok=True)
        (cache / "x.pyc").write_text(f"{self.chance.random()}")
        self._note("write ignored")

    def commit(self) -> None:
        for words in (["add", "-A"], ["commit", "-qm", "work", "--allow-empty"]):
            subprocess.run(["git", *words], cwd=self.project, check=True)
        self._note("commit")

    def touch(self) -> None:
        """Nothing that anybody would want to undo."""
        for place in self.project.rglob("*.py"):
            place.touch()
        self._note("touch")

    def checkpoint(self) -> None:
        name = f"c{len(self.done)}"
        session = self.chance.choice((*_SESSIONS, "person"))
        words = ("checkpoint", "worth keeping", "--name", name, "--session", session)
        self._done(self.cli(*words))
        self.named[name] = self.now
        if session not in self.approved:
            self.approved[session] = self.now
        self.model.saved(self.now)
        self._note(f"checkpoint {session}:{name}")

    def restore(self) -> None:
        if not self.named:
            return
        name = self.chance.choice(list(self.named))
        before = self.now
        self._note(f"restore {name}")
        self._done(self.cli("restore", name, "--yes"))
        self._is(self.named[name])
        self.model.restored(before, self.named[name])

    def restore_some(self) -> None:
        if not self.named:
            return
        name = self.chance.choice(list(self.named))
        path = self.chance.choice((*_NAMES, "src"))
        before = self.now
        self._note(f"restore {name} {path}")
        answer = self.cli("restore", name, path, "--yes")
        if answer.status == 4:  # neither has it
            self._is(before)
            return
        self._done(answer)
        after = self.now
        chosen = self._below(path, after)
        assert chosen == self._below(path, self.named[name]), self.done
        above = [path.encode()[:place] for place, byte in enumerate(path) if byte == "/"]
        others = ({**before, **after}.keys() - chosen.keys() - set(above)) - self._below(
            path, before
        ).keys()
        assert [one for one in others if before.get(one) != after.get(one)] == [], self.done
        self.model.restored(before, after)

    def restore_hunk(self) -> None:
        reference = self.chance.choice((*self.named, "HEAD"))
        path = self.chance.choice(_NAMES)
        before = self.now
        answer = self.cli("restore", reference, path, "--hunk", "1", "--yes")
        self._note(f"restore {reference} {path} --hunk 1: {answer.status}")
        if answer.status:  # no such file on one side, or no difference
            self._is(before)
            return
        self.model.restored(before, self.now)

    def restore_head(self) -> None:
        before = self.now
        self._note("restore HEAD")
        self._done(self.cli("restore", "HEAD", "--yes"))
        after = self.now
        self.model.restored(before, after)
        self._done(self.cli("restore", "HEAD", "--yes"))  # twice is the same as once
        self._is(after)
        self.model.restored(after, after)

    def delete(self) -> None:
        """A name for a state that something else holds too."""
        held = [moment.tree for moment in self.model.past]
        spare = [
            name
            for name, tree in self.named.items()
            if tree not in held and tree not in self.approved.values()
        ]
        if not spare:
            return
        name = self.chance.choice(spare)
        self._done(self.cli("delete", name, "--yes"))
        del self.named[name]
        self._note(f"delete {name}")

    def approve(self) -> None:
        session = self.chance.choice(_SESSIONS)
        before = self.now
        answer = self.cli("--json", "approve", "--session", session)
        self._note(f"approve {session}: {answer.status}")
        if answer.status == 0:
            self.approved[session] = before
            if answer.json["saved"]:
                self.model.saved(before)
        self._is(before)

    def reset(self) -> None:
        session = self.chance.choice(_SESSIONS)
        before = self.now
        answer = self.cli("--json", "reset", "--session", session, "--yes")
        self._note(f"reset {session}")
        self._done(answer)
        self._is(self.approved[session])
        if answer.json["abandoned"] is not None:
            self.model.restored(before, self.approved[session])

    def undo(self) -> None:
        self._step("undo", self.model.undo(self.now))

    def turn(self) -> None:
        if self.model.has_undone_messages:
            return  # the conversation then says which message is the last one
        self._step("undo", self.model.undo(self.now, turn=True), "--turn")

    def redo(self) -> None:
        self._step("redo", self.model.redo(self.now))

    # how it is done

    @property
    def now(self) -> Tree:
        return {
            path: node
            for path, node in describe(self.project).items()
            if path.split(b"/")[0] not in (b".git", b"__pycache__")
        }

    def _step(self, verb: str, promised: Tree | None, *options: str) -> None:
        before = self.now
        self._note(" ".join((verb, *options)) + ("" if promised is not None else " (nothing)"))
        answer = self.cli(verb, "--yes", *options)
        if promised is None:
            assert answer.status != 0, "\n".join([*self.done, answer.out, answer.err])
            self._is(before)
            return
        self._done(answer)
        self._is(promised)

    def heads_agree(self) -> None:
        """`HEAD`, the arrow of `log` and what `status` says."""
        marked = [one["id"] for one in self.cli.json("log", "-n", "1000") if one["is_head"]]
        status = self.cli.json("status")["head"]
        found = self.cli("--json", "show", "HEAD")
        told = found.json["id"] if found.status == 0 else None
        assert [told] == [status and status["id"]] == (marked or [None]), self.done

    @staticmethod
    def _below(path: str, tree: Tree) -> Tree:
        start = path.encode()
        return {
            one: node for one, node in tree.items() if one == start or one.startswith(start + b"/")
        }

    def _is(self, promised: Tree) -> None:
        wrong = differences(self.now, promised)
        assert wrong == [], "\n".join([*self.done, *wrong])

    def _done(self, answer: Answer) -> None:
        assert answer.status == 0, "\n".join([*self.done, answer.out, answer.err])

    def _note(self, what: str) -> None:
        self.done.append(what)

    def _change(self) -> Change:
        kind = self.chance.choice(("write", "write", "write", "delete", "mode", "mkdir", "rm -rf"))
        place = self.project / self.chance.choice(_NAMES)
        number = self.chance.randrange(10_000)

        def change() -> None:
            if kind == "mkdir":
                (self.project / f"empty{number % 3}").mkdir(exist_ok=True)
            elif kind == "rm -rf":
                shutil.rmtree(self.project / "src", ignore_errors=True)
            elif kind == "delete":
                place.unlink(missing_ok=True)
            elif kind == "mode" and place.exists():
                place.chmod(place.stat().st_mode ^ 0o100)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                lines = place.read_text().splitlines() if place.exists() else ["="] * _LINES
                lines[number % _LINES] = str(number)
                place.write_text("\n".join(lines) + "\n")

        self.changes += 1
        return Change(self.changes, change)

    def _hook(self, session: str, event: str, change: Change) -> None:
        self._send(
            session,
            event,
            tool_name="Bash",
            tool_input={"command": f"change {change.number}"},
            tool_use_id=f"{session}-{change.number}",
        )
        self.model.saved(self.now)
        self._note(f"{event} {session}")

    def _send(self, session: str, name: str, **fields: Any) -> None:
        event = {
            "session_id": session,
            "cwd": str(self.project),
            "hook_event_name": name,
            **fields,
        }
        before = sys.stdin, sys.stdout
        sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps(event).encode()))
        sys.stdout = io.TextIOWrapper(io.BytesIO(), write_through=True)
        try:
            assert answer(["claude-code"], own_process=False) == 0
        finally:
            sys.stdin, sys.stdout = before


@pytest.mark.requirement("RB-11", "RB-2")
def test_undo_arrives_at_the_promised_copy_whatever_was_done(
    quick_disk: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR", "GEMINI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for example in range(_EXAMPLES):
        project = quick_disk / f"project{example}"
        project.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        (project / ".gitignore").write_text("__pycache__/\n")
        work = Work(project, random.Random(rng.random()))
        work.own_edit()
        work.begin()
        for _ in range(_STEPS):
            work.one_thing()
            if work.chance.random() < 0.2:
                work.heads_agree()
