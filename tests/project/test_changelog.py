"""Every change that a user can notice has a note in the user's words, shaped by the template."""

from __future__ import annotations

import re
import tomllib

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


def test_a_note_has_the_shape_of_the_template() -> None:
    assert [relative(note) for note in NOTES if not _has_shape(note.read_text("utf-8"))] == []


def _has_shape(note: str) -> bool:
    """A headline of a known kind; what was wrong or missing, and what is so now."""
    headline, blank, *body = note.rstrip("\n").split("\n")
    known = re.fullmatch(rf"(?:{'|'.join(KINDS)}): [A-Z`].*[^.]", headline)
    return bool(known) and len(headline) <= 80 and not blank and len(" ".join(body)) > 80


def test_the_template_names_every_kind_of_change() -> None:
    for kind in KINDS:
        assert kind in TEMPLATE


def test_the_change_log_has_a_section_for_every_release() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    for folder in [path for path in CHANGELOG.iterdir() if path.is_dir()]:
        assert re.search(rf"^## {re.escape(folder.name)}\b", text, re.MULTILINE | re.IGNORECASE)
