"""Handing work of a session over to git, as the library offers it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.commits import AcceptOutcome
    from holdfast.domain.ids import SessionId
    from holdfast.ports.repository import MirrorOutcome


class HandingOver:
    """Part of `SessionCheckpointer`."""

    _open: OpenWorkspace
    _id: SessionId

    def accept(
        self,
        checkpoints: str | None = None,
        *,
        message: str | None = None,
        co_authors: Sequence[str] = (),
        edit: bool = False,
        dry_run: bool = False,
    ) -> AcceptOutcome:
        """Squash a range of checkpoints, `A..B`, into one commit on the present branch.

        Without a range: from what was accepted or approved last, or the first checkpoint, to HEAD.
        The message is composed from the intents unless there is one. With `dry_run` nothing is
        changed, and the outcome has no commit. `Refused`, with the way out, when something is in
        the way.
        """
        from holdfast.api.session_parts.accepting import carry_out, prepare, previewed
        from holdfast.ports.repository import CommitWish

        acceptance = prepare(
            self._open, self._id, checkpoints, message=message, co_authors=co_authors
        )
        if dry_run:
            return previewed(self._open, acceptance)
        return carry_out(self._open, acceptance, CommitWish(acceptance.message, edit=edit))

    def export_git_bundle(
        self, path: Path, *, everything: bool = False, replace: bool = False
    ) -> MirrorOutcome:
        """Write the session, or all of them, into a git bundle that `git clone` takes."""
        from holdfast.engine.mirror import export_git_bundle

        sessions = None if everything else [self._id]
        return export_git_bundle(
            self._open.engine.vault, Path(path), sessions=sessions, replace=replace
        )
