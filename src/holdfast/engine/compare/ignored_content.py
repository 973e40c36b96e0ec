"""Ignored content is shown to nobody: `why`, every diff, tools, MCP, the command line.

An ignored file often holds secrets. That it is captured, because it is included or a tool named it,
protects it from being lost and does not make it public. A restore brings it back, and an export
carries it. A file that git tracks is no secret.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.domain.errors import Refused
from holdfast.domain.ids import short
from holdfast.domain.paths import MARKER_DIRECTORY, is_within, to_text, typed
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.trees.changes import Change
    from holdfast.engine.scan.ignore_check import IgnoreRules
    from holdfast.engine.vault import Vault

WITHHELD = "content withheld: the file is ignored by your rules"


class IgnoredContent:
    """The rules as they are now, without what was included or named."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._rules: IgnoreRules | None = None

    def rule(self, path: bytes) -> str | None:
        """The rule that ignores a path, whether or not it is captured."""
        if self._rules is None:
            self._rules = self._made()
        return _rule(self._rules, path)

    def is_withheld(self, change: Change) -> bool:
        ends = (change.path,) if change.old_path is None else (change.path, change.old_path)
        return any(self.rule(end) is not None for end in ends)

    def require_shown(self, path: bytes, at: Checkpoint | None = None) -> None:
        """`Refused` for ignored content, of the workspace or of a checkpoint."""
        rule = self.rule(path)
        if rule is None:
            return
        if at is None and self._is_left_out(path):
            raise Refused(
                f"{to_text(path)!r} is left out of checkpoints; {WITHHELD} ({rule})",
                hint="to let checkpoints have it, add it to the setting include",
            )
        reference = "REF" if at is None else short(at.id)
        raise Refused(
            f"{to_text(path)!r}: {WITHHELD} ({rule})",
            hint=f"to get the file back: holdfast restore {reference} {typed(path)}",
        )

    def _is_left_out(self, path: bytes) -> bool:
        from holdfast.engine.save.save import capture_policy
        from holdfast.engine.scan.ignore_check import IgnoreRules

        vault = self._vault
        return (
            _rule(IgnoreRules(vault.fs, capture_policy(vault), vault.open_root), path) is not None
        )

    def _made(self) -> IgnoreRules:
        from holdfast.engine.scan.exempt_paths import ExemptPaths
        from holdfast.engine.scan.ignore_check import IgnoreRules
        from holdfast.engine.scan.policy import CapturePolicy

        vault = self._vault
        settings = replace(vault.settings, include=())
        tracked = ExemptPaths(vault.fs, os.fsencode(vault.workspace))
        own_data = vault.files.path_inside_workspace()
        policy = CapturePolicy(settings, vault.workspace, own_data=own_data)
        return IgnoreRules(vault.fs, policy.keeping(tracked), vault.open_root)


def _rule(rules: IgnoreRules, path: bytes) -> str | None:
    if is_within(path, MARKER_DIRECTORY):
        return "Holdfast's own data"
    try:
        return rules.rule(path)
    except OSError:
        return None  # the rules cannot be read: whoever reads the file says so
