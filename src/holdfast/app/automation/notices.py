"""Notices about a session's protection: that it is off, why, and when it is back; and what a
checkpoint lacks. Each is given once per session and reason.

    an event's notices → those not given yet → in the answer → noted as given once delivered

Given notices are recorded beside the stores or, because that directory may be the one that cannot
be written, in the fallback directory. If no file can be written, the notice comes with each user
message: too often is better than never. If no model reads an event's answer, its notices wait for
the next event. Nothing here raises.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.app.automation.external_capture import OUTSIDE_NOT_KEPT
from holdfast.app.automation.json_notes import read_json, write_json
from holdfast.domain.agent_events import AgentEvent, EventKind, Notice, Reply
from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.paths import to_text

if TYPE_CHECKING:
    from holdfast.app.automation.host import Host
    from holdfast.app.open_workspace import SettingProblem
    from holdfast.domain.checkpoints import Skipped
    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.domain.sessions import Session
    from holdfast.engine.vault import Vault

NAME = "hooks.told"
_MOST_SESSIONS = 64
_LARGEST = 256 << 10
_MOST_TEXT = 1_000
_BACK = "back"

State: TypeAlias = dict[str, dict[str, Any]]
"""By session: whether protection is off, the codes given, the waiting notices, and the time."""
_WORDS = {"edit": "edits", "shell": "commands"}
# Each reason is reported once in a session, so later files are not reported.
_MORE = " Later files like this are not reported here. To list them: holdfast status --skipped"


class SessionNotices:
    """The notices of all sessions of one user."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def of_failure(self, event: AgentEvent, error: BaseException) -> Reply:
        """The answer to an event without a checkpoint, with a notice unless it was already
        given."""
        message = str(getattr(error, "message", None) or str(error) or type(error).__name__)
        hint = getattr(error, "hint", None)
        message = message[:_MOST_TEXT].rstrip(".")
        way = f" {_sentence(str(hint)[:_MOST_TEXT])}" if hint else ""
        notice = Notice(
            f"off:{getattr(error, 'code', type(error).__name__)}",
            f"Holdfast is not protecting this session: {message}. No checkpoint was made, so "
            f"changes you make now cannot be undone. Tell the user.{way}",
            f"Holdfast: not protected. {_sentence(message)}{way}",
        )
        return self.due(event, Reply(notices=(notice,)), saved=False)

    def due(self, event: AgentEvent, reply: Reply, *, saved: bool) -> Reply:
        """The answer with its notices that are due now, and those that waited for an answer that a
        model reads. `saved`: the event made a checkpoint."""
        places = self._places()
        if not reply.notices:
            places = [place for place in places if place.exists()]
        if not places:
            return reply  # for most events: no notice now, and none before
        state = _read(places)
        mine = state.setdefault(_key(event), {"off": False, "told": [], "waiting": [], "at": 0})
        before = json.dumps(mine)
        notices = [one for one in reply.notices if one.code not in mine["told"]]
        if any(one.code.startswith("off:") for one in reply.notices):
            mine["off"] = True
            mine["waiting"] = [one for one in mine["waiting"] if one[0] != _BACK]
        elif saved and mine["off"] and event.begins:
            mine["off"] = False
            mine["told"] = [code for code in mine["told"] if not code.startswith("off:")]
            waited = [Notice(*one) for one in mine["waiting"]]
            mine["waiting"] = [one for one in waited if not one.code.startswith("off:")]
            notices.append(_back())
        known = {one.code for one in notices}
        notices += [Notice(*one) for one in mine["waiting"] if one[0] not in known]
        mine["waiting"] = [list(one) for one in notices]
        written = json.dumps(mine) == before
        if not written:
            mine["at"] = self._host.clock.now_ns()
            written = self._write(places, state)
        may_repeat = event.kind in (EventKind.SESSION_START, EventKind.MESSAGE)
        if event.carries and not written and not may_repeat:
            notices = []
        return reply._replace(notices=tuple(notices) if event.carries else ())

    def note_delivered(self, event: AgentEvent, notices: Sequence[Notice]) -> None:
        places = self._places()
        state = _read(places)
        mine = state.get(_key(event))
        if mine is None:
            return
        given = {one.code for one in notices}
        mine["told"] = sorted({*mine["told"], *given} - {_BACK})
        mine["waiting"] = [one for one in mine["waiting"] if one[0] not in given]
        if not (mine["off"] or mine["told"] or mine["waiting"]):
            del state[_key(event)]
        self._write(places, state)

    def _places(self) -> list[Path]:
        """Where they may be recorded, the best first."""
        places = []
        with contextlib.suppress(Exception):
            places.append(self._host.home / NAME)
        return [*places, *self._host.fallback.files(NAME)]

    def _write(self, places: Sequence[Path], state: State) -> bool:
        """Write to one place only; returns whether that worked."""
        newest = sorted(state.items(), key=lambda item: item[1].get("at", 0))[-_MOST_SESSIONS:]
        done = False
        for place in places:
            with contextlib.suppress(Exception):  # the next place may be writable
                if done or not state:
                    place.unlink(missing_ok=True)
                    continue
                if place.name != NAME:
                    self._host.fallback.require_private(place.parent)
                done = write_json(place, dict(newest))
        return done


def _back() -> Notice:
    return Notice(
        _BACK,
        "Holdfast protects this session again. Checkpoints are being made.",
        "Holdfast: protected again. Checkpoints are being made.",
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def _key(event: AgentEvent) -> str:
    said = f"{event.agent}\0{event.session or event.project or event.cwd}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:32]


def _read(places: Sequence[Path]) -> State:
    """The newest file, because an older one may be in a directory that has become read-only."""
    found: list[tuple[int, State]] = []
    for place in places:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            status = os.lstat(place)
            if status.st_uid == os.geteuid():
                state = read_json(place, most_bytes=_LARGEST)
                known = {str(key): _checked(one) for key, one in state.items()}
                found.append((status.st_mtime_ns, known))
    return max(found, key=lambda one: one[0])[1] if found else {}


def _checked(one: dict[str, Any]) -> dict[str, Any]:
    waiting = [[str(part) for part in notice[:3]] for notice in one["waiting"]]
    if any(len(notice) != 3 for notice in waiting):
        raise ValueError("a notice that is cut off")
    told = [str(code) for code in one["told"]]
    return {"off": one["off"] is True, "told": told, "waiting": waiting, "at": int(one["at"])}


def trigger_off_notice(trigger: str) -> Notice:
    """For a trigger that the user turned off; otherwise the agent would promise too much."""
    what = (
        f"no checkpoint is made before {_WORDS[trigger]}, because the setting auto_{trigger} is off"
    )
    way = f"To turn it on: holdfast config set auto_{trigger} on"
    return Notice(
        f"setting:auto_{trigger}",
        f"Holdfast is only partly protecting this session: {what}. {way}",
        f"Holdfast: {what}. {way}",
    )


def setting_notice(problem: SettingProblem) -> Notice:
    """For an invalid setting; everything else continues."""
    said = f"Holdfast: {problem.finding}. The other settings apply, and checkpoints are made"
    way = f"To fix it: {problem.cure}"
    return Notice(f"setting:{problem.finding}", f"{said}. Tell the user. {way}", f"{said}. {way}")


def skip_notices(outcome: SaveOutcome) -> tuple[Notice, ...]:
    """One for each reason: paths and components that could not be saved. Files outside are reported
    with the call that names them."""
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
    """For files that exceeded the limit during this session; the user's own large files are
    older."""
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
        f"Holdfast: checkpoints do not include {to_text(new[0].path)} "
        f"({size_words(size)}){more}, because files larger than max_file_size ({limit}) are "
        "left out."
    )
    way = (
        f"To raise the limit: holdfast config set max_file_size {_suggested_limit(size)} (later "
        "files like this are not reported here; holdfast status --skipped lists them)"
    )
    return (
        Notice(
            f"without:{SkipReason.TOO_LARGE.value}",
            f"{said} A restore would not bring it back. {way}",
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
    except HoldfastError:  # then older ones are reported too
        return frozenset()
    return frozenset(skip.path for skip in report if skip.reason is SkipReason.TOO_LARGE)


def _suggested_limit(size_bytes: int) -> str:
    """Room for the file to grow, in whole megabytes as the setting expects."""
    return f"{max(1, -(-2 * size_bytes // 1_000_000))}MB"


def _paths(number: int, first: str, reason: str) -> str:
    more = f" and {number - 1:,} more" if number > 1 else ""
    return f"{first}{more}: {reason}"


def _without(code: str, text: str, more: str = "") -> Notice:
    said = f"the latest checkpoint does not include {text}".rstrip(".")
    return Notice(
        code,
        f"Holdfast: {said}. A restore would not bring it back.{more}",
        f"Holdfast: {said}.{more}",
    )
