"""Ignored files that a tool names: captured from then on, whichever way the tool comes."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain.errors import HoldfastError
from holdfast.domain.ignore.rules import Precedence, precedence_of
from holdfast.domain.paths import to_text
from holdfast.engine.vault import Vault

MOST_NAMED = 5_000


def name_ignored_paths(vault: Vault, candidates: Mapping[bytes, bool]) -> dict[bytes, str]:
    """Let the next checkpoint, and those that follow, hold those of these paths that are ignored.
    Each comes with whether the tool changes it: files that built-in rules leave out are read all
    the time. The answer has the new ones with the rule that ignores each. Called with the store's
    lock held; `HoldfastError` when there are too many."""
    if vault.settings.capture_named_ignored != "on":
        return {}
    found = _ignored(vault, candidates)
    known = vault.files.named_paths()
    new = {path: rule for path, rule in found.items() if path not in known}
    if new:
        if len(known) + len(new) > MOST_NAMED:
            raise HoldfastError(
                f"{to_text(next(iter(new)))!r} is not captured, because {MOST_NAMED:,} ignored "
                "files are captured already"
            )
        vault.files.set_named_paths([*known, *new])
    return new


def _ignored(vault: Vault, candidates: Mapping[bytes, bool]) -> dict[bytes, str]:
    from holdfast.engine.save.save import capture_policy
    from holdfast.engine.scan.ignore_check import IgnoreRules

    found: dict[bytes, str] = {}
    if not candidates:
        return found
    rules = IgnoreRules(vault.fs, capture_policy(vault), vault.open_root)
    for path, changes in candidates.items():
        try:
            rule = rules.rule(path)
        except OSError:  # it cannot be reached: nobody captures it
            continue
        if rule is not None and (changes or precedence_of(rule) is not Precedence.DEFAULT):
            found[path] = rule
    return found
