"""The ways to name a checkpoint, and what each means after restores."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.system import RandomIds, SystemClock
from holdfast.domain.errors import AmbiguousReference, UnknownReference
from holdfast.engine.retention.deletion import delete
from tests.support.composition import SESSION, SteppedClock, composed
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot, line_end

pytestmark = [pytest.mark.requirement("CP-3"), pytest.mark.both_stores]

HOUR_NS = 3600 * 10**9


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


def _save(session: SessionCheckpointer, content: str) -> str:
    fill(session.workspace / "file", content.encode())
    return session.checkpoint(f"state {content}", name=f"name-{content}")


def _state(session: SessionCheckpointer) -> str:
    return (session.workspace / "file").read_text()


@pytest.fixture
def session(workspace: Path) -> SessionCheckpointer:
    return SessionCheckpointer(workspace, "s")


def test_a_checkpoint_is_found_by_id_prefix_and_name(session: SessionCheckpointer) -> None:
    one, two = _save(session, "1"), _save(session, "2")
    for reference in (one, one[:10], one[:4], "name-1", "initial", "HEAD~1", f" {one} "):
        assert get_snapshot(session, reference).id == one
    for reference in (two, "name-2", "HEAD", "HEAD~0"):
        assert get_snapshot(session, reference).id == two
    session.close()


def test_any_reference_can_be_followed_by_steps_back(session: SessionCheckpointer) -> None:
    one, two, three = (_save(session, content) for content in "123")
    for reference in (
        f"{three}~2",
        f"{three[:6]}^^",
        "name-3~2",
        "name-2^",
        "s:name-3^~",
        "HEAD~2",
    ):
        assert get_snapshot(session, reference).id == one, reference
    assert get_snapshot(session, "@{now}~1").id == two
    fill(session.workspace / "file", b"4")
    odd = session.checkpoint("a name that looks so", name="name-3~2")
    assert get_snapshot(session, "name-3~2").id == odd
    with pytest.raises(UnknownReference, match="initial~1 goes back further than the first"):
        session.restore("initial~1")
    with pytest.raises(UnknownReference, match="no checkpoint 'nothing'"):
        session.restore("nothing~1")
    session.close()


def test_an_id_that_is_too_short_or_in_capitals_is_explained(session: SessionCheckpointer) -> None:
    made = (_save(session, str(number)) for number in range(50))
    found = next(one for one in made if not one[:8].isdigit())
    with pytest.raises(UnknownReference) as short:
        session.restore(found[:3])
    assert short.value.hint is not None
    assert "an id needs at least 4 characters" in short.value.hint
    with pytest.raises(UnknownReference) as capitals:
        session.restore(found[:8].upper())
    assert capitals.value.hint == f"ids are lower case: {found[:8]}"
    session.close()


def test_a_name_of_another_session_that_looks_like_an_id_here_is_explained(
    session: SessionCheckpointer,
) -> None:
    begins = _save(session, "1")[:6]
    with SessionCheckpointer(session.workspace, "other") as other:
        fill(session.workspace / "file", b"2")
        other.checkpoint("named like an id", name=begins)
    with pytest.raises(UnknownReference) as unclear:
        session.restore(begins)
    hint = f"another session has a checkpoint of that name: other:{begins}"
    assert unclear.value.hint == hint
    session.close()


def test_restore_without_a_reference_goes_one_step_further_back_each_time(
    session: SessionCheckpointer,
) -> None:
    for content in "1234":
        _save(session, content)
    seen = []
    for _ in range(3):
        session.restore()
        seen.append(_state(session))
    assert seen == ["3", "2", "1"]
    with pytest.raises(UnknownReference):
        session.restore()
    assert _state(session) == "1"
    session.close()


def test_head_follows_restores_and_steps_back_count_checkpoints_only(
    session: SessionCheckpointer,
) -> None:
    one, two, three = (_save(session, content) for content in "123")
    session.restore(one)
    record = line_end(session)
    assert record not in (one, two, three)
    assert session.head_id == one
    assert get_snapshot(session, "HEAD").id == get_snapshot(session, "HEAD~0").id == one
    four = _save(session, "4")
    assert get_snapshot(session, four).parent == record
    assert get_snapshot(session, "HEAD~1").id == one
    assert session.get("HEAD~2") is None
    session.restore(three)
    assert get_snapshot(session, "HEAD~1").id == two
    session.close()


def test_undo_and_redo_move_head_with_the_tree(session: SessionCheckpointer) -> None:
    one, two, three = (_save(session, content) for content in "123")
    session.restore(one)
    session.undo()
    assert _state(session) == "3"
    assert session.head_id == three
    assert get_snapshot(session, "HEAD~1").id == two
    session.redo()
    assert _state(session) == "1"
    assert session.head_id == one
    session.close()


@pytest.mark.parametrize(
    "reference",
    ["nothing", "HEAD~99", "", " ", "@{next week}", "@{", "0" * 20, "HEAD^", "HEAD~-1", "approved"],
)
def test_a_reference_to_nothing_is_refused_and_changes_nothing(
    session: SessionCheckpointer, reference: str
) -> None:
    _save(session, "1")
    head = session.head_id
    with pytest.raises(UnknownReference) as refused:
        session.restore(reference)
    assert isinstance(refused.value, ValueError)
    assert session.head_id == head
    session.close()


def test_a_session_without_checkpoints_has_nothing_to_refer_to(
    session: SessionCheckpointer,
) -> None:
    for reference in ("HEAD", "HEAD~1", "initial", "approved", "@{now}", None):
        with pytest.raises(UnknownReference):
            session.restore(reference)
    assert session.head_id is None
    assert session.history() == []
    session.close()


def test_less_than_four_letters_or_another_case_is_no_id(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RandomIds, "new_id", lambda *_: "abcd" + "0" * 28)
    made = session.checkpoint("one")
    for reference in ("a", "abc", "ABCD", "ABCD000000", made.upper()):
        assert session.get(reference) is None
    assert get_snapshot(session, "abcd").id == made
    session.close()


@pytest.mark.requirement("CP-8")
def test_a_name_of_another_session_is_not_the_beginning_of_an_id(
    session: SessionCheckpointer, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(workspace, "other") as other:
        other.checkpoint("theirs", name="cafe")
    monkeypatch.setattr(RandomIds, "new_id", lambda *_: "cafe" + "0" * 28)
    made = session.checkpoint("one")
    assert session.get("cafe") is None
    assert get_snapshot(session, "cafe0").id == made
    session.close()


def test_an_ambiguous_prefix_names_its_candidates(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = iter(f"abcd{number:028x}" for number in range(10))
    monkeypatch.setattr(RandomIds, "new_id", lambda *_: next(given))
    made = {session.checkpoint("again"), session.checkpoint("and again")}
    with pytest.raises(AmbiguousReference) as refused:
        session.restore("abcd")
    assert set(refused.value.candidates) == made
    assert all(candidate[:10] in refused.value.message for candidate in refused.value.candidates)
    assert isinstance(refused.value, ValueError)
    session.close()


@pytest.mark.requirement("CP-3")
def test_a_name_that_is_the_id_of_another_checkpoint_is_ambiguous(
    session: SessionCheckpointer,
) -> None:
    """Ids are shown with ten characters: a user who copies one must not get something else."""
    one = _save(session, "1")
    two = session.checkpoint("named after the other", name=one[:10])
    with pytest.raises(AmbiguousReference, match="name or the beginning") as refused:
        session.restore(one[:10])
    assert set(refused.value.candidates) == {one, two}
    assert get_snapshot(session, one[:11]).id == get_snapshot(session, one).id == one
    assert get_snapshot(session, two[:10]).id == two
    short_name = session.checkpoint("named with one letter of it", name=one[0])
    assert get_snapshot(session, one[0]).id == short_name
    session.close()


def test_a_moment_means_the_newest_checkpoint_that_is_not_younger(workspace: Path) -> None:
    clock = SteppedClock(SystemClock.now_ns())
    with composed(workspace, clock=clock) as opened:
        made = []
        for _ in range(3):
            made.append(opened.save().id)
            clock.now += HOUR_NS
        for text, expected in [
            ("@{30 minutes ago}", made[2]),
            ("@{2 hours ago}", made[1]),
            ("@{150 minutes ago}", made[0]),
            ("@{an hour ago}", made[2]),
            ("@{3 h ago}", made[0]),
            ("@{now}", made[2]),
        ]:
            assert opened.engine.resolve(SESSION, text).id == expected, text
        with pytest.raises(UnknownReference):
            opened.engine.resolve(SESSION, "@{yesterday}")


@pytest.mark.requirement("RL-6")
def test_a_clock_that_runs_backwards_does_not_change_the_order(workspace: Path) -> None:
    clock = SteppedClock(SystemClock.now_ns())
    with composed(workspace, clock=clock) as opened:
        made = []
        for content in "abc":
            fill(workspace / "file", content.encode())
            made.append(opened.save().id)
            clock.now -= HOUR_NS
        history = [c.id for c in opened.engine.vault.catalog.history(SESSION)]
        assert history == made[::-1]
        assert opened.engine.resolve(SESSION, "HEAD").id == made[2]
        assert opened.engine.resolve(SESSION, "HEAD~2").id == made[0]
        assert opened.engine.resolve(SESSION, "initial").id == made[0]
        opened.restore(None)
        assert (workspace / "file").read_bytes() == b"b"
        opened.undo()
        assert (workspace / "file").read_bytes() == b"c"


def test_a_deleted_checkpoint_is_gone_and_its_neighbours_close_the_gap(workspace: Path) -> None:
    with composed(workspace) as opened:
        made = []
        for content in "abc":
            fill(workspace / "file", content.encode())
            made.append(opened.save())
        delete(opened.engine, made[1])
        with pytest.raises(UnknownReference):
            opened.engine.resolve(SESSION, made[1].id)
        assert opened.engine.resolve(SESSION, "HEAD~1").id == made[0].id
        opened.restore(None)
        assert (workspace / "file").read_bytes() == b"a"


def test_a_deleted_head_leaves_its_parent_as_head(workspace: Path) -> None:
    with composed(workspace) as opened:
        made = []
        for content in "abc":
            fill(workspace / "file", content.encode())
            made.append(opened.save())
        delete(opened.engine, made[2])
        assert opened.engine.resolve(SESSION, "HEAD").id == made[1].id
        opened.restore(None)
        assert (workspace / "file").read_bytes() == b"a"
