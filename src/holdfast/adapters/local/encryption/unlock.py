"""Opening an encrypted store: where its wrapped key is, and which secrets are tried.

    key file named by the environment or the user's settings → passphrase file → asking a person

The list of wrapped keys is in the store twice, because without it no secret opens the store. An
outdated or damaged copy is repaired by the next writer, under the store's lock.

A key file that other users can read is refused, because it would protect nothing.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.adapters.local.disk_sync import sync_to_disk
from holdfast.adapters.local.encryption.cipher import KEY_BYTES, StoreKeys
from holdfast.adapters.local.encryption.key_slots import (
    KeySlots,
    decode_key_slots,
    encode_key_slots,
)
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.store_errors import store_trouble
from holdfast.adapters.local.store_files import atomic_write, fsync_directory
from holdfast.adapters.local.system import random_bytes
from holdfast.domain.errors import HoldfastError, KeyNeeded, Refused, StoreDamaged, WrongKey
from holdfast.domain.paths import typed
from holdfast.ports.filesystem import FILE_MODE, Filesystem
from holdfast.ports.store import KEY_FILE, PASSPHRASE, Secret

SHORTEST_PASSPHRASE = 8
_LARGEST_BYTES = 1 << 16
_OTHERS = 0o077


def read_key_file(path: Path) -> Secret:
    content = _read(path, "key file")
    if len(content) < KEY_BYTES:
        raise KeyNeeded(
            f"the key file {path} has {len(content)} bytes; a key has at least {KEY_BYTES}"
        )
    return Secret.key_file(content)


def make_key_file(path: Path) -> Secret:
    """A new key in a new file, private and durable, because a store must not outlive its key."""
    content = random_bytes(KEY_BYTES).hex().encode() + b"\n"
    if not path.parent.is_dir():
        directory = typed(os.fsencode(path.parent))
        raise Refused(
            f"cannot create the key file {path}: the directory {path.parent} does not exist",
            hint=f"create it: mkdir -p -m 700 {directory}",
        )
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            sync_to_disk(fd)
        fsync_directory(path.parent)
    except OSError as error:
        raise Refused(
            f"cannot create the key file {path}: {error.strerror}",
            hint="choose a directory that you can write to",
        ) from None
    return Secret.key_file(content)


def read_passphrase_file(path: Path) -> Secret:
    """The first line of the file, without its line end."""
    line = _read(path, "passphrase file").split(b"\n", 1)[0].removesuffix(b"\r")
    if not line:
        raise KeyNeeded(
            f"the passphrase file {path} begins with an empty line",
            hint="put the passphrase on the first line",
        )
    return Secret.passphrase(line.decode("utf-8", "surrogateescape"))


def require_strong_enough(secret: Secret) -> Secret:
    """For a passphrase that is about to become a key of a store."""
    if len(secret.data) < SHORTEST_PASSPHRASE:
        raise Refused(
            f"the passphrase has fewer than {SHORTEST_PASSPHRASE} characters",
            hint="several unrelated words are easy to remember and hard to guess",
        )
    return secret


def _read(path: Path, what: str) -> bytes:
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_mode & _OTHERS:
                raise KeyNeeded(
                    f"other users can read the {what} {path} (mode {status.st_mode & 0o777:o})",
                    hint=f"make it private: chmod 600 {path}",
                )
            content = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise KeyNeeded(f"cannot read the {what} {path}: {error.strerror}") from None
    if len(content) > _LARGEST_BYTES:
        raise KeyNeeded(f"the file {path} is too large for a {what}")
    return content


_IF_LOST = "If you have lost every key: holdfast help lost-keys"


@dataclass(frozen=True, slots=True, repr=False)
class KeySources:
    """Where a secret may come from, in the order in which they are tried."""

    given: Secret | None = None
    key_files: tuple[Path, ...] = ()
    passphrase_file: Path | None = None
    ask: Callable[[], str | None] | None = None
    """None if there is no terminal."""


@dataclass(frozen=True, slots=True, repr=False)
class Unlocked:
    """The keys of a store, and the slot whose secret opened it."""

    keys: StoreKeys
    slot_id: str


def unlock(layout: StoreLayout, sources: KeySources) -> Unlocked:
    """`KeyNeeded` if there is no secret to try, `WrongKey` if none fits; changes nothing."""
    slots = read_key_slots(layout)
    problems: list[HoldfastError] = []
    for get_secret, origin in _candidates(slots, sources):
        try:
            secret = get_secret()
            if secret is not None:
                keys, slot = slots.open(secret)
                return Unlocked(keys, slot.id)
        except WrongKey as error:
            problems.append(WrongKey(f"{origin} does not open the store", hint=error.hint))
        except KeyNeeded as error:
            problems.append(error)
    if problems:
        raise _most_specific(problems, layout)
    raise KeyNeeded(
        f"the store {layout.directory} is encrypted and needs its "
        + " or its ".join(sorted(slots.kinds())),
        hint=f"{_unlock_hint(slots)}. {_IF_LOST}",
    )


def first_secret(sources: KeySources) -> tuple[Secret, str]:
    """The first secret that can be read without asking, and its name. `KeyNeeded` if there is
    none."""
    problems: list[str] = []
    for _, read, origin in _secret_files(sources):
        try:
            return read(), origin
        except KeyNeeded as error:
            problems.append(error.message)
    raise KeyNeeded("; ".join(problems) or "no key file or passphrase file is set")


def _candidates(
    slots: KeySlots, sources: KeySources
) -> Iterator[tuple[Callable[[], Secret | None], str]]:
    given, ask = sources.given, sources.ask
    if given is not None:
        yield (lambda: given), f"the {given.kind}"
    for kind, read, origin in _secret_files(sources):
        if kind in slots.kinds():
            yield read, origin
    if ask is not None and PASSPHRASE in slots.kinds():
        yield (lambda: _ask_for_passphrase(ask)), "the passphrase"


def _secret_files(sources: KeySources) -> Iterator[tuple[str, Callable[[], Secret], str]]:
    """Each with the kind of its secret, and its name."""
    for path in sources.key_files:
        yield KEY_FILE, partial(read_key_file, path), f"the key file {path}"
    if sources.passphrase_file is not None:
        file = sources.passphrase_file
        yield PASSPHRASE, partial(read_passphrase_file, file), f"the passphrase in {file}"


def _ask_for_passphrase(ask: Callable[[], str | None]) -> Secret | None:
    answer = ask()
    return None if answer is None else Secret.passphrase(answer)


def _most_specific(problems: list[HoldfastError], layout: StoreLayout) -> HoldfastError:
    """All attempts, as the error of the last one."""
    last = problems[-1]
    hint = last.hint or (f"nothing was changed; {_unlock_hint(read_key_slots(layout))}. {_IF_LOST}")
    return type(last)("; ".join(problem.message for problem in problems), hint=hint)


def _unlock_hint(slots: KeySlots) -> str:
    ways = {
        KEY_FILE: "set HOLDFAST_KEY_FILE to its key file",
        PASSPHRASE: "set HOLDFAST_PASSPHRASE_FILE to a file with its passphrase",
    }
    return ", or ".join(ways[kind] for kind in sorted(slots.kinds()))


def read_key_slots(layout: StoreLayout) -> KeySlots:
    """From the list, or from its copy if the list is missing or damaged."""
    problem: StoreDamaged | None = None
    for path in (layout.keys, layout.keys_copy):
        try:
            return decode_key_slots(path.read_bytes())
        except StoreDamaged as error:
            problem = error
        except OSError as error:
            problem = StoreDamaged(f"cannot read the list of the store's keys: {error.strerror}")
    reason = problem.message if problem else "there is none"
    raise StoreDamaged(
        f"{layout.keys} and its copy are unusable: {reason}",
        hint="restore one of them from a backup; no key opens the store without it",
    )


def write_key_slots(fs: Filesystem, layout: StoreLayout, slots: KeySlots) -> None:
    """Durable when it returns; called under the store's lock."""
    data = encode_key_slots(slots)
    with store_trouble("writing the list of its keys"):
        for path in (layout.keys, layout.keys_copy):
            atomic_write(fs, os.fsencode(path), data)


def mend_key_slots(fs: Filesystem, layout: StoreLayout) -> None:
    """Make list and copy agree after a crash between the two, or after one was damaged."""
    data = encode_key_slots(read_key_slots(layout))
    for path in (layout.keys, layout.keys_copy):
        with contextlib.suppress(OSError):
            if path.read_bytes() == data:
                continue
        with store_trouble("writing the list of its keys"):
            atomic_write(fs, os.fsencode(path), data)
