"""`config edit`: edit settings in the user's editor.

The store's settings are written to a file that lists every setting with its meaning. They are
stored when the editor exits, if all of them are valid. `--user` and `--project` open those files
directly.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from holdfast.api.views.settings import toml_value
from holdfast.domain.errors import InvalidSetting, UsageError
from holdfast.domain.settings.schema import DEFAULTS, HELP, KEYS, USER_ONLY, check_setting
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import agrees, can_ask

_HEAD = """\
# Settings of {workspace}
# To set a value, remove the # at the start of its line. Settings without a line use
# the project's file, the user's file or the default.
"""


def edit_store(invocation: Invocation) -> list[str]:
    """Returns the changed keys."""
    with invocation.open(create=True) as opened:
        stored, workspace = opened.settings.stored(), opened.path
    with TemporaryDirectory(prefix="holdfast-") as place:
        file = Path(place) / "config.toml"
        file.write_text(_page(workspace, stored), "utf-8")
        wanted = _edited(invocation, file, of_store=True)
    changed = [key for key in {**stored, **wanted} if stored.get(key) != wanted.get(key)]
    if changed:
        with invocation.open() as opened:
            for key in changed:
                opened.settings.set(key, wanted.get(key))
    return changed


def edit_file(invocation: Invocation, file: Path) -> None:
    """Edit the user's or the project's file; it is created if missing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text("".join(f"# {key}: {HELP[key]}\n" for key in KEYS), "utf-8")
    _edited(invocation, file, of_store=False)


def _edited(invocation: Invocation, file: Path, *, of_store: bool) -> dict[str, Any]:
    """The content of the file once it is valid. If it is not, ask whether to edit it again."""
    while True:
        _run_editor(invocation, file)
        try:
            return _read_valid(file, of_store=of_store)
        except InvalidSetting as error:
            if not can_ask(invocation):
                raise
            invocation.terminal.fail(error.message, error.hint)
            if not agrees(invocation, "Edit again?"):
                raise


def _run_editor(invocation: Invocation, file: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    invocation.terminal.flush()
    try:
        with invocation.pause_clock():
            done = subprocess.run([*shlex.split(editor), str(file)], check=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot start the editor {editor!r}: {error}",
            hint="use another one: EDITOR=nano holdfast config edit",
        ) from None
    if done.returncode:
        raise UsageError(
            f"the editor {editor!r} exited with status {done.returncode}; nothing was changed",
            hint="to change one setting without an editor: holdfast config set KEY VALUE",
        )


def _page(workspace: Path, stored: Mapping[str, Any]) -> str:
    lines = [_HEAD.format(workspace=workspace)]
    for key in KEYS:
        if key in USER_ONLY:
            continue
        mark = "" if key in stored else "# "
        lines += [
            f"# {HELP[key]}",
            f"{mark}{key} = {toml_value(key, stored.get(key, DEFAULTS[key]))}",
            "",
        ]
    return "\n".join(lines)


def _read_valid(file: Path, *, of_store: bool) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSetting(
            f"invalid TOML: {error}",
            hint='write KEY = VALUE, with text in double quotes: budget = "10 GB"',
        ) from None
    for key, value in found.items():
        check_setting(key, value)
        if of_store and key in USER_ONLY:
            raise InvalidSetting(
                f"{key} cannot be set for one store", hint="use: holdfast config edit --user"
            )
    return found
