"""`restore --patch`: each change is shown, and a person says whether it is taken back.

The answers are those of git: y and n for this change, a and d for all that is left of the file, q
to leave the rest as it is. Everything that was agreed to is one restore, which `undo` takes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holdfast.domain.changes import Change, ChangeType
from holdfast.domain.errors import Refused, UsageError
from holdfast.domain.hunk_choice import HunkChoice, NumberedHunk, name_in
from holdfast.domain.paths import is_within
from holdfast.engine.restore.chosen_hunks import hunks_of_file
from holdfast.interfaces.cli.confirmation import can_ask
from holdfast.interfaces.cli.diff_views.unified import hunk_lines, show_lines
from holdfast.interfaces.cli.terminal import BOLD, CYAN, Terminal
from holdfast.interfaces.cli.typed_line import typed_line

if TYPE_CHECKING:
    from holdfast.bootstrap import OpenWorkspace
    from holdfast.engine.restore.records import RestoreRequest
    from holdfast.engine.scan.scanner import Scan
    from holdfast.interfaces.cli.invocation import Invocation

_ANSWERS = {
    "y": "restore this change",
    "n": "leave it as it is",
    "a": "restore this change and all later ones of the file",
    "d": "leave this change and all later ones of the file",
    "q": "leave this and everything that is left",
    "?": "show this help",
}
_WHOLE = {
    ChangeType.ADDED: "Delete it: it was not there then",
    ChangeType.REMOVED: "Bring it back: it was deleted",
    ChangeType.MODIFIED: "Restore the whole of it",
}


@dataclass(slots=True)
class _Chosen:
    """What was agreed to so far."""

    paths: list[bytes] = field(default_factory=list)
    hunks: dict[bytes, list[NumberedHunk]] = field(default_factory=dict)
    is_over: bool = False


def choose_patches(
    invocation: Invocation, opened: OpenWorkspace, request: RestoreRequest
) -> tuple[RestoreRequest, list[NumberedHunk]] | None:
    """The request for what was agreed to; None when that is nothing."""
    if invocation.json or not can_ask(invocation):
        raise UsageError(
            "--patch asks about each change and needs a terminal",
            hint="name the hunks instead: holdfast restore REF PATH --hunk 1",
        )
    with invocation.busy("comparing", opened):
        scan = opened.engine.look((request.target.tree,))
        changes = opened.engine.changes_in(scan, request.target, renames=False)
    wanted = [change for change in changes if _selected(change, request.paths)]
    chosen = _Chosen()
    for change in wanted:
        if chosen.is_over:
            break
        _ask_about(invocation, opened, request, scan, change, chosen)
    if not chosen.paths:
        return None
    hunks = [hunk for found in chosen.hunks.values() for hunk in found]
    return _request(request, chosen), hunks


def _request(request: RestoreRequest, chosen: _Chosen) -> RestoreRequest:
    paths = tuple(sorted(chosen.paths))
    if not chosen.hunks:
        return replace(request, paths=paths)
    alone = len(paths) == 1
    names = frozenset(
        hunk.name if alone else name_in(path, hunk.name)
        for path, found in chosen.hunks.items()
        for hunk in found
    )
    return replace(request, paths=paths, hunks=HunkChoice(names))


def _selected(change: Change, paths: Sequence[bytes]) -> bool:
    inside = not paths or any(is_within(change.path, path) for path in paths)
    return inside and not change.is_directory


def _ask_about(
    invocation: Invocation,
    opened: OpenWorkspace,
    request: RestoreRequest,
    scan: Scan,
    change: Change,
    chosen: _Chosen,
) -> None:
    terminal, path = invocation.terminal.aside(), change.path
    terminal.line(terminal.paint(f"{change.type.value} {terminal.path(path)}", BOLD))
    try:
        hunks = list(hunks_of_file(opened.engine.vault, scan, request.target, path))
    except (Refused, UsageError):  # there are no lines to choose from
        hunks = []
    if not hunks:
        answer = _answer(invocation, terminal, _WHOLE.get(change.type, "Restore it"))
        chosen.paths += [path] if answer in "ya" else []
        chosen.is_over = answer == "q"
        return
    found = list(_chosen_hunks(invocation, terminal, hunks, chosen))
    if found:
        chosen.paths.append(path)
    # All of them is the file itself, with its mode and its time.
    if found and (len(found) < len(hunks) or _mode_differs(change)):
        chosen.hunks[path] = found


def _mode_differs(change: Change) -> bool:
    return getattr(change.old, "mode", None) != getattr(change.new, "mode", None)


def _chosen_hunks(
    invocation: Invocation, terminal: Terminal, hunks: Sequence[NumberedHunk], chosen: _Chosen
) -> Iterator[NumberedHunk]:
    for position, hunk in enumerate(hunks):
        show_lines(terminal, hunk_lines(hunk.hunk, f"hunk {hunk.number} of {len(hunks)}: "))
        answer = _answer(invocation, terminal, "Restore this hunk")
        if answer in "ya":
            yield hunk
        if answer == "a":
            yield from hunks[position + 1 :]
        if answer in "adq":
            chosen.is_over = answer == "q"
            return


def _answer(invocation: Invocation, terminal: Terminal, question: str) -> str:
    """One of the letters; the end of the input leaves everything as it is."""
    while True:
        asked = f"{question} [{','.join(_ANSWERS)}]? "
        terminal.err.write(terminal.paint(asked, BOLD, CYAN))
        terminal.flush()
        with invocation.waiting():
            typed = typed_line()
        if not typed.endswith("\n"):
            terminal.err.write("\n")
        if not typed:
            return "q"
        letter = typed.strip().lower()[:1]
        if letter in _ANSWERS and letter not in ("", "?"):
            return letter
        for name, meaning in _ANSWERS.items():
            terminal.line(f"{name} - {meaning}")
