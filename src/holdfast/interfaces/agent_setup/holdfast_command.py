"""The command by which an agent calls Holdfast: by words that mean this installation in the agent's
environment too.

An agent is started by a login, a desktop or an editor, and does not have the `PATH` of the shell
that ran the installation: a program in a virtual environment is not found there by its bare name. A
path that stays the same across upgrades is preferred, because agents may trust the exact text of a
hook.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

NAME = "holdfast"
_LOGIN_S = 5.0
_KEPT = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "XDG_RUNTIME_DIR")
_PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"


def our_program() -> str:
    """The bare name where every login finds this very installation; else its full path, outside of
    its virtual environment if there is a link to it; else this interpreter, which must not load
    modules from the project that it is started in, as -P says."""
    own = next(_own_scripts(), None)
    if own is None:
        return f"{shlex.quote(sys.executable)} -P -m {NAME}"
    found = _found_by_login()
    if found is not None and _is_same(found, own) and not _in_own_environment(found):
        return NAME
    stable = next((link for link in _links() if _is_same(link, own)), own)
    return shlex.quote(str(stable))


def agents_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The minimum that every agent has, however it is started."""
    also = (*_KEPT, "XDG_CONFIG_HOME", "XDG_DATA_HOME")
    kept = {
        name: value
        for name, value in environment.items()
        if name in also or name.startswith("HOLDFAST_")
    }
    return {"PATH": login_path(environment), **kept}


def login_path(environment: Mapping[str, str]) -> str:
    """Where a login looks for programs, as far as its shell says."""
    return _ask_login('printf "%s\\n" "$PATH"', environment) or _PLAIN_PATH


def not_found(program: str) -> str | None:
    """Why Holdfast's command cannot run in an agent's environment, without running it."""
    try:
        first = shlex.split(program)[0]
    except (ValueError, IndexError):
        return "its command cannot be read"
    if "/" in first:
        return None if _is_program(Path(first)) else f"{first} no longer exists"
    import shutil  # late: it brings half a dozen modules

    directories = [one for one in _search_path() if not _in_own_environment(Path(one) / first)]
    if shutil.which(first, path=os.pathsep.join(directories)) is not None:
        return None
    return f"{first} is not found outside this virtual environment"


def own_command_length(words: Sequence[str]) -> int | None:
    """How many words call our program, in whatever way `install` writes or wrote it; None when it
    is another one."""
    if words and (words[0] == "holdfast" or words[0].endswith("/holdfast")):
        return 1
    for way in (["-P", "-m", "holdfast"], ["-m", "holdfast"]):
        if words[1 : 1 + len(way)] == way and "/" in words[0]:
            return 1 + len(way)
    return None


def _search_path() -> list[str]:
    given = os.environ.get("PATH", "").split(os.pathsep)
    return [*filter(None, given), *_PLAIN_PATH.split(":"), str(Path.home() / ".local" / "bin")]


def _own_scripts() -> Iterator[Path]:
    """The console script of this very installation."""
    import sysconfig  # late: `status` does without

    for scheme in (None, f"{os.name}_user"):
        place = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        if place and _is_program(Path(place) / NAME):
            yield Path(place) / NAME


def _links() -> Iterator[Path]:
    """Where installers put links to programs that live in environments of their own."""
    import shutil

    found = shutil.which(NAME)
    for place in (Path.home() / ".local" / "bin" / NAME, Path("/usr/local/bin") / NAME, found):
        if place is not None and _is_program(Path(place)) and not _in_own_environment(Path(place)):
            yield Path(place)


def _is_program(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:
        return False


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _in_own_environment(path: Path) -> bool:
    in_one = sys.prefix != sys.base_prefix
    return in_one and Path(os.path.abspath(path)).is_relative_to(sys.prefix)


def _found_by_login() -> Path | None:
    said = _ask_login(f"command -v {NAME}", os.environ)
    return Path(said) if said is not None and said.startswith("/") else None


def _ask_login(command: str, environment: Mapping[str, str]) -> str | None:
    """The last line that the user's login shell prints; None when it does not answer."""
    import subprocess  # seldom needed, and not by a `status`

    shell = environment.get("SHELL", "")
    shell = shell if os.path.isabs(shell) and os.access(shell, os.X_OK) else "/bin/sh"
    clean = {name: environment[name] for name in _KEPT if name in environment}
    try:
        asked = subprocess.run(
            [shell, "-lc", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": _PLAIN_PATH, "TERM": "dumb", **clean},
            timeout=_LOGIN_S,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = asked.stdout.decode("utf-8", "surrogateescape").split("\n")
    return next((line for line in reversed(lines) if line), None)
