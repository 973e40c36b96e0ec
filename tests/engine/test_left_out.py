"""Whether a directory is left out is answered as a scan would answer it, without one."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from holdfast.engine.restore.plan import read_report
from holdfast.engine.save.workspace_tree import capture_policy
from holdfast.engine.scan.ignore_check import leaves_out
from holdfast.engine.stored_objects import list_entries
from tests.support.composition import composed, configure
from tests.support.ruled_trees import RuledTree, random_settings

TREES = 40
PROBE = b"of-no-rule"
BELOW_IGNORED = "in an ignored directory"


@pytest.mark.requirement("AU-1", "CP-2")
@pytest.mark.parametrize("seed", range(TREES))
def test_a_directory_is_left_out_if_no_scan_takes_what_is_new_in_it(
    tmp_path: Path, seed: int
) -> None:
    """A file that no rule names is captured in every directory that is not left out, unless a rule
    about every file excludes it by name."""
    rng = random.Random(seed)
    root = tmp_path / "project"
    RuledTree(rng, root, tmp_path / "outside").grow()
    directories = [
        os.path.relpath(directory, os.fsencode(root))
        for directory, _, _ in os.walk(os.fsencode(root))
        if directory != os.fsencode(root)
    ]
    for directory in directories:
        Path(os.fsdecode(os.path.join(os.fsencode(root), directory, PROBE))).write_text("1")
    configure(root, **random_settings(rng))
    with composed(root) as opened:
        vault = opened.engine.vault
        saved = opened.save()
        taken = {path for path, _ in list_entries(vault.load_tree, saved.tree)}
        skipped = read_report(opened.engine.vault, saved)
        by_a_rule = {skip.path for skip in skipped if skip.detail != BELOW_IGNORED}
        with vault.open_root() as root_fd:
            for directory in directories:
                probe = os.path.join(directory, PROBE)
                expected = probe not in taken and probe not in by_a_rule
                found = leaves_out(vault.fs, capture_policy(vault), root_fd, directory)
                assert found == expected, directory
