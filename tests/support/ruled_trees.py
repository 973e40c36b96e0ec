"""Random workspaces full of what rules decide about, and random changes to them.

    names that rules, includes, markers and databases are about → a tree, a few levels deep
    one of the paths that are there, one of the things that programs do to one → a change

Everything comes from the given randomness, so that the number of a case repeats it.
"""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.support.tree_actions import TreeActions

DIRECTORIES = (b"a", b"b", b"c", b"build", b"node_modules", b"target", b"keep", b"\xff\xfe", b"A")
DATABASE = b"data"
RULE_FILES = (b".gitignore", b".holdfastignore")
MARKERS = {
    b"CACHEDIR.TAG": (b"Signature: 8a477f597d28d172789f06886806bc55\n", b"nothing of the kind"),
    b"pyvenv.cfg": (b"home = /usr/bin\n",),
}
FILES = (b"x.log", b"y.tmp", b"zz", b".env", b"sp ace ", b"new\nline", b"lib", b"ZZ")
NAMES = (
    *DIRECTORIES,
    *FILES,
    *MARKERS,
    *RULE_FILES,
    DATABASE,
    DATABASE + b"-wal",
    DATABASE + b"-journal",
    DATABASE + b"-shm",
    b".git",
)
RULES = (
    b"*.log", b"build/", b"!keep", b"*-journal", b"*-wal", b"c", b"/a/b", b"target", b"!x.log",
    b"node_modules/", b"data*", b"*.tmp", b"!build/", b"b/*", b"!b/keep", b"**/zz", b"a/**",
    b"!a/**/", b"sp\\ ace\\ ", b"\xff*", b"[zZ]*", b"/*", b"!/a", b"keep/ ", b"# nothing", b"data",
    b".gitignore", b".*ignore", b"!.env", b"!target/", b"!node_modules/",
)  # fmt: skip
INCLUDES = (
    "build/keep", "node_modules/a/", "*.log", "target/", "a/build", "**/zz", "data-wal", ".env",
    "build/", "data", "c/", "**/keep/**", "b/c/x.log", "/a", "node_modules/**/.env",
)  # fmt: skip
_SIZE_CAP = 50_000


def random_settings(rng: random.Random) -> dict[str, Any]:
    """All that there is about what is captured, each set now and then."""
    return {
        "include": rng.sample(INCLUDES, rng.choice((0, 1, 1, 2))),
        "ignore": [os.fsdecode(r) for r in rng.sample(RULES, 2)] if rng.random() < 0.3 else [],
        "max_file_size": _SIZE_CAP if rng.random() < 0.3 else 100_000_000,
        "defaults": "off" if rng.random() < 0.15 else "on",
    }


class RuledTree:
    """The tree at `root`, which `grow` makes and `change` changes."""

    def __init__(self, rng: random.Random, root: Path, outside: Path) -> None:
        self._rng = rng
        self._root = root
        self._do = TreeActions(root, outside)

    def grow(self) -> None:
        self._fill(b"", 0)

    def _fill(self, directory: bytes, depth: int) -> None:
        self._do.make_directory(directory)
        for name in self._rng.sample(NAMES, self._rng.randrange(2, 9)):
            self._add(os.path.join(directory, name), depth)

    def _add(self, path: bytes, depth: int) -> None:
        rng, do, name = self._rng, self._do, os.path.basename(path)
        kind = rng.random()
        if name == b".git":
            do.write(path + b"/info/exclude", self._rules())
        elif depth < 4 and kind < (0.8 if name in DIRECTORIES else 0.03):
            self._fill(path, depth + 1)
        elif kind > 0.97:
            do.make_pipe(path)
        elif kind > 0.92:
            do.symlink(path, rng.choice((b"a", b"zz", b"a/../b", b"x.log", b"\xff")))
        elif name == DATABASE and kind > 0.3:
            for suffix, content in rng.choice(database_files()).items():
                do.write(path + suffix, content)
        else:
            do.write(path, self._content(name))
            if rng.random() < 0.05:
                do.change_mode(path, 0o755)
            if rng.random() < 0.03:
                do.set_attribute(path)

    def _content(self, name: bytes) -> bytes:
        rng = self._rng
        if name in RULE_FILES:
            return self._rules()
        if name in MARKERS:
            return rng.choice(MARKERS[name])
        if name == DATABASE and rng.random() < 0.5:
            return rng.choice(database_files())[b""]
        kind = rng.random()
        if kind < 0.02:
            return rng.randbytes(1_200_000)
        if kind < 0.08:
            return rng.randbytes(_SIZE_CAP + 10_000)
        return rng.randbytes(rng.choice((0, 1, 20, 300)))

    def _rules(self) -> bytes:
        rng = self._rng
        end = rng.choice((b"\n", b"\n", b"\n", b"\r\n"))
        mark = b"\xef\xbb\xbf" if rng.random() < 0.1 else b""
        return mark + end.join((*rng.sample(RULES, rng.randrange(1, 4)), b""))

    def paths(self) -> list[bytes]:
        """Everything there is, Holdfast's own directory aside."""
        top = os.fsencode(self._root)
        found: list[bytes] = []
        for directory, names, files in os.walk(top):
            if directory == top and b".holdfast" in names:
                names.remove(b".holdfast")
            names.sort()
            found += [os.path.relpath(os.path.join(directory, n), top) for n in (*names, *files)]
        return sorted(found)

    def change_much(self, times: int) -> None:
        for _ in range(times):
            self.change()

    def change(self) -> None:
        rng, do = self._rng, self._do
        paths = self.paths() or [b"a"]
        path, other = rng.choice(paths), rng.choice(paths)
        beside = os.path.join(os.path.dirname(rng.choice(paths)), rng.choice(NAMES))
        name = os.path.basename(path)
        kind = rng.randrange(20)
        if kind in (3, 4, 5, 6) and name.endswith(b"-shm"):
            kind = 0  # who has its database open changes it, without anybody looking
        if kind == 0:
            do.remove(path)
        elif kind in (1, 2):
            self._add(beside, 3)
        elif kind in (3, 4):
            do.write(path, self._content(name))
        elif kind == 5:
            do.rewrite_behind_the_times(path, self._as_long_as(path))
        elif kind == 6:
            do.put_another(path, self._as_long_as(path))
        elif kind == 7:
            do.move(path, os.path.join(os.path.dirname(other), name))
        elif kind == 8:
            do.move(path, beside)
        elif kind == 9:
            do.swap(path, other)
        elif kind == 10 and not beside.endswith(b"-shm") and not path.endswith(b"-shm"):
            do.hard_link(beside, path)
            do.touch(path)  # a name made in an unwatched place is only noticed with the next change
        elif kind == 11:
            do.change_mode(path, rng.choice((0o755, 0o700, 0o644, 0o600)))
        elif kind == 12:
            do.set_attribute(path)
        elif kind in (13, 14):
            rules = rng.choice(RULE_FILES)
            do.write(os.path.join(os.path.dirname(path), rules), self._rules())
        elif kind == 15:
            self._turn(path)
        elif kind == 16:
            rng.choice((do.move_out, do.move_in))(path)
        elif kind == 17:
            do.change_outside(rng.choice(NAMES), self._content(b""))
        elif kind == 18:
            do.set_time(path, rng.choice((0, 10**18, -(10**9), 4 * 10**18)))
        else:
            do.hard_link_outside(path, b"%d" % rng.randrange(99))
            do.touch(path)

    def _turn(self, path: bytes) -> None:
        """Into something of another kind, under the same name."""
        self._do.remove(path)
        target = self._rng.choice((b"a", b"zz", b"keep"))
        self._rng.choice(
            (
                lambda: self._do.make_pipe(path),
                lambda: self._do.symlink(path, target),
                lambda: self._do.write(path, self._content(b"")),
                lambda: self._fill(path, 3),
            )
        )()

    def _as_long_as(self, path: bytes) -> bytes:
        place = self._do.at(path)
        size = os.lstat(place).st_size if os.path.lexists(place) else 0
        begin = self._content(os.path.basename(path))[:size]
        return begin + self._rng.randbytes(size - len(begin))


@lru_cache(maxsize=1)
def database_files() -> tuple[dict[bytes, bytes], ...]:
    """Databases as they are on a disk, by what follows their name: at rest, with a log that is in
    use, and with the journal of a transaction that a crash cut off."""
    with tempfile.TemporaryDirectory(prefix="databases-") as top:
        return (
            _made(Path(top) / "rest", "delete", 3, crash=False),
            _made(Path(top) / "more", "delete", 300, crash=False),
            _made(Path(top) / "log", "wal", 5, crash=True),
            _made(Path(top) / "longer", "wal", 40, crash=True),
            _made(Path(top) / "journal", "delete", 2_000, crash=True),
        )


def _made(path: Path, journal: str, rows: int, *, crash: bool) -> dict[bytes, bytes]:
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("pragma synchronous=off")
        connection.execute(f"pragma journal_mode={journal}")
        connection.execute("create table t (number integer, text)")
        connection.execute("insert into t values (0, 'first')")
        connection.execute("pragma cache_size=2")
        if crash and journal == "delete":
            connection.execute("begin")
        text = "x" * 20
        connection.executemany("insert into t values (?, ?)", ((n, text) for n in range(rows)))
        found = {
            suffix: Path(f"{path}{suffix.decode()}").read_bytes()
            for suffix in (b"", b"-wal", b"-shm", b"-journal")
            if Path(f"{path}{suffix.decode()}").exists()
        }
    connection.close()
    return found
