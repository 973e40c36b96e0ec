"""A workspace with its store open: what use cases work on and `bootstrap` puts together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.domain.settings.schema import make_settings
from holdfast.engine.engine import Engine
from holdfast.values.classes import dataclass

if TYPE_CHECKING:
    from holdfast.adapters.local.local_store import LocalStore


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """A setting that cannot be used: where and why, and what to do about it."""

    finding: str
    cure: str


@dataclass(frozen=True, slots=True)
class GatheredSettings:
    """Effective values, where each comes from, and what cannot be used."""

    values: dict[str, Any]
    origins: dict[str, str]
    problems: tuple[SettingProblem, ...]


class OpenWorkspace:
    """A workspace with its store open. Close it, or use it as a context.

    `setting_problems` are settings that cannot be used. `recovered` tells that an interrupted
    restore was put right on the way. `news` is what there is to say about the store, for whoever
    opened it to pass on. `environment` is that of whoever it works for, which need not be this
    process: programs are started with it.
    """

    def __init__(
        self,
        engine: Engine,
        store: LocalStore,
        settings: GatheredSettings,
        environment: Mapping[str, str],
        gather: Callable[[Mapping[str, str], Path, Mapping[str, str]], GatheredSettings],
        *,
        news: tuple[str, ...] = (),
    ) -> None:
        self.news = news
        self.engine = engine
        self.store = store
        self.setting_origins = settings.origins
        self.setting_problems = settings.problems
        self.environment = environment
        self.recovered = False
        self._gather = gather

    def is_current(self, environment: Mapping[str, str] | None = None) -> bool:
        """Whether opening it again would give the same store and settings. Ask before each use of a
        workspace that is kept open, so that a changed setting counts from the next operation on.
        `InvalidSetting`, or what opening it would raise, when that cannot be determined."""
        if self.store.was_replaced():
            return False
        vault = self.engine.vault
        found = self._gather(
            vault.catalog.settings(), vault.workspace, environment or self.environment
        )
        same = make_settings(found.values) == vault.settings
        return same and found.problems == self.setting_problems

    def with_engine(self, engine: Engine) -> OpenWorkspace:
        """The same workspace, worked on by another engine of it. Its news go along."""
        other = OpenWorkspace.__new__(OpenWorkspace)
        other.__dict__.update(self.__dict__, engine=engine)
        self.news = ()
        return other

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> OpenWorkspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
