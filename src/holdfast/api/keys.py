"""Keys of encrypted stores: the secrets that new keys come from, and the keys that open a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.bootstrap.keys import key_file_secret, passphrase_file_secret, passphrase_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.ports.store import KeySlot
    from holdfast.ports.store import Secret as Secret

__all__ = ["Keys", "key_file_secret", "passphrase_file_secret", "passphrase_secret"]


class Keys:
    """Topic of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._store = opened.store

    @property
    def used(self) -> str | None:
        """The id of the key that opened the store; None where the store is not encrypted."""
        return self._store.used_key()

    def all(self) -> Sequence[KeySlot]:
        return self._store.key_slots()

    def add(self, secret: Secret) -> None:
        self._store.add_key(secret)

    def change(self, secret: Secret) -> None:
        """Replace the key that opened the store."""
        self._store.change_key(secret)

    def remove(self, key_id: str) -> None:
        self._store.remove_key(key_id)
