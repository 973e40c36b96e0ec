"""The note about an interrupted restore that this command finished or rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.ids import short
from holdfast.interfaces.cli.terminal import visible, visible_bytes
from holdfast.interfaces.cli.wording import count

if TYPE_CHECKING:
    from holdfast.domain.outcomes import RecoveredRestore
    from holdfast.interfaces.cli.terminal import Terminal

_MOST_PATHS = 5


def note_recovery(terminal: Terminal, done: RecoveredRestore) -> None:
    if done.restored_to is None:
        terminal.note("note: cleaned up an interrupted restore; it had not changed any files")
        return
    how = "Rolled back" if done.rolled_back else "Finished"
    target = visible(done.name or short(done.restored_to))
    changed = f"{count(done.files_changed, 'file')} changed"
    terminal.note(f"note: {how} the interrupted {done.kind} to {target}: {changed}")
    if not done.overwritten or done.safety is None:
        return
    number = len(done.overwritten)
    verb, them = ("is", "it") if number == 1 else ("are", "them")
    terminal.note(
        f"  {count(number, 'file')} that had changed since then {verb} saved in checkpoint "
        f"{short(done.safety)}; holdfast undo brings {them} back:"
    )
    for path in done.overwritten[:_MOST_PATHS]:
        terminal.note(f"    {visible_bytes(path)}")
    if number > _MOST_PATHS:
        terminal.note(f"    … and {number - _MOST_PATHS:,} more")
