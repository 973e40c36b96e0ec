"""`holdfast checkpoint [REASON]`: save the workspace, with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import PARTIAL, Invocation
from holdfast.interfaces.cli.terminal import DIM, GREEN, YELLOW, visible
from holdfast.interfaces.cli.wording import count, duration

if TYPE_CHECKING:
    from holdfast.api.contents import SavedDatabase
    from holdfast.api.sessions import ActiveAgent
    from holdfast.api.views.git import GitAtCheckpointView
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.outcomes import SaveOutcome

_MOST_AGENTS = 5


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast checkpoint [REASON] [--name NAME] [--confidence C] [--goal ID]\n"
        "                           [--task ID] [--tag TAG ...] [--reuse]"
    )
    parser.description = """\
Save every file of the workspace that is not ignored, byte for byte, with modes, links and empty
directories. When the command returns, the checkpoint is on disk and survives a crash.

Without a REASON, one is generated from what changed since the last checkpoint.

In a git repository, the branch, the commit, the index and a merge or rebase in progress are saved
too. Unreadable files are listed; the exit status is then 3, partly done."""
    parser.epilog = """\
examples:
  $ holdfast checkpoint "before the refactor" --name before --confidence 0.9
  $ git log -1 --format=%B | holdfast checkpoint -"""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="REASON",
        help="why this state is worth keeping (default: what changed); - reads standard input",
    )
    parser.add_argument("--name", help="a name to restore it by, unique in the session")
    parser.add_argument(
        "--confidence",
        metavar="C",
        help="how sure you are, from 0.0 to 1.0 or as 90%% (default 0.8)",
    )
    parser.add_argument("--goal", metavar="ID", help="the goal that this checkpoint serves")
    parser.add_argument("--task", metavar="ID", help="the task that this checkpoint belongs to")
    parser.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="a tag; can be repeated"
    )
    parser.add_argument(
        "--reuse",
        action="store_true",
        help="if nothing changed since a checkpoint in the last minute, return that one",
    )


def run(invocation: Invocation) -> int:
    from functools import partial

    from holdfast.domain.intent import DEFAULT_CONFIDENCE, make_intent

    options = invocation.options
    confidence = DEFAULT_CONFIDENCE if options.confidence is None else _share(options.confidence)
    words = invocation.all_words
    intent_for = partial(
        make_intent,
        goal_id=options.goal,
        task_id=options.task,
        confidence=confidence,
        name=options.name,
        tags=options.tag,
    )
    # The other arguments are checked before a store is created.
    intent = intent_for(_reason(words) if words else "generated")
    with invocation.open(create=True) as opened:
        session = invocation.session(opened, create=True)
        if not words:
            with invocation.busy("scanning", opened):
                intent = intent_for(opened.restores.generated_reason())
        with invocation.busy("saving", opened):
            outcome = opened.save(session, intent, reuse=options.reuse, record_environment=True)
        made = outcome.checkpoint
        databases = opened.contents.databases_in(outcome)
        agents = opened.sessions.active_agents()
        others: dict[str, str] = {}
        if not invocation.json:
            others = _component_lines(opened, made, databases, agents)
        back = _reference(opened, made)
        git = _git(opened, outcome) if invocation.json else None
        environment = opened.contents.environment(made) if invocation.json else None
        if invocation.terminal.subdirectory:
            outcome = _with_directory_warning(invocation, opened, outcome)
    if invocation.json:
        from holdfast.api.views.checkpoints import saved_view

        took_ms = invocation.elapsed_ms
        invocation.emit(saved_view(outcome, took_ms, git, databases, agents, back, environment))
    else:
        _show(invocation, outcome, others, back)
    return PARTIAL if outcome.failures or outcome.degraded else 0


def _with_directory_warning(
    invocation: Invocation, opened: Workspace, outcome: SaveOutcome
) -> SaveOutcome:
    from holdfast.interfaces.cli.path_arguments import excluded_directory_warning
    from holdfast.values.classes import replace

    text = excluded_directory_warning(invocation.terminal, opened)
    return outcome if text is None else replace(outcome, warnings=(*outcome.warnings, text))


def _component_lines(
    opened: Workspace,
    made: Checkpoint,
    databases: Sequence[SavedDatabase],
    agents: Sequence[ActiveAgent],
) -> dict[str, str]:
    """One line per component other than files, and the active agents."""
    parts = {} if made.components is None else opened.contents.component_summary(made)
    parts.pop("postgres", None)
    environment = parts.pop("environment", None)
    if databases:
        parts["databases"] = "; ".join(map(str, databases))
    if agents:
        memory = f"; memory: {parts['agents']}" if "agents" in parts else ""
        parts["agents"] = f"{len(agents)} active: {_first(agents)}{memory}"
    if environment is not None:
        parts["environment"] = environment
    return parts


def _first(agents: Sequence[ActiveAgent]) -> str:
    named = ", ".join(map(str, agents[-_MOST_AGENTS:]))
    more = len(agents) - _MOST_AGENTS
    return f"{named} and {more:,} more" if more > 0 else named


def _reason(words: list[str]) -> str:
    if len(words) > 1:
        from shlex import quote

        raise UsageError(
            f"expected one reason, but got {len(words)} words",
            hint=f"put it in quotes: holdfast checkpoint {quote(' '.join(words)[:60])}",
        )
    if words != ["-"]:
        return words[0]
    from holdfast.interfaces.cli.standard_input import text_on_standard_input

    return text_on_standard_input("reason")


def _share(text: str) -> float:
    number, is_percent = text.removesuffix("%").strip(), text.endswith("%")
    try:
        return float(number) / 100 if is_percent else float(number)
    except ValueError:
        raise UsageError(
            f"the confidence {text!r} is not a number", hint="0.8 and 80% mean 80% sure"
        ) from None


def _git(opened: Workspace, outcome: SaveOutcome) -> GitAtCheckpointView | None:
    made = outcome.checkpoint
    if made.components is None:
        return None
    from holdfast.api.views.git import git_at_checkpoint_view

    return git_at_checkpoint_view(opened.contents.git_state(made), made)


def _reference(opened: Workspace, made: Checkpoint) -> str:
    """An unambiguous reference to this checkpoint: its name, unless another session has it too."""
    from holdfast.domain.errors import HoldfastError
    from holdfast.domain.ids import short

    if made.name is None:
        return short(made.id)
    try:
        found = opened.resolve(None, made.name)
    except HoldfastError:
        return short(made.id)
    return made.name if found.id == made.id else short(made.id)


def _show(
    invocation: Invocation, outcome: SaveOutcome, others: Mapping[str, str], back: str
) -> None:
    from holdfast.interfaces.cli.checkpoint_view import (
        change_words,
        files_words,
        identifier,
        left_out_words,
        list_first_skipped,
    )

    terminal, made = invocation.terminal, outcome.checkpoint
    mark = terminal.paint("✓", YELLOW if outcome.failures or outcome.degraded else GREEN)
    if outcome.deduplicated:
        text = f"Nothing changed since {identifier(terminal, made)}: {files_words(made)}"
    else:
        changes = change_words(made.changed)
        text = f"Saved {identifier(terminal, made)}: {files_words(made)}, {changes}"
    terminal.sentence(f"{mark} {text}, {duration(invocation.elapsed_ms)}")
    no_room = [skip for skip in outcome.failures if skip.reason is SkipReason.OVER_BUDGET]
    unread = [skip for skip in outcome.failures if skip.reason is not SkipReason.OVER_BUDGET]
    for skipped, words in ((unread, "could not be read properly"), (no_room, "did not fit")):
        if skipped:
            terminal.sentence(f"{count(len(skipped), 'path')} {words}:")
            list_first_skipped(terminal, skipped)
    if outcome.degraded:
        terminal.sentence("All files are saved, but some components are not:")
        for text in outcome.degraded:
            terminal.sentence(f"  {terminal.paint('degraded:', YELLOW)} {visible(text)}")
    other = left_out_words(skip for skip in outcome.skipped if not skip.reason.is_failure)
    if other:
        terminal.sentence(f"  left out: {other} (list: holdfast status --skipped)", DIM)
    for name, line in others.items():
        terminal.sentence(f"  {name}: {visible(line)}", DIM)
    if not outcome.deduplicated:
        word = visible(back)
        if made.name is not None:
            from shlex import quote  # late: an id needs no quotes

            word = quote(word)
        terminal.sentence(f"  to go back: holdfast restore {word}", DIM)
    for warning in outcome.warnings:
        terminal.warn_or_note(warning)
