"""The directories of one workspace that are watched, and those in which something happened.

A tree of nodes, so that a directory that moves takes everything below it out at once. Times are
numbers that only grow: a change is forgotten when a scan that began after it has been kept.

There can be many thousands of directories, and they are kept as long as the workspace is watched:
most have no directory below them or only one, and neither takes a table.

Not guaranteed: anything about directories that were never entered here; events do not reach them.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.paths import join

_MOST_TOUCHED = 10_000
_MOST_UNKNOWN = 20_000
_IN_A_NEW_DIRECTORY = 1_000


class Node:
    """One directory; `watch` is the number of its watch, or None; `scan` the scan that last saw
    it."""

    __slots__ = ("_inside", "name", "owner", "parent", "scan", "watch")

    def __init__(self, owner: WatchedDirectories, parent: Node | None, name: bytes) -> None:
        self.owner = owner
        self.parent = parent
        self.name = name
        self._inside: Node | dict[bytes, Node] | None = None
        self.watch: int | None = None
        self.scan = 0

    def child(self, name: bytes) -> Node | None:
        inside = self._inside
        if isinstance(inside, dict):
            return inside.get(name)
        return inside if inside is not None and inside.name == name else None

    def children(self) -> tuple[Node, ...]:
        inside = self._inside
        if isinstance(inside, dict):
            return tuple(inside.values())
        return () if inside is None else (inside,)

    def take_in(self, child: Node) -> None:
        """One more, of a name that is not there yet."""
        inside = self._inside
        if isinstance(inside, dict):
            inside[child.name] = child
        else:
            self._inside = child if inside is None else {inside.name: inside, child.name: child}

    def take_out(self, child: Node) -> None:
        """One that is there."""
        if isinstance(self._inside, dict):
            del self._inside[child.name]
        else:
            self._inside = None

    @property
    def path(self) -> bytes:
        names = []
        node = self
        while node.parent is not None:
            names.append(node.name)
            node = node.parent
        return b"/".join(reversed(names))

    def below(self) -> Iterator[Node]:
        """This node and all under it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children())


class WatchedDirectories:
    """What is known of one workspace between two scans."""

    def __init__(self) -> None:
        self.root = Node(self, None, b"")
        self.count = 0
        self.now = 0
        self._changed: dict[Node, int] = {}
        self._unknown: dict[bytes, int] = {}
        self._touched: dict[tuple[Node, bytes], int] = {}

    def node(self, path: bytes) -> Node:
        """The node of a directory, made if there is none."""
        node = self.root
        for name in path.split(b"/") if path else ():
            child = node.child(name)
            if child is None:
                child = Node(self, node, name)
                node.take_in(child)
            node = child
        return node

    def change(self, node: Node, name: bytes = b"") -> None:
        """Something happened in this directory, to this name."""
        self.now += 1
        self._changed[node] = self.now
        if name and len(self._touched) < _MOST_TOUCHED:
            self._touched[node, name] = self.now

    def replace(self, node: Node, name: bytes) -> Node | None:
        """A directory of that name came or went: nothing below it is known any more. The node that
        it had, taken out of the tree."""
        self.change(node, name)
        self._unknown[join(node.path, name)] = self.now
        gone = node.child(name)
        if gone is not None:
            node.take_out(gone)
            for lost in gone.below():
                self._changed.pop(lost, None)
        return gone

    def lose_all(self) -> None:
        """Anything may have happened anywhere."""
        self.now += 1
        self._unknown[b""] = self.now

    def sweep(self, scan: int) -> list[Node]:
        """Take out the directories that no scan from this one on has seen."""
        gone = [node for node in self.root.below() if node.parent is not None and node.scan < scan]
        for node in gone:
            self._changed.pop(node, None)
            if node.parent is not None and node.parent.child(node.name) is node:
                node.parent.take_out(node)
        return gone

    def forget(self, mark: int) -> None:
        """A scan that began at `mark` has looked at everything that was changed by then."""
        self._changed = {node: when for node, when in self._changed.items() if when > mark}
        self._unknown = {path: when for path, when in self._unknown.items() if when > mark}
        self._touched = {each: when for each, when in self._touched.items() if when > mark}

    def changed(self) -> frozenset[bytes]:
        return frozenset(node.path for node in self._changed)

    def unknown(self) -> frozenset[bytes]:
        return frozenset(self._unknown)

    @property
    def has_lost_track(self) -> bool:
        """So much is unknown that looking at everything is quicker, and remembering it costs."""
        return len(self._unknown) > _MOST_UNKNOWN

    @property
    def touched(self) -> int:
        """How many names may be concerned; a directory that came can hold any number."""
        return len(self._touched) + _IN_A_NEW_DIRECTORY * len(self._unknown)
