"""The command by which an agent calls Holdfast. It must find this installation in the agent's
environment too.

An agent is started by a login, a desktop or an editor, and lacks the `PATH` of the shell that ran
the installation. A program in a virtual environment is not found there by its bare name. A path
that survives upgrades is preferred, because agents may trust the exact text of a hook.
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
    """The bare name if every login finds this installation by it. Otherwise its full path,
    preferably a link outside its virtual environment. Otherwise this interpreter, with -P so that
    it loads no modules from the project."""
    own = next(_own_scripts(), None)
    if own is None:
        return f"{shlex.quote(sys.executable)} -P -m {NAME}"
    found = _found_by_login()
    if found is not None and _is_same(found, own) and not _in_own_environment(found):
        return NAME
    stable = next((link for link in _links() if _is_same(link, own)), own)
    return shlex.quote(str(stable))


def agents_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The minimal environment of every agent, however it is started."""
    also = (*_KEPT, "XDG_CONFIG_HOME", "XDG_DATA_HOME")
    kept = {
        name: value
        for name, value in environment.items()
        if name in also or name.startswith("HOLDFAST_")
    }
    return {"PATH": login_path(environment), **kept}


def login_path(environment: Mapping[str, str]) -> str:
    """The `PATH` of the user's login shell, or a default if the shell does not answer."""
    return _ask_login('printf "%s\\n" "$PATH"', environment) or _PLAIN_PATH


def not_found(program: str) -> str | None:
    """Why Holdfast's command cannot run in an agent's environment; None if it can. Nothing is
    run."""
    try:
        first = shlex.split(program)[0]
    except (ValueError, IndexError):
        return "its command cannot be read"
    if "/" in first:
        return None if _is_program(Path(first)) else f"{first} no longer exists"
    import shutil  # late: it imports half a dozen modules

    directories = [one for one in _search_path() if not _in_own_environment(Path(one) / first)]
    if shutil.which(first, path=os.pathsep.join(directories)) is not None:
        return None
    return f"{first} is not found outside this virtual environment"


def own_command_length(words: Sequence[str]) -> int | None:
    """How many words call Holdfast, in any form that `install` writes or wrote; None for another
    program."""
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
    """The console scripts of this installation."""
    import sysconfig  # late: `status` does not need it

    for scheme in (None, f"{os.name}_user"):
        place = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        if place and _is_program(Path(place) / NAME):
            yield Path(place) / NAME


def _links() -> Iterator[Path]:
    """Links that installers create to programs in their own environments."""
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
    """The last line that the user's login shell prints; None if it fails or times out."""
    import subprocess  # late: seldom needed, and never by `status`

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
