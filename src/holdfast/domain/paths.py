"""Workspace-relative paths: bytes, `/` separated, root is `b""`, validated once at the border.

File names on Linux are bytes, so paths are bytes inside and become text only to be shown or
to be put into JSON, with undecodable bytes as surrogate escapes that convert back exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.errors import UsageError

GIT_DIRECTORY = b".git"
MARKER_DIRECTORY = b".holdfast"
STAGING_PREFIX = b".holdfast-staging-"
_FORBIDDEN_NAMES = frozenset((b"", b".", b"..", GIT_DIRECTORY))


class InvalidPath(UsageError):
    """A path that must never reach the file system."""

    code = "invalid_path"


def is_safe_name(name: bytes) -> bool:
    """Whether one path component may be created under a workspace."""
    return name not in _FORBIDDEN_NAMES and b"/" not in name and b"\0" not in name


def require_safe_path(path: bytes) -> bytes:
    """Accept a relative path whose every component is safe; the empty path is not one."""
    for component in path.split(b"/"):
        if not is_safe_name(component):
            raise InvalidPath(
                f"{to_text(path)!r} is not a path inside the workspace",
                hint="use a path relative to the workspace, without '..'",
            )
    return path


def join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name


def parent(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def ancestors(path: bytes) -> Iterator[bytes]:
    """The directories above a path, nearest first, without the workspace itself."""
    while path := parent(path):
        yield path


def basename(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def is_within(path: bytes, directory: bytes) -> bool:
    """Whether `path` is `directory` or lies below it."""
    return not directory or path == directory or path.startswith(directory + b"/")


def to_text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


_PLAIN_IN_SHELL = dict.fromkeys(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_+=:,./-"
)


def typed(path: bytes, before: str = "") -> str:
    """A path, behind some words, as one word of a command line in a shell."""
    text = before + to_text(path)
    if text.isascii() and text and not text.translate(_PLAIN_IN_SHELL):
        return text
    if text.isprintable():
        return "'" + text.replace("'", "'\"'\"'") + "'"
    # Control characters and bytes that are not UTF-8, as bash, zsh and ksh take them.
    written = "".join(_in_shell(byte) for byte in text.encode("utf-8", "surrogateescape"))
    return f"$'{written}'"


def _in_shell(byte: int) -> str:
    if byte in b"'\\":
        return "\\" + chr(byte)
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"


def from_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
