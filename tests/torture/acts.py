"""Small operations that faults are aimed at: a save, a first save, a restore, a deletion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.bootstrap import OpenWorkspace
from holdfast.domain.outcomes import DeleteOutcome, RestoreOutcome, SaveOutcome
from tests.torture.interception import DiskCall, intercepted, let_pass
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


@dataclass(frozen=True, slots=True)
class Act:
    """Something that is done in a scene: `trees` are the states it may leave, the last of them
    the one it must leave once it has said that it is done."""

    scene: Scene
    action: str
    argument: str
    trees: tuple[State, ...]

    def perform(self, work: OpenWorkspace) -> SaveOutcome | RestoreOutcome | DeleteOutcome:
        if self.action == "save":
            return save_outcome(work)
        if self.action == "delete":
            return work.engine.delete(SESSION, work.engine.resolve(SESSION, self.argument))
        return restore(work, self.argument)

    def calls(self) -> list[DiskCall]:
        """What it asks of the disk when nothing goes wrong, opening the workspace included."""
        self.scene.reset()
        with intercepted(let_pass) as turnstile, self.scene.open(create=True) as work:
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
