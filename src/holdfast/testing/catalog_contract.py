"""The contract of `holdfast.ports.catalog`, as tests.

`CatalogContract` is for any adapter, even one that forgets everything when it is closed.
`DurableCatalogContract` adds tests for one that keeps its rows.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

from holdfast.domain.checkpoints import ChangeCounts, Kind, NewCheckpoint
from holdfast.domain.errors import InvalidIntent
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.operations import OperationKind
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.catalog import Catalog, CatalogCounts, NewOperation, all_checkpoints
from holdfast.testing.catalog_lookups import CatalogLookups
from holdfast.testing.samples import (
    ONE,
    TWO,
    checkpoint_id,
    expect_error,
    new_checkpoint,
    new_operation,
)


class CatalogContract(CatalogLookups):
    """Subclass it, and define how to open a catalog."""

    def test_a_fresh_catalog_is_empty_and_sound(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            assert list(catalog.sessions()) == []
            assert catalog.session(ONE) is None
            assert catalog.current_session() is None
            assert list(all_checkpoints(catalog)) == []
            assert list(catalog.history(ONE)) == []
            assert list(catalog.operations(ONE)) == []
            assert catalog.counts() == CatalogCounts(0, 0, 0)
            assert dict(catalog.settings()) == {}
            assert list(catalog.check()) == []

    def test_every_field_of_a_checkpoint_comes_back(self, tmp_path: Path) -> None:
        intent = SnapshotIntent(
            reasoning="why: \N{SNOWMAN}\n\ttabs, 'quotes', \"double\", % and \x00 too",
            goal_id="goal",
            task_id="task",
            tool_calls=("Bash(ls)", {"name": "Edit", "arguments": {"path": "ä", "n": [1, None]}}),
            confidence=0.25,
            checkpoint_name="a name",
            tags=("x", "ü"),
        )
        new = NewCheckpoint(
            id=checkpoint_id(7),
            session_id=ONE,
            parent=checkpoint_id(6),
            kind=Kind.RISKY,
            created_at_ns=1_800_000_000_123_456_789,
            tree=digest_of(b"tree"),
            intent=intent,
            files=3,
            size_bytes=(1 << 62) + 1,
            changed=ChangeCounts(1, 2, 3),
            report=digest_of(b"report"),
            restores_from=checkpoint_id(5),
            partial=True,
            message_index=41,
            tool_use_id="toolu_ä",
            round=3,
            components=digest_of(b"components"),
        )
        with closing(self.open_catalog(tmp_path)) as catalog:
            (added,) = self.fill(catalog, new)
            found = catalog.checkpoint(ONE, new.id)
            assert found == added
            for field in fields(NewCheckpoint):
                assert getattr(found, field.name) == getattr(new, field.name), field.name

    def test_every_field_of_an_operation_comes_back(self, tmp_path: Path) -> None:
        new = NewOperation(
            OperationKind.UNDO,
            ONE,
            at_ns=-5,
            checkpoint=checkpoint_id(1),
            safety=checkpoint_id(2),
            head_before=checkpoint_id(3),
            reverses=17,
            token="token",
            note="what was said \N{SNOWMAN}",
        )
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog)
            with catalog.transaction() as transaction:
                added = transaction.add_operation(new)
            assert list(catalog.operations(ONE)) == [added]
            assert catalog.operation_with_token("token") == added
            assert catalog.operation_with_token("other") is None
            for field in fields(NewOperation):
                assert getattr(added, field.name) == getattr(new, field.name), field.name

    def test_sessions_are_listed_oldest_first_with_all_they_have(self, tmp_path: Path) -> None:
        young = Session(SessionId("a"), 20, SessionStatus.ENDED, "title", "agent")
        old = Session(SessionId("b"), 10)
        with closing(self.open_catalog(tmp_path)) as catalog:
            with catalog.transaction() as transaction:
                transaction.add_session(young)
                transaction.add_session(old)
            assert list(catalog.sessions()) == [old, young]
            assert catalog.session(young.id) == young

    def test_head_and_status_of_a_session_change_on_their_own(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1))
            with catalog.transaction() as transaction:
                transaction.set_head(ONE, checkpoint_id(1))
                transaction.set_session_status(ONE, SessionStatus.ARCHIVED)
            changed = Session(ONE, 1, SessionStatus.ARCHIVED, head=checkpoint_id(1))
            assert catalog.session(ONE) == changed
            assert catalog.session(TWO) == Session(TWO, 1)
            with catalog.transaction() as transaction:
                transaction.set_head(ONE, None)
            assert catalog.session(ONE) == Session(ONE, 1, SessionStatus.ARCHIVED)

    def test_the_current_session_is_remembered(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog)
            for session_id in (ONE, TWO):
                with catalog.transaction() as transaction:
                    transaction.set_current_session(session_id)
                assert catalog.current_session() == session_id

    def test_settings_are_set_replaced_and_removed(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            with catalog.transaction() as transaction:
                transaction.set_setting("a", "1")
                transaction.set_setting("b", '["x"]')
            with catalog.transaction() as transaction:
                transaction.set_setting("a", "2")
                transaction.set_setting("b", None)
                transaction.set_setting("never there", None)
            assert dict(catalog.settings()) == {"a": "2"}

    def test_an_exception_undoes_everything_of_its_transaction(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1))
            before = _everything(catalog)
            with expect_error(ZeroDivisionError), catalog.transaction() as transaction:
                transaction.add_session(Session(SessionId("three"), 3))
                transaction.add_checkpoint(new_checkpoint(2, parent=1))
                transaction.add_operation(new_operation(2, token="t"))
                transaction.set_head(ONE, checkpoint_id(2))
                transaction.set_session_status(TWO, SessionStatus.ENDED)
                transaction.remove_checkpoint(checkpoint_id(1))
                transaction.set_setting("a", "1")
                transaction.set_current_session(TWO)
                raise ZeroDivisionError
            assert _everything(catalog) == before
            self.fill(catalog, new_checkpoint(2))
            assert catalog.counts(ONE).checkpoints == 2

    def test_a_name_is_taken_once_in_a_session(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(
                catalog, new_checkpoint(1, name="before"), new_checkpoint(2, TWO, name="before")
            )
            before = _everything(catalog)
            with expect_error(InvalidIntent):
                self.fill(catalog, new_checkpoint(3), new_checkpoint(4, name="before"))
            assert _everything(catalog) == before
            self.fill(catalog, new_checkpoint(5), new_checkpoint(6))
            found = [catalog.checkpoint_named(session, "before") for session in (ONE, TWO)]
            assert [c.id if c else None for c in found] == [checkpoint_id(1), checkpoint_id(2)]

    def test_sequence_numbers_rise_and_are_not_given_out_twice(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            added = self.fill(catalog, new_checkpoint(1), new_checkpoint(2, TWO), new_checkpoint(3))
            with catalog.transaction() as transaction:
                transaction.remove_checkpoint(checkpoint_id(3))
            added += self.fill(catalog, new_checkpoint(4))
            numbers = [checkpoint.sequence for checkpoint in added]
            assert numbers == sorted(set(numbers))
            done = [o.sequence for s in (ONE, TWO) for o in catalog.operations(s)]
            assert len(set(done)) == len(done)

    def test_removing_a_checkpoint_hands_its_children_to_its_parent(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(
                catalog,
                new_checkpoint(1, name="first"),
                new_checkpoint(2, name="second", parent=1),
                new_checkpoint(3, parent=2),
                new_checkpoint(4, parent=2),
            )
            with catalog.transaction() as transaction:
                transaction.remove_checkpoint(checkpoint_id(2))
            left = {c.id: c.parent for c in all_checkpoints(catalog)}
            first = checkpoint_id(1)
            assert left == {first: None, checkpoint_id(3): first, checkpoint_id(4): first}
            assert catalog.checkpoint_named(ONE, "second") is None
            self.fill(catalog, new_checkpoint(5, name="second"))
            with catalog.transaction() as transaction:
                transaction.remove_checkpoint(first)
            assert {c.parent for c in all_checkpoints(catalog)} == {None}

    def test_a_restore_record_whose_target_is_removed_is_independent(self, tmp_path: Path) -> None:
        record = replace(
            new_checkpoint(2, kind=Kind.RESTORE, parent=1), restores_from=checkpoint_id(1)
        )
        later = replace(new_checkpoint(3, parent=2), restores_from=checkpoint_id(9))
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1), record, later)
            with catalog.transaction() as transaction:
                transaction.remove_checkpoint(checkpoint_id(1))
            left = {c.id: (c.parent, c.restores_from) for c in all_checkpoints(catalog)}
            assert left == {record.id: (None, None), later.id: (record.id, checkpoint_id(9))}

    def test_a_session_whose_approved_checkpoint_is_removed_has_none(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            with catalog.transaction() as transaction:
                transaction.add_session(Session(ONE, 1, approved=checkpoint_id(1)))
            self.fill(catalog, new_checkpoint(1), new_checkpoint(2))
            with catalog.transaction() as transaction:
                transaction.remove_checkpoint(checkpoint_id(1))
            session = catalog.session(ONE)
            assert session is not None
            assert session.approved is None

    def test_a_replaced_checkpoint_says_something_else_in_the_same_place(
        self, tmp_path: Path
    ) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            first, second, third = self.fill(
                catalog,
                new_checkpoint(1),
                new_checkpoint(2, name="second", parent=1),
                new_checkpoint(3, parent=2),
            )
            changed = replace(
                second,
                tree=digest_of(b"another tree"),
                report=digest_of(b"another report"),
                intent=SnapshotIntent("another reason", tags=("changed",)),
                files=99,
                size_bytes=98,
                changed=ChangeCounts(7, 8, 9),
            )
            with catalog.transaction() as transaction:
                transaction.replace_checkpoint(changed)
            assert list(all_checkpoints(catalog)) == [first, changed, third]
            assert catalog.checkpoint_named(ONE, "second") is None
            catalog.erase_traces()
            assert list(all_checkpoints(catalog)) == [first, changed, third]
            assert list(catalog.check()) == []


class DurableCatalogContract(CatalogContract):
    """For catalogs that keep rows: opening the same `place` again finds them."""

    def test_a_finished_transaction_is_there_after_reopening(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1, name="n"), new_checkpoint(2, TWO))
            with catalog.transaction() as transaction:
                transaction.set_head(ONE, checkpoint_id(1))
                transaction.set_setting("a", "1")
                transaction.set_current_session(TWO)
            before = _everything(catalog)
        with closing(self.open_catalog(tmp_path)) as catalog:
            assert _everything(catalog) == before
            assert list(catalog.check()) == []

    def test_another_connection_sees_finished_transactions_only(self, tmp_path: Path) -> None:
        with (
            closing(self.open_catalog(tmp_path)) as writing,
            closing(self.open_catalog(tmp_path)) as reading,
        ):
            self.fill(writing, new_checkpoint(1))
            before = _everything(reading)
            with writing.transaction() as transaction:
                transaction.add_checkpoint(new_checkpoint(2))
                transaction.add_operation(new_operation(2))
                assert _everything(reading) == before
            assert _everything(reading) == _everything(writing) != before


def _everything(catalog: Catalog) -> dict[str, object]:
    sessions = list(catalog.sessions())
    return {
        "sessions": sessions,
        "current": catalog.current_session(),
        "checkpoints": list(all_checkpoints(catalog)),
        "operations": [list(catalog.operations(session.id)) for session in sessions],
        "settings": dict(catalog.settings()),
    }
