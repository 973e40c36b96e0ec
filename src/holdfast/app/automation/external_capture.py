"""Files outside the workspace that a tool is about to change: captured from then on.

    a path of a tool, a redirection, a known effect of its program → captured, existing or not
    a file that is passed to any other program                     → captured if it is writable

Links in the directories of a path are resolved now. A path that is a link itself is captured
together with its target, because a tool may change either. So a path is outside if its target is,
whichever way the agent reached the workspace. If a path leads through missing directories, the
first of them is captured. A SQLite database is captured with its journals, which are part of it.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.agent_events import AgentEvent

if TYPE_CHECKING:
    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.domain.shell.risk import Assessment

OUTSIDE_NOT_KEPT = "external: not captured: "
_SHOWN = 5
_SQLITE = b"SQLite format 3\0"


class ExternalCapture:
    """`named` are the paths as seen from the workspace, each with its absolute path. `captured` is
    everything that the checkpoint will hold for this call. `not_captured` gives the reason for each
    path that is not."""

    def __init__(self, opened: OpenWorkspace, event: AgentEvent, risk: Assessment | None) -> None:
        from holdfast.domain.shell.expansion import join, path_from_workspace

        self._opened = opened
        self._is_risky = risk is not None and risk.grade.word == "risky"
        self._workspace = str(opened.engine.vault.workspace)
        self._home = opened.environment.get("HOME")
        base = event.cwd or self._workspace
        named = {} if risk is None else dict(zip(risk.outside, risk.places, strict=True))
        for path in event.paths:
            named.setdefault(path, join(base, path))
        named = {
            path_from_workspace(self._workspace, n, place): place for n, place in named.items()
        }
        self._found: dict[bytes, None] = {}
        self.not_captured: dict[str, str] = {}
        self.named = {n: place for n, place in named.items() if self._leads_outside(n, place)}
        for place in () if risk is None else risk.handed:
            self._add_argument(place)
        self._found |= dict.fromkeys(journal for path in self._found for journal in _journals(path))
        self.captured: list[str] = []
        if risk is not None and risk.uncounted:
            self.not_captured["…"] = "the command names too many paths"

    def remember(self) -> None:
        """Include them in this checkpoint and all later ones; called with the lock held."""
        vault = self._opened.engine.vault
        if not self.named and not self._found:
            return
        if "external" not in vault.settings.components:
            self.not_captured = dict.fromkeys(self.named, "external files are not captured")
            return
        from holdfast.domain.errors import HoldfastError
        from holdfast.domain.paths import to_text

        try:
            if self._found:
                vault.parts.external_paths.add(list(self._found))
                self.captured = [to_text(path) for path in self._found]
        except HoldfastError as error:  # the files of the workspace are saved anyway
            self.not_captured |= dict.fromkeys(self.named, error.message)

    def messages(self, outcome: SaveOutcome) -> tuple[str, ...]:
        """The notice for the agent about changes that cannot be undone."""
        lost = [
            text.removeprefix(OUTSIDE_NOT_KEPT)
            for text in outcome.degraded
            if text.startswith(OUTSIDE_NOT_KEPT)
        ]
        if self._is_risky:
            lost += [f"{name}: {reason}" for name, reason in self.not_captured.items()]
        if not lost:
            return ()
        more = f"; and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        notice = (
            "Holdfast could not save every file outside the workspace that this call names. A "
            f"restore cannot bring these back: {'; '.join(lost[:_SHOWN])}{more}"
        )
        return (notice,)

    def _leads_outside(self, name: str, place: str) -> bool:
        """Whether the path leads outside; records its targets."""
        from holdfast.domain.external_paths import UnresolvedPath

        try:
            found = [one for one in _real_places(place, self._home) if not self._is_inside(one)]
            encoded = dict.fromkeys(os.fsencode(one) for one in found)
        except (UnresolvedPath, OSError, ValueError) as error:
            if self._is_inside(place) or self._is_inside(_by_links(place)):
                return False
            self.not_captured[name] = str(error)
            return True
        self._found |= encoded
        return bool(found)

    def _add_argument(self, place: str) -> None:
        """Record an argument file if the tool's user can write or replace it. Files installed by a
        package manager are arguments all the time, so they are skipped."""
        from holdfast.domain.external_paths import UnresolvedPath, is_installed

        try:
            for one in _real_places(place, self._home):
                writable = os.access(one, os.W_OK) or os.access(os.path.dirname(one), os.W_OK)
                if writable and not self._is_inside(one) and not is_installed(one):
                    self._found[os.fsencode(one)] = None
        except (UnresolvedPath, OSError, ValueError):
            return  # nothing suggests that it changes

    def _is_inside(self, place: str) -> bool:
        return f"{place}/".startswith(self._workspace.rstrip("/") + "/")


def _by_links(place: str) -> str:
    """The path with its links resolved; parts that only a shell can expand stay as written."""
    try:
        return os.path.realpath(place) if place.startswith("/") and "\0" not in place else place
    except ValueError:  # not a possible path
        return place


def _real_places(place: str, home: str | None) -> list[str]:
    """The real paths of a place; `UnresolvedPath` if unknown, or if it is a system path."""
    from holdfast.domain.external_paths import expand_home, require_user_path, resolve_path

    path = resolve_path(place, home)
    literal = expand_home(place, home)
    if path != literal and "\0" not in literal and os.path.lexists(literal):
        path = os.path.normpath(literal)  # a literal name with a bracket
    directory, _, last = path.rpartition("/")
    real = os.path.join(os.path.realpath(directory or "/"), last)
    while not os.path.lexists(os.path.dirname(real)):
        real = os.path.dirname(real)
    if not os.path.islink(real):
        places = [real]
    elif place.rstrip("/").endswith(f"/{last}"):
        places = [real, os.path.realpath(real)]
    else:
        places = [os.path.realpath(real)]  # a pattern below the link; the link itself stays
    for one in places:
        require_user_path(one)
    return places


def _journals(path: bytes) -> list[bytes]:
    """The files that belong to a SQLite database, existing or not."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return []
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode) or os.read(fd, len(_SQLITE)) != _SQLITE:
            return []
    except OSError:
        return []
    finally:
        os.close(fd)
    return [path + suffix for suffix in (b"-wal", b"-journal")]
