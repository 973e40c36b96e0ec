"""In an encrypted store, what a purge leaves behind is found with the key, as its owner would."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.purges import Trace
from tests.support.encrypted_stores import make_encrypted
from tests.support.hostile_trees import fill, noise

pytestmark = pytest.mark.requirement("ST-5", "ST-6")

SECRET = "sk-live-0123456789abcdef0123456789"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    key = tmp_path / "keys" / "key"
    key.parent.mkdir()
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key))
    workspace = tmp_path / "project"
    fill(workspace / ".env", SECRET.encode())
    fill(workspace / "main.py", b"print('hello')\n" * 20)
    make_encrypted(workspace, key)
    return workspace


def _files_that_say(workspace: Path, needle: bytes) -> set[str]:
    with open_workspace(workspace, create=False) as opened, opened.store.hold():
        return {
            path.name
            for path in opened.store.files()
            if any(needle in part for part in opened.store.opened_parts(path))
        }


def _quote_in_the_reason(session: SessionCheckpointer) -> None:
    session.checkpoint(f"take {SECRET} for now")


def _quote_in_a_message(session: SessionCheckpointer) -> None:
    session.add_message("user", f"take {SECRET} for now")


def _quote_in_an_annotation(session: SessionCheckpointer) -> None:
    session.annotate("HEAD", f"take {SECRET} for now")


@pytest.mark.parametrize(
    ("quote", "left_in"),
    [
        (_quote_in_the_reason, "catalog.db"),
        (_quote_in_a_message, "story.db"),
        (_quote_in_an_annotation, "story.db"),
    ],
)
def test_a_quoted_secret_is_a_trace(
    workspace: Path, quote: Callable[[SessionCheckpointer], None], left_in: str
) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        session.checkpoint("with the secret")
        quote(session)
        proof = session.purge_paths(".env").proof
    assert proof.traces == (Trace(left_in, "some of its bytes"),)


def test_nothing_that_the_key_opens_still_says_it(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        session.checkpoint("with the secret")
        with session.editing([".env"]):
            fill(workspace / ".env", f"{SECRET}\nand {SECRET[::-1]}\n".encode())
        session.checkpoint("with two")
        fill(workspace / ".env", b"\0" + noise(5000))
        session.checkpoint("with many bytes")
        session.search("secret")
    assert _files_that_say(workspace, SECRET.encode())
    with SessionCheckpointer(workspace, "work") as session:
        outcome = session.purge_paths(".env")
    assert outcome.proof.traces == ()
    assert outcome.proof.samples > 0
    assert not _files_that_say(workspace, SECRET.encode())
    assert not _files_that_say(workspace, noise(5000)[2000:2040])


def test_a_database_that_a_repair_set_aside_is_opened_too(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        session.checkpoint(f"take {SECRET} for now")
        store = session.save()
        aside = store / "set-aside" / "then"
        aside.mkdir(parents=True)
        for name in ("catalog.db", "catalog.db-wal"):
            shutil.copy(store / name, aside / name)
        proof = session.purge_paths(".env").proof
    assert "set-aside/then/catalog.db-wal" in {trace.file for trace in proof.traces}


def test_a_file_that_stays_and_holds_the_same_bytes_is_named(workspace: Path) -> None:
    kept = noise(3000)
    fill(workspace / ".env", kept[1000:2000])
    fill(workspace / "notes", kept)
    with SessionCheckpointer(workspace, "work") as session:
        session.checkpoint("both")
        proof = session.purge_paths(".env").proof
    assert proof.traces == ()
    assert proof.elsewhere == (b"notes",)
