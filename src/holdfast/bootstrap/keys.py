"""Keys of encrypted stores: finding them, asking for them, or creating one with a new store."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.identity import WorkspaceIdentity
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.settings_files import (
    read_user_settings,
)
from holdfast.bootstrap.locations import holdfast_home, user_settings_file
from holdfast.domain.errors import (
    InvalidSetting,
    KeyNeeded,
    Refused,
)
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.unlock import KeySources, Unlocked
    from holdfast.ports.store import Secret

_ENCRYPTED_AGAIN = "The new store is encrypted with {}, because the missing one was encrypted."


_NOT_ENCRYPTED = (
    "The new store is not encrypted because no key was found, although the missing store was "
    "encrypted."
)


def unlock_store(
    layout: StoreLayout,
    environment: Mapping[str, str],
    *,
    given: Secret | None = None,
    ask: Callable[[], str | None] | None = None,
) -> Unlocked:
    """The keys of an encrypted store; never read from the workspace or the store."""
    from holdfast.adapters.local.encryption.unlock import unlock

    return unlock(layout, replace(_key_sources(environment), given=given, ask=ask))


def _key_sources(environment: Mapping[str, str]) -> KeySources:
    from holdfast.adapters.local.encryption.unlock import KeySources

    user_file = user_settings_file(environment)
    user = read_user_settings(user_file)
    if "key_file" in user.broken:
        raise InvalidSetting(
            f"{user_file}: {user.broken['key_file']}, where key_file is set",
            hint="fix it: holdfast config edit --user",
        )
    own = user.values.get("key_file")
    named = (environment.get("HOLDFAST_KEY_FILE"), own if isinstance(own, str) else None)
    passphrase_file = environment.get("HOLDFAST_PASSPHRASE_FILE")
    return KeySources(
        key_files=tuple(Path(path).expanduser() for path in named if path),
        passphrase_file=Path(passphrase_file).expanduser() if passphrase_file else None,
    )


def key_file_secret(path: Path, workspace: Path, environment: Mapping[str, str]) -> Secret:
    """The key in a file, which is created if missing; it must not be inside the data it
    protects."""
    from holdfast.adapters.local.encryption.unlock import make_key_file, read_key_file

    place = path.expanduser().absolute()
    real = Path(os.path.realpath(place.parent)) / place.name
    home = Path(os.path.realpath(holdfast_home(environment)))
    for forbidden in (Path(os.path.realpath(workspace)), home):
        if real.is_relative_to(forbidden):
            raise Refused(
                f"the key file {path} would be in {forbidden}, next to the data it protects",
                hint="choose a directory that you back up separately",
            )
    if not os.path.lexists(place):
        return make_key_file(place)
    try:
        return read_key_file(place)
    except KeyNeeded as error:
        hint = (
            error.hint
            or "use a file name that does not exist yet, and Holdfast creates a key there"
        )
        raise KeyNeeded(error.message, hint=hint) from None


def passphrase_secret(text: str) -> Secret:
    """A passphrase for a new key; `Refused` if it is too weak."""
    from holdfast.adapters.local.encryption.unlock import require_strong_enough
    from holdfast.ports.store import Secret

    return require_strong_enough(Secret.passphrase(text))


def passphrase_file_secret(path: Path) -> Secret:
    """A passphrase from the first line of a file."""
    from holdfast.adapters.local.encryption.unlock import (
        read_passphrase_file,
        require_strong_enough,
    )

    return require_strong_enough(read_passphrase_file(path))


def chosen_secret(
    identity: WorkspaceIdentity,
    directory: Path,
    environment: Mapping[str, str],
    chosen: Callable[[Path], Secret] | None,
) -> tuple[Callable[[Path], Secret] | None, tuple[str, ...]]:
    """The secret for a new store, and messages about it: the chosen one, or an available key if the
    lost store was encrypted. `KeyNeeded` without a key, except for a clone: only its marker says
    that the store was encrypted, so it is protected without encryption."""
    lost = identity.lost_encrypted(directory)
    if chosen is not None or lost is None:
        return chosen, ()
    from holdfast.adapters.local.encryption.unlock import first_secret

    try:
        secret, origin = first_secret(_key_sources(environment))
    except KeyNeeded as error:
        if not lost.was_here:
            return None, (_NOT_ENCRYPTED,)
        raise KeyNeeded(
            f"the encrypted store of {directory} is missing ({lost.directory}), and there is "
            f"no key for a new one: {error.message}",
            hint=(
                "set HOLDFAST_KEY_FILE to a key file; or: holdfast init --new-store --encrypt; "
                "without encryption: holdfast init --new-store --no-encrypt"
            ),
        ) from None
    return (lambda _: secret), (_ENCRYPTED_AGAIN.format(origin),)


def require_encrypted(layout: StoreLayout, directory: Path) -> None:
    if not layout.read_description()["encrypted"]:
        raise Refused(
            f"{directory} has a store that is not encrypted: {layout.directory}",
            hint="only new stores can be encrypted; nothing was changed",
        )
