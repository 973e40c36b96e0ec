"""A settings file as it is read: its text and what the system says about it, or why it is none."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.domain.errors import Refused
from holdfast.domain.wording import size_words

_LARGEST = 50 << 20
"""Some agents keep the history of all projects in their settings."""


def read_settings(path: Path) -> tuple[str | None, os.stat_result | None]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if path.is_symlink():
            raise Refused(
                f"{path} is a link that leads nowhere", hint="remove it, or make its target"
            ) from None
        return None, None
    except NotADirectoryError:
        raise Refused(
            f"{path} cannot be made: a part of the way to it is a file",
            hint="move that file out of the way",
        ) from None
    except OSError as error:
        raise Refused(
            f"{path} cannot be read: {error.strerror}", hint="check its owner and permissions"
        ) from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{path} is not a settings file", hint="move it out of the way")
        if status.st_size > _LARGEST:
            raise Refused(
                f"{path} has {size_words(status.st_size)}, which is more than is edited",
                hint="leave it as it is, and set the agent up by its own commands",
            )
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(_LARGEST).decode("utf-8"), status
    except UnicodeDecodeError:
        raise Refused(
            f"{path} is not UTF-8 text", hint="save it as UTF-8 first; nothing was changed"
        ) from None
    finally:
        os.close(fd)
