"""A restore, planned, done or recovered, as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import EXACT, SOME
from holdfast.domain.ids import short
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import PathProblem, RecoveredRestore, RestoreOutcome
from holdfast.domain.restore.plan import (
    FAILED,
    Blocked,
    ComponentOutcome,
    ComponentStep,
    Kept,
    Missing,
    RestorePlan,
    Step,
    StepType,
    count_steps,
)
from holdfast.domain.sessions import round_title
from holdfast.interfaces.cli.checkpoint_view import show_more, shown_id
from holdfast.interfaces.cli.terminal import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    RED,
    YELLOW,
    Terminal,
    visible,
    visible_bytes,
)
from holdfast.interfaces.cli.wording import count, duration, size

if TYPE_CHECKING:
    from holdfast.api.restores import ChangedRows, RestoreRequest

_MOST_LINES = 20
_MOST_NAMED = 5
# The past tense, and the command that reverses it.
_WORDS = {
    OperationKind.RESTORE: ("Restored to", "undo"),
    OperationKind.UNDO: ("Undone, back to", "redo"),
    OperationKind.REDO: ("Redone, forward to", "undo"),
    OperationKind.RESET: ("Reset to", "undo"),
}
_MISSING_ONLY = "gone"
_REFS = "refs"
_MODE_WORDS = {_MISSING_ONLY: "missing only"}
_NAMES = {"external": "files outside the workspace"}
_COLOURS = {
    StepType.CREATE: GREEN,
    StepType.MKDIR: GREEN,
    StepType.DELETE: RED,
    StepType.RMDIR: RED,
    StepType.RESTORE: YELLOW,
    StepType.RELINK: YELLOW,
    StepType.CHMOD: YELLOW,
}


def target_words(target: Checkpoint) -> str:
    name = f"{visible(target.name)} " if target.name else ""
    return f"{name}({short(target.id)})" if name else short(target.id)


def summary(steps: Sequence[Step]) -> str:
    """For example `6 files (3 created, 2 rewritten, 1 deleted), 2 directories`, or `3 files
    created`."""
    counts = count_steps(steps)
    named = {"created": counts.created, "rewritten": counts.restored, "deleted": counts.deleted}
    parts = [f"{number:,} {word}" for word, number in named.items() if number]
    directories = count(counts.directories, "directory", "directories")
    if not parts:
        return directories if counts.directories else "no file changed"
    total = count(counts.total, "file")
    files = f"{total} {parts[0].split()[1]}" if len(parts) == 1 else f"{total} ({', '.join(parts)})"
    return f"{files}, {directories}" if counts.directories else files


def action_words(request: RestoreRequest, what: str | None = None) -> str:
    """The planned action, as the beginning of a sentence; `what` is the subject of an undo or
    redo."""
    if request.kind is OperationKind.UNDO:
        return f"undoing {visible(what or 'the last restore')}"
    if request.kind is OperationKind.REDO:
        return f"redoing {visible(what or 'the restore that was undone last')}"
    if request.kind is OperationKind.RESET:
        return f"resetting to {target_words(request.target)}"
    return f"restoring {target_words(request.target)}"


def show_plan(
    terminal: Terminal,
    request: RestoreRequest,
    plan: RestorePlan,
    abandoned: str | None = None,
    what: str | None = None,
    rows: Sequence[ChangedRows] = (),
) -> None:
    """`abandoned` is the round that a reset would end, `what` the step that an undo reverts, and
    `rows` the row counts of databases among the files."""
    words = action_words(request, what)
    begin = words[0].upper() + words[1:]
    for note in plan.annotations:
        terminal.sentence(f"note on {target_words(request.target)}: {visible(note)}")
    if plan.steps:
        terminal.sentence(f"{begin} would change this:")
        show_steps(terminal, plan.steps, whole=not terminal.for_people)
        written = f", {size(plan.bytes_to_write)} to write" if plan.bytes_to_write else ""
        terminal.sentence(terminal.paint(summary(plan.steps), BOLD) + written)
    elif any(step.actions for step in plan.components):
        terminal.sentence(f"{begin} would change no files, only this:")
    else:
        terminal.sentence(f"{begin} would change nothing in the workspace.")
    for database in rows:
        for line in database.differences:
            terminal.sentence(f"{terminal.path(database.path)}: {line}")
    show_components_plan(terminal, plan.components)
    show_kept(terminal, plan.kept)
    show_missing(terminal, plan.missing)
    show_problems(terminal, "in the way", plan.blocked)
    if abandoned is not None:
        terminal.sentence(
            f"{round_title(abandoned)} would be abandoned. To recover it: holdfast undo right "
            "afterwards, or holdfast log --rounds"
        )


def show_components_plan(terminal: Terminal, steps: Sequence[ComponentStep]) -> None:
    """Changes other than files, one line each."""
    for step in steps:
        if step.mode == _MISSING_ONLY and not step.actions and not step.blocked:
            continue  # a default, so there is nothing to report
        name = terminal.paint(f"{component_words(step.name)}{_mode_suffix(step.mode)}:", BOLD)
        actions = step.actions or (() if step.blocked else ("nothing to change",))
        shown = actions[:_MOST_LINES] if terminal.for_people else actions
        for line in shown:
            terminal.sentence(f"{name} {visible(line)}")
        if len(shown) < len(actions):
            terminal.sentence(f"{name} … and {len(actions) - len(shown):,} more")
        for line in step.blocked:
            terminal.sentence(f"{name} {terminal.paint('in the way:', YELLOW)} {visible(line)}")


def show_components_outcome(terminal: Terminal, outcomes: Sequence[ComponentOutcome]) -> None:
    for outcome in outcomes:
        if outcome.status == FAILED:
            mark, said = terminal.cross, f"not restored: {visible(outcome.detail)}"
        elif outcome.idle:
            if outcome.mode != EXACT:  # it was not requested by name
                continue
            said = f"already up to date{_exceptions(outcome)}"
            mark = terminal.tick
        else:
            said = f"restored ({_extent(outcome.mode)}){_exceptions(outcome)}"
            mark = terminal.tick
        terminal.sentence(f"{mark} {component_words(outcome.name)}: {said}")


def _exceptions(outcome: ComponentOutcome) -> str:
    """Parts that an exact restore leaves alone unless they are named."""
    if not outcome.left or outcome.mode != EXACT:
        return ""
    more = len(outcome.left) - _MOST_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    return f", except: {visible(', '.join(outcome.left[:_MOST_NAMED]))}{rest}"


def _extent(mode: str) -> str:
    way, _, names = mode.partition(":")
    if way == SOME:
        return count(_part_count(mode), "path")
    return f"{_mode_words(mode)}: {visible(names)}" if names and way == _REFS else _mode_words(mode)


def _part_count(mode: str) -> int:
    """How many parts a mode names, as in `some:KEY,KEY`."""
    return mode.count(",") + 1


def component_words(name: str) -> str:
    """A component's name for people."""
    return _NAMES.get(name, name)


def _mode_suffix(mode: str) -> str:
    """Empty if only chosen paths are restored, because each line names one."""
    way = _mode_words(mode)
    return "" if way == SOME else f" ({way})"


def _mode_words(mode: str) -> str:
    """A mode in words, without the keys of chosen paths."""
    way = mode.partition(":")[0]
    return _MODE_WORDS.get(way, way)


def show_steps(terminal: Terminal, steps: Sequence[Step], *, whole: bool) -> None:
    """One line each, at most one screen unless `whole`."""
    limit = len(steps) if whole else _MOST_LINES
    for step in steps[:limit]:
        word = terminal.paint(f"{step.type.value:<8}", _COLOURS[step.type])
        terminal.sentence(f"  {word} {terminal.path(step.path)}")
    show_more(terminal, len(steps) - limit)


def _changed(outcome: RestoreOutcome) -> str:
    """The changed workspace files, and the chosen paths outside."""
    outside = sum(
        _part_count(one.mode)
        for one in outcome.components
        if one.status != FAILED and not one.idle and _mode_words(one.mode) == SOME
    )
    if not outside:
        return summary(outcome.steps)
    restored = f"{count(outside, 'path')} outside the workspace restored"
    return f"{summary(outcome.steps)}, {restored}" if outcome.steps else restored


def show_outcome(
    terminal: Terminal,
    request: RestoreRequest,
    outcome: RestoreOutcome,
    elapsed_ms: float,
    *,
    with_steps: bool,
    what: str | None = None,
    steps_back: int = 1,
) -> None:
    """Print one command that reverses it all, even if that takes several undo steps."""
    if with_steps:
        show_steps(terminal, outcome.steps, whole=False)
    mark = terminal.tick if outcome.verified else terminal.cross
    checked = "NOT verified"
    if outcome.verified:
        checked = f"verified {count(outcome.compared, 'file')}" if outcome.compared else "verified"
    where = terminal.paint(target_words(request.target), CYAN)
    done, back = _WORDS[request.kind]
    if what is not None:
        done, where = ("Undid" if request.kind is OperationKind.UNDO else "Redid"), visible(what)
    changed = _changed(outcome)
    if request.hunks is not None and (number := request.hunks.hunk_count):
        changed += f" in {count(number, 'hunk')}"
    terminal.sentence(f"{mark} {done} {where}: {changed}, {checked}, {duration(elapsed_ms)}")
    show_kept(terminal, outcome.kept)
    show_missing(terminal, outcome.missing)
    show_problems(terminal, "not restored", outcome.skipped)
    show_problems(terminal, "changed meanwhile", outcome.conflicts)
    saved = shown_id(terminal, outcome.safety)
    if steps_back > 1:
        back = f"restore {saved}"
    way = f"holdfast {back}{terminal.yes_flag}"
    terminal.sentence(f"  the previous state was saved as {saved}; to go back: {way}", DIM)


def show_nothing_to_do(
    terminal: Terminal, request: RestoreRequest, outcome: RestoreOutcome
) -> None:
    where = target_words(request.target)
    if outcome.skipped:
        mark = terminal.cross
        terminal.sentence(
            f"{mark} Nothing was changed: the differences from {where} cannot be restored"
        )
    else:
        what = "these paths already match" if request.paths else "the workspace already matches"
        what = "this path already matches" if len(request.paths) == 1 else what
        begin = "reset" if request.kind is OperationKind.RESET else "do"
        mark = terminal.tick
        terminal.sentence(f"{mark} Nothing to {begin}: {what} {where}")
    show_kept(terminal, outcome.kept)
    show_missing(terminal, outcome.missing)
    show_problems(terminal, "not restored", outcome.skipped)


def show_kept(terminal: Terminal, kept: Sequence[Kept]) -> None:
    """No action is needed: the restore did what it should."""
    for each in kept[:_MOST_NAMED]:
        terminal.sentence(f"  kept: {terminal.path(each.path)} ({visible(each.reason)})")
    show_more(terminal, len(kept) - _MOST_NAMED, "more kept (--json lists all)")


def missing_to_report(missing: Sequence[Missing]) -> list[Missing]:
    """Missing paths without caches."""
    return [gone for gone in missing if not gone.is_cache]


def show_missing(terminal: Terminal, missing: Sequence[Missing]) -> None:
    """Paths that the checkpoint lacks and that are gone. Caches have their own line, because tools
    recreate them."""
    noted = missing_to_report(missing)
    if noted:
        label = terminal.paint("missing, and not in the checkpoint:", YELLOW)
        terminal.sentence(f"  {label} {_names(terminal, noted)}")
    caches = [gone for gone in missing if gone.is_cache]
    if caches:
        label = "caches that are gone; Holdfast does not save them, because tools recreate them:"
        terminal.sentence(f"  {label} {_names(terminal, caches)}", DIM)


def shown_missing(missing: Sequence[Missing]) -> list[Missing]:
    """The paths that `show_missing` names; caches only if there is nothing else."""
    return list(missing_to_report(missing) or missing)[:_MOST_NAMED]


def _names(terminal: Terminal, missing: Sequence[Missing]) -> str:
    names = ", ".join(terminal.path(gone.path) for gone in missing[:_MOST_NAMED])
    more = f" and {len(missing) - _MOST_NAMED:,} more (--json lists all)"
    return names + (more if len(missing) > _MOST_NAMED else "")


def show_problems(
    terminal: Terminal, title: str, problems: Sequence[PathProblem | Kept | Blocked]
) -> None:
    label = terminal.paint(f"{title}:", YELLOW)
    for problem in problems[:_MOST_LINES]:
        terminal.sentence(f"  {label} {terminal.path(problem.path)} ({visible(problem.reason)})")
    show_more(terminal, len(problems) - _MOST_LINES)


def show_recovered(terminal: Terminal, done: RecoveredRestore) -> None:
    """A note about an interrupted restore that this command finished or rolled back."""
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
    for path in done.overwritten[:_MOST_NAMED]:
        terminal.note(f"    {visible_bytes(path)}")
    if number > _MOST_NAMED:
        terminal.note(f"    … and {number - _MOST_NAMED:,} more")
