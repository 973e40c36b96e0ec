"""`holdfast doctor`: find what is wrong around the store, and the cure."""

from __future__ import annotations

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import DIM, GREEN, RED, YELLOW, visible
from holdfast.interfaces.cli.wording import count

_SOMETHING_FOUND = 3


def configure(parser: Parser) -> None:
    parser.usage = "holdfast doctor"
    parser.description = """\
Look at everything around the store that can go wrong: whether it opens, permissions and owner, free
disk, file systems, inotify limits, SQLite, who holds the lock, what interrupted operations left
behind, whether workspace and store belong together, git, and the clock. Each finding comes with
its cure. Nothing is changed. The exit status is 0 when all is well, and 3 when something was found.
What is inside the store is verified by holdfast check."""
    parser.epilog = """\
example:
  $ holdfast doctor"""


def run(invocation: Invocation) -> int:
    from holdfast.store.surroundings import Gravity
    from holdfast.upkeep import examine_surroundings

    invocation.at_most(0)
    symptoms = examine_surroundings(invocation.directory)
    found = [symptom for symptom in symptoms if symptom.gravity is not Gravity.FINE]
    if invocation.json:
        looked_at = [
            {"subject": s.subject, "status": s.gravity.value, "finding": s.finding, "cure": s.cure}
            for s in symptoms
        ]
        invocation.emit({"ok": not found, "findings": looked_at})
        return _SOMETHING_FOUND if found else 0
    terminal = invocation.terminal
    colours = {Gravity.FINE: GREEN, Gravity.WARNING: YELLOW, Gravity.PROBLEM: RED}
    marks = {Gravity.FINE: "✓", Gravity.WARNING: "!", Gravity.PROBLEM: "✗"}
    for symptom in symptoms:
        mark = terminal.paint(marks[symptom.gravity], colours[symptom.gravity])
        terminal.line(f"{mark} {symptom.subject}: {visible(symptom.finding)}")
        if symptom.cure is not None and symptom.gravity is not Gravity.FINE:
            terminal.line(terminal.paint(f"    {visible(symptom.cure)}", DIM))
    if found:
        terminal.line(f"{count(len(found), 'finding')}, each with its cure")
        return _SOMETHING_FOUND
    terminal.line("All is well around the store")
    return 0
