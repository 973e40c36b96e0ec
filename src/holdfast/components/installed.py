"""The components that take part: those of Holdfast itself, and plug-ins that the settings name.

A plug-in is looked for only when a setting names it: installing a package must neither run its code
in every save nor cost the time of looking through all packages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from holdfast.domain.component_states import EXACT, valid_component_name
from holdfast.ports.component import Component

GROUP = "holdfast.components"


class InstalledComponents:
    """Loads each component once, when it is asked for. `makers` makes those of Holdfast that need
    more than the environment."""

    def __init__(
        self,
        names: Sequence[str],
        environment: Mapping[str, str],
        makers: Mapping[str, Callable[[], Component]],
    ) -> None:
        self._names = names
        self._makers = makers
        self._environment = environment
        self._loaded: list[Component] | None = None
        self._missing: list[str] = []

    def all(self) -> Sequence[Component]:
        if self._loaded is None:
            loaded = [found for name in self._names if (found := self._load(name)) is not None]
            self._loaded = sorted(loaded, key=lambda component: (component.order, component.name))
        return self._loaded

    def missing(self) -> Sequence[str]:
        self.all()
        return self._missing

    def _load(self, name: str) -> Component | None:
        if name == "git":
            from holdfast.components.git.component import GitComponent

            return GitComponent(self._environment)
        if name in self._makers:
            return self._makers[name]()
        try:
            return _plugged_in(name)
        except Exception as error:  # whatever a plug-in does, files are still saved
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            self._missing.append(f"{name}: it cannot be loaded ({said})")
            return None


def _plugged_in(name: str) -> Component:
    from importlib.metadata import entry_points  # late: it looks through every package

    for point in entry_points(group=GROUP, name=name):
        component: Component = point.load()()
        if component.name != name or not valid_component_name(component.name):
            raise ValueError(f"it calls itself {component.name!r}")
        if component.modes[:1] != (EXACT,):
            raise ValueError("its first mode is not 'exact'")
        return component
    raise LookupError(f"no installed package offers it as an entry point of {GROUP!r}")
