"""Whose content may be shown: what ignore rules leave out is not, whoever asks.

    left out of checkpoints        → nobody is shown it: `why`, the diff of an edit
    ignored, but captured anyway   → people with the store on the command line, never tools or MCP

An ignored file often holds secrets. That it is captured, because it is included or a tool named it,
protects it from being lost and does not make it public. A file that git tracks is no secret.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.domain.errors import Refused
from holdfast.domain.paths import MARKER_DIRECTORY, is_within, to_text
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.engine.scan.policy import CapturePolicy
    from holdfast.engine.vault import Vault

WITHHELD = "content withheld: the file is ignored"


class IgnoredContent:
    """The rules as they are now, without what was included or named. Each path is judged once."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._known: dict[bytes, str | None] = {}
        self._policy: CapturePolicy | None = None

    def rule(self, path: bytes) -> str | None:
        """The rule that ignores a path, whether or not it is captured."""
        if path not in self._known:
            self._known[path] = _rule(self._vault, self._rules(), path)
        return self._known[path]

    def require_shown(self, path: bytes) -> None:
        rule = self.rule(path)
        if rule is not None:
            raise Refused(
                f"{to_text(path)!r}: {WITHHELD} ({rule})",
                hint="its content is shown on the command line only, if a checkpoint has it",
            )

    def _rules(self) -> CapturePolicy:
        if self._policy is None:
            from holdfast.engine.scan.kept_paths import KeptPaths
            from holdfast.engine.scan.policy import CapturePolicy

            vault = self._vault
            settings = replace(vault.settings, include=())
            tracked = KeptPaths(vault.fs, os.fsencode(vault.workspace))
            own_data = vault.access.path_inside_workspace()
            policy = CapturePolicy(settings, vault.workspace, own_data=own_data)
            self._policy = policy.keeping(tracked)
        return self._policy


def require_captured(vault: Vault, path: bytes) -> None:
    """`Refused` for a file of the workspace that no checkpoint would hold."""
    from holdfast.engine.save import capture_policy

    rule = _rule(vault, capture_policy(vault), path)
    if rule is not None:
        raise Refused(
            f"{to_text(path)!r} is left out of checkpoints ({rule}), so its content is not shown",
            hint="to let checkpoints have it, add it to the setting include",
        )


def _rule(vault: Vault, policy: CapturePolicy, path: bytes) -> str | None:
    from holdfast.engine.scan.left_out import ignoring_rule

    if is_within(path, MARKER_DIRECTORY):
        return "Holdfast's own data"
    try:
        with vault.open_root() as root_fd:
            return ignoring_rule(vault.fs, policy, root_fd, path)
    except OSError:
        return None  # behind a link or a closed directory: whoever reads it says so
