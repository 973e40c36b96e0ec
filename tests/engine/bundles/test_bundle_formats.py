"""Bundles of every past version are imported and restore byte for byte.

They were written by `tests/fixtures/make_bundle.py` when their version was new; what they hold is
what the store fixture of that time held.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.engine.bundles.frames import VERSION
from tests.fixtures.make_store import SESSION, describe
from tests.support.session_states import get_snapshot

pytestmark = pytest.mark.requirement("ST-7", "ST-8")

FIXTURES = Path(__file__).parents[2] / "fixtures"
BUNDLES = sorted((FIXTURES / "bundles").iterdir())
EXPECTED = json.loads((FIXTURES / "stores/format-1/expected.json").read_bytes())


def test_there_is_a_bundle_of_every_version() -> None:
    assert [path.name for path in BUNDLES] == [str(n) for n in range(1, VERSION + 1)]


@pytest.mark.parametrize("fixture", BUNDLES, ids=lambda path: path.name)
def test_a_stored_bundle_is_imported_and_restores_byte_for_byte(
    fixture: Path, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    bundle = fixture / "golden.holdfast"
    said = SessionCheckpointer.import_bundle(workspace, bundle, foreign=True)
    assert said.origin.workspace == "/nonexistent/holdfast-fixture"
    with SessionCheckpointer.load(workspace, SESSION) as session:
        for name in ("first", "second", "third", "first"):
            session.restore(name)
            assert describe(workspace) == EXPECTED[name], name
        first = get_snapshot(session, "first")
        assert (first.intent.tags, first.intent.confidence) == (("golden",), 0.25)
        calls = get_snapshot(session, "second").intent.tool_calls
        assert calls == ("Bash(make)", {"name": "Edit", "path": "src/module.txt"})
