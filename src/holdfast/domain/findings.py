"""Findings about a store: problems inside it, and symptoms around it."""

from __future__ import annotations

from enum import StrEnum

from holdfast.values.classes import dataclass


class Gravity(StrEnum):
    FINE = "ok"
    NOTE = "note"
    """Nothing is wrong; something could be set up."""

    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that was looked at; `cure` says what to do about it."""

    subject: str
    gravity: Gravity
    finding: str
    cure: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the store that breaks an invariant."""

    invariant: str
    subject: str
    problem: str
