"""Storing a setting of one workspace, or one entry of a setting that is a table."""

from __future__ import annotations

import json
from typing import Any

from holdfast.domain.errors import InvalidSetting
from holdfast.domain.settings import DEFAULTS, RETIRED, USER_ONLY, check_setting
from holdfast.engine.vault import Vault


def set_setting(vault: Vault, key: str, value: Any) -> None:
    """None takes it away again. The caller holds the lock."""
    key, _, entry = key.partition(".")
    if entry:
        table = json.loads(vault.catalog.settings().get(key, "{}"))
        value = {**table, entry: value} if value is not None else _without(table, entry)
    if value is not None or key not in RETIRED:  # one that no longer exists can still be removed
        check_setting(key, DEFAULTS.get(key) if value is None else value)
    if key in USER_ONLY:
        raise InvalidSetting(
            f"{key} cannot be set for one store",
            hint="write it into the user's settings file",
        )
    with vault.catalog.transaction() as transaction:
        transaction.set_setting(key, None if value is None else json.dumps(value))


def _without(table: Any, entry: str) -> Any:
    """The table without an entry; None when nothing is left of it."""
    return {key: value for key, value in dict(table).items() if key != entry} or None
