"""Whether the directory that a command was called in is saved at all.

"Saved, nothing changed" is true of the workspace, and still not what somebody means who has just
worked in a directory that its rules leave out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace
    from holdfast.interfaces.cli.terminal import Terminal


def not_saved_here(terminal: Terminal, opened: Workspace) -> str | None:
    """What to warn of; mostly nothing, and nothing where it cannot be told."""
    inside = terminal.standing_in
    if not inside:
        return None
    from holdfast.domain.paths import to_text

    if not opened.leaves_out(inside):
        return None
    return (
        f"nothing in {to_text(inside)} is saved: the rules of {opened.path} leave it out. To "
        "have it saved, include it (holdfast config get include), or make it a workspace of its "
        "own: holdfast init"
    )
