"""Agent settings files: read as text or as data, and changed.

    refuse unwritable files → read each file again → write it atomically

Guarantees: nothing is written if any file cannot be. A file keeps its mode and owner. A link is
kept and its target edited. A file that changed since it was read is not overwritten. Limit: a
change between the last check and the replacement can be lost.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.domain.errors import HoldfastError, Refused
from holdfast.domain.wording import size_words
from holdfast.interfaces.agent_setup.json_text import NotJson, load
from holdfast.values.classes import dataclass

_LARGEST = 50 << 20
"""Large, because some agents keep the history of all projects in their settings."""


class NotToml(Exception):
    """The text is not TOML; the message says where and why."""


def load_toml(text: str) -> dict[str, Any]:
    import tomllib  # late: most agents have no such settings

    try:
        return tomllib.loads(text)
    except ValueError as error:  # including a number with more digits than Python reads
        raise NotToml(str(error)) from None
    except RecursionError:
        raise NotToml("nested too deeply") from None


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file before and after; None means that it does not exist. `target` is the file behind
    links, `owner` its user and group. `remodelled`: the content is right, but not executable.
    `kept`: why something from Holdfast stays in it. `shared`: the file is not only Holdfast's."""

    path: Path
    target: Path
    before: str | None
    after: str | None
    mode: int
    owner: tuple[int, int] | None
    remodelled: bool = False
    kept: str | None = None
    shared: bool = False

    @property
    def differs(self) -> bool:
        return self.before != self.after or (self.remodelled and self.kept is None)

    @property
    def word(self) -> str:
        if self.kept is not None:
            return "kept"
        if self.before == self.after:
            return "changed" if self.remodelled else "unchanged"
        if self.before is None:
            return "created"
        return "removed" if self.after is None else "changed"

    @property
    def diff(self) -> str:
        import difflib  # late: only this function needs it

        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            (self.after or "").splitlines(keepends=True),
            os.devnull if self.before is None else str(self.path),
            os.devnull if self.after is None else str(self.path),
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def read_settings(path: Path) -> tuple[str | None, os.stat_result | None]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if path.is_symlink():
            raise Refused(
                f"{path} is a dangling link", hint="remove it, or create its target"
            ) from None
        return None, None
    except NotADirectoryError:
        raise Refused(
            f"cannot create {path}: one of its parent directories is a file",
            hint="move that file elsewhere",
        ) from None
    except OSError as error:
        raise Refused(
            f"cannot read {path}: {error.strerror}", hint="check its owner and permissions"
        ) from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{path} is not a settings file", hint="move it elsewhere")
        if status.st_size > _LARGEST:
            raise Refused(
                f"{path} has {size_words(status.st_size)}, too large to edit",
                hint="use the agent's own commands to set it up",
            )
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(_LARGEST).decode("utf-8"), status
    except UnicodeDecodeError:
        raise Refused(
            f"{path} is not UTF-8 text", hint="save it as UTF-8 first; nothing was changed"
        ) from None
    finally:
        os.close(fd)


def json_settings(path: Path) -> dict[str, Any]:
    """The settings as data; empty if the file is missing or unreadable."""
    try:
        text, _ = read_settings(path)
        found = load(text) if text is not None else {}
    except (HoldfastError, NotJson):
        return {}
    return found if isinstance(found, dict) else {}


def toml_settings(path: Path) -> dict[str, Any]:
    """Like `json_settings`, for TOML."""
    try:
        text, _ = read_settings(path)
        return load_toml(text) if text is not None else {}
    except (HoldfastError, NotToml):
        return {}


def texts(value: Any) -> list[str]:
    """The strings in a list from an agent's settings."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def is_trusted_folder(file: Path, workspace: Path) -> bool:
    """Whether a file of trusted folders trusts a workspace. The rule of the nearest directory
    upwards applies. `TRUST_PARENT` applies to the directory above."""
    rules = {}
    for folder, rule in json_settings(file).items():
        place = Path(os.path.realpath(folder))
        place = place.parent if rule == "TRUST_PARENT" else place
        if workspace.is_relative_to(place):
            rules[len(place.parts)] = rule
    return bool(rules) and rules[max(rules)] in ("TRUST_FOLDER", "TRUST_PARENT")


def apply_changes(changes: Sequence[FileChange], *, keep: Sequence[Path]) -> None:
    """Write the changed files. All refusals come before the first write. Directories left empty are
    removed, but never one of `keep`, or above it."""
    pending = [change for change in changes if change.differs]
    for change in pending:
        _require_writable(change)
    for change in pending:
        try:
            _write(change, keep)
        except OSError as error:
            raise Refused(
                f"cannot write {change.path}: {error.strerror}",
                hint="check its owner, permissions and free disk space",
            ) from None


def _require_writable(change: FileChange) -> None:
    place = change.target
    if change.before is not None and os.statvfs(place).f_flag & os.ST_RDONLY:
        raise Refused(
            f"{change.path} is on a read-only file system", hint="mount it writable and try again"
        )
    if change.before is not None and not _may(place, os.W_OK):
        raise Refused(
            f"{change.path} is read-only",
            hint=f"make it writable and try again: chmod u+w {shlex.quote(str(place))}",
        )
    directory = place.parent
    while not directory.exists():
        directory = directory.parent
    if not directory.is_dir() or not _may(directory, os.W_OK | os.X_OK):
        raise Refused(
            f"cannot write {change.path}: no permission for {directory}",
            hint="check its owner and permissions",
        )


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _write(change: FileChange, keep: Sequence[Path]) -> None:
    place = change.target
    if read_settings(place)[0] != change.before:
        raise Refused(f"{change.path} changed in the meantime", hint="run the command again")
    if change.after is None:
        place.unlink()
        if change.path.is_symlink():
            change.path.unlink()  # a link without its target would dangle
        _remove_empty(change.path.parent, keep)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.holdfast-{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(change.after.encode("utf-8"))
            file.flush()
            _give_to_owner(file.fileno(), change)
            os.fchmod(file.fileno(), change.mode)
            os.fsync(file.fileno())
        os.replace(fresh, place)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _give_to_owner(fd: int, change: FileChange) -> None:
    """Keep the owner and group. Refuse if the group cannot be kept, because its members could no
    longer read the file."""
    made = os.fstat(fd)
    if change.owner is not None and change.owner != (made.st_uid, made.st_gid):
        os.fchown(fd, *change.owner)


def _remove_empty(directory: Path, keep: Sequence[Path]) -> None:
    """Remove empty directories upwards, except those in `keep`."""
    while any(directory.is_relative_to(root) and directory != root for root in keep):
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent
