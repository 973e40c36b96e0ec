"""A workspace with its store open: what use cases work on and `bootstrap` puts together."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
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
    """A setting that cannot be used: where and why, and what to do about it."""

    finding: str
    cure: str


@dataclass(frozen=True, slots=True)
class GatheredSettings:
    """Effective values, where each comes from, and what cannot be used."""

    values: dict[str, Any]
    origins: dict[str, str]
    problems: tuple[SettingProblem, ...]


class Composition(Protocol):
    """How `bootstrap` put a workspace together, for when the world around it has changed."""

    def gather_settings(
        self, stored: Mapping[str, str], workspace: Path, environment: Mapping[str, str]
    ) -> GatheredSettings: ...

    def vault_for(self, vault: Vault, environment: Mapping[str, str]) -> Vault:
        """The same vault with components that see another environment."""

    def restore_marker(self, workspace: Path) -> None:
        """Write the marker of the workspace again where it is gone: `git clean -fdx` removes it."""

    def is_store_of(self, workspace: Path) -> bool:
        """Whether the directory still has this store: the workspace may have moved away, and
        another one may be at its place."""


class OpenWorkspace:
    """A workspace with its store open. Close it, or use it as a context.

    `setting_problems` are settings that cannot be used. `news` is what opening it has to report
    about the store. `environment` is that of the caller, which need not be this process: programs
    are started with it.
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
        """Whether opening it again would give the same store and settings. Ask before each use of a
        workspace that is kept open, so that a changed setting counts from the next operation on.
        `InvalidSetting`, or what opening it would raise, when that cannot be determined."""
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
        """The same workspace, worked on by another engine of it. Its news go along."""
        other = copy(self)
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
