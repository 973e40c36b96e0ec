"""Small and larger workspaces with an acknowledged past, that each case starts from afresh.

A scene is built once and copied for every case to the same path, because a store knows where its
workspace lies. `problems` says what a person would find wrong after something went wrong.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.outcomes import RestoreOutcome, SaveOutcome
from holdfast.engine.components.selection import ComponentChoice
from holdfast.engine.repair.check import run_checks
from holdfast.engine.restore.recovery_report import take_report
from holdfast.engine.retention.cleanup import collect
from holdfast.engine.stored_objects import read_content
from holdfast.engine.vault import Vault
from holdfast.ports.progress import NoProgress
from tests.behind_the_api import local_store
from tests.support.tree_hash import Node, debris, describe, differences

SESSION = SessionId("s")
State = dict[bytes, Node]


def opened(project: Path, home: Path, *, create: bool = False) -> OpenWorkspace:
    return open_workspace(project, create=create, environment={"HOLDFAST_HOME": str(home)})


def allow_any_number(project: Path) -> None:
    """A campaign saves more often by hand than a person may; the project's own file says so."""
    settings = project / ".holdfast/config.toml"
    settings.parent.mkdir(0o700, parents=True, exist_ok=True)
    settings.touch(0o600)
    settings.write_text("max_manual_checkpoints = 0\n")


def save_outcome(work: OpenWorkspace, reasoning: str = "why") -> SaveOutcome:
    return work.engine.save(SESSION, make_intent(reasoning))


def save(work: OpenWorkspace, reasoning: str = "why") -> Checkpoint:
    return save_outcome(work, reasoning).checkpoint


def restore(work: OpenWorkspace, reference: str, git: str = "") -> RestoreOutcome:
    choice = ComponentChoice({"git": git} if git else {})
    request = work.engine.restore_request(SESSION, reference, components=choice)
    return work.engine.restore(request)


@dataclass(slots=True)
class Scene:
    """`known` is what was acknowledged: the state behind each checkpoint's id."""

    root: Path
    known: dict[str, State] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.root / "case" / "project"

    @property
    def home(self) -> Path:
        return self.root / "case" / "home"

    @property
    def _template(self) -> Path:
        return self.root / "template"

    def open(self, *, create: bool = False) -> OpenWorkspace:
        return opened(self.project, self.home, create=create)

    def state(self) -> State:
        return described(self.project)

    def keep(self) -> None:
        """What is there now is what every case starts from."""
        remove_tree(self._template)
        copy_tree(self.root / "case", self._template)

    def reset(self) -> None:
        remove_tree(self.root / "case")
        copy_tree(self._template, self.root / "case")


def described(project: Path) -> State:
    """The files of a workspace; what git keeps for itself is no part of its tree."""
    found = describe(project)
    return {p: node for p, node in found.items() if p != b".git" and not p.startswith(b".git/")}


def copy_tree(source: Path, target: Path) -> None:
    """With links of both kinds, modes and times."""
    names: dict[int, str] = {}

    def copy(old: str, new: str) -> str:
        status = os.lstat(old)
        if status.st_nlink > 1 and status.st_ino in names:
            os.link(names[status.st_ino], new, follow_symlinks=False)
        else:
            shutil.copy2(old, new, follow_symlinks=False)
            names[status.st_ino] = new
        return new

    shutil.copytree(source, target, symlinks=True, copy_function=copy)


def remove_tree(path: Path) -> None:
    """Read-only directories included."""
    if not path.exists():
        return
    for directory, names, _ in os.walk(path):
        for name in names:
            below = os.path.join(directory, name)
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(path)


def write(path: Path, content: bytes, mode: int | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if mode is not None:
        path.chmod(mode)


def build_small(project: Path) -> None:
    """One of each kind: what a restore has to do to each is different."""
    write(project / "edited", b"as it was", 0o640)
    write(project / "deleted", b"as it was")
    write(project / "directory/inner", b"as it was")
    write(project / "closed/file", b"as it was")
    write(project / "run", b"#!/bin/sh\n", 0o755)
    write(project / "same", b"never touched")
    (project / "link").symlink_to("as-it-was")
    (project / "empty").mkdir()
    os.link(project / "same", project / "second-name")
    (project / "closed").chmod(0o555)


def wreck_small(project: Path) -> None:
    write(project / "edited", b"other", 0o600)
    (project / "deleted").unlink()
    shutil.rmtree(project / "directory")
    write(project / "directory", b"a file now")
    (project / "closed").chmod(0o755)
    write(project / "closed/file", b"other")
    (project / "closed").chmod(0o555)
    (project / "run").chmod(0o644)
    (project / "link").unlink()
    (project / "link").symlink_to("other")
    (project / "empty").rmdir()
    write(project / "made/by/agent", b"new")


def build_large(project: Path, rng: random.Random) -> None:
    """Dozens of files, one of them large enough to be cut into pieces."""
    for number in range(80):
        size = rng.choice((0, 50, 700, 5_000, 30_000))
        write(project / f"src/{number % 8}/file-{number}.txt", rng.randbytes(size))
    write(project / "data/large.bin", rng.randbytes(1_300_000))


def change_some(project: Path, rng: random.Random) -> None:
    """Random work: edits, new files, deletions, modes, kinds that trade places."""
    files = sorted(p for p in project.rglob("*") if p.is_file() and ".holdfast" not in p.parts)
    for path in rng.sample(files, min(len(files), rng.randint(1, 8))):
        what = rng.randrange(5)
        if what == 0:
            path.unlink()
        elif what == 1:
            path.chmod(rng.choice((0o600, 0o644, 0o755)))
        elif what == 2:
            path.unlink()
            write(path / "inside", rng.randbytes(40))
        else:
            write(path, rng.randbytes(rng.choice((0, 10, 3_000, 20_000))))
    for _ in range(rng.randint(1, 4)):
        write(project / f"new/{rng.randrange(10)}/{rng.randrange(1000)}", rng.randbytes(500))


def make_scene(
    root: Path, build: Callable[[Path], None], wreck: Callable[[Path], None]
) -> tuple[Scene, str, str]:
    """A scene that stands in its wrecked state, with a checkpoint of each."""
    scene = Scene(root)
    scene.project.mkdir(parents=True)
    build(scene.project)
    with scene.open(create=True) as work:
        good = save(work, "good").id
        scene.known[good] = scene.state()
        wreck(scene.project)
        bad = save(work, "bad").id
        scene.known[bad] = scene.state()
    scene.keep()
    return scene, good, bad


def stored_state(vault: Vault, checkpoint: Checkpoint) -> State:
    """What a checkpoint holds, told by its bytes alone, in the words of the independent hasher."""
    from hashlib import sha256

    found: State = {}
    names: dict[bytes, list[bytes]] = {}
    pending = [(b"", checkpoint.tree)]
    while pending:
        above, digest = pending.pop()
        tree = vault.load_tree(digest)
        prefix = above + b"/" if above else b""
        for file in tree.files:
            content = sha256(b"".join(read_content(vault.objects, file))).hexdigest()
            found[prefix + file.name] = Node("file", file.mode, content=content)
            if file.link is not None:
                names.setdefault(file.link, []).append(prefix + file.name)
        for link in tree.symlinks:
            found[prefix + link.name] = Node("symlink", 0, target=link.target)
        for directory in tree.directories:
            found[prefix + directory.name] = Node("directory", directory.mode)
            pending.append((prefix + directory.name, directory.digest))
    for group in names.values():
        for path in group:
            node = found[path]
            found[path] = Node("file", node.mode, node.content, names=tuple(sorted(group)))
    return found


def problems(
    project: Path, home: Path, known: dict[str, State], trees: tuple[State, ...]
) -> list[str]:
    """What is wrong with a workspace and its store, seen by the next process that opens it.

    Nothing is repaired by hand: opening is all there is. Then every acknowledged checkpoint is
    compared byte for byte, every byte of the store is checked, and saving and restoring are tried.
    """
    wrong: list[str] = []
    with opened(project, home, create=not known) as work:
        work.engine.recover()
        found = described(project)
        if found not in trees:
            closest = min((differences(found, tree) for tree in trees), key=len)
            wrong.append(f"the tree is neither old nor new: {closest}")
        vault = work.engine.vault
        wrong += [
            f"check: {p.invariant} {p.subject}: {p.problem}"
            for p in run_checks(vault, data=True, progress=NoProgress())
        ]
        for checkpoint_id, state in known.items():
            checkpoint = vault.catalog.checkpoint(SESSION, checkpoint_id)
            if checkpoint is None:
                wrong.append(f"acknowledged checkpoint {checkpoint_id} is gone")
            elif unlike := differences(stored_state(vault, checkpoint), state):
                wrong.append(f"acknowledged checkpoint {checkpoint_id} differs: {unlike}")
        if not wrong:
            wrong += _next_work_fails(work, project, known)
            wrong += _next_collection_fails(work)
        take_report(vault)  # as the next command does: it shows what was recovered
        wrong += [f"left behind: {name!r}" for name in debris(project)]
        wrong += [f"left behind in the store: {name}" for name in store_debris(work)]
    return wrong


def _next_work_fails(work: OpenWorkspace, project: Path, known: dict[str, State]) -> list[str]:
    before = described(project)
    saved = save(work, "the next one")
    write(project / "the-next-file", b"next")
    for checkpoint_id in list(known)[-1:]:
        restore(work, checkpoint_id)
        if unlike := differences(described(project), known[checkpoint_id]):
            return [f"the next restore brings back {unlike}"]
    restore(work, saved.id)
    if unlike := differences(described(project), before):
        return [f"the next save was restored as {unlike}"]
    return []


def _next_collection_fails(work: OpenWorkspace) -> list[str]:
    vault = work.engine.vault
    with vault.lock.hold():
        collect(vault)
    lost = run_checks(vault, data=False, progress=NoProgress())
    return [f"after a collection: {p.subject}: {p.problem}" for p in lost]


def store_debris(work: OpenWorkspace) -> list[str]:
    """Files of the store that no part of it accounts for, after the next collection."""
    store = work.store.directory
    expected = {"store.json", "lock", "catalog.db", "stat-cache.db", "objects"}
    expected |= {"story.db", "story.lock", "search.db", "search.lock"}
    found = [name for name in os.listdir(store) if name.removesuffix("-wal") not in expected]
    found = [name for name in found if name.removesuffix("-shm") not in expected]
    found += [name for name in os.listdir(store / "objects") if not name.startswith("index.db")]
    found.remove("packs")
    known = {f"{number:08d}.pack" for number in local_store(work).objects.index.pack_lengths()}
    return found + [name for name in os.listdir(store / "objects/packs") if name not in known]
