"""A path that was removed for good is in no checkpoint and in no byte of the store."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest
from blake3 import blake3

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import Busy, NotFound, Refused, StoreDamaged, UsageError
from holdfast.domain.ids import SessionId
from holdfast.domain.purges import Trace
from holdfast.domain.sessions import Session
from holdfast.engine.purge import purge
from holdfast.engine.repair.check import run_checks
from holdfast.engine.restore.plan import read_report
from holdfast.engine.retention.deletion import delete
from holdfast.ports.progress import NoProgress
from tests.behind_the_api import engine_of, store_of
from tests.support.hostile_trees import fill, noise
from tests.support.raw_search import places_of, unpacked
from tests.support.session_states import get_snapshot
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("ST-5")

SECRETS = [
    b"API_KEY=sk-live-0123456789abcdef\n",
    b"API_KEY=sk-live-0123456789abcdef\nDB_PASSWORD=hunter2-and-more\n",
    b"# a long file\n" + b"".join(b"KEY_%d=value-%d-secret\n" % (n, n) for n in range(200)),
]
WORDS = [b"sk-live-0123456789", b"hunter2-and-more", b"value-77-secret", b"KEY_150=value"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "src/main.py", b"print('hello')\n" * 20)
    return workspace


@pytest.fixture
def history(workspace: Path) -> list[str]:
    """Three checkpoints with the secret in different versions, in two sessions, and a restore."""
    made = []
    with SessionCheckpointer(workspace, "one") as session:
        for number, secret in enumerate(SECRETS):
            fill(workspace / "config/.env", secret)
            fill(workspace / "src/main.py", b"print('hello')\n" * 20 + b"# %d\n" % number)
            made.append(session.checkpoint(f"state {number}", name=f"state-{number}"))
        session.restore("state-0")
        session.undo()
    with SessionCheckpointer(workspace, "two") as session:
        made.append(session.checkpoint("another session"))
    return made


def _store(workspace: Path) -> Path:
    with open_workspace(workspace, create=False) as opened:
        return opened.store.directory


def _digests(contents: list[bytes]) -> list[bytes]:
    found = [blake3(content).digest() for content in contents]
    return found + [digest.hex().encode() for digest in found]


def _require_sound(workspace: Path) -> None:
    with open_workspace(workspace, create=False) as opened:
        vault = opened.engine.vault
        assert list(run_checks(vault, data=True, progress=NoProgress())) == []


def test_no_version_of_a_purged_path_is_left_anywhere(workspace: Path, history: list[str]) -> None:
    store = _store(workspace)
    assert places_of(store, WORDS)
    with SessionCheckpointer(workspace, "one") as session:
        outcome = session.purge_paths("config/.env")
    assert places_of(store, WORDS + _digests(SECRETS)) == []
    assert set(history) <= set(outcome.changed)
    assert outcome.proof.traces == ()
    assert outcome.proof.digests >= len(SECRETS)
    assert outcome.proof.samples > 0
    assert outcome.proof.files >= 4
    assert outcome.still_in_workspace == (b"config/.env",)
    _require_sound(workspace)


@pytest.mark.requirement("CP-13")
def test_an_ignored_file_that_was_purged_is_not_captured_again(workspace: Path) -> None:
    fill(workspace / ".gitignore", b".env\n")
    fill(workspace / ".env", SECRETS[0])
    with SessionCheckpointer(workspace, "one") as session:
        store = store_of(session)
        with store.hold():
            store.named_paths.replace([b".env", b"other"])
        session.checkpoint("with the secret")
        session.purge_paths(".env")
        session.checkpoint("without it")
        assert store.named_paths.load() == (b"other",)
    assert places_of(store.directory, WORDS[:1]) == []


def test_a_purge_interrupted_before_its_transaction_has_no_effect_on_the_next(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    fill(workspace / ".gitignore", b".env\n")
    fill(workspace / ".env", SECRETS[0])
    fill(workspace / "other.txt", SECRETS[1])
    with SessionCheckpointer(workspace, "one") as session:
        store = store_of(session)
        with store.hold():
            store.named_paths.replace([b".env"])
        saved = session.checkpoint("with both")
        with monkeypatch.context() as patched:
            patched.setattr(purge, "_record", interrupt)
            with pytest.raises(KeyboardInterrupt):
                session.purge_paths(".env")
        assert store.purge_note.read() is not None
        assert not session.purge_paths("other.txt").resumed
        assert store.purge_note.read() is None
        assert store.named_paths.load() == (b".env",)
        assert {a.path for a in get_snapshot(session, saved).artifacts} >= {".env"}
    _require_sound(workspace)


def test_the_checkpoints_stay_and_say_what_is_missing(workspace: Path, history: list[str]) -> None:
    with SessionCheckpointer(workspace, "one") as session:
        before = get_snapshot(session, "state-1")
        session.purge_paths("config/.env")
        after = get_snapshot(session, "state-1")
        assert {a.path for a in before.artifacts} - {a.path for a in after.artifacts} == {
            "config/.env"
        }
        assert after.intent.tags == ("purged",)
        assert (after.intent.reasoning, after.parent) == (before.intent.reasoning, before.parent)
        assert session.summaries()[0].file_count == 1
        assert session.diff("state-0", "state-2") == {"src/main.py": "modified"}
    with open_workspace(workspace, create=False) as opened:
        checkpoint = opened.engine.resolve(SessionId("one"), "state-1")
        assert checkpoint.changed.to_dict() == {"added": 0, "modified": 1, "removed": 0}
        (skipped,) = [
            s for s in read_report(opened.engine.vault, checkpoint) if s.reason.name == "PURGED"
        ]
        assert skipped.path == b"config/.env"


def test_a_restore_to_a_purged_checkpoint_leaves_the_path_of_the_workspace_alone(
    workspace: Path, history: list[str]
) -> None:
    with SessionCheckpointer(workspace, "one") as session:
        session.purge_paths("config/.env")
        fill(workspace / "config/.env", b"the new secret")
        session.checkpoint("with a new secret")
        session.restore("state-0")
        assert (workspace / "config/.env").read_bytes() == b"the new secret"
        assert (workspace / "src/main.py").read_bytes().endswith(b"# 0\n")
        session.undo()
        assert (workspace / "src/main.py").read_bytes().endswith(b"# 2\n")


def test_the_next_checkpoint_saves_again_what_the_workspace_still_has(
    workspace: Path, history: list[str]
) -> None:
    with SessionCheckpointer(workspace, "one") as session:
        session.purge_paths("config/.env")
        assert session.checkpoint("again")
        (workspace / "config/.env").unlink()
        session.restore("HEAD")
        assert (workspace / "config/.env").read_bytes() == SECRETS[-1]


def test_a_whole_directory_can_be_purged_with_links_and_large_files(
    workspace: Path, tmp_path: Path
) -> None:
    large = noise(3_000_000, seed=7)
    with SessionCheckpointer(workspace, "one") as session:
        fill(workspace / "secrets/large.bin", large)
        fill(workspace / "secrets/deep/key", b"-----BEGIN PRIVATE KEY-----")
        (workspace / "secrets/link").symlink_to("/somewhere/very/private")
        session.checkpoint("one")
        fill(workspace / "secrets/large.bin", large[:1_500_000] + b"edit" + large[1_500_000:])
        session.checkpoint("two")
        store = session.save()
        session.purge_paths("secrets")
    needles = [large[n : n + 64] for n in range(0, len(large), 300_000)]
    needles += [b"BEGIN PRIVATE KEY", b"/somewhere/very/private", b"large.bin"]
    assert places_of(store, needles) == []
    _require_sound(workspace)
    with SessionCheckpointer(workspace, "one") as session:
        assert [a.path for a in get_snapshot(session, "HEAD").artifacts] == ["src/main.py"]


def test_versions_of_checkpoints_that_were_deleted_before_go_too(
    workspace: Path, history: list[str]
) -> None:
    """Deleting leaves content in packs until it is worth collecting; a purge does not."""
    with SessionCheckpointer(workspace, "one") as session:
        fill(workspace / "ballast", noise(200_000))
        session.checkpoint("ballast, so that nothing is collected")
        engine = engine_of(session)
        delete(engine, engine.resolve(SessionId("one"), "state-1"))
        store = session.save()
        session.purge_paths("config/.env")
    assert places_of(store, WORDS + _digests(SECRETS)) == []
    _require_sound(workspace)


def test_content_that_is_also_elsewhere_is_named_and_nothing_happens_unasked(
    workspace: Path, history: list[str]
) -> None:
    with SessionCheckpointer(workspace, "one") as session:
        fill(workspace / "backup/env.bak", SECRETS[1])
        session.checkpoint("a copy")
        store = session.save()
        before = unpacked(store)
        with pytest.raises(Refused, match=r"backup/env\.bak") as refusal:
            session.purge_paths("config/.env")
        assert "--everywhere" in (refusal.value.hint or "")
        assert "--keep-shared" in (refusal.value.hint or "")
        assert unpacked(store) == before
        outcome = session.purge_paths("config/.env", everywhere=True)
        assert set(outcome.paths) == {b"config/.env", b"backup/env.bak"}
    assert places_of(store, WORDS + _digests(SECRETS)) == []
    _require_sound(workspace)


def test_shared_content_can_be_left_where_it_also_lies(workspace: Path, history: list[str]) -> None:
    with SessionCheckpointer(workspace, "one") as session:
        fill(workspace / "backup/env.bak", SECRETS[0])
        session.checkpoint("a copy")
        store = session.save()
        outcome = session.purge_paths("config/.env", keep_shared=True)
        paths = {a.path for a in get_snapshot(session, "HEAD").artifacts}
        assert paths == {"src/main.py", "backup/env.bak"}
        assert places_of(store, [b"hunter2-and-more", *_digests(SECRETS[1:])]) == []
        (workspace / "backup/env.bak").unlink()
        session.restore("HEAD")
    assert (workspace / "backup/env.bak").read_bytes() == SECRETS[0]
    assert outcome.proof.elsewhere == (b"backup/env.bak",), "the other file has some of its bytes"
    _require_sound(workspace)


def test_another_name_of_the_same_file_is_shared_content(workspace: Path) -> None:
    fill(workspace / ".env", SECRETS[0])
    os.link(workspace / ".env", workspace / "zz-link")
    with SessionCheckpointer(workspace, "one") as session:
        session.checkpoint("linked")
        with pytest.raises(Refused, match="zz-link"):
            session.purge_paths(".env")
        session.purge_paths(".env", keep_shared=True)
        state = describe(workspace)
        (workspace / "zz-link").unlink()
        session.restore("HEAD")
        assert (workspace / "zz-link").read_bytes() == SECRETS[0]
        assert state.keys() == describe(workspace).keys()


def test_empty_files_are_no_secret(workspace: Path) -> None:
    fill(workspace / "pkg/__init__.py", b"")
    fill(workspace / "other/__init__.py", b"")
    with SessionCheckpointer(workspace, "one") as session:
        session.checkpoint("empty ones")
        session.purge_paths("pkg")
        assert "other/__init__.py" in {a.path for a in get_snapshot(session, "HEAD").artifacts}


def test_a_secret_quoted_in_a_reason_is_reported_as_a_trace(workspace: Path) -> None:
    secret = b"token-9f8e7d6c5b4a39281706abcdef"
    fill(workspace / ".env", secret)
    with SessionCheckpointer(workspace, "one") as session:
        session.checkpoint("set " + secret.decode() + " in .env")
        outcome = session.purge_paths(".env")
        assert Trace("catalog.db", "some of its bytes") in outcome.proof.traces


def test_a_trace_in_an_unknown_file_is_reported(workspace: Path, history: list[str]) -> None:
    store = _store(workspace)
    (store / "aside").mkdir()
    (store / "aside/old.pack.damaged").write_bytes(b"x" * 5_000_000 + SECRETS[0] + b"y" * 100)
    with SessionCheckpointer(workspace, "one") as session:
        outcome = session.purge_paths("config/.env")
    assert {trace.file for trace in outcome.proof.traces} == {"aside/old.pack.damaged"}


def test_a_note_of_a_hook_that_goes_meanwhile_is_no_trouble(
    workspace: Path, history: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(workspace, "one") as session:
        files = engine_of(session).vault.files
        gone = files.directory / "running-tools" / ("0" * 32)
        listed = files.files
        monkeypatch.setattr(files, "files", lambda: [*listed(), gone])
        outcome = session.purge_paths("config/.env")
    assert outcome.proof.traces == ()


def test_bytes_in_a_pack_that_was_set_aside_are_a_trace(
    workspace: Path, history: list[str]
) -> None:
    aside = _store(workspace) / "set-aside" / "20260101T000000Z"
    aside.mkdir(parents=True)
    (aside / "00000001.pack").write_bytes(b"damaged " + SECRETS[0] + b" record")
    with SessionCheckpointer(workspace, "one") as session:
        outcome = session.purge_paths("config/.env")
    name = "set-aside/20260101T000000Z/00000001.pack"
    assert {trace.file for trace in outcome.proof.traces} == {name}


def test_leftovers_of_killed_writers_go_too(workspace: Path, history: list[str]) -> None:
    store = _store(workspace)
    (store / ".journal.new").write_bytes(SECRETS[1])
    with SessionCheckpointer(workspace, "one") as session:
        assert session.purge_paths("config/.env").proof.traces == ()
    assert places_of(store, WORDS) == []


@pytest.mark.requirement("ST-5", "RL-4")
def test_a_damaged_store_is_refused_before_anything_changes(
    workspace: Path, history: list[str]
) -> None:
    (pack,) = (_store(workspace) / "objects/packs").iterdir()
    data = bytearray(pack.read_bytes())
    data[100] ^= 1
    pack.write_bytes(data)
    with SessionCheckpointer(workspace, "one") as session:
        before = session.summaries()
        with pytest.raises(StoreDamaged, match="nothing was purged") as refused:
            session.purge_paths("config/.env")
        assert refused.value.hint == "repair it first: holdfast repair"
        assert session.summaries() == before
    assert not (_store(workspace) / "purge").exists()


def test_a_path_that_no_checkpoint_has_is_not_found(workspace: Path, history: list[str]) -> None:
    with SessionCheckpointer(workspace, "one") as session:
        for path in ("config/.env/below", "nothing", "config/other"):
            with pytest.raises(NotFound):
                session.purge_paths(path)
        for path in ("../outside", "", ".git/config", "/etc/passwd"):
            with pytest.raises(UsageError):
                session.purge_paths(path)
        with pytest.raises(NotFound):
            session.purge_paths()


def test_an_approved_round_that_has_the_path_needs_force(
    workspace: Path, history: list[str]
) -> None:
    with open_workspace(workspace, create=False) as opened:
        vault = opened.engine.vault
        with vault.lock.hold(), vault.catalog.transaction() as transaction:
            approved = vault.catalog.checkpoint_named(SessionId("one"), "state-0")
            assert approved is not None
            transaction.add_session(Session(SessionId("approver"), 1, approved=approved.id))
    with SessionCheckpointer(workspace, "one") as session:
        with pytest.raises(Refused, match="approved round") as refusal:
            session.purge_paths("config/.env")
        assert "--force" in (refusal.value.hint or "")
        session.purge_paths("config/.env", force=True)
    assert places_of(_store(workspace), WORDS) == []


def test_a_round_that_was_approved_long_ago_is_named_with_what_it_would_lose(
    tmp_path: Path,
) -> None:
    place = tmp_path / "approved"
    place.mkdir()
    with SessionCheckpointer(place, "one") as session:
        (place / "secret").write_text("the password")
        session.checkpoint("with it")
        session.approve("good")
        approved = session.approval().approved
        (place / "secret").unlink()
        session.checkpoint("without it")
        session.approve("better")
        with pytest.raises(Refused) as refusal:
            session.purge_paths("secret")
        said = refusal.value.message
        assert "secret is part of an approved round, session_1 of session one" in said
        assert approved is not None
        assert approved[:10] in said
        assert "--force" in (refusal.value.hint or "")
        session.purge_paths("secret", force=True)


def test_another_process_reading_the_catalog_is_waited_for_and_the_purge_finished_later(
    workspace: Path, history: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.local.sqlite_connection._SCRUB_TIMEOUT_MS", 50)
    store = _store(workspace)
    reader = apsw.Connection(str(store / "catalog.db"))
    reader.execute("BEGIN; SELECT count(*) FROM checkpoints").fetchall()
    with SessionCheckpointer(workspace, "one") as session:
        with pytest.raises(Busy):
            session.purge_paths("config/.env")
        _require_sound(workspace)
        reader.execute("COMMIT")
        reader.close()
        outcome = session.purge_paths("config/.env")
        assert outcome.resumed
        assert outcome.proof.traces == ()
        assert outcome.still_in_workspace == (b"config/.env",)
        with pytest.raises(NotFound):
            session.purge_paths("config/.env")
    assert places_of(store, WORDS + _digests(SECRETS)) == []


def test_a_long_history_stays_as_small_as_it_was(workspace: Path) -> None:
    """New directories are stored against each other, as the old ones were."""
    for number in range(300):
        fill(workspace / f"file-{number:03}", noise(40, seed=number))
    fill(workspace / ".env", SECRETS[0])
    with SessionCheckpointer(workspace, "one") as session:
        for number in range(40):
            fill(workspace / "file-007", noise(40, seed=1000 + number))
            session.checkpoint(f"edit {number}")
        before = session.stats["bytes_stored"]
        session.purge_paths(".env")
        assert session.stats["bytes_stored"] < 1.2 * before
    assert places_of(_store(workspace), WORDS) == []
    _require_sound(workspace)
