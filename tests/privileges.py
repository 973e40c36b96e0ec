"""Taking root's privileges from one thread for a while.

Root reads and writes whatever the permission bits say, so a test of an unreadable file proves
nothing when root runs it. On Linux the thread's effective capabilities are emptied, and
`SECBIT_NOROOT` keeps a program started meanwhile from getting them back; both are undone on the way
out. The user stays the same, so files, interpreter and temporary directories remain its own.

Not covered: threads that were already running, and systems other than Linux, where root is refused.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_CAPABILITY_VERSION_3 = 0x20080522
_PR_GET_SECUREBITS = 27
_PR_SET_SECUREBITS = 28
_SECBIT_NOROOT = 1


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextmanager
def none() -> Iterator[None]:
    """Run the block with what an ordinary user may do."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        raise RuntimeError(
            "tests of permissions need an ordinary user here: do not run them as root"
        )
    libc = ctypes.CDLL(None, use_errno=True)
    before = _capabilities(libc)
    secure_bits = _checked(libc.prctl(_PR_GET_SECUREBITS, 0, 0, 0, 0))
    # In this order: setting the bits needs a capability.
    _checked(libc.prctl(_PR_SET_SECUREBITS, secure_bits | _SECBIT_NOROOT, 0, 0, 0))
    _set_effective(libc, before, keep=False)
    try:
        yield
    finally:
        _set_effective(libc, before, keep=True)
        _checked(libc.prctl(_PR_SET_SECUREBITS, secure_bits, 0, 0, 0))


def _capabilities(libc: ctypes.CDLL) -> ctypes.Array[_Data]:
    data = (_Data * 2)()
    _checked(libc.capget(ctypes.byref(_Header(_CAPABILITY_VERSION_3, 0)), data))
    return data


def _set_effective(libc: ctypes.CDLL, before: ctypes.Array[_Data], *, keep: bool) -> None:
    data = (_Data * 2)()
    for new, old in zip(data, before, strict=True):
        new.effective = old.effective if keep else 0
        new.permitted = old.permitted
        new.inheritable = old.inheritable
    _checked(libc.capset(ctypes.byref(_Header(_CAPABILITY_VERSION_3, 0)), data))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
