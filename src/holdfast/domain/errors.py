"""The one family of errors that Holdfast raises on purpose.

    HoldfastError                 exit 1   code "error"
    ├── UsageError (ValueError)   exit 2   the request itself is wrong
    │   ├── InvalidIntent         exit 2   reasoning, confidence or name refused
    │   ├── InvalidSetting        exit 2   unknown key or a value it cannot take
    │   └── CommandNotRunnable  exit 126   the command of an attempt is not executable
    ├── NotFound (ValueError)     exit 4   nothing has that name
    │   ├── UnknownReference      exit 4   no such checkpoint
    │   ├── AmbiguousReference    exit 4   several checkpoints, all named
    │   ├── NothingToUndo         exit 4   the undo or redo list is empty
    │   ├── WorkspaceMissing      exit 4   the directory does not exist
    │   └── CommandNotFound     exit 127   the command of an attempt does not exist
    ├── Refused                   exit 5   a guard said no; the hint says what to do
    │   ├── WorkspaceRefused      exit 5   not a project: `/`, `$HOME`, the store itself
    │   ├── WorkspaceTrouble      exit 5   the workspace's file system failed
    │   ├── StoreUnwritable       exit 5   no permission to write the store
    │   │   └── StoreReadOnly     exit 5   its file system is mounted read-only
    │   ├── KeyNeeded             exit 5   the store is encrypted and no key was given
    │   ├── WrongKey              exit 5   the given key does not open the store
    │   ├── EncryptionUnavailable exit 5   its package is not installed
    │   ├── NeedsConfirmation     exit 5   more than one file, and no `--yes`
    │   ├── RestoreConflict       exit 5   the restore would lose bytes
    │   ├── RestoreFailed         exit 5   a step failed; everything was rolled back
    │   ├── BundleRefused         exit 5   the file to import is damaged, hostile or too new
    │   │   └── ForeignBundle     exit 5   it comes from another workspace
    │   └── LimitReached          exit 5   a configured limit was reached
    ├── StoreDamaged              exit 6   stored bytes have changed
    │   ├── IndexDamaged          exit 6   the object index; it can be rebuilt
    │   ├── ObjectMissing         exit 6
    │   ├── ObjectDamaged         exit 6
    │   ├── StoreSuspect          exit 6   an fsync failed; writes are blocked until it is verified
    │   ├── NewerStore            exit 6   written by a later Holdfast; left untouched
    │   └── StoreMissing          exit 6   the workspace's store is gone
    ├── NoSpace                   exit 7   disk full
    │   └── BudgetReached         exit 7   the store's own budget is used up
    ├── ContentChanged            exit 1   a file changed while it was compared
    └── Busy                      exit 8   another process holds the store

Each class has its exit status. An interface prints `message` and `hint` and exits with
`exit_status`. Errors are mapped to numbers nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class HoldfastError(Exception):
    """An expected failure: a stable code, a message and a hint."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def to_dict(self) -> dict[str, str | None]:
        return {"code": self.code, "message": self.message, "hint": self.hint}


class UsageError(HoldfastError, ValueError):
    code = "usage"
    exit_status = 2


class InvalidIntent(UsageError):
    code = "invalid_intent"


class InvalidSetting(UsageError):
    code = "invalid_setting"


class CommandNotRunnable(UsageError):
    code = "command_not_runnable"
    exit_status = 126


class NotFound(HoldfastError, ValueError):
    code = "not_found"
    exit_status = 4


class NothingSaved(NotFound):
    """A workspace without a store: no checkpoint was ever made there."""


class UnknownReference(NotFound):
    code = "unknown_reference"


class AmbiguousReference(NotFound):
    code = "ambiguous_reference"

    def __init__(self, message: str, candidates: Sequence[str], *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.candidates = tuple(candidates)


class NothingToUndo(NotFound):
    code = "nothing_to_undo"


class WorkspaceMissing(NotFound):
    code = "workspace_missing"


class CommandNotFound(NotFound):
    code = "command_not_found"
    exit_status = 127


class Refused(HoldfastError):
    code = "refused"
    exit_status = 5


class WorkspaceRefused(Refused):
    code = "workspace_refused"


class WorkspaceTrouble(Refused):
    code = "workspace_trouble"


class StoreUnwritable(Refused):
    code = "store_unwritable"


class StoreReadOnly(StoreUnwritable):
    """Has the code of its parent. A separate class, because read-only commands still work."""


class KeyNeeded(Refused):
    code = "key_needed"


class WrongKey(Refused):
    code = "wrong_key"


class EncryptionUnavailable(Refused):
    code = "encryption_unavailable"


class NeedsConfirmation(Refused):
    code = "needs_confirmation"


class RestoreConflict(Refused):
    code = "restore_conflict"


class RestoreFailed(Refused):
    code = "restore_failed"


class BundleRefused(Refused):
    code = "bundle_refused"


class ForeignBundle(BundleRefused):
    code = "foreign_bundle"


class LimitReached(Refused):
    code = "limit_reached"


class StoreDamaged(HoldfastError):
    code = "store_damaged"
    exit_status = 6


class IndexDamaged(StoreDamaged):
    code = "index_damaged"


class ObjectMissing(StoreDamaged):
    code = "object_missing"


class ObjectDamaged(StoreDamaged):
    code = "object_damaged"


class StoreSuspect(StoreDamaged):
    code = "store_suspect"


class NewerStore(StoreDamaged):
    code = "newer_store"


class StoreMissing(StoreDamaged):
    """A workspace marker names a store that does not exist. `was_here`: it existed once."""

    code = "store_missing"

    def __init__(self, message: str, *, hint: str | None = None, was_here: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.was_here = was_here


class NoSpace(HoldfastError):
    code = "no_space"
    exit_status = 7


class BudgetReached(NoSpace):
    code = "budget_reached"


class Busy(HoldfastError):
    code = "busy"
    exit_status = 8


class ContentChanged(HoldfastError):
    """A file became shorter while it was compared."""

    code = "content_changed"
