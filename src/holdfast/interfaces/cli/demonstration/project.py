"""The project of the demonstration, the agent's good work on it, and the bad; and its hash."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from pathlib import Path

_MARKER = b".holdfast"
MODULES = ("cart", "catalogue", "invoice", "login", "search", "shipping", "stock", "tax")

# What the agent runs when it goes wrong: the lines of one script, as given to a shell tool.
RUIN = (
    "rm -rf docs tests current && rmdir uploads",
    'for file in src/*.py; do echo "# rewritten" > "$file"; done',
    'chmod 644 run.sh && chmod 777 .env && echo "KEY=" > .env',
    "mkdir -p tmp/debug && echo trace > tmp/debug/out.txt",
)

_MODULE = '''"""{title} of the shop."""


def {name}(items):
    total = 0
    for item in items:
        total += item.price * item.count
    return total
'''


def make_project(root: Path) -> None:
    for directory in ("src", "tests", "docs/guides", "uploads"):
        (root / directory).mkdir(parents=True)
    for name in MODULES:
        module = _MODULE.format(title=name.capitalize(), name=name)
        (root / "src" / f"{name}.py").write_text(module)
        (root / "tests" / f"test_{name}.py").write_text(f"from src.{name} import {name}\n")
        (root / "docs" / "guides" / f"{name}.md").write_text(f"# {name.capitalize()}\n")
    (root / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 16)
    (root / "run.sh").write_text("#!/bin/sh\nexec python -m src\n")
    (root / "run.sh").chmod(0o755)
    (root / ".gitignore").write_text(".env\n")
    (root / ".env").write_text("KEY=correct-horse-battery-staple\n")
    (root / ".env").chmod(0o600)
    (root / "current").symlink_to("docs/guides")


def improve(root: Path) -> None:
    """A step that went well."""
    login = root / "src" / "login.py"
    login.write_text(login.read_text() + "\n\ndef logout(session):\n    session.end()\n")
    (root / "tests" / "test_logout.py").write_text("def test_logout():\n    assert True\n")


def ruin(root: Path) -> None:
    """A step that did not: a real shell, started with an argument vector."""
    shell = shutil.which("bash") or "/bin/sh"
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    script = "set -e\n" + "\n".join(RUIN)
    subprocess.run([shell, "-c", script], cwd=root, check=True, env=environment)


def tree_hash(root: Path) -> str:
    """The same for two trees exactly when they hold the same, the marker of Holdfast apart."""
    top = os.fsencode(root)
    whole = hashlib.sha256()
    for directory, names, files in os.walk(top):
        if directory == top and _MARKER in names:
            names.remove(_MARKER)
        names.sort()
        for name in sorted([*names, *files]):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            described = (os.path.relpath(path, top), oct(status.st_mode), _content(path, status))
            whole.update(repr(described).encode())
    return whole.hexdigest()


def _content(path: bytes, status: os.stat_result) -> bytes:
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(status.st_mode):
        return b""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).digest()
