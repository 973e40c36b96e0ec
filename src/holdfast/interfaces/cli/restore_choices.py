"""Which parts a restore includes: hunks, changes, and files outside the workspace.

`--hunk` names hunks. Each file outside the workspace is confirmed separately. `--patch` shows each
change and asks whether to restore it. The answers are those of git: y and n for this change, s to
split it, a and d for the rest of the file, q to skip everything else. All chosen changes are one
restore, which one `undo` reverts.

The parts of a hunk are the hunks of the same difference without context. A restore has one number
of context lines, so after a split all chosen hunks are named by their parts.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.api.diffs import Difference
from holdfast.domain.component_states import SOME
from holdfast.domain.diff.hunk_choice import (
    DEFAULT_CONTEXT,
    MODE,
    HunkChoice,
    NumberedHunk,
    hunk_key,
    name_in,
    parts_of,
    splits,
)
from holdfast.domain.errors import NeedsConfirmation, Refused, UsageError
from holdfast.domain.paths import is_within
from holdfast.domain.restore.plan import ComponentStep
from holdfast.domain.trees.changes import Change, ChangeType
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.interfaces.cli.arguments import context_lines
from holdfast.interfaces.cli.diff_view import (
    display_lines,
    heading_line,
    hunk_lines,
    show_lines,
)
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.restore_dialog import EXTERNAL
from holdfast.interfaces.cli.standard_input import agrees, ask_line, can_ask
from holdfast.interfaces.cli.terminal import BOLD, CYAN, DIM, Terminal, visible
from holdfast.interfaces.cli.wording import count
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.api.restores import PresentState, RestoreRequest
    from holdfast.api.workspace import Workspace

_ANSWERS = {
    "y": "restore this change",
    "n": "leave it as it is",
    "s": "split this hunk into smaller ones",
    "a": "restore this change and all later ones in the file",
    "d": "leave this change and all later ones in the file",
    "q": "leave this change and all that follow",
    "?": "show this help",
}
_WHOLE = {
    ChangeType.ADDED: "Delete it (it did not exist then)",
    ChangeType.REMOVED: "Restore it (it was deleted)",
    ChangeType.MODIFIED: "Restore the whole file",
}
_MOST_LINES = 40
_MOST_COUNTED = 10_000
_HINT = "preview it with --dry-run; accept all with --yes"


def choose_hunks(
    invocation: Invocation, opened: Workspace, request: RestoreRequest
) -> tuple[RestoreRequest, list[NumberedHunk]]:
    """The request limited to the requested hunks, and these hunks."""
    wanted = [hunk_key(text) for given in invocation.options.hunks for text in given.split(",")]
    if len(request.paths) != 1:
        raise UsageError(
            "--hunk needs exactly one file",
            hint="usage: holdfast restore REF PATH --hunk 1",
        )
    context = _context(invocation)
    with invocation.busy("comparing", opened):
        present = opened.restores.look(request.target)
        request = present.choose_hunks(request, wanted, context=context)
        assert request.hunks is not None
        names = request.hunks.names
        [path] = request.paths
        hunks = present.hunks(request.target, path, context=context)
        return request, [hunk for hunk in hunks if hunk.name in names]


def _context(invocation: Invocation) -> int:
    text = invocation.options.context
    return DEFAULT_CONTEXT if text is None else context_lines(text)


def show_hunks(terminal: Terminal, hunks: Sequence[NumberedHunk]) -> None:
    """The restored content: lines with a plus are removed, lines with a minus come back."""
    for hunk in hunks:
        show_lines(terminal, hunk_lines(hunk.hunk, f"hunk {hunk.number}: "))


def choose_patches(
    invocation: Invocation, opened: Workspace, request: RestoreRequest
) -> tuple[RestoreRequest, list[NumberedHunk]] | None:
    """The request limited to the chosen changes; None if there are none."""
    if not can_ask(invocation):
        raise UsageError(
            "--patch needs a terminal, because it asks about each change",
            hint="use --hunk instead: holdfast restore REF PATH --hunk 1",
        )
    context = _context(invocation)
    with invocation.busy("comparing", opened):
        present = opened.restores.look(request.target)
        changes = present.changes(request.target)
    dialog = _PatchDialog(invocation, opened, request, present, context)
    for change in _changes_to_ask(changes, request.paths):
        if dialog.is_over:
            break
        dialog.ask_about(change)
    return dialog.result()


def _changes_to_ask(changes: Iterable[Change], paths: Sequence[bytes]) -> Iterator[Change]:
    """The changes to ask about, in order. A file that became a directory, or the reverse, is
    restored as a whole, so changes inside the directory are not asked about."""
    whole: bytes | None = None
    for change in changes:
        inside_whole = whole is not None and is_within(change.path, whole)
        if inside_whole or not _selected(change, paths):
            continue
        if _directory_question(change) is not None:
            whole = change.path
        yield change


def _directory_question(change: Change) -> str | None:
    """The question if a directory and a file replaced each other; None otherwise."""
    if change.is_directory:
        return None
    if isinstance(change.new, DirectoryEntry):
        return "Restore it (deletes the directory and everything in it)"
    if isinstance(change.old, DirectoryEntry):
        return "Restore the directory with everything in it"
    return None


def _selected(change: Change, paths: Sequence[bytes]) -> bool:
    inside = not paths or any(is_within(change.path, path) for path in paths)
    return inside and not change.is_directory


class _PatchDialog:
    """Asks about one change after the other, and keeps the choices so far, in hunks with this many
    context lines."""

    def __init__(
        self,
        invocation: Invocation,
        opened: Workspace,
        request: RestoreRequest,
        present: PresentState,
        context: int,
    ) -> None:
        self._invocation = invocation
        self._terminal = invocation.terminal.stderr_copy()
        self._diffs = opened.diffs
        self._request = request
        self._present = present
        self._context = context
        self._is_split = False
        self._paths: list[bytes] = []
        self._hunks: dict[bytes, list[NumberedHunk]] = {}
        self._modes: set[bytes] = set()
        self.is_over = False

    def result(self) -> tuple[RestoreRequest, list[NumberedHunk]] | None:
        """The request limited to the choices, and the chosen hunks; None without a choice."""
        paths, hunks, context = tuple(sorted(self._paths)), self._hunks, self._context
        if not paths:
            return None
        if self._is_split:
            hunks, context = {path: self._parts(path, found) for path, found in hunks.items()}, 0
        parts = {path: [hunk.name for hunk in found] for path, found in hunks.items()}
        for path in self._modes:
            parts.setdefault(path, []).append(MODE)
        choice = None
        if parts:
            alone = len(paths) == 1
            names = (
                name if alone else name_in(path, name)
                for path, found in parts.items()
                for name in found
            )
            choice = HunkChoice(frozenset(names), context)
        chosen = [hunk for found in hunks.values() for hunk in found]
        return replace(self._request, paths=paths, hunks=choice), chosen

    def ask_about(self, change: Change) -> None:
        path = change.path
        shown = self._diffs.of(self._request.target, None, [change])
        try:
            hunks = self._hunks_of(path, self._context)
        except (Refused, UsageError):  # there are no lines to choose from
            hunks = []
        if not hunks:
            self._show_start(shown)
            answer = self._ask(_directory_question(change) or _WHOLE.get(change.type, "Restore it"))
            self._paths += [path] if answer in "ya" else []
            return
        show_lines(self._terminal, [heading_line(self._terminal, shown, change)])
        modes = change.modes
        answer = "n" if modes is None else self._ask(f"Restore the mode {modes[0]:04o}")
        found = hunks if answer == "a" else []
        if answer in "yn":
            found, hunks = self._choose_in_file(path, hunks)
        with_mode = answer in "ya"
        if found or with_mode:
            self._paths.append(path)
        # If all hunks are chosen, restore the whole file, with its mode and time.
        if len(found) < len(hunks) or (modes is not None and not with_mode):
            self._hunks |= {path: found} if found else {}
            self._modes |= {path} if with_mode else set()

    def _hunks_of(self, path: bytes, context: int) -> list[NumberedHunk]:
        return list(self._present.hunks(self._request.target, path, context=context))

    def _parts(self, path: bytes, hunks: Iterable[NumberedHunk]) -> list[NumberedHunk]:
        without_context = self._hunks_of(path, 0)
        return [part for hunk in hunks for part in parts_of(hunk.hunk, without_context)]

    def _show_start(self, shown: Difference) -> None:
        """The change as `diff` shows it; only the beginning of a long one."""
        lines = display_lines(self._terminal, shown)
        show_lines(self._terminal, islice(lines, _MOST_LINES))
        if rest := sum(1 for _ in islice(lines, _MOST_COUNTED)):
            at_least = "at least " if rest == _MOST_COUNTED else ""
            self._terminal.line(f"… {at_least}{count(rest, 'more line')}", DIM)

    def _choose_in_file(
        self, path: bytes, hunks: Sequence[NumberedHunk]
    ) -> tuple[list[NumberedHunk], list[NumberedHunk]]:
        """The chosen hunks, and all hunks of the file with split ones replaced by their parts."""
        found: list[NumberedHunk] = []
        all_hunks, position = list(hunks), 0
        while position < len(all_hunks):
            hunk = all_hunks[position]
            label = f"hunk {position + 1} of {len(all_hunks)}: "
            show_lines(self._terminal, hunk_lines(hunk.hunk, label))
            answer = self._ask("Restore this hunk", can_split=splits(hunk.hunk))
            if answer == "s":
                self._is_split = True
                all_hunks[position : position + 1] = self._parts(path, [hunk])
                continue
            position += 1
            if answer in "ya":
                found.append(hunk)
            if answer == "a":
                found += all_hunks[position:]
            if answer in "adq":
                break
        return found, all_hunks

    def _ask(self, question: str, *, can_split: bool = False) -> str:
        """One of the letters; the end of the input means q, after which nothing else is asked."""
        answers = {name: words for name, words in _ANSWERS.items() if can_split or name != "s"}
        while True:
            asked = f"{question} [{','.join(answers)}]? "
            typed = ask_line(self._invocation, self._terminal.paint(asked, BOLD, CYAN))
            letter = typed.strip().lower()[:1] if typed else "q"
            if letter in answers and letter not in ("", "?"):
                self.is_over |= letter == "q"
                return letter
            for name, meaning in answers.items():
                self._terminal.line(f"{name} - {meaning}")


def choose_external(
    invocation: Invocation, opened: Workspace, request: RestoreRequest
) -> tuple[RestoreRequest, bool]:
    """The request with the chosen outside files, and whether some were refused. Refused files are
    skipped with --best-effort; otherwise the whole restore is refused."""
    with invocation.busy("planning", opened):
        plan = opened.restores.plan(request)
    step = next((step for step in plan.components if step.name == EXTERNAL), None)
    if step is None or invocation.options.dry_run or (step.blocked and not request.best_effort):
        return request, False
    for line in step.blocked:
        invocation.terminal.warn(f"not restored: {line}")
    chosen = _confirmed(invocation, step, {key for key, _ in request.edited_outside})
    whole = len(chosen) == len(step.choices) and not step.blocked
    others = tuple(pair for pair in request.components if pair[0] != EXTERNAL)
    if whole:
        return request, False
    if chosen:
        others = tuple(sorted((*others, (EXTERNAL, f"{SOME}:{','.join(chosen)}"))))
    return replace(request, components=others), bool(step.blocked)


def _confirmed(invocation: Invocation, step: ComponentStep, edited: Container[str]) -> list[str]:
    """The keys of the chosen files. For those in `edited`, the question mentions the edit."""
    if invocation.options.yes:
        return [key for key, _ in step.choices]
    if step.choices and not can_ask(invocation):
        lines = "; ".join(line for _, line in step.choices[:5])
        raise NeedsConfirmation(
            f"changing files outside the workspace needs confirmation: {lines}",
            hint=_HINT,
        )
    return [
        key
        for key, line in step.choices
        if agrees(
            invocation, f"{visible(line)}{', replacing a later edit' if key in edited else ''}?"
        )
    ]
