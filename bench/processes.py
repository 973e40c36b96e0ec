"""Child processes with a time limit, and the plain surroundings that all of them see.

Guarantees: no child outlives its limit, and none reads the user's git configuration or home.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

LIMIT_S = 120.0


class Failed(Exception):
    """A tool could not do what it was asked; the message is for the footnote."""


class NotOffered(Failed):
    """The tool has no such operation."""


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    limit_s: float = LIMIT_S,
) -> bytes:
    """Run to the end and return its output; anything but success is `Failed`."""
    shown = " ".join(command[:3])
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            input=stdin,
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"`{shown}` not done after {limit_s:.0f} s") from None
    except OSError as error:
        raise Failed(f"`{shown}`: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise Failed(f"`{shown}` exit {done.returncode}: {said[-1] if said else 'no message'}")
    return done.stdout


def remove(directory: Path) -> None:
    """Remove a directory with everything in it; rm is much the quickest for very many files."""
    subprocess.run(["rm", "-rf", str(directory)], check=True)


@contextmanager
def plain_surroundings(work: Path) -> Iterator[None]:
    """An empty home, a git without configuration that looks no higher than `work`, umask 022."""
    home = work / "home"
    home.mkdir(exist_ok=True)
    saved = dict(os.environ)
    for name in [name for name in saved if name.startswith(("GIT_", "XDG_", "HOLDFAST_"))]:
        del os.environ[name]
    os.environ.update(
        HOME=str(home),
        LC_ALL="C.UTF-8",
        GIT_CONFIG_NOSYSTEM="1",
        GIT_CONFIG_GLOBAL=os.devnull,
        GIT_CEILING_DIRECTORIES=str(work),
        GIT_TERMINAL_PROMPT="0",
        # Tools that name no author of their own still commit.
        GIT_AUTHOR_NAME="bench",
        GIT_AUTHOR_EMAIL="bench@example.invalid",
        GIT_COMMITTER_NAME="bench",
        GIT_COMMITTER_EMAIL="bench@example.invalid",
    )
    mask = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(mask)
        os.environ.clear()
        os.environ.update(saved)
