"""The files of this repository, as the project tests read them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "holdfast"

# What .gitignore names: made by tools, not written by hand.
_MADE = frozenset(
    {
        ".cache",
        ".git",
        ".hypothesis",
        ".import_linter_cache",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".venv",
        "__pycache__",
        "build",
        "dist",
        "results",
    }
)


def files() -> Iterator[Path]:
    """Every file of the repository, in a fixed order; it need not be a git checkout."""
    for directory, names, leaves in os.walk(ROOT):
        names[:] = sorted(name for name in names if name not in _MADE)
        yield from (Path(directory, leaf) for leaf in sorted(leaves))


def documents() -> list[Path]:
    """Every Markdown file."""
    return [path for path in files() if path.suffix == ".md"]


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def relative(path: Path) -> str:
    """The path as people and test ids write it."""
    return path.relative_to(ROOT).as_posix()


def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


def commands() -> dict[str, Path]:
    """The verbs of the command line, each with its file."""
    folder = PACKAGE / "interfaces" / "cli" / "commands"
    return {
        path.stem.replace("_", "-"): path
        for path in sorted(folder.glob("*.py"))
        if not path.stem.startswith("_")
    }
