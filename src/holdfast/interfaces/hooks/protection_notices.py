"""What an agent and its user are told about their protection: that it is off, why, and when it is
back; what a checkpoint is without. Once for each session and reason.

    notices of an event → those not told yet → in the answer → noted as told once it was handed over

What was told is remembered beside the stores or, since that may be the very place that cannot be
written, where the daemon's socket is. Where nothing can be written it is told with each message of
the user: rather too often than never. An event whose answer no model reads leaves its notice to
the next one. Nothing here raises.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Sequence
from typing import Any

from holdfast.domain.agent_events import AgentEvent, EventKind, Notice, Reply

NAME = "hooks.told"
_MOST_SESSIONS = 64
_LARGEST = 256 << 10
_MOST_TEXT = 1_000
_BACK = "back"
_BEGINS = (EventKind.SESSION_START, EventKind.MESSAGE, EventKind.BEFORE_TOOL)


def of_failure(event: AgentEvent, error: BaseException) -> Reply:
    """No checkpoint was made for this event: what to say about it, if that was not said."""
    message = str(getattr(error, "message", None) or str(error) or type(error).__name__)
    hint = getattr(error, "hint", None)
    message = message[:_MOST_TEXT].rstrip(".")
    way = f" {_sentence(str(hint)[:_MOST_TEXT])}" if hint else ""
    notice = Notice(
        f"off:{getattr(error, 'code', type(error).__name__)}",
        f"Holdfast is not protecting this session: {message}. No checkpoint was made, so that what "
        f"you change now could not be taken back. Tell the user.{way}",
        f"Holdfast: not protected. {_sentence(message)}{way}",
    )
    return fresh(event, Reply(notices=(notice,)), saved=False)


def fresh(event: AgentEvent, reply: Reply, *, saved: bool) -> Reply:
    """The answer with those of its notices that are to be told now, and those that waited for an
    answer that somebody reads. `saved`: the event led to a checkpoint, if it is one that does."""
    places = _places() if reply.notices else [p for p in _places() if os.path.exists(p)]
    if not places:
        return reply  # most events: nothing to say, and nothing that was ever said
    state = _read(places)
    mine = state.setdefault(_key(event), {"off": False, "told": [], "waiting": [], "at": 0})
    before = json.dumps(mine)
    notices = [one for one in reply.notices if one.code not in mine["told"]]
    if any(one.code.startswith("off:") for one in reply.notices):
        mine["off"] = True
        mine["waiting"] = [one for one in mine["waiting"] if one[0] != _BACK]
    elif saved and mine["off"] and event.kind in _BEGINS:
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
        mine["at"] = time.time_ns()
        written = _write(places, state)
    if (
        event.carries
        and not written
        and event.kind not in (EventKind.SESSION_START, EventKind.MESSAGE)
    ):
        notices = []
    return reply._replace(notices=tuple(notices) if event.carries else ())


def settle(event: AgentEvent, notices: Sequence[Notice]) -> None:
    """They were handed over."""
    places = _places()
    state = _read(places)
    mine = state.get(_key(event))
    if mine is None:
        return
    told = {one.code for one in notices}
    mine["told"] = sorted({*mine["told"], *told} - {_BACK})
    mine["waiting"] = [one for one in mine["waiting"] if one[0] not in told]
    if not (mine["off"] or mine["told"] or mine["waiting"]):
        del state[_key(event)]
    _write(places, state)


def _back() -> Notice:
    return Notice(
        _BACK,
        "Holdfast protects this session again: checkpoints are made from here on.",
        "Holdfast: protected again. Checkpoints are made from here on.",
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def _key(event: AgentEvent) -> str:
    said = f"{event.agent}\0{event.session or event.project or event.cwd}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:32]


def _places() -> list[str]:
    """Where it may be remembered, the best first."""
    from holdfast.bootstrap.locations import holdfast_home
    from holdfast.interfaces.daemon.address import candidate_directories, socket_name

    places = []
    with contextlib.suppress(Exception):
        places.append(str(holdfast_home(os.environ) / NAME))
    name = f"{socket_name(os.environ).removesuffix('.sock')}.{NAME}"
    places += [os.path.join(directory, name) for directory in candidate_directories(os.environ)]
    return places


def _read(places: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What was written last: an older one may lie where nothing can be removed any more."""
    found: list[tuple[int, dict[str, dict[str, Any]]]] = []
    for place in places:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(fd, "rb") as file:
                status = os.fstat(fd)
                if status.st_uid == os.geteuid():
                    state = json.loads(file.read(_LARGEST))
                    known = {str(key): _checked(one) for key, one in state.items()}
                    found.append((status.st_mtime_ns, known))
    return max(found, key=lambda one: one[0])[1] if found else {}


def _checked(one: dict[str, Any]) -> dict[str, Any]:
    waiting = [[str(part) for part in notice[:3]] for notice in one["waiting"]]
    if any(len(notice) != 3 for notice in waiting):
        raise ValueError("a notice that is cut off")
    told = [str(code) for code in one["told"]]
    return {"off": one["off"] is True, "told": told, "waiting": waiting, "at": int(one["at"])}


def _write(places: Sequence[str], state: dict[str, dict[str, Any]]) -> bool:
    """Whole or not at all, and in one place only; whether it is remembered."""
    from holdfast.interfaces.daemon.address import require_private

    newest = sorted(state.items(), key=lambda item: item[1].get("at", 0))[-_MOST_SESSIONS:]
    data = json.dumps(dict(newest)).encode()
    done = False
    for place in places:
        beside = f"{place}.{os.getpid()}"
        try:
            if done or not state:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(place)
                continue
            if os.path.basename(place) != NAME:
                require_private(os.path.dirname(place))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(beside, flags, 0o600), "wb") as file:
                file.write(data)
            os.replace(beside, place)
            done = True
        except Exception:  # a place that cannot be written; the next one may
            with contextlib.suppress(OSError):
                os.unlink(beside)
    return done
