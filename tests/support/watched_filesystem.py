"""A real file system that tells a test about every call, before and after it.

The test can count calls, fail one, kill the process at one, or change the workspace at one: each is
a function from the call to nothing, which may raise. Calls of SQLite and of the lock file do not
pass here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.ports.filesystem import StatNumbers
from holdfast.testing.intercepted_filesystem import Disk


@dataclass(frozen=True, slots=True)
class Call:
    """The n-th call since the watch began, counted from 1."""

    number: int
    member: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def names(self) -> list[bytes]:
        return [argument for argument in self.arguments if isinstance(argument, bytes)]


Watch: TypeAlias = Callable[[Call], None]


def ignore_call(call: Call) -> None:
    """A watch that only counts."""


class WatchedFilesystem:
    """Every member of the port, with `before` and `after` around it."""

    def __init__(self, before: Watch = ignore_call, after: Watch = ignore_call) -> None:
        self.before = before
        self.after = after
        self.calls = 0
        self._inner = LocalFilesystem()

    def __getattr__(self, member: str) -> Callable[..., Any]:
        inner: Callable[..., Any] = getattr(self._inner, member)

        def watched(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            call = Call(self.calls, member, arguments, options)
            self.before(call)
            result = inner(*arguments, **options)
            self.after(call)
            return result

        return watched

    def stat_all(self, names: Sequence[bytes], *, dir_fd: int) -> bytes | None:
        """Reported as its meaning: a look at each of the names."""
        options = {"dir_fd": dir_fd, "follow_symlinks": False}
        calls = [Call(self.calls + n, "stat", (name,), options) for n, name in enumerate(names, 1)]
        self.calls += len(calls)
        for call in calls:
            self.before(call)
        told = self._inner.stat_all(names, dir_fd=dir_fd)
        for call in calls:
            self.after(call)
        return told

    def stat_numbers(self, told: bytes) -> Sequence[StatNumbers]:
        return self._inner.stat_numbers(told)

    def as_port(self) -> Disk:
        return cast("Disk", self)


def once(condition: Callable[[Call], bool], action: Callable[[], None]) -> Watch:
    """Do `action` at the first call that `condition` accepts, and never again."""
    done = False

    def watch(call: Call) -> None:
        nonlocal done
        if not done and condition(call):
            done = True
            action()

    return watch
