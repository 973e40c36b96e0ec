"""Small operations that faults are aimed at: a save, restore, deletion, telling and searching."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.outcomes import DeleteOutcome, RestoreOutcome, SaveOutcome
from holdfast.engine.retention.deletion import delete
from holdfast.engine.undo.undo import undo_request
from tests.torture.interception import DiskCall, beyond_the_port, intercepted, let_pass
from tests.torture.scenes import (
    SESSION,
    Scene,
    State,
    build_small,
    make_scene,
    restore,
    save_outcome,
    wreck_small,
    write,
)
from tests.torture.searching import look_up
from tests.torture.telling import Teller, Told, stories_of


@dataclass(frozen=True, slots=True)
class Act:
    """Something that is done in a scene: `trees` are the states it may leave, the last of them
    the one it must leave once it has said that it is done. `stories` are what the story holds
    before the first step of a telling and after each. With `git`, how a restore treats it."""

    scene: Scene
    action: str
    argument: str
    trees: tuple[State, ...]
    stories: tuple[Told, ...] = ()
    git: str = ""

    def perform(self, work: OpenWorkspace) -> SaveOutcome | RestoreOutcome | DeleteOutcome | None:
        if self.action == "save":
            return save_outcome(work)
        if self.action == "delete":
            return delete(work.engine, work.engine.resolve(SESSION, self.argument))
        if self.action == "tell":
            self.tell(work)
            return None
        if self.action == "search":
            look_up(work)
            return None
        return restore(work, self.argument, self.git)

    def tell(self, work: OpenWorkspace, told: Callable[[], None] = lambda: None) -> None:
        """Every step; `told` is called when one is acknowledged."""
        for step in Teller(self.argument).steps():
            step(work.engine.vault)
            told()

    def calls(self) -> list[DiskCall]:
        """What it asks of the disk when nothing goes wrong, opening the workspace included."""
        self.scene.reset()
        also = beyond_the_port(self.action, git=bool(self.git))
        with intercepted(let_pass, also) as turnstile, self.scene.open(create=True) as work:
            self.perform(work)
        return turnstile.calls

    def acknowledged(self, made: str | None) -> tuple[dict[str, State], tuple[State, ...]]:
        """Which checkpoints must be there, and which trees may be, when it made `made`, or when
        it made nothing."""
        known = dict(self.scene.known)
        if self.action == "delete":
            del known[self.argument]
        if made is None:
            return known, self.trees
        if self.action == "save":
            known[made] = self.trees[-1]
        return known, self.trees[-1:]


def small_act(root: Path, action: str) -> Act:
    """`action` on a store with two checkpoints."""
    scene, good, bad = make_scene(root, build_small, wreck_small)
    if action == "restore":
        return Act(scene, "restore", good, (scene.known[bad], scene.known[good]))
    if action == "delete":
        return Act(scene, "delete", good, (scene.known[bad],))
    write(scene.project / "edited", b"a third version")
    write(scene.project / "more/new", b"x" * 5_000)
    scene.keep()
    return Act(scene, "save", "", (scene.state(),))


def first_save(root: Path) -> Act:
    """The save that makes the store."""
    scene = Scene(root)
    scene.project.mkdir(parents=True)
    build_small(scene.project)
    scene.keep()
    return Act(scene, "save", "", (scene.state(),))


def telling(root: Path, *, first: bool, rounds: int = 1) -> Act:
    """Words about a store with two checkpoints, a restore and its undo: the first there are, or
    more of them."""
    scene, good, bad = make_scene(root, build_small, wreck_small)
    with scene.open() as work:
        restore(work, good)
        work.engine.restore(undo_request(work.engine.vault, SESSION))
        if not first:
            for step in Teller(bad).steps()[:-1]:
                step(work.engine.vault)
    scene.keep()
    with scene.open() as work:
        stories = stories_of(work, Teller(good).steps(rounds))
    scene.reset()
    return Act(scene, "tell", good, (scene.state(),), stories)


def build_told(root: Path) -> Scene:
    """Two checkpoints, and a story about each."""
    scene, good, bad = make_scene(root, build_small, wreck_small)
    with scene.open() as work:
        for about in (good, bad):
            for step in Teller(about).steps()[:-1]:
                step(work.engine.vault)
    return scene


def told_restore(root: Path) -> Act:
    """A restore that takes the last two of three messages back."""
    scene = Scene(root)
    scene.project.mkdir(parents=True)
    build_small(scene.project)
    with scene.open(create=True) as work:
        step = Teller("").steps()[0]
        step(work.engine.vault)
        good = save_outcome(work, "good").checkpoint.id
        scene.known[good] = scene.state()
        wreck_small(scene.project)
        step(work.engine.vault)
        step(work.engine.vault)
        bad = save_outcome(work, "bad").checkpoint.id
        scene.known[bad] = scene.state()
    scene.keep()
    return Act(scene, "restore", good, (scene.known[bad], scene.known[good]))
