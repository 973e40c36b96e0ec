"""File names by which a directory is known as a project, where no git repository says so."""

from __future__ import annotations

from collections.abc import Iterable

_NAMES = frozenset(
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
_ENDINGS = (b".sln", b".slnx", b".csproj", b".fsproj", b".xcodeproj", b".cabal", b".gemspec")


def is_project_sign(name: bytes) -> bool:
    return name in _NAMES or name.endswith(_ENDINGS)


def shows_project(names: Iterable[bytes]) -> bool:
    """Whether a directory with these names in it is one that somebody builds something in."""
    return any(map(is_project_sign, names))
