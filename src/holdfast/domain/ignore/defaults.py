"""Built-in ignore rules: files that tools generate, can regenerate, and that are not written by
hand.

A name is listed only if it cannot reasonably hold source. `build`, `dist`, `target`, `out`,
`vendor` and `venv` can, so they are not: there, a marker file written by the tool distinguishes a
cache from a source directory. A needless copy costs space; a missing one costs work.

Not listed here: the workspace's git data and Holdfast's own store. The walker always skips them,
and no rule can include them. Trash, swap files and editor settings are captured, because they can
hold user work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from holdfast.domain.ignore.rules import Precedence, RuleLayer, RuleStack, parse_rules

DEFAULT_RULES: RuleLayer = parse_rules(
    b"""
# Python
.venv/
__pycache__/
*.pyc
*.pyo
.eggs/
.hypothesis/
.import_linter_cache/
.ipynb_checkpoints/
.mypy_cache/
.nox/
.pytest_cache/
.pytype/
.ruff_cache/
.tox/
__pypackages__/

# JavaScript
node_modules/
bower_components/
jspm_packages/
.docusaurus/
.next/
.nuxt/
.nyc_output/
.parcel-cache/
.pnpm-store/
.sass-cache/
.svelte-kit/
.turbo/

# JVM, Swift, Dart, Haskell, Zig, Elixir
.bloop/
.dart_tool/
.elixir_ls/
.gradle/
.stack-work/
.zig-cache/

# Infrastructure and environments
.direnv/
.terraform/
.terragrunt-cache/

# Desktops
.DS_Store
.Spotlight-V100/
.fseventsd/
Thumbs.db
""",
    base=b"",
    source="default",
    precedence=Precedence.DEFAULT,
)

CACHEDIR_TAG = b"CACHEDIR.TAG"
CACHEDIR_TAG_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
VIRTUALENV_MARKER = b"pyvenv.cfg"
VIRTUALENV_NAMES = frozenset(
    b".gitignore .lock CACHEDIR.TAG Include Lib Scripts bin etc include lib lib64 man pyvenv.cfg "
    b"share".split()
)
"""The names at the top of a virtual environment."""


def is_made_by_tools(path: bytes, *, is_directory: bool) -> bool:
    """Whether a built-in rule matches a path or a directory above it, regardless of other rules.
    Many ignore files list the same directories."""
    stack = RuleStack.of(DEFAULT_RULES)
    parts = path.split(b"/")
    return any(
        stack.decide(b"/".join(parts[:end]), end < len(parts) or is_directory) is not None
        for end in range(1, len(parts) + 1)
    )


def cache_marker(names: Collection[bytes], read: Callable[[bytes], bytes | None]) -> bytes | None:
    """The name that marks a directory with these names as a cache, or None.

    `read` returns the first bytes of a file in it, to recognise a real `CACHEDIR.TAG`. The caller
    does not ask about the workspace root, or about directories that a user's rule re-includes. A
    source directory with a virtual environment inside is not a cache: it has other names beside the
    marker.
    """
    if CACHEDIR_TAG in names:
        tag = read(CACHEDIR_TAG) or b""
        return CACHEDIR_TAG if tag.startswith(CACHEDIR_TAG_SIGNATURE) else None
    if VIRTUALENV_MARKER in names and VIRTUALENV_NAMES.issuperset(names):
        return VIRTUALENV_MARKER
    return None
