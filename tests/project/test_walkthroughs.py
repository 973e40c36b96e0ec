"""What the documents tell a reader to type does what they say, typed as it is printed.

Each document is followed from its top in an empty directory, in one shell, by a user with an empty
home. A command that ends with another status than 0 stops the walk.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.repository import ROOT

_BLOCK = re.compile(r"^```(console|python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.in_memory

WORK = "echo wrecked > app.py"
"""What happens where a document says that an agent works."""

REPOSITORY = """\
git init -q --initial-branch=main shop && cd shop
git config user.name Ada && git config user.email ada@example.org
echo 'print(1)' > app.py && git add -A && git commit -qm begin
"""
DATABASE = """\
sql() {
    python -c 'import sqlite3, sys; sqlite3.connect("shop.db").executescript(sys.argv[1])' "$1"
}
sql 'create table orders (id); insert into orders values (1)'
holdfast checkpoint "before the import" --name before-the-import
sql 'insert into orders values (2)'
"""
ROUNDS = """\
mkdir my-project && cd my-project && mkdir src
echo 1 > src/app.py
echo 2 > src/cart.py
holdfast checkpoint 'a first login'
"""
AGENT = f"""\
{REPOSITORY}
git branch idea && git branch wip/one && echo 'print(0)' > app.py && git stash -q
holdfast checkpoint 'how it began' --name before-rebase
echo 'print(2)' > app.py
holdfast checkpoint 'Add a login page' --name before-the-accident
git branch -qD idea wip/one && git stash clear
"""
SECRET = """\
mkdir shop && cd shop && echo 'KEY=0123456789' > .env && echo 1 > app.py
holdfast checkpoint 'with a secret'
echo 2 > app.py && holdfast checkpoint 'a first try' --name failed-attempt
echo 'the old password' > password.txt
"""
MOVED = """\
mkdir shop && cd shop && echo 1 > app.py
holdfast checkpoint 'how it began' --session refactor
holdfast checkpoint 'of the command line' --name before-refactor
echo 2 > app.py && holdfast checkpoint 'more'
"""
LINES = """\
mkdir -p shop/src && cd shop && seq 60 > src/auth.py
holdfast checkpoint 'how it began'
"""

BESIDE = """\
mkdir my-project && echo 1 > my-project/app.py
holdfast -C my-project checkpoint 'how it began'
echo 2 > my-project/app.py && holdfast -C my-project checkpoint 'more'
"""

DELETED = """\
mkdir -p my-project/src && cd my-project && echo 1 > src/auth.py && echo 2 > src/cart.py
holdfast install claude-code
holdfast checkpoint 'how it began'
rm -rf src
"""

EDITED = """\
mkdir -p shop/src shop/docs && cd shop && seq 30 > src/auth.py && echo 1 > README.md
holdfast checkpoint 'totals work' --name works
sed -i.old 's/^3$/three/; s/^25$/twentyfive/' src/auth.py
"""

# The document; what has to be there before; what of it cannot be typed here, and why that is so.
WALKS = {
    "README.md": (DELETED, ("uv tool install holdfast",)),  # it is what is tested
    "docs/tutorial.md": ("", ()),
    "docs/guides/undo-and-restore.md": (
        EDITED,
        # it asks; there was nothing ten minutes ago
        ("holdfast undo", "holdfast restore '@{10 minutes ago}'"),
    ),
    "docs/guides/agents.md": (
        BESIDE,
        # no agent works after the installation: nothing else to undo, and no tool named a file
        ("holdfast undo --yes", "holdfast restore HEAD~1 --external"),
    ),
    "docs/guides/what-is-captured.md": (ROUNDS, ()),
    "docs/guides/searching.md": (ROUNDS, ()),
    "docs/guides/rounds.md": (ROUNDS, ()),
    "docs/guides/replay.md": (ROUNDS, ("holdfast replay --json | jq",)),  # jq may not be there
    "docs/guides/why.md": (LINES, ("holdfast why src/auth.py:42 --session one",)),  # one agent only
    # no server there
    "docs/guides/databases.md": (f"{ROUNDS}\n{DATABASE}", ("export HOLDFAST_POSTGRES_URL",)),
    "docs/guides/agent-state.md": (ROUNDS, ()),
    "docs/guides/conversations.md": (MOVED, ()),
    "docs/guides/encryption.md": (
        "mkdir shop && cd shop && echo 1 > app.py",
        # they need a passphrase file, key ids and a store that only the reader has
        ("holdfast key add", "holdfast key remove", "mv ", "holdfast init --new-store"),
    ),
    "docs/reference/settings.md": (
        f"{ROUNDS} mkdir -p .holdfast && echo 'budget = \"10 GB\"' > .holdfast/config.toml",
        ("HOLDFAST_AUTO_INTERVAL=30 holdfast watch",),  # it runs until it is stopped
    ),
    "docs/guides/git.md": (
        AGENT,
        (
            # the work would be gone that is accepted further down
            "holdfast restore before-rebase --git exact --refs all",
            # a yes is needed; only in the other repository are there two rounds
            "holdfast restore before-the-accident --with worktrees",
            "git diff",
            "git -C ../elsewhere",
        ),
    ),
    "docs/guides/removing-secrets.md": (SECRET, ("holdfast purge ~/.netrc",)),  # no tool named it
    "docs/guides/moving-checkpoints.md": (
        MOVED,
        # the same workspace: nothing is foreign, and the yes of the last one is missing
        ("holdfast restore HEAD --session refactor",),
    ),
}
SNIPPETS = {
    "README.md": "mkdir -p my-project/src && echo 1 > my-project/src/auth.py",
    "docs/tutorial.md": "",
    "docs/guides/searching.md": "mkdir my-project",
    "docs/guides/rounds.md": "mkdir my-project",
    "docs/guides/replay.md": "",
    "docs/guides/why.md": "echo 'a note' > notes.md",
    "docs/guides/moving-checkpoints.md": "mkdir shop shop-on-the-laptop && python -c "
    "'from pathlib import Path; from holdfast import SessionCheckpointer as S; "
    'S(Path("shop"), "refactor").checkpoint("a state")\'',
    "docs/guides/removing-secrets.md": "mkdir shop && echo KEY=0123456789 > shop/.env && python -c "
    "'from pathlib import Path; from holdfast import SessionCheckpointer as S; "
    'S(Path("shop"), "refactor").checkpoint("a state")\'',
}


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text("utf-8")
    return [body for found, body in _BLOCK.findall(text) if found == language]


def typed(document: str, left_out: tuple[str, ...]) -> list[str]:
    lines = [line for block in blocks(document, "console") for line in block.splitlines()]
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    for one in left_out:
        assert any(command.startswith(one) for command in commands), f"{one} is not there any more"
    kept = [command for command in commands if not command.startswith(left_out or "\0")]
    return [WORK if command.startswith("# …") else command for command in kept]


class Reader:
    """A shell in an empty directory whose `holdfast` and `python` are those under test."""

    def __init__(self, place: Path) -> None:
        (place / "bin").mkdir()
        (place / "here").mkdir()
        (place / "home").mkdir()
        for name, words in (("holdfast", "-m holdfast"), ("python", "")):
            program = place / "bin" / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
            program.chmod(0o755)
        self.directory = place / "here"
        self._environment = {
            **os.environ,
            "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
            "HOME": str(place / "home"),
            "HOLDFAST_HOME": str(place / "home" / "data"),
            "HOLDFAST_DAEMON": "off",
            "PYTHONPATH": str(ROOT / "src"),
        }

    def follow(self, script: str) -> None:
        done = subprocess.run(
            ["bash", "-e", "-x", "-c", script],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.requirement("CL-1")
@pytest.mark.parametrize("document", WALKS)
def test_the_commands_of_a_document_can_be_typed_as_they_are_printed(
    document: str, tmp_path: Path
) -> None:
    before, left_out = WALKS[document]
    Reader(tmp_path).follow("\n".join([before, *typed(document, left_out)]))


@pytest.mark.parametrize("document", SNIPPETS)
def test_the_python_of_a_document_runs(document: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.follow(SNIPPETS[document])
    whole = [block for block in blocks(document, "python") if "from holdfast import" in block]
    assert whole
    for number, block in enumerate(whole):
        (tmp_path / f"snippet-{number}.py").write_text(block, "utf-8")
        reader.follow(f"python {tmp_path}/snippet-{number}.py")
