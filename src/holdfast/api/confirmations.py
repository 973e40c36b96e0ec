"""Tokens that tie an action to its preview.

A token confirms one plan. It is random, works once and expires. Only a limited number are open at a
time; a new one replaces the oldest. The plan is kept here and not in the token, so nothing can be
forged. Callers compare the plan again before they act, so a token confirms only what was shown.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.domain.errors import Refused

VALID_MINUTES = 10
_VALID_NS = VALID_MINUTES * 60 * 1_000_000_000
_MOST_OPEN = 32


class NotConfirmed(Refused):
    """An unknown or expired token. The hint says how to get a valid one."""

    code = "not_confirmed"


@dataclass(frozen=True, slots=True)
class _Open:
    shown: object
    until_ns: int


class Confirmations:
    """The open previews of one session; thread-safe."""

    def __init__(self, monotonic_ns: Callable[[], int], new_token: Callable[[], str]) -> None:
        self._monotonic_ns = monotonic_ns
        self._new_token = new_token
        self._open: OrderedDict[tuple[str, str], _Open] = OrderedDict()
        self._lock = threading.Lock()

    def offer(self, tool: str, shown: object) -> str:
        """Create a token for the plan that was just shown."""
        token = self._new_token()
        with self._lock:
            self._open[tool, token] = _Open(shown, self._monotonic_ns() + _VALID_NS)
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        return token

    def take(self, tool: str, token: str) -> object:
        """Return the plan of a token, which can then no longer be used."""
        with self._lock:
            found = self._open.pop((tool, token), None)
        if found is None:
            raise NotConfirmed(
                "unknown confirm_token: it was already used, was replaced by newer ones, or "
                f"is not for {tool}",
                hint=f"call {tool} without confirm_token for a new preview and a new token",
            )
        if self._monotonic_ns() > found.until_ns:
            raise NotConfirmed(
                f"the confirm_token has expired; it is valid for {VALID_MINUTES} minutes",
                hint=f"call {tool} without confirm_token for a new preview and a new token",
            )
        return found.shown
