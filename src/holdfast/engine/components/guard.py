"""Calls third-party code with a time limit, and turns every failure into a reason.

The call runs in a separate thread. If it does not end in time, it is abandoned: Python cannot stop
a thread, but nothing waits for it any longer, and its later results are refused.

Its progress reports are cut to one line of a terminal. Invalid values are ignored, and so are
reports of an abandoned component.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from holdfast.domain.errors import NoSpace
from holdfast.domain.wording import reworded
from holdfast.engine.vault import Vault
from holdfast.ports.component import ComponentProblem
from holdfast.ports.progress import TransferProgress

T = TypeVar("T")
_LONGEST_REASON = 500


class Refusal(Exception):
    """A call failed, with the reason."""


def guarded(call: Callable[[], T], *, timeout_s: float) -> T:
    """The call's result; `Refusal` for every other outcome."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # a plug-in may even try to end the process
            errors.append(error)

    thread = threading.Thread(target=run, name="holdfast-component", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if results:
        return results[0]
    if errors:
        raise Refusal(reason_of(errors[0])) from errors[0]
    raise Refusal(f"it did not finish within {timeout_s:g} seconds")


def reason_of(error: BaseException) -> str:
    if isinstance(error, ComponentProblem):
        text = str(error)
    elif isinstance(error, NoSpace):
        text = error.message
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return one_line(text)


def one_line(text: object) -> str:
    """A third-party message, made fit for one line of a terminal."""
    words = " ".join(str(text).split())
    return "".join(c for c in words if c.isprintable())[:_LONGEST_REASON]


def lines(texts: Iterable[object] | None) -> tuple[str, ...]:
    """One text or several, each on one line; none for None. A remark stays a remark."""
    if isinstance(texts, str):
        texts = (texts,)
    return tuple(
        reworded(text, one_line) if isinstance(text, str) else one_line(text)
        for text in texts or ()
    )


_LONGEST_PHASE = 60


class ComponentProgress:
    """Implements `holdfast.ports.progress.TransferProgress` for one call of one component."""

    __slots__ = ("_listener", "_name")

    def __init__(self, name: str, listener: TransferProgress) -> None:
        self._name = name
        self._listener: TransferProgress | None = listener

    def advance(self, phase: str, done: int, total: int | None) -> None:
        listener = self._listener
        counted = _is_count(done) and (total is None or _is_count(total))
        if listener is not None and isinstance(phase, str) and counted:
            line = "".join(c for c in phase[:_LONGEST_PHASE] if c.isprintable())
            listener.advance(f"{self._name}: {line}", done, total)

    def transferred(self, size_bytes: int) -> None:
        listener = self._listener
        if listener is not None and _is_count(size_bytes):
            listener.transferred(size_bytes)

    def end(self) -> None:
        self._listener = None


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


@contextmanager
def component_progress(vault: Vault, name: str, phase: str) -> Iterator[ComponentProgress]:
    """A progress listener for one call, which begins with this phase."""
    progress = ComponentProgress(name, vault.progress)
    progress.advance(phase, 0, None)
    try:
        yield progress
    finally:
        progress.end()
