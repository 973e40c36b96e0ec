"""Source trees to measure on: generated ones of a chosen size, and the interpreter's own library as
a real one.

A generated tree is a nest of directories with about ten files each; file sizes are lognormal with
a median near 3 KB; a file is a run of lines over a skewed vocabulary, so it compresses about as
source code does.

Guarantees: the same count and seed give the same names and bytes; modes are 0644, 0755 or
directory 0755, which every tool under test can represent. Does not guarantee that the real tree
is the same on two machines.
"""

import os
import random
import shutil
import sysconfig
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from bench.processes import run

COPY_LIMIT_S = 300.0
FILES_PER_DIRECTORY = 10
MEDIAN_BYTES = 3_000
SIZE_SIGMA = 1.2
LARGEST_BYTES = 200_000
LINES_IN_POOL = 40_000
MEAN_LINE_BYTES = 34

_SYLLABLES = "ba co de fi gu ha in jo ka le mo nu or pe qui ra se ta un vo we xi ya zo".split()
_SUFFIXES = (".py", ".py", ".py", ".ts", ".go", ".md", ".json")
_SHAPES = (
    "{i}def {a}({b}, {c}=None):",
    "{i}{a} = {b}.{c}({d})",
    "{i}if {a}.{b} is not None and {c} != {d}:",
    "{i}return {a}({b}, {c}={d})",
    '{i}"{a} of the {b} before {c}",',
    "{i}for {a} in {b}.{c}():",
    "{i}raise {A}Error(f'{b} {{{c}!r}} is not {d}')",
    "{i}# {a} the {b} when {c} has no {d}",
    "{i}self.{a} = {n}",
    "",
)

# Directories of the library that are build products, or that ignore rules often leave out.
_NOT_SOURCE = {
    "__pycache__", "site-packages", "dist-packages", "lib-dynload", "venv", "build", "dist"
}  # fmt: skip
_NOT_SOURCE_SUFFIXES = (".pyc", ".so", ".a", ".o", ".exe", ".whl", ".lock")


class SourceText:
    """An endless supply of source-like lines and files from one seed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.words = sorted({"_".join(self._name(1 + k % 3)) for k in range(4_000)})
        rng.shuffle(self.words)
        # Zipf-like: a few names are everywhere, most are rare, as in real code.
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(len(self.words))))
        self._pool = [self.line() for _ in range(LINES_IN_POOL)]

    def _name(self, parts: int) -> list[str]:
        return ["".join(self._rng.choices(_SYLLABLES, k=2)) for _ in range(parts)]

    def line(self) -> str:
        """One new line of code, without its newline."""
        a, b, c, d = self._rng.choices(self.words, cum_weights=self._weights, k=4)
        indent = "    " * self._rng.choice((0, 1, 1, 2, 2, 3))
        shape = self._rng.choice(_SHAPES)
        number = self._rng.randrange(10_000)
        return shape.format(i=indent, a=a, b=b, c=c, d=d, A=a.title(), n=number)

    def file(self, size_bytes: int) -> bytes:
        """A file of exactly `size_bytes`, its opening line unlike any other file's."""
        count = size_bytes // MEAN_LINE_BYTES + 2
        # A file speaks of a few things only: its lines come from one stretch of the pool.
        start = self._rng.randrange(LINES_IN_POOL)
        topic = self._pool[start : start + max(60, count)] or self._pool
        text = f"# {self._rng.getrandbits(64):016x}\n".encode()
        while len(text) < size_bytes:
            text += ("\n".join(self._rng.choices(topic, k=count)) + "\n").encode()
        return text[:size_bytes]


def generate(root: Path, count: int, seed: int = 7) -> None:
    """Create `root` holding `count` source-like files."""
    rng = random.Random(f"tree {count} {seed}")
    source = SourceText(rng)
    directories = [root]
    root.mkdir(mode=0o755)
    for number in range(count):
        if number % FILES_PER_DIRECTORY == 0 and number:
            # Parent chosen so that depth grows with the logarithm of the size, six children each.
            parent = directories[(len(directories) - 1) // 6]
            made = parent / f"{rng.choice(source.words)}_{len(directories)}"
            made.mkdir(mode=0o755)
            directories.append(made)
        size = int(min(LARGEST_BYTES, rng.lognormvariate(0, SIZE_SIGMA) * MEDIAN_BYTES))
        name = f"{rng.choice(source.words)}_{number}{rng.choice(_SUFFIXES)}"
        (directories[-1] / name).write_bytes(source.file(size))


def real_source() -> Path:
    """Where the interpreter keeps its library: a real source tree that is always there."""
    return Path(sysconfig.get_path("stdlib"))


def copy_real(root: Path) -> int:
    """Copy the source files of the interpreter's library to `root`; returns how many."""
    source = real_source()
    count = 0
    for path in _source_files(source):
        target = root / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        shutil.copyfile(path, target)
        target.chmod(0o755 if path.stat().st_mode & 0o111 else 0o644)
        count += 1
    return count


def _source_files(source: Path) -> Iterator[Path]:
    for directory, subdirectories, names in os.walk(source):
        subdirectories[:] = sorted(
            name for name in subdirectories if name not in _NOT_SOURCE and "config-" not in name
        )
        for name in sorted(names):
            path = Path(directory, name)
            if not name.endswith(_NOT_SOURCE_SUFFIXES) and path.is_file() and not path.is_symlink():
                yield path


def copy(source: Path, target: Path) -> None:
    """Copy a tree with its modes and times."""
    run(("cp", "-a", str(source), str(target)), cwd=source, limit_s=COPY_LIMIT_S)


def list_files(root: Path) -> list[bytes]:
    """Relative paths of the regular files under `root`, sorted."""
    top = os.fsencode(root)
    found: list[bytes] = []
    for directory, _, names in os.walk(top):
        prefix = directory[len(top) + 1 :]
        found += [os.path.join(prefix, name) for name in names]
    return sorted(found)
