"""A listener that keeps what long work tells of how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class ProgressLog:
    """The reported progress, in order."""

    phases: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)
    moved: list[int] = field(default_factory=list)

    def advance(self, phase: str, done: int, total: int | None) -> None:
        self.phases.setdefault(phase, []).append((done, total))

    def transferred(self, size_bytes: int) -> None:
        self.moved.append(size_bytes)

    def require_shares(self, phase: str, total: int) -> None:
        """The phase was reported several times, never went back, and never passed its total."""
        told = [done for done, _ in self.phases[phase]]
        assert {of for _, of in self.phases[phase]} == {total}
        assert told == sorted(told)
        assert len(told) > 1
        assert 0 < told[-1] <= total
