"""The reference names the keys of every JSON answer: those, and no others, are in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.components.git.repositories import git, new_repository
from tests.interfaces.cli.command_line import CommandLine
from tests.project.repository import ROOT

REFERENCE = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")

# Run in this order, each in the state that the one before left. Not among them: `show` and
# `status`, whose keys depend on the state, and what needs an agent, a key or a terminal.
CALLS = (
    ("init",),
    ("checkpoint", "how it began", "--name", "began"),
    ("checkpoint", "a state that goes", "--name", "gone"),
    ("delete", "gone", "--yes"),
    ("diff",),
    ("restore", "began", "--yes"),
    ("annotate", "HEAD", "looked at"),
    ("why", "README.md"),
    ("replay",),
    ("log",),
    ("search", "began"),
    ("stats",),
    ("check",),
    ("repair",),
    ("doctor",),
    ("cleanup", "--dry-run"),
    ("cleanup",),
    ("approve", "-m", "good"),
    ("reset", "--yes"),
    ("install", "codex", "--dry-run"),
    ("uninstall", "codex", "--dry-run"),
    ("config", "get", "budget"),
    ("attempt", "try it", "--", "true"),
    ("accept", "began..HEAD", "--dry-run"),
    ("export", "../work.holdfast"),
    ("import", "../work.holdfast"),
    ("purge", "README.md", "--dry-run"),
    ("purge", "README.md", "--yes", "--force"),
    ("completion", "bash"),
)
INHERITED = {"uninstall": "install", "undo": "restore", "redo": "restore"}
MORE = {"reset": "restore"}


def documented(verb: str) -> set[str]:
    """The first keys that the section of a command lists; braces and brackets go deeper."""
    section = re.search(
        rf"^## {INHERITED.get(verb, verb)}$(.*?)(?=^## |\Z)", REFERENCE, re.M | re.S
    )
    assert section is not None
    spans = re.findall(r"`([^`]+)`", section[1])
    listed = next((span for span in spans if "," in span), "")
    text = re.sub(r"^\{(.*)\}$", r"\1", " ".join(listed.split()))
    while (shorter := re.sub(r"\s*(?:\[[^\[\]{}]*\]|\{[^\[\]{}]*\})", "", text)) != text:
        text = shorter
    own = {key.strip() for key in text.split(",")}
    return own | (documented(MORE[verb]) if verb in MORE else set())


@pytest.mark.requirement("CL-1", "CL-5")
def test_the_keys_of_every_answer_are_those_that_the_reference_names(tmp_path: Path) -> None:
    place = new_repository(tmp_path / "project")
    (place / "README.md").write_text("hello\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "begin")
    cli = CommandLine(place)
    for verb, *arguments in CALLS:
        (place / "README.md").write_text(f"before {verb}\n")
        answer = cli(verb, "--json", *arguments)
        assert answer.status == 0, (verb, answer)
        (value, *_) = answer.json if isinstance(answer.json, list) else (answer.json,)
        assert value.keys() == documented(verb), (verb, *arguments)
