"""Streams commits to `git fast-import` while they are read from the store.

    commit REF, mark, author and time, message, parent → D path … → M mode inline path, bytes …

Guarantee: if the stream ends successfully, the branch moves to its last commit, and only as a
fast-forward. Otherwise, nothing is visible. At most one block is in memory.

Paths that some system reserves for its own data are left out (`git_accepts`). The rule is the same
everywhere, so that a mirror built on another machine is equal and `git fsck --strict` accepts it.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator

from holdfast.components.git.commands import NO_REFLOG, Git, GitFailed

_GIT = re.compile(rb"(?:\.git|git~1)[. ]*(?::.*)?\Z", re.IGNORECASE | re.DOTALL)
_LINK = re.compile(
    rb"(?:\.git(?:modules|ignore|attributes)|\.mailmap|(?:gitmod|gitign|gitatt|mailma)~[1-4]"
    rb"|g[a-f0-9]{1,5}~\d+|ma[a-f0-9]{1,4}~\d+)[. ]*(?::.*)?\Z",
    re.IGNORECASE | re.DOTALL,
)
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def git_accepts(path: bytes, *, link: bool = False) -> bool:
    """`link`: a symbolic link, for which more names are reserved."""
    for name in path.split(b"/"):
        for part in {name, *name.split(b"\\")}:
            plain = _without_ignored(part)
            if not plain or plain in (b".", b"..") or _GIT.match(plain):
                return False
    return not (link and _LINK.match(_without_ignored(path.rpartition(b"/")[2])))


def _without_ignored(name: bytes) -> bytes:
    text = name.decode("utf-8", "surrogateescape")
    return _IGNORED_BY_HFS.sub("", text).encode("utf-8", "surrogateescape")


IDENTITY = b"Holdfast <holdfast@localhost>"
_END_S = 300.0
_ERROR_BYTES = 64 << 10


class ImportStream:
    """Used as a context; without `finish`, it leaves no trace."""

    def __init__(self, git: Git, branch: bytes) -> None:
        self._git = git
        self._branch = branch
        with contextlib.ExitStack() as stack:
            self._errors = stack.enter_context(tempfile.TemporaryFile())
            self._process = git.start(
                "fast-import", "--quiet", "--done", config=NO_REFLOG, errors=self._errors.fileno()
            )
            stack.pop_all()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout

    def __enter__(self) -> ImportStream:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        with contextlib.suppress(OSError):
            self._in.close()
        self._out.close()
        self._process.wait()
        self._errors.close()
        # On failure it leaves a crash report in the repository; Holdfast reports the error itself.
        with contextlib.suppress(OSError):
            report = b"fast_import_crash_%d" % self._process.pid
            os.unlink(self._git.repository.own(report))

    def commit(self, mark: int, time_s: int, message: bytes, parent: bytes | None) -> None:
        """`parent` is a commit or `:MARK`; without one, the branch begins here."""
        when = b"%b %d +0000\n" % (IDENTITY, max(time_s, 0))
        self._write(b"commit %b\nmark :%d\n" % (self._branch, mark))
        self._write(b"author %bcommitter %b" % (when, when))
        self._write(b"data %d\n%b\n" % (len(message), message))
        if parent is not None:
            self._write(b"from %b\n" % parent)

    def clear(self) -> None:
        """Start the commit empty instead of with its parent's content."""
        self._write(b"deleteall\n")

    def remove(self, path: bytes) -> None:
        self._write(b"D %b\n" % quoted(path))

    def put(self, path: bytes, mode: bytes, size: int, pieces: Iterable[bytes]) -> None:
        """Exactly `size` bytes; otherwise `ValueError`."""
        self._write(b"M %b inline %b\ndata %d\n" % (mode, quoted(path), size))
        for piece in pieces:
            size -= len(piece)
            self._write(piece)
        if size != 0:
            raise ValueError("a file's size does not match its entry")
        self._write(b"\n")

    def finish(self, marks: Iterable[int]) -> dict[int, bytes]:
        """The commits of these marks; `GitFailed` if the branch could not be moved."""
        asked = sorted(set(marks))
        self._write(b"".join(b"get-mark :%d\n" % mark for mark in asked) + b"done\n")
        with self._translate_errors():
            self._in.close()
            answered = self._out.read().split()
            status = self._process.wait(_END_S)
        if status != 0 or len(answered) != len(asked):
            raise self._failed()
        return dict(zip(asked, answered, strict=True))

    def _write(self, data: bytes) -> None:
        with self._translate_errors():
            self._in.write(data)

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self._process.wait()
            raise self._failed() from None
        except subprocess.TimeoutExpired:
            raise GitFailed("git fast-import took too long and was stopped") from None

    def _failed(self) -> GitFailed:
        self._errors.seek(0)
        return self._git.failure(("fast-import",), self._errors.read(_ERROR_BYTES))


def quoted(path: bytes) -> bytes:
    """A path as `fast-import` reads it, with any bytes."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,= @%~"
    return (
        b'"'
        + b"".join(bytes((byte,)) if byte in plain else b"\\%03o" % byte for byte in path)
        + b'"'
    )
