"""An index of one process, for a store whose own is behind and cannot be written.

    the store's index, copied with its log → opened in a temporary directory → what packs hold
    beyond it is taken in there; one that is damaged is made from the packs alone

Guarantee: the store is only read; of an encrypted one the index is encrypted here too.
Not guaranteed: that it lasts; it goes when the store is closed, and the next process makes another.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.objects.local import LocalObjectStore
from holdfast.adapters.local.store_errors import store_trouble

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import StoreKeys
    from holdfast.ports.filesystem import Filesystem


class ScratchIndex:
    """Hold the store's lock while it is made; close the objects before it is closed."""

    def __init__(self, fs: Filesystem, objects: Path, keys: StoreKeys | None) -> None:
        with contextlib.ExitStack() as undone:
            with store_trouble("being indexed in a temporary directory"):
                place = Path(undone.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-")))
                index = place / "objects" / "index.db"
                index.parent.mkdir()
                for suffix in ("", "-wal"):
                    with contextlib.suppress(FileNotFoundError):
                        shutil.copyfile(objects / f"index.db{suffix}", f"{index}{suffix}")
            self.objects = LocalObjectStore(fs, objects, keys, index=index)
            undone.callback(lambda: self.objects.close())
            self.objects.catch_up()
            self._undone = undone.pop_all()

    def close(self) -> None:
        self._undone.close()
