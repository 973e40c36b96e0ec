"""Adding, changing and removing the keys of an open, encrypted store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.adapters.local.encryption.key_slots import KeySlot, KeySlots
from holdfast.adapters.local.encryption.unlock import Unlocked, read_key_slots, write_key_slots
from holdfast.adapters.local.layout import StoreLayout
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.store import Secret, WriterLock


class LocalStoreKeys:
    """See `holdfast.ports.store.StoreKeys`."""

    def __init__(
        self, fs: Filesystem, layout: StoreLayout, lock: WriterLock, unlocked: Unlocked
    ) -> None:
        self._fs = fs
        self._layout = layout
        self._lock = lock
        self._unlocked = unlocked

    @property
    def used(self) -> str:
        return self._unlocked.slot_id

    def all(self) -> Sequence[KeySlot]:
        return read_key_slots(self._layout).slots

    def add(self, secret: Secret) -> None:
        by = self._unlocked
        self._change(lambda slots: slots.adding(by.keys, secret))

    def change(self, secret: Secret) -> None:
        by = self._unlocked
        self._change(lambda slots: slots.replacing(by.slot_id, by.keys, secret))

    def remove(self, slot_id: str) -> None:
        self._change(lambda slots: slots.without(slot_id))

    def _change(self, change: Callable[[KeySlots], KeySlots]) -> None:
        with self._lock.hold():
            write_key_slots(self._fs, self._layout, change(read_key_slots(self._layout)))
