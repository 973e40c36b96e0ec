"""Notices about what a checkpoint lacks, for reasons that the user can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app.automation.external_capture import OUTSIDE_NOT_KEPT
from holdfast.domain.agent_events import Notice
from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.paths import to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.app.open_workspace import SettingProblem
    from holdfast.domain.checkpoints import Skipped
    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.domain.sessions import Session
    from holdfast.engine.vault import Vault

_WORDS = {"edit": "edits", "shell": "commands"}
# Each reason is told once in a session, so a file that follows would be missed in silence.
_MORE = " Later files like this are not reported here. To list them: holdfast status --skipped"


def trigger_off_notice(trigger: str) -> Notice:
    """The user's own setting; an agent that does not know would promise too much."""
    what = (
        f"no checkpoint is made before {_WORDS[trigger]}, because the setting auto_{trigger} is off"
    )
    way = f"To have them: holdfast config set auto_{trigger} on"
    return Notice(
        f"setting:auto_{trigger}",
        f"Holdfast is not protecting this session in full: {what}. {way}",
        f"Holdfast: {what}. {way}",
    )


def setting_notice(problem: SettingProblem) -> Notice:
    """A setting with a mistake in it; everything else goes on."""
    said = f"Holdfast: {problem.finding}. The other settings apply, and checkpoints are made"
    way = f"To correct it: {problem.cure}"
    return Notice(f"setting:{problem.finding}", f"{said}. Tell the user. {way}", f"{said}. {way}")


def skip_notices(outcome: SaveOutcome) -> tuple[Notice, ...]:
    """One for each reason: paths that could not be saved, and parts that were not taken in. Files
    outside are told with the call that names them."""
    found: dict[str, tuple[int, str]] = {}
    for skip in outcome.skipped:
        if skip.reason.is_failure and not skip.reason.content_is_captured:
            seen, first = found.get(skip.reason.value, (0, to_text(skip.path)))
            found[skip.reason.value] = (seen + 1, first)
    notices = [
        _without(f"without:{reason}", _paths(number, first, reason), _MORE)
        for reason, (number, first) in found.items()
    ]
    parts = [text for text in outcome.degraded if not text.startswith(OUTSIDE_NOT_KEPT)]
    return (*notices, *(_without(f"without:{text}", text) for text in parts))


def too_large_notices(
    vault: Vault, session: Session, skipped: Sequence[Skipped]
) -> tuple[Notice, ...]:
    """Of files that grew above the limit in this session; the user's own large files are older."""
    large = [skip for skip in skipped if skip.reason is SkipReason.TOO_LARGE]
    if not large:
        return ()
    from holdfast.domain.wording import size_words

    older = _too_large_at_first(vault, session)
    new = [skip for skip in large if skip.path not in older]
    if not new:
        return ()
    size = int(new[0].detail.partition(" ")[0])
    more = f" and {len(new) - 1:,} more" if len(new) > 1 else ""
    limit = size_words(vault.settings.max_file_size)
    said = (
        f"Holdfast: checkpoints are without {to_text(new[0].path)} ({size_words(size)}){more}, "
        f"because files above max_file_size ({limit}) are left out."
    )
    way = (
        f"To raise the limit: holdfast config set max_file_size {_twice(size)} (later files like "
        "this are not reported here; holdfast status --skipped lists them)"
    )
    return (
        Notice(
            f"without:{SkipReason.TOO_LARGE.value}",
            f"{said} A restore would not bring that back. {way}",
            f"{said} {way}",
        ),
    )


def _too_large_at_first(vault: Vault, session: Session) -> frozenset[bytes]:
    from holdfast.domain.errors import HoldfastError
    from holdfast.engine.restore.plan import read_report

    first = vault.catalog.first_checkpoint(session.id)
    if first is None:
        return frozenset()
    try:
        report = read_report(vault, first)
    except HoldfastError:  # then one that is older is told as well
        return frozenset()
    return frozenset(skip.path for skip in report if skip.reason is SkipReason.TOO_LARGE)


def _twice(size_bytes: int) -> str:
    """Room for the file to grow, in whole megabytes as the setting takes them."""
    return f"{max(1, -(-2 * size_bytes // 1_000_000))}MB"


def _paths(number: int, first: str, reason: str) -> str:
    more = f" and {number - 1:,} more" if number > 1 else ""
    return f"{first}{more}: {reason}"


def _without(code: str, text: str, more: str = "") -> Notice:
    said = f"the checkpoint that was just made is without {text}".rstrip(".")
    return Notice(
        code,
        f"Holdfast: {said}. A restore would not bring that back.{more}",
        f"Holdfast: {said}.{more}",
    )
