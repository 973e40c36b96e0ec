"""The components in use: Holdfast's own, and plug-ins named in the settings.

A plug-in is searched for only if a setting names it. Installing a package must not run its code in
every save, nor slow saves down.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:  # not imported by a save of files alone
    from pathlib import Path

    from holdfast.ports.component import Component

GROUP = "holdfast.components"


class BuiltIn(NamedTuple):
    """One of Holdfast's own components. `may_apply` says, without loading anything, whether it may
    have something to capture in a workspace."""

    make: Callable[[], Component]
    may_apply: Callable[[Path], bool]
    recorded_only: bool = False


class InstalledComponents:
    """Loads each component once, on first use. A name that is not `built_in` is a plug-in's."""

    def __init__(
        self,
        names: Sequence[str],
        built_in: Mapping[str, BuiltIn],
        within_time: Callable[[Callable[[], Component]], Component],
    ) -> None:
        """`within_time` calls a plug-in's loader; `ComponentProblem` if that fails or hangs."""
        self._within_time = within_time
        self._names = names
        self._built_in = built_in
        self._loaded: dict[str, Component | None] = {}
        self._missing: list[str] = []

    def any_for(self, workspace: Path, *, recorded: bool) -> bool:
        """Whether a component may apply; a plug-in is asked later."""
        found = (self._built_in.get(name) for name in self._names)
        return any(
            one is None or (one.may_apply(workspace) and (recorded or not one.recorded_only))
            for one in found
        )

    def all(self) -> Sequence[Component]:
        return self._ordered(self._names)

    def applying(self, workspace: Path) -> Sequence[Component]:
        return self._ordered(
            name
            for name in self._names
            if name not in self._built_in or self._built_in[name].may_apply(workspace)
        )

    def named(self, names: Container[str]) -> Sequence[Component]:
        return self._ordered(name for name in self._names if name in names)

    def missing(self) -> Sequence[str]:
        self._ordered(name for name in self._names if name not in self._built_in)
        return self._missing

    def _ordered(self, names: Iterable[str]) -> list[Component]:
        found = []
        for name in names:
            if name not in self._loaded:
                self._loaded[name] = self._load(name)
            if (component := self._loaded[name]) is not None:
                found.append(component)
        return sorted(found, key=lambda component: (component.order, component.name))

    def _load(self, name: str) -> Component | None:
        if name in self._built_in:
            return self._built_in[name].make()
        from holdfast.ports.component import ComponentProblem

        try:
            return self._within_time(lambda: _plugged_in(name))
        except ComponentProblem as error:  # files are saved even if a plug-in fails
            self._missing.append(f"{name}: it cannot be loaded ({error})")
            return None


def has_git(workspace: Path) -> bool:
    """Whether a `.git` is in the workspace or above it."""
    place = os.fspath(workspace)
    while not os.path.lexists(os.path.join(place, ".git")):
        above = os.path.dirname(place)
        if above == place:
            return False
        place = above
    return True


def _plugged_in(name: str) -> Component:
    from importlib.metadata import entry_points  # late: it searches every package

    from holdfast.domain.component_states import EXACT, valid_component_name
    from holdfast.ports.component import RecordedComponent

    offered = {point.value: point for point in entry_points(group=GROUP, name=name)}
    if not offered:
        raise LookupError(f"no installed package offers it as an entry point of {GROUP!r}")
    if len(offered) > 1:
        raise LookupError(f"several packages offer it: {', '.join(sorted(offered))}")
    (point,) = offered.values()
    component: Component = point.load()()
    if component.name != name or not valid_component_name(component.name):
        raise ValueError(f"its name is {component.name!r}")
    recorded = isinstance(component, RecordedComponent)
    if component.modes[:1] != (() if recorded else (EXACT,)):
        raise ValueError("its first mode is not 'exact'")
    if type(component.order) is not int:
        raise ValueError(f"its order {component.order!r} is not a number")
    return component
