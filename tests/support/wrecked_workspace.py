"""A workspace with a state worth going back to and the wreck it is in, for tests of faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.composition import composed
from tests.support.crash_server import Answer, CrashServer, Request
from tests.support.hostile_trees import fill
from tests.support.tree_hash import Node, debris, describe


def _build(workspace: Path) -> None:
    fill(workspace / "edited", b"old", 0o640)
    fill(workspace / "deleted", b"old")
    fill(workspace / "swapped/inner", b"old")
    fill(workspace / "locked/file", b"old")
    (workspace / "link").symlink_to("old")
    (workspace / "empty").mkdir()
    (workspace / "locked").chmod(0o555)


def _swap(workspace: Path) -> None:
    """Kinds of things trade places, with something in each directory."""
    (workspace / "swapped/inner").unlink()
    (workspace / "swapped").rmdir()
    fill(workspace / "swapped", b"a file now")
    (workspace / "edited").unlink()
    fill(workspace / "edited/below", b"a directory now")
    (workspace / "link").unlink()
    (workspace / "link").mkdir()


def _wreck(workspace: Path) -> None:
    fill(workspace / "edited", b"new", 0o600)
    (workspace / "deleted").unlink()
    (workspace / "swapped/inner").unlink()
    (workspace / "swapped").rmdir()
    fill(workspace / "locked/file", b"new")
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("new")
    (workspace / "empty").rmdir()
    fill(workspace / "made/by/agent", b"new")


class Story:
    """A workspace with a state worth going back to, and the wreck it is in."""

    def __init__(
        self,
        workspace: Path,
        *,
        swapped: bool = False,
        prepare: Callable[[Path], None] | None = None,
    ) -> None:
        self.workspace = workspace
        workspace.mkdir()
        if prepare is not None:
            prepare(workspace)
        _build(workspace)
        self.old = describe(workspace)
        with composed(workspace) as opened:
            self.good = opened.save("a good state").id
            (_swap if swapped else _wreck)(workspace)
            self.new = describe(workspace)
            self.bad = opened.save("bad").id

    def ask(self, server: CrashServer, action: str, *, at: int, **options: object) -> Answer:
        return server.ask(Request(str(self.workspace), action, at=at, **options))  # type: ignore[arg-type]

    def recover(self) -> dict[bytes, Node]:
        """The tree after the next process has opened the workspace and done something."""
        with composed(self.workspace) as opened:
            opened.engine.recover()
        assert debris(self.workspace) == []
        return describe(self.workspace)

    def check(self) -> None:
        """Every byte of every object, and what the catalog says of itself."""
        with composed(self.workspace) as opened:
            assert list(opened.engine.vault.objects.check(data=True)) == []
            assert list(opened.engine.vault.catalog.check()) == []

    def go_to(self, reference: str) -> None:
        with composed(self.workspace) as opened:
            opened.restore(reference)

    def put_right(self) -> None:
        """Start the next round from the wreck itself, whatever the last one left."""
        if describe(self.workspace) in (self.old, self.new):
            return
        self.go_to(self.good)
        self.go_to(self.bad)
