"""Opening an encrypted store: which secrets are tried, what is said, and that a key cannot get lost
between two writes."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

import pytest

from holdfast.adapters.local.encryption import key_slots as module
from holdfast.adapters.local.encryption.cipher import StoreKeys
from holdfast.adapters.local.encryption.key_slots import encode_key_slots, first_slots
from holdfast.adapters.local.encryption.unlock import (
    KeySources,
    make_key_file,
    mend_key_slots,
    read_key_file,
    read_key_slots,
    read_passphrase_file,
    require_strong_enough,
    unlock,
    write_key_slots,
)
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.local_store import LocalStore
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import KeyNeeded, NoSpace, Refused, StoreDamaged, WrongKey
from holdfast.ports.store import Secret
from holdfast.testing.faulty_filesystem import Fail, Fault, FaultyFilesystem, Kill, Killed
from holdfast.testing.intercepted_filesystem import RecordingFilesystem
from tests.adapters.local.tree_pictures import picture

pytestmark = pytest.mark.requirement("ST-6")

KEYS = StoreKeys(bytes(range(32)))
WORDS = Secret.passphrase("correct horse")


@pytest.fixture(autouse=True)
def quick_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SCRYPT", {"n": 1 << 4, "r": 8, "p": 1})


@pytest.fixture
def key(tmp_path: Path) -> Path:
    make_key_file(tmp_path / "key")
    return tmp_path / "key"


@pytest.fixture
def layout(tmp_path: Path, key: Path) -> StoreLayout:
    """A store that a key file and a passphrase open."""
    layout = StoreLayout(tmp_path / "home" / "stores" / "0123456789abcdef0123")
    slots = first_slots(KEYS, read_key_file(key)).adding(KEYS, WORDS)
    layout.create(LocalFilesystem(), tmp_path / "workspace", key_slots=encode_key_slots(slots))
    return layout


def private(path: Path, content: bytes) -> Path:
    path.touch(0o600)
    path.write_bytes(content)
    return path


def is_ours(keys: StoreKeys) -> bool:
    return keys.cipher("x").open(KEYS.cipher("x").seal(b"proof", b""), b"") == b"proof"


def test_every_source_opens_the_store(layout: StoreLayout, key: Path, tmp_path: Path) -> None:
    words = private(tmp_path / "words", b"correct horse\nnot this\n")
    other = tmp_path / "other"
    make_key_file(other)
    for sources in (
        KeySources(given=WORDS),
        KeySources(key_files=(key,)),
        KeySources(key_files=(other, key)),
        KeySources(passphrase_file=words),
        KeySources(key_files=(tmp_path / "missing",), passphrase_file=words),
        KeySources(ask=lambda: "correct horse"),
        KeySources(key_files=(other,), ask=lambda: "correct horse"),
    ):
        assert is_ours(unlock(layout, sources).keys)


def test_a_person_is_asked_only_when_nothing_else_opens(layout: StoreLayout, key: Path) -> None:
    def ask() -> str:
        raise AssertionError

    assert is_ours(unlock(layout, KeySources(key_files=(key,), ask=ask)).keys)


def test_without_a_key_both_ways_in_are_reported(layout: StoreLayout) -> None:
    for sources in (KeySources(), KeySources(ask=lambda: None)):
        with pytest.raises(KeyNeeded, match="key file or its passphrase") as error:
            unlock(layout, sources)
        assert error.value.exit_status == 5
        assert "HOLDFAST_KEY_FILE" in str(error.value.hint)
        assert "HOLDFAST_PASSPHRASE_FILE" in str(error.value.hint)


def test_a_wrong_key_is_named_and_changes_nothing(layout: StoreLayout, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make_key_file(other)
    words = private(tmp_path / "words", b"wrong horse")
    before = picture(layout.directory)
    with pytest.raises(WrongKey) as error:
        unlock(layout, KeySources(key_files=(other,), passphrase_file=words))
    assert error.value.exit_status == 5
    assert str(other) in error.value.message
    assert str(words) in error.value.message
    assert "wrong horse" not in error.value.message
    with pytest.raises(KeyNeeded, match="needs its key"):
        LocalStore(LocalFilesystem(), layout, tmp_path, SystemClock(), purpose="test")
    assert picture(layout.directory) == before


def test_a_new_key_file_is_private_random_and_never_replaces_one(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        secret = make_key_file(tmp_path / "key")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert read_key_file(tmp_path / "key") == secret
    assert len(bytes.fromhex(secret.data.decode())) == 32
    assert make_key_file(tmp_path / "another") != secret
    with pytest.raises(Refused, match="cannot create the key file"):
        make_key_file(tmp_path / "key")
    with pytest.raises(Refused, match="cannot create the key file"):
        make_key_file(tmp_path / "missing" / "key")
    assert read_key_file(tmp_path / "key") == secret


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        (b"k" * 31, 0o600, "31 bytes"),
        (b"k" * 32, 0o640, "other users can read"),
        (b"k" * 32, 0o604, "other users can read"),
        (b"k" * 70_000, 0o600, "too large"),
        (None, 0o600, "cannot read the key file"),
    ],
)
def test_a_key_file_that_protects_nothing_is_refused(
    tmp_path: Path, content: bytes | None, mode: int, reason: str
) -> None:
    path = tmp_path / "key"
    if content is not None:
        private(path, content).chmod(mode)
    with pytest.raises(KeyNeeded, match=reason):
        read_key_file(path)


def test_a_passphrase_is_the_first_line_of_its_file(tmp_path: Path) -> None:
    for content in (b"correct horse", b"correct horse\n", b"correct horse\r\nmore"):
        path = private(tmp_path / "words", content)
        assert read_passphrase_file(path) == WORDS
        path.unlink()
    with pytest.raises(KeyNeeded, match="empty line"):
        read_passphrase_file(private(tmp_path / "words", b"\ncorrect horse\n"))
    with pytest.raises(Refused, match="fewer than 8"):
        require_strong_enough(Secret.passphrase("seven77"))
    assert require_strong_enough(WORDS) is WORDS


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_the_copy_opens_the_store_and_mends_the_list(
    layout: StoreLayout, key: Path, damage: bytes | None
) -> None:
    sound = layout.keys.read_bytes()
    for path in (layout.keys, layout.keys_copy):
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage)
        assert is_ours(unlock(layout, KeySources(key_files=(key,))).keys)
        mend_key_slots(LocalFilesystem(), layout)
        assert layout.keys.read_bytes() == layout.keys_copy.read_bytes() == sound


def test_without_both_lists_the_damage_is_reported(layout: StoreLayout, key: Path) -> None:
    layout.keys.write_bytes(b"")
    layout.keys_copy.unlink()
    with pytest.raises(StoreDamaged, match=r"keys\.json") as error:
        unlock(layout, KeySources(key_files=(key,)))
    assert "backup" in str(error.value.hint)


FAULTS: dict[str, Fault] = {
    "disk full": Fail(errno.ENOSPC, lasting=True),
    "killed": Kill(),
    "killed after": Kill(after=True),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_change_of_keys_cut_off_anywhere_leaves_the_old_key_or_the_new_one(
    layout: StoreLayout, key: Path, tmp_path: Path, fault: Fault
) -> None:
    old, new = read_key_file(key), Secret.key_file(b"n" * 32)
    before = first_slots(KEYS, old)
    after = before.replacing(before.slots[0].id, KEYS, new)
    counting = RecordingFilesystem(LocalFilesystem())
    write_key_slots(counting, layout, after)
    seen = set()
    for number in range(1, len(counting.calls) + 1):
        write_key_slots(LocalFilesystem(), layout, before)
        fs = FaultyFilesystem(LocalFilesystem(), {number: fault})
        with contextlib.suppress(Killed, NoSpace):
            write_key_slots(fs, layout, after)
        fs.release()
        mend_key_slots(LocalFilesystem(), layout)
        opens = [secret for secret in (old, new) if _opens(layout, secret)]
        assert len(opens) == 1, number
        assert layout.keys.read_bytes() == layout.keys_copy.read_bytes()
        seen.add(opens[0].data)
    assert seen == {old.data, new.data}


def _opens(layout: StoreLayout, secret: Secret) -> bool:
    try:
        return is_ours(read_key_slots(layout).open(secret)[0])
    except WrongKey:
        return False
