"""A workspace with its store open: use cases work on it, and `bootstrap` creates it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.domain.settings.schema import make_settings
from holdfast.engine.engine import Engine
from holdfast.values.classes import dataclass

if TYPE_CHECKING:
    from holdfast.engine.vault import Vault
    from holdfast.ports.store import OpenStore


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """An invalid setting: where and why, and the fix."""

    finding: str
    cure: str


@dataclass(frozen=True, slots=True)
class GatheredSettings:
    """Effective values, the source of each, and invalid settings."""

    values: dict[str, Any]
    origins: dict[str, str]
    problems: tuple[SettingProblem, ...]


class Composition(Protocol):
    """How `bootstrap` composed a workspace, to be able to redo parts when its surroundings
    change."""

    def gather_settings(
        self, stored: Mapping[str, str], workspace: Path, environment: Mapping[str, str]
    ) -> GatheredSettings: ...

    def vault_for(self, vault: Vault, environment: Mapping[str, str]) -> Vault:
        """The same vault with components that see another environment."""

    def restore_marker(self, workspace: Path) -> None:
        """Rewrite the workspace's marker if it is gone: `git clean -fdx` removes it."""

    def is_store_of(self, workspace: Path) -> bool:
        """Whether the directory still has this store. The workspace may have moved, and another may
        be in its place."""


class OpenWorkspace:
    """A workspace with its store open. Close it, or use it as a context.

    `setting_problems` are invalid settings. `news` are messages about the store from opening it.
    `environment` is the caller's, which may be another process; programs are started with it.
    """

    def __init__(
        self,
        engine: Engine,
        store: OpenStore,
        settings: GatheredSettings,
        environment: Mapping[str, str],
        composition: Composition,
        *,
        news: tuple[str, ...] = (),
    ) -> None:
        self.news = news
        self.engine = engine
        self.store = store
        self.setting_origins = settings.origins
        self.setting_problems = settings.problems
        self.environment = environment
        self._composition = composition

    def is_current(self) -> bool:
        """Whether opening it again would give the same store and settings. Call it before each use
        of a workspace that is kept open, so that a changed setting applies from the next operation.
        Raises `InvalidSetting`, or what opening would raise, if unknown."""
        vault = self.engine.vault
        if self.store.was_replaced() or not self._composition.is_store_of(vault.workspace):
            return False
        found = self._composition.gather_settings(
            vault.catalog.settings(), vault.workspace, self.environment
        )
        same = make_settings(found.values) == vault.settings
        return same and found.problems == self.setting_problems

    def restore_marker(self) -> None:
        self._composition.restore_marker(self.engine.vault.workspace)

    def with_engine(self, engine: Engine) -> OpenWorkspace:
        """The same workspace with another of its engines. Takes the news along."""
        other = object.__new__(OpenWorkspace)
        vars(other).update(vars(self))
        other.engine = engine
        self.news = ()
        return other

    def for_caller(self, environment: Mapping[str, str]) -> OpenWorkspace:
        """The same open workspace for a caller with another environment."""
        vault = self._composition.vault_for(self.engine.vault, environment)
        other = self.with_engine(self.engine.for_environment(vault))
        other.environment = environment
        return other

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> OpenWorkspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
