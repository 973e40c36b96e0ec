"""How many checkpoints a session takes: as many as there are, unless its owner set a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import InvalidSetting, LimitReached
from holdfast.domain.intent import make_intent
from holdfast.domain.outcomes import SaveOutcome
from holdfast.domain.settings.schema import Settings, check_setting
from holdfast.engine.retention.deletion import delete
from holdfast.engine.settings import set_setting
from tests.support.composition import SESSION, Composed, composed, configure

pytestmark = pytest.mark.requirement("SE-11")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "file").write_bytes(b"at first")
    return workspace


def _automatic(opened: Composed, reason: str) -> SaveOutcome:
    """A trigger after a change: without one it would be given the checkpoint there is."""
    (opened.engine.vault.workspace / "changed").write_text(reason)
    return opened.engine.save(SESSION, make_intent(reason), kind=Kind.TOOL)


def _history(opened: Composed, limit: int | None = None) -> list[str]:
    found = opened.engine.vault.catalog.history(SESSION, limit=limit)
    return [checkpoint.intent.reasoning for checkpoint in found]


def test_no_default_limits_what_a_session_keeps(workspace: Path) -> None:
    assert Settings().max_manual_checkpoints == 0
    with composed(workspace) as opened:
        for number in range(60):
            opened.save(f"by hand {number}")
        for number in range(60):
            _automatic(opened, f"tool {number}")
        assert len(_history(opened, limit=200)) == 120


@pytest.mark.parametrize("place", ["store", "project's file", "user's file"])
def test_a_rate_of_an_earlier_version_still_opens_and_does_nothing(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    if place == "store":
        configure(workspace, max_automatic_per_hour=1)
    else:
        own = place == "project's file"
        file = workspace / ".holdfast" if own else tmp_path / "config" / "holdfast"
        file.mkdir(parents=True)
        (file / "config.toml").write_text("max_automatic_per_hour = 1\n")
    with composed(workspace) as opened:
        for number in range(5):
            _automatic(opened, f"tool {number}")
        assert _history(opened) == [f"tool {number}" for number in reversed(range(5))]
    with open_workspace(workspace, create=False) as reopened:
        assert "max_automatic_per_hour" in reopened.setting_origins
        if place == "store":
            set_setting(reopened.engine, "max_automatic_per_hour", None)
    if place == "store":
        with open_workspace(workspace, create=False) as reopened:
            assert "max_automatic_per_hour" not in reopened.setting_origins


def test_a_rate_can_no_longer_be_set(workspace: Path) -> None:
    with composed(workspace) as opened, pytest.raises(InvalidSetting, match="no longer exists"):
        set_setting(opened.engine, "max_automatic_per_hour", 30)


@pytest.mark.parametrize("value", [-1, 1.5, True, "many", 10**10])
def test_a_limit_that_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidSetting, match="max_manual_checkpoints"):
        check_setting("max_manual_checkpoints", value)


def test_one_by_hand_too_many_is_refused_by_the_name_of_the_setting_and_stores_nothing(
    workspace: Path,
) -> None:
    configure(workspace, max_manual_checkpoints=3)
    with SessionCheckpointer(workspace, "s") as session:
        for number in range(3):
            session.checkpoint(f"number {number}")
        before = session.stats
        (workspace / "file").write_bytes(b"not stored")
        with pytest.raises(LimitReached, match="max_manual_checkpoints") as refused:
            session.checkpoint("one too many")
        assert refused.value.hint is not None
        assert "config set max_manual_checkpoints" in refused.value.hint
        assert session.stats == before


def test_deleting_one_makes_room_for_another(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=2)
    with composed(workspace) as opened:
        first = opened.save("first")
        opened.save("second")
        delete(opened.engine, first)
        opened.save("third")
        with pytest.raises(LimitReached):
            opened.save("fourth")


def test_each_session_has_its_own_count_and_restores_do_not_count(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=2)
    for name in ("one", "other"):
        with SessionCheckpointer(workspace, name) as session:
            first = session.checkpoint("first")
            (workspace / "file").write_text(name)
            session.restore(first)
            session.checkpoint("second")
