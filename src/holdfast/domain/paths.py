"""Workspace-relative paths: bytes, `/` separated, root is `b""`, validated once at the boundary.

File names on Linux are bytes, so paths are bytes internally. They become text only for display and
JSON, with undecodable bytes as surrogate escapes that convert back exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

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


def are_safe_names(names: Collection[bytes]) -> bool:
    """Whether all names are safe; faster than checking one by one."""
    joined = b"".join(names)
    return _FORBIDDEN_NAMES.isdisjoint(names) and b"/" not in joined and b"\0" not in joined


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
    """Whether `path` is `directory` or below it."""
    return not directory or path == directory or path.startswith(directory + b"/")


def to_text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


_PLAIN_IN_SHELL = dict.fromkeys(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_+=:,./-"
)


def typed(path: bytes, before: str = "") -> str:
    """Quote a path, after a prefix, as one shell word."""
    text = before + to_text(path)
    if text.isascii() and text and not text.translate(_PLAIN_IN_SHELL):
        return text
    if text.isprintable():
        return "'" + text.replace("'", "'\"'\"'") + "'"
    # Control characters and bytes that are not UTF-8, in a form that bash, zsh and ksh accept.
    written = "".join(_in_shell(byte) for byte in text.encode("utf-8", "surrogateescape"))
    return f"$'{written}'"


def _in_shell(byte: int) -> str:
    if byte in b"'\\":
        return "\\" + chr(byte)
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"


def from_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


_PROJECT_NAMES = frozenset(
    (
        *(b".git", b".hg", b".svn", b".jj", b".fslckout", b"_darcs"),
        *(b"pyproject.toml", b"setup.py", b"setup.cfg", b"requirements.txt", b"Pipfile"),
        *(b"package.json", b"deno.json", b"deno.jsonc", b"tsconfig.json", b"bun.lockb"),
        *(b"go.mod", b"go.work", b"Cargo.toml", b"build.zig", b"CMakeLists.txt", b"meson.build"),
        *(b"Makefile", b"makefile", b"GNUmakefile", b"justfile", b"Justfile", b"configure.ac"),
        *(b"pom.xml", b"build.gradle", b"build.gradle.kts", b"settings.gradle", b"build.sbt"),
        *(b"composer.json", b"Gemfile", b"Rakefile", b"mix.exs", b"rebar.config", b"gleam.toml"),
        *(b"Package.swift", b"pubspec.yaml", b"stack.yaml", b"cabal.project", b"dune-project"),
        *(b"Project.toml", b"DESCRIPTION", b"shard.yml", b"dub.json", b"project.clj", b"deps.edn"),
        *(b"MODULE.bazel", b"WORKSPACE", b"flake.nix", b"Dockerfile", b"compose.yaml"),
    )
)
_PROJECT_ENDINGS = (
    b".sln",
    b".slnx",
    b".csproj",
    b".fsproj",
    b".xcodeproj",
    b".cabal",
    b".gemspec",
)


def shows_project(names: Iterable[bytes]) -> bool:
    """Whether these names mark a directory as a project."""
    return any(name in _PROJECT_NAMES or name.endswith(_PROJECT_ENDINGS) for name in names)
