"""Files that hold what opens a store: key files, which Holdfast makes, and files with a passphrase.

A key file is refused when others than its owner can read it: it would protect nothing.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.adapters.local.encryption.cipher import KEY_BYTES
from holdfast.adapters.local.encryption.key_slots import Secret
from holdfast.adapters.local.system import random_bytes
from holdfast.domain.errors import KeyNeeded, Refused
from holdfast.ports.filesystem import FILE_MODE

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
    """A new key in a new file, private and durable: a store must not outlive its key."""
    content = random_bytes(KEY_BYTES).hex().encode() + b"\n"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise Refused(
            f"the key file {path} cannot be made: {error.strerror}",
            hint="choose a directory that exists and that you can write to",
        ) from None
    return Secret.key_file(content)


def read_passphrase_file(path: Path) -> Secret:
    """The first line of the file, without its end."""
    line = _read(path, "passphrase file").split(b"\n", 1)[0].removesuffix(b"\r")
    if not line:
        raise KeyNeeded(
            f"the passphrase file {path} begins with an empty line",
            hint="its first line is the passphrase",
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
                    f"the {what} {path} can be read by others (mode {status.st_mode & 0o777:o})",
                    hint=f"make it private: chmod 600 {path}",
                )
            content = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise KeyNeeded(f"the {what} {path} cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST_BYTES:
        raise KeyNeeded(f"the {what} {path} is too large to be one")
    return content
