"""A repository that does not keep its references as files: reported for what it is, and left
alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import Refused, RestoreConflict
from tests.components.git.repositories import remove, with_history, write
from tests.support.composition import configure
from tests.support.tree_hash import describe

EXACT = {"git": "exact"}


def as_tables(place: Path, line: str) -> None:
    """What such a repository looks like to whom reads its files."""
    directory = place / ".git"
    config = (directory / "config").read_text().replace("version = 0", "version = 1")
    write(directory / "config", config + line)
    write(directory / "HEAD", "ref: refs/heads/.invalid\n")
    remove(directory / "refs/heads")
    write(directory / "refs/heads", "this repository uses the reftable format\n")
    write(directory / "reftable/tables.list", "")


@pytest.mark.requirement("GT-6", "GT-3", "GT-4")
@pytest.mark.parametrize(
    "line", ["[extensions]\n\trefStorage = reftable\n", '[extensions] refstorage="reftable"\n']
)
@pytest.mark.parametrize("stub", [True, False])
def test_references_in_tables_are_reported_with_the_way_out_and_nothing_is_guessed(
    tmp_path: Path, line: str, stub: bool
) -> None:
    place = with_history(tmp_path / "project")
    configure(place, mirror=True)
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before")
        head = (place / ".git/HEAD").read_text()
        as_tables(place, line)
        if not stub:  # the config alone has to be enough
            write(place / ".git/HEAD", head)
        write(place / "code.txt", "an agent was here\n")
        before = describe(place / ".git")
        outcome = session.save_checkpoint("files are saved")
        (said,) = outcome.degraded
        assert "ref format tables is not supported" in said
        assert "git refs migrate --ref-format=files" in said
        assert "damaged" not in said
        assert any("mirror" in text and "ref format tables" in text for text in outcome.warnings)
        with pytest.raises(RestoreConflict, match="ref format tables"):
            session.restore_checkpoint(first, components=EXACT)
        with pytest.raises(Refused, match="ref format tables"):
            session.accept()
        assert session.restore(first) == 1
        assert describe(place / ".git") == before


@pytest.mark.requirement("GT-6")
def test_a_config_that_says_files_is_no_obstacle(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    config = (place / ".git/config").read_text()
    write(place / ".git/config", config + "[core]\n\t# refstorage = reftable\n")
    with SessionCheckpointer(place, "s") as session:
        assert session.save_checkpoint("why").degraded == ()
