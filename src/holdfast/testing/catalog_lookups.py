"""The reading half of `CatalogContract`: lookups."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.operations import RESTORING_KINDS, OperationKind
from holdfast.domain.restore.selections import Selection, restore_intent
from holdfast.ports.catalog import CatalogCounts, all_checkpoints, all_operations
from holdfast.testing.samples import (
    ONE,
    TWO,
    CatalogOpening,
    checkpoint_id,
    new_checkpoint,
    new_operation,
)

_BEYOND_64_BITS = 1 << 70


class CatalogLookups(CatalogOpening):
    """Tests of histories, references, session isolation and counts."""

    def test_history_is_newest_first_without_records_unless_asked(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(
                catalog,
                new_checkpoint(1),
                new_checkpoint(2, kind=Kind.SAFETY),
                new_checkpoint(3, kind=Kind.RESTORE),
                new_checkpoint(4, TWO),
                new_checkpoint(5, kind=Kind.TOOL),
            )
            shown = [c.id for c in catalog.history(ONE)]
            assert shown == [checkpoint_id(5), checkpoint_id(1)]
            everything = [c.id for c in catalog.history(ONE, records=True)]
            assert everything == [checkpoint_id(n) for n in (5, 3, 2, 1)]

    def test_without_a_session_every_session_is_looked_through(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            named = make_intent("why", name="safe")
            self.fill(
                catalog,
                replace(new_checkpoint(1), intent=named),
                replace(new_checkpoint(2, TWO), intent=named),
                new_checkpoint(3, kind=Kind.SAFETY),
            )
            first, second = checkpoint_id(1), checkpoint_id(2)
            assert [c.id for c in catalog.history(None)] == [second, first]
            assert len(catalog.history(None, records=True)) == 3
            assert [c.id for c in catalog.history(None, limit=1)] == [second]
            assert [c.id for c in catalog.checkpoints_named("safe")] == [second, first]
            assert list(catalog.checkpoints_named("nothing")) == []
            found = catalog.checkpoint(None, second)
            assert found is not None
            assert found.session_id == TWO
            assert catalog.checkpoint(None, checkpoint_id(9)) is None
            assert list(catalog.checkpoints_with_prefix(None, second, 5)) == [found]
            at = catalog.checkpoint_at(None, _BEYOND_64_BITS)
            assert at is not None
            assert at.id == second

    def test_the_newest_operations_of_some_kinds_come_first(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1), new_checkpoint(2, TWO))
            kinds = (OperationKind.RESTORE, OperationKind.UNDO)
            with catalog.transaction() as transaction:
                made = [
                    transaction.add_operation(replace(new_operation(number, session), kind=kind))
                    for number, session, kind in (
                        (7, ONE, OperationKind.RESTORE),
                        (8, TWO, OperationKind.APPROVE),
                        (9, TWO, OperationKind.UNDO),
                    )
                ]
            assert list(catalog.operations_before(None, 5, kinds=kinds)) == [made[2], made[0]]
            assert list(catalog.operations_before(None, 1, kinds=kinds)) == [made[2]]
            before = catalog.operations_before(made[2].sequence, 5, kinds=kinds)
            assert list(before) == [made[0]]

    def test_the_latest_operation_of_a_session_goes_by_time(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1), new_checkpoint(2, TWO))
            with catalog.transaction() as transaction:
                made = [
                    transaction.add_operation(
                        replace(new_operation(number, session), kind=kind, at_ns=at_ns)
                    )
                    for number, session, kind, at_ns in (
                        (7, ONE, OperationKind.RESTORE, 10**18 + 2),
                        (8, ONE, OperationKind.UNDO, 10**18 + 1),
                        (9, ONE, OperationKind.PRUNE, 10**18 + 3),
                        (10, TWO, OperationKind.UNDO, 10**18 + 4),
                    )
                ]
            kinds = (OperationKind.PRUNE,)
            assert catalog.latest_operation(ONE, other_than=kinds) == made[0]
            assert catalog.latest_operation(ONE, other_than=()) == made[2]
            assert catalog.latest_operation(SessionId("none"), other_than=kinds) is None

    def test_a_session_gets_another_title(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1))
            with catalog.transaction() as transaction:
                transaction.set_session_title(ONE, "Fix the login")
            found = catalog.session(ONE)
            assert found is not None
            assert found.title == "Fix the login"

    def test_an_index_catches_up_with_all_sessions_in_order(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            assert catalog.newest_operation() is None
            self.fill(
                catalog,
                new_checkpoint(1),
                new_checkpoint(2, TWO, kind=Kind.SAFETY),
                new_checkpoint(3),
            )
            with catalog.transaction() as transaction:
                first = transaction.add_operation(new_operation(7))
                second = transaction.add_operation(new_operation(8, TWO))
                transaction.remove_checkpoint(checkpoint_id(2))
            found = catalog.checkpoints_after(0, 10)
            assert [c.id for c in found] == [checkpoint_id(1), checkpoint_id(3)]
            assert list(catalog.checkpoints_after(found[0].sequence, 10)) == [found[1]]
            assert list(catalog.checkpoints_after(0, 1)) == [found[0]]
            assert list(catalog.operations_after(0, 10))[-2:] == [first, second]
            assert list(catalog.operations_after(first.sequence, 1)) == [second]
            assert catalog.newest_operation() == second

    def test_an_outline_tells_what_a_timeline_shows_newest_first(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1), new_checkpoint(2, TWO), new_checkpoint(3))
            found = catalog.outline(ONE, limit=10)
            for row, whole in zip(found, catalog.history(ONE, records=True), strict=True):
                assert (row.sequence, row.id, row.parent) == (
                    whole.sequence,
                    whole.id,
                    whole.parent,
                )
                assert (row.kind, row.at_ns, row.name) == (
                    whole.kind,
                    whole.created_at_ns,
                    whole.name,
                )
                assert row.reasoning == whole.intent.reasoning
                assert row.confidence == whole.intent.confidence
                assert (row.added, row.modified, row.removed) == tuple(
                    whole.changed.to_dict().values()
                )
                assert (row.partial, row.round) == (whole.partial, whole.round)
                assert row.selected is None
            assert [row.id for row in found] == [checkpoint_id(3), checkpoint_id(1)]
            assert list(catalog.outline(ONE, limit=1)) == [found[0]]
            assert list(catalog.outline(ONE, limit=5, before=found[0].sequence)) == [found[1]]

    def test_an_outline_of_a_restore_tells_what_was_selected(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            said = restore_intent("Restored to x", [b"a\xff", b"b"], confidence=1.0)
            named = restore_intent("Restored to x (1 selected path)", [], confidence=1.0)
            older = make_intent("Restored to x (1 selected path)")
            rows = [
                replace(new_checkpoint(number, kind=Kind.RESTORE), intent=intent)
                for number, intent in enumerate((said, named, older), 1)
            ]
            by_hand = replace(new_checkpoint(4), intent=older)
            self.fill(catalog, *rows, by_hand)
            found = [row.selected for row in reversed(catalog.outline(ONE, limit=10))]
            assert found == [Selection((b"a\xff", b"b")), None, Selection(), None]

    def test_milestones_are_all_of_a_session_oldest_first(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(
                catalog,
                replace(new_checkpoint(1), message_index=4),
                new_checkpoint(2, TWO),
                new_checkpoint(3, kind=Kind.SAFETY),
            )
            found = catalog.milestones(ONE)
            assert [tuple(one) for one in found] == [
                (row.sequence, row.id, row.kind, row.message_index)
                for row in reversed(catalog.history(ONE, records=True))
            ]
            assert [one.message_index for one in found] == [4, None]
            assert len(catalog.milestones(TWO)) == 1

    def test_checkpoints_are_counted_by_kind_and_time(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(
                catalog,
                new_checkpoint(1, created_at_ns=100),
                new_checkpoint(2, kind=Kind.TOOL, created_at_ns=300),
                new_checkpoint(3, TWO, kind=Kind.TOOL, created_at_ns=300),
                new_checkpoint(4, kind=Kind.RISKY, created_at_ns=200),
            )
            automatic = (Kind.TOOL, Kind.RISKY)
            assert catalog.count(ONE, (Kind.MANUAL,)) == 1
            assert catalog.count(ONE, automatic) == 2
            assert catalog.count(ONE, automatic, since_ns=200) == 1
            assert catalog.count(ONE, automatic, since_ns=300) == 0
            assert catalog.count(TWO, automatic) == 1

    def test_the_newest_of_some_kinds_is_found_by_sequence(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(
                catalog,
                new_checkpoint(1, kind=Kind.TOOL, created_at_ns=300),
                new_checkpoint(2, kind=Kind.RISKY, created_at_ns=200),
                new_checkpoint(3),
                new_checkpoint(4, TWO, kind=Kind.TOOL),
            )
            newest = catalog.newest_of(ONE, (Kind.TOOL, Kind.RISKY))
            assert newest is not None
            assert newest.id == checkpoint_id(2)
            assert catalog.newest_of(ONE, (Kind.MERGE,)) is None

    def test_history_can_be_read_page_by_page(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, *(new_checkpoint(number) for number in range(1, 8)))
            whole = list(catalog.history(ONE))
            pages = list(catalog.history(ONE, limit=3))
            while page := catalog.history(ONE, limit=3, before=pages[-1].sequence):
                pages += page
            assert pages == whole
            assert list(catalog.history(ONE, limit=0)) == []

    def test_order_is_the_sequence_and_not_the_clock(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(
                catalog,
                new_checkpoint(1, created_at_ns=300),
                new_checkpoint(2, created_at_ns=100),
                new_checkpoint(3, created_at_ns=200),
            )
            assert [c.id for c in catalog.history(ONE)] == [checkpoint_id(n) for n in (3, 2, 1)]
            assert [c.id for c in all_checkpoints(catalog)] == [checkpoint_id(n) for n in (1, 2, 3)]
            first = catalog.first_checkpoint(ONE)
            assert first is not None
            assert first.id == checkpoint_id(1)

    def test_the_first_checkpoint_is_not_a_record(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1, kind=Kind.SAFETY), new_checkpoint(2, TWO))
            assert catalog.first_checkpoint(ONE) is None
            self.fill(catalog, new_checkpoint(3), new_checkpoint(4))
            first, of_all = catalog.first_checkpoint(ONE), catalog.first_checkpoint(None)
            assert first is not None
            assert first.id == checkpoint_id(3)
            assert of_all is not None
            assert of_all.id == checkpoint_id(2)

    def test_a_moment_finds_the_newest_checkpoint_that_is_not_younger(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(
                catalog,
                new_checkpoint(1, created_at_ns=100),
                new_checkpoint(2, created_at_ns=200),
                new_checkpoint(3, created_at_ns=200),
                new_checkpoint(4, created_at_ns=250, kind=Kind.RESTORE),
                new_checkpoint(5, TWO, created_at_ns=150),
            )
            for at_ns, number in ((99, None), (100, 1), (199, 1), (200, 3), (10**18, 3)):
                found = catalog.checkpoint_at(ONE, at_ns)
                expected = None if number is None else checkpoint_id(number)
                assert (found.id if found else None) == expected, at_ns

    def test_a_moment_outside_all_history_is_answered_too(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            (added,) = self.fill(catalog, new_checkpoint(1))
            assert catalog.checkpoint_at(ONE, -_BEYOND_64_BITS) is None
            assert catalog.checkpoint_at(ONE, _BEYOND_64_BITS) == added

    def test_a_prefix_finds_the_ids_that_begin_with_it(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(
                catalog,
                new_checkpoint(0x1230),
                new_checkpoint(0x1231),
                new_checkpoint(0x1240),
                new_checkpoint(0x1232, TWO),
            )

            def found(prefix: str, limit: int = 9) -> list[str]:
                return [c.id for c in catalog.checkpoints_with_prefix(ONE, prefix, limit)]

            assert found("123") == [checkpoint_id(0x1231), checkpoint_id(0x1230)]
            assert found("123", limit=1) == [checkpoint_id(0x1231)]
            assert found(checkpoint_id(0x1240)) == [checkpoint_id(0x1240)]
            assert found(checkpoint_id(0x1240) + "0") == []
            assert found("ffff") == []
            assert len(found("")) == 3

    def test_text_that_no_id_or_name_can_have_finds_nothing(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1, name="a"))
            for text in ("%", "_", "*", "a\0", "\0", "'; --", "\udcff", "\U0010ffff", "1" * 10_000):
                assert catalog.checkpoint(ONE, text) is None
                assert catalog.checkpoint_named(ONE, text) is None
                assert list(catalog.checkpoints_with_prefix(ONE, text, 5)) == []

    def test_a_session_does_not_see_what_belongs_to_another(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog, new_checkpoint(1, name="secret"))
            with catalog.transaction() as transaction:
                transaction.add_operation(new_operation(2, kind=OperationKind.RESTORE))
            assert catalog.checkpoint(TWO, checkpoint_id(1)) is None
            assert catalog.checkpoint_named(TWO, "secret") is None
            assert list(catalog.checkpoints_with_prefix(TWO, checkpoint_id(1), 5)) == []
            assert list(catalog.history(TWO, records=True)) == []
            assert catalog.first_checkpoint(TWO) is None
            assert catalog.checkpoint_at(TWO, 10**18) is None
            assert list(catalog.operations(TWO)) == []
            assert catalog.counts(TWO) == CatalogCounts(0, 0, 0)

    def test_counts_tell_checkpoints_records_and_restores_apart(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(
                catalog,
                new_checkpoint(1),
                new_checkpoint(2, kind=Kind.SAFETY),
                new_checkpoint(3, kind=Kind.RESTORE),
                new_checkpoint(4, TWO),
            )
            kinds = RESTORING_KINDS
            with catalog.transaction() as transaction:
                for number, kind in enumerate((*kinds, OperationKind.DELETE), start=10):
                    transaction.add_operation(new_operation(number, kind=kind))
            assert catalog.counts(ONE) == CatalogCounts(checkpoints=1, records=2, restores=4)
            assert catalog.counts(TWO) == CatalogCounts(checkpoints=1, records=0, restores=0)
            assert catalog.counts() == CatalogCounts(checkpoints=2, records=2, restores=4)

    def test_operations_are_chosen_by_kind_and_by_what_came_before(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog)
            kinds = (OperationKind.APPROVE, OperationKind.CHECKPOINT, OperationKind.RESET)
            with catalog.transaction() as transaction:
                added = [transaction.add_operation(new_operation(9, kind=kind)) for kind in kinds]
            approve, checkpoint, reset = added
            chosen = (OperationKind.RESET, OperationKind.APPROVE)
            assert list(catalog.operations(ONE, kinds=chosen)) == [approve, reset]
            assert list(catalog.operations(ONE, after=approve.sequence)) == [checkpoint, reset]
            after = catalog.operations(ONE, kinds=chosen, after=approve.sequence)
            assert list(after) == [reset]
            assert list(catalog.operations(ONE, kinds=())) == []
            assert list(catalog.operations(ONE, limit=2)) == [approve, checkpoint]
            assert list(catalog.operations(ONE, kinds=chosen, limit=1)) == [approve]

    def test_a_round_begins_with_what_is_approved_and_counts_its_checkpoints(
        self, tmp_path: Path
    ) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            later = [replace(new_checkpoint(n), round=2) for n in (2, 3)]
            record = replace(new_checkpoint(4, kind=Kind.RESTORE), round=2)
            elsewhere = replace(new_checkpoint(5, TWO), round=2)
            self.fill(catalog, new_checkpoint(1), *later, record, elsewhere)
            with catalog.transaction() as transaction:
                transaction.start_round(ONE, 2, approved=checkpoint_id(1))
            session = catalog.session(ONE)
            assert session is not None
            assert (session.round, session.approved) == (2, checkpoint_id(1))
            assert [catalog.count_in_round(ONE, number) for number in (1, 2, 3)] == [1, 2, 0]
            assert list(catalog.check()) == []

    def test_what_leads_to_a_checkpoint_of_a_round_is_counted_without_lines_that_were_left(
        self, tmp_path: Path
    ) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            earlier = new_checkpoint(1)
            first = replace(new_checkpoint(2, parent=1), round=2)
            left = replace(new_checkpoint(3, parent=2), round=2)
            record = replace(new_checkpoint(4, kind=Kind.RESTORE, parent=2), round=2)
            last = replace(new_checkpoint(5, parent=4), round=2)
            self.fill(catalog, earlier, first, left, record, last)

            def leading_to(number: int, round_number: int = 2) -> int:
                wanted = checkpoint_id(number)
                return catalog.count_in_round(ONE, round_number, leading_to=wanted)

            assert [leading_to(number) for number in (2, 3, 4, 5)] == [1, 2, 1, 2]
            assert [leading_to(1, 1), leading_to(1), leading_to(9), leading_to(5, 1)] == [
                1,
                0,
                0,
                0,
            ]
            assert catalog.count_in_round(TWO, 2, leading_to=checkpoint_id(5)) == 0

    def test_restores_of_every_session_are_found_from_the_beginning_of_one_on(
        self, tmp_path: Path
    ) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog)
            log = [
                (ONE, OperationKind.CHECKPOINT),
                (ONE, OperationKind.RESTORE),
                (TWO, OperationKind.CHECKPOINT),
                (ONE, OperationKind.UNDO),
                (TWO, OperationKind.RESET),
                (ONE, OperationKind.APPROVE),
                (TWO, OperationKind.REDO),
            ]
            with catalog.transaction() as transaction:
                done = [
                    transaction.add_operation(new_operation(number, session, kind=kind))
                    for number, (session, kind) in enumerate(log)
                ]
            assert list(catalog.restores_since(ONE)) == [done[1], done[3], done[4], done[6]]
            assert list(catalog.restores_since(TWO)) == [done[3], done[4], done[6]]
            assert list(catalog.restores_since(TWO, after=done[4].sequence)) == [done[6]]
            assert list(catalog.restores_since(ONE, limit=1)) == [done[1]]
            assert list(catalog.restores_since(SessionId("nobody"))) == []

    def test_rows_that_fill_several_pages_are_all_read_once(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            added = self.fill(catalog, *(new_checkpoint(number) for number in range(1, 1002)))
            with catalog.transaction() as transaction:
                for number in range(10_001):
                    transaction.add_operation(new_operation(number))
            assert list(all_checkpoints(catalog)) == added
            done = list(all_operations(catalog, ONE))
            assert done == list(catalog.operations(ONE))
            assert len(done) >= 10_001
            assert list(all_operations(catalog, TWO)) == list(catalog.operations(TWO))

    def test_operations_are_listed_oldest_first(self, tmp_path: Path) -> None:
        with closing(self.open_catalog(tmp_path)) as catalog:
            self.fill(catalog)
            for at_ns in (30, 10, 20):
                with catalog.transaction() as transaction:
                    transaction.add_operation(new_operation(at_ns))
            assert [operation.at_ns for operation in catalog.operations(ONE)] == [30, 10, 20]
