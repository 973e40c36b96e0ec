"""Every change that a user can notice has a note in the user's words, shaped by the template."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.project.repository import ROOT, relative

CHANGELOG = ROOT / "changelog"
TEMPLATE = (CHANGELOG / "TEMPLATE").read_text("utf-8")
NOTES = sorted(
    path for path in CHANGELOG.rglob("*") if path.is_file() and path != CHANGELOG / "TEMPLATE"
)
KINDS = ("Added", "Changed", "Fixed", "Removed", "Security")


def test_changes_since_the_last_release_have_notes() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    released = {path.name for path in CHANGELOG.iterdir() if path.is_dir()} - {"unreleased"}
    assert version in released or any((CHANGELOG / "unreleased").glob("*.md"))


@pytest.mark.parametrize("note", NOTES, ids=relative)
def test_a_note_has_the_shape_of_the_template(note: Path) -> None:
    headline, blank, *body = note.read_text("utf-8").rstrip("\n").split("\n")
    assert re.fullmatch(rf"(?:{'|'.join(KINDS)}): [A-Z`].*[^.]", headline)
    assert len(headline) <= 80
    assert blank == ""
    assert len(" ".join(body)) > 80, "say what was wrong or missing, and what is so now"


def test_the_template_names_every_kind_of_change() -> None:
    for kind in KINDS:
        assert kind in TEMPLATE


def test_the_change_log_has_a_section_for_every_release() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    for folder in [path for path in CHANGELOG.iterdir() if path.is_dir()]:
        assert re.search(rf"^## {re.escape(folder.name)}\b", text, re.MULTILINE | re.IGNORECASE)
