"""An encrypted store from end to end: everything works, nothing shows, no change goes unnoticed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.layout import StoreLayout
from holdfast.bootstrap.keys import key_file_secret
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import InvalidSetting, KeyNeeded, Refused, WrongKey
from holdfast.engine.settings import set_setting
from holdfast.ports.store import Secret
from tests.adapters.local.tree_pictures import picture
from tests.behind_the_api import local_store
from tests.support.crash_server import CrashServer
from tests.support.encrypted_stores import HIDDEN, files_with, make_encrypted, problems
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot
from tests.support.tree_hash import describe, differences
from tests.support.tree_model import State
from tests.support.wrecked_workspace import Story

pytestmark = pytest.mark.requirement("ST-6")


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "keys" / "key"
    path.parent.mkdir()
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(path))
    return path


@pytest.fixture
def workspace(tmp_path: Path, key: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    make_encrypted(workspace, key)
    return workspace


def test_nothing_that_was_saved_can_be_read_in_any_file(
    workspace: Path, holdfast_home: Path
) -> None:
    fill(workspace / "confidential-name" / "file", b"the-launch-code " * 10)
    fill(workspace / "large", b"the-launch-code " * 100_000)
    (workspace / "link").symlink_to("confidential-name/the-launch-code")
    with SessionCheckpointer(workspace, "secret-session") as session:
        for number in range(4):
            fill(workspace / "confidential-name" / "file", b"the-launch-code %d" % number)
            session.checkpoint(
                "a-telling-reason", name=f"confidential-name-{number}", tags=["my-tag"]
            )
            assert list(files_with(holdfast_home, *HIDDEN)) == []
        session.restore("confidential-name-0")
        session.undo()
        digest = get_snapshot(session, "HEAD").manifest[0][1]
        assert (
            list(files_with(holdfast_home, *HIDDEN, digest.encode(), bytes.fromhex(digest))) == []
        )
    assert list(files_with(holdfast_home, *HIDDEN)) == []
    assert problems(workspace) == []


def test_a_plain_store_shows_what_an_encrypted_one_hides(
    tmp_path: Path, holdfast_home: Path
) -> None:
    """The search of the test above finds what there is to find."""
    plain = tmp_path / "plain"
    fill(plain / "confidential-name", b"the-launch-code")
    with SessionCheckpointer(plain, "secret-session") as session:
        session.checkpoint("a-telling-reason", tags=["my-tag"])
    assert {needle for _, needle in files_with(holdfast_home, *HIDDEN)} == set(HIDDEN)


def test_a_hostile_tree_comes_back_exactly(workspace: Path) -> None:
    fill(workspace / "file", b"x" * 3_000_000)
    fill(workspace / "dir" / "inner", b"one", 0o640)
    (workspace / "empty").mkdir()
    (workspace / "link").symlink_to("nowhere")
    fill(workspace / os.fsdecode(b"not \xff text"), b"any")
    with SessionCheckpointer(workspace, "s") as session:
        before = describe(workspace)
        first = session.checkpoint("first")
        shutil.rmtree(workspace / "dir")
        fill(workspace / "file", b"x" * 2_999_000 + b"y")
        wrecked = describe(workspace)
        session.restore(first)
        assert differences(describe(workspace), before) == []
        session.undo()
        assert differences(describe(workspace), wrecked) == []
    assert problems(workspace) == []


def test_a_restore_killed_at_any_call_leaves_a_journal_that_shows_nothing(
    tmp_path: Path, key: Path, holdfast_home: Path
) -> None:
    story = Story(tmp_path / "project", prepare=lambda workspace: make_encrypted(workspace, key))
    journals = 0
    with CrashServer() as server:
        for at in range(1, 2000, 7):
            story.go_to(story.bad)
            answer = story.ask(server, "restore", at=at, argument=story.good)
            journals += any(holdfast_home.glob("stores/*/journal"))
            needles = (b"edited", b"made/by", b"staging", b"a good state")
            assert list(files_with(holdfast_home, *needles)) == []
            found = story.recover()
            assert found in (story.old, story.new), at
            if not answer.died:
                break
    assert journals > 3
    story.check()


def test_processes_that_die_at_random_instants_lose_nothing_acknowledged(
    tmp_path: Path, key: Path, rng: random.Random
) -> None:
    story = Story(tmp_path / "project", prepare=lambda workspace: make_encrypted(workspace, key))
    known: dict[str, State] = {story.good: story.old, story.bad: story.new}
    # Saves are as quick as the machine is at the moment: the time they get follows that, so that
    # some of them die in the middle and some say that they are done, however busy it is.
    longest_s, number = 0.08, 0
    deaths, done = 0, 0
    with CrashServer() as server:
        while number < 40 or not deaths or not done:
            number += 1
            fill(story.workspace / "edited", f"random {number}".encode())
            state = describe(story.workspace)
            answer = story.ask(server, "save", at=0, after_s=rng.uniform(0.002, longest_s))
            assert answer.died or answer.error is None, answer
            if answer.made is not None:
                known[answer.made] = state
                done += 1
                longest_s /= 1.2
            else:
                deaths += 1
                longest_s *= 1.2
            assert story.recover() == state
    for checkpoint, expected in known.items():
        story.go_to(checkpoint)
        assert describe(story.workspace) == expected
    story.check()


SAVE = """
import sys
from pathlib import Path
from holdfast import SessionCheckpointer
workspace, name = Path(sys.argv[1]), sys.argv[2]
with SessionCheckpointer(workspace, name) as session:
    for number in range(12):
        (workspace / name).write_text(f"{name} {number}")
        session.checkpoint("why", name=str(number))
"""


@pytest.mark.requirement("CP-8")
def test_processes_save_into_one_encrypted_store_at_once_and_lose_nothing(workspace: Path) -> None:
    names = ("one", "two", "three")
    command = [sys.executable, "-c", SAVE, str(workspace)]
    children = [subprocess.Popen([*command, name]) for name in names]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert problems(workspace) == []
    for name in names:
        with SessionCheckpointer.load(workspace, name) as session:
            assert session.checkpoint_count == 12
            for number in (11, 3, 7):
                session.restore(str(number))
                assert (workspace / name).read_text() == f"{name} {number}"


def test_a_damaged_journal_is_reported_as_damage(workspace: Path) -> None:
    with open_workspace(workspace, create=False) as opened:
        opened.store.journal.write(b"anything")
        assert opened.store.journal.read() == b"anything"
        path = opened.store.directory / "journal"
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        assert opened.store.journal.read() == b""
    assert problems(workspace) != []


def _settled(workspace: Path) -> StoreLayout:
    """A store with its logs folded, so that every byte of it counts."""
    fill(workspace / "file", b"content")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        layout = StoreLayout(session.save())
    with open_workspace(workspace, create=False) as opened:
        for database in (local_store(opened).catalog._db, local_store(opened).objects.index._db):
            database.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    for companion in layout.directory.rglob("*.db-*"):
        companion.unlink()
    return layout


def test_a_change_to_any_part_of_the_store_is_found_by_check(
    workspace: Path, rng: random.Random
) -> None:
    layout = _settled(workspace)
    parts = [layout.catalog, *layout.objects.glob("packs/*")]
    for part in parts:
        sound = part.read_bytes()
        for position in rng.sample(range(len(sound)), 25):
            changed = bytearray(sound)
            changed[position] ^= 1 << rng.randrange(8)
            part.write_bytes(changed)
            assert problems(workspace) != [], (part.name, position)
            for companion in layout.directory.rglob("*.db-*"):
                companion.unlink()
        part.write_bytes(sound)
    assert problems(workspace) == []


def test_the_index_can_be_lost_and_comes_back_from_the_packs(workspace: Path) -> None:
    layout = _settled(workspace)
    (layout.objects / "index.db").unlink()
    layout.stat_cache.unlink()
    assert problems(workspace) == []
    with SessionCheckpointer(workspace, "s") as session:
        fill(workspace / "file", b"changed")
        session.restore("HEAD")
    assert (workspace / "file").read_bytes() == b"content"


def test_without_the_key_or_with_another_nothing_is_opened_or_changed(
    workspace: Path, key: Path, holdfast_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _settled(workspace)
    before = picture(workspace), picture(holdfast_home)
    other = key.with_name("other")
    key_file_secret(other, workspace, os.environ)
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(other))
    with pytest.raises(WrongKey, match="other does not open"):
        SessionCheckpointer(workspace, "s")
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key.with_name("missing")))
    with pytest.raises(KeyNeeded, match=r"cannot read the key file .*missing"):
        SessionCheckpointer(workspace, "s")
    monkeypatch.delenv("HOLDFAST_KEY_FILE")
    with pytest.raises(KeyNeeded, match="encrypted and needs its key file"):
        SessionCheckpointer(workspace, "s")
    assert (picture(workspace), picture(holdfast_home)) == before


def test_the_users_settings_can_name_the_key_file_and_a_project_cannot(
    workspace: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEY_FILE")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (workspace / ".holdfast" / "config.toml").write_text(f'key_file = "{key}"\n')
    with pytest.raises(KeyNeeded):
        open_workspace(workspace, create=False)
    (tmp_path / "config" / "holdfast").mkdir(parents=True)
    user_file = tmp_path / "config" / "holdfast" / "config.toml"
    user_file.write_text(f'key_file = "{key}"\n')
    with open_workspace(workspace, create=False) as opened:
        assert opened.engine.vault.settings.key_file == str(key)
        assert opened.setting_origins["key_file"] == str(user_file)
        with pytest.raises(InvalidSetting, match="cannot be set for one store"):
            set_setting(opened.engine, "key_file", str(key))


def test_a_plain_store_is_not_encrypted_afterwards(
    tmp_path: Path, key: Path, holdfast_home: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    open_workspace(plain, create=True).close()
    before = picture(holdfast_home)
    with pytest.raises(Refused, match="not encrypted") as error:
        make_encrypted(plain, key)
    assert "only new stores" in str(error.value.hint)
    assert not key.exists()
    assert picture(holdfast_home) == before


def test_a_key_is_not_kept_in_what_it_protects(
    tmp_path: Path, holdfast_home: Path, key: Path
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (tmp_path / "way").symlink_to(workspace)
    for place in (workspace / "key", tmp_path / "way" / "key", holdfast_home / "key"):
        with pytest.raises(Refused, match="next to the data it protects"):
            make_encrypted(workspace, place)
        assert not place.exists()
    assert list(holdfast_home.iterdir()) == []


def test_a_copy_of_an_encrypted_workspace_is_not_stored_in_the_open(
    workspace: Path, key: Path, tmp_path: Path
) -> None:
    fill(workspace / "file", b"content")
    copy = tmp_path / "copy"
    shutil.copytree(workspace, copy)
    with pytest.raises(Refused, match="copy of a workspace whose store is encrypted") as error:
        SessionCheckpointer(copy, "s")
    assert "init --encrypt" in str(error.value.hint)
    make_encrypted(copy, key)
    with SessionCheckpointer(copy, "s") as session:
        session.checkpoint("its own")
        assert session.save() != _settled(workspace).directory


def test_a_moved_workspace_keeps_its_encrypted_store(workspace: Path, tmp_path: Path) -> None:
    layout = _settled(workspace)
    moved = workspace.rename(tmp_path / "moved")
    with SessionCheckpointer(moved, "s") as session:
        assert session.save() == layout.directory
        assert session.checkpoint_count == 1
    described = layout.read_description()
    assert (described["workspace"], described["encrypted"]) == (moved, True)


def test_keys_come_and_go_while_the_content_stays(workspace: Path, key: Path) -> None:
    layout = _settled(workspace)
    content = next(layout.objects.glob("packs/*")).read_bytes()
    second = Secret.key_file(b"s" * 32)
    with open_workspace(workspace, create=False) as opened:
        keys = opened.store.keys
        assert keys is not None
        keys.add(second)
        keys.remove(keys.all()[0].id)
    with pytest.raises(WrongKey):
        open_workspace(workspace, create=False)
    second_file = key.with_name("second")
    second_file.touch(0o600)
    second_file.write_bytes(second.data)
    environment = {**os.environ, "HOLDFAST_KEY_FILE": str(second_file)}
    with open_workspace(workspace, create=False, environment=environment) as opened:
        assert opened.engine.vault.catalog.counts().checkpoints == 1
    assert next(layout.objects.glob("packs/*")).read_bytes() == content


@pytest.mark.requirement("PF-7")
def test_a_plain_store_loads_nothing_of_encryption(tmp_path: Path) -> None:
    workspace = tmp_path / "plain"
    fill(workspace / "file", b"content")
    program = (
        "import sys; from pathlib import Path; from holdfast import SessionCheckpointer\n"
        "with SessionCheckpointer(Path(sys.argv[1]), 's') as session:\n"
        "    session.restore(session.checkpoint('why'))\n"
        "print(*sys.modules)"
    )
    child = subprocess.run(
        [sys.executable, "-c", program, str(workspace)], capture_output=True, text=True, check=True
    )
    loaded = set(child.stdout.split())
    assert "holdfast.adapters.local.local_store" in loaded
    unwanted = {
        name for name in loaded if name.startswith(("cryptography", "holdfast.adapters.local.enc"))
    }
    assert unwanted == set()
