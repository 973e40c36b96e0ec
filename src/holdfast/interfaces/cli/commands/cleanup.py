"""`holdfast cleanup`: drop what the retention rules let go, and free its space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import DIM, visible
from holdfast.interfaces.cli.wording import count, size

if TYPE_CHECKING:
    from holdfast.domain.retention import Decision

_DONE_IN_PART = 3


def configure(parser: Parser) -> None:
    parser.usage = "holdfast cleanup [--dry-run]"
    parser.description = """\
Drop the checkpoints that the retention rules let go, in all sessions, and give back the space of
what nothing needs any more. Each decision is listed with the rule behind it. The first and the
approved checkpoint of a session, HEAD, named checkpoints and what undo needs are always kept. Other
processes can go on saving meanwhile, and an interrupted cleanup is simply run again. With --dry-run
nothing is changed. The rules are the setting retention."""
    parser.epilog = """\
examples:
  $ holdfast cleanup --dry-run
  $ holdfast config set retention.tool '{age = "3 days", most = 100}'
  $ holdfast cleanup"""
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")


def run(invocation: Invocation) -> int:
    invocation.at_most(0)
    with invocation.open() as opened, invocation.busy("cleaning up") as progress:
        if invocation.options.dry_run:
            plan = opened.engine.plan_cleanup()
            return _answer(invocation, plan.decisions, unneeded_bytes=plan.unneeded_bytes)
        done = opened.engine.cleanup(progress)
    return _answer(
        invocation,
        done.decisions,
        freed_bytes=done.freed_bytes,
        debris=done.debris,
        warnings=done.warnings,
    )


def _answer(
    invocation: Invocation,
    decisions: Sequence[Decision],
    *,
    unneeded_bytes: int | None = None,
    freed_bytes: int = 0,
    debris: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> int:
    dry_run = unneeded_bytes is not None
    if invocation.json:
        invocation.emit(
            {
                "dry_run": dry_run,
                "decisions": [_as_json(decision) for decision in decisions],
                "dropped": sum(not decision.keep for decision in decisions),
                "kept": sum(decision.keep for decision in decisions),
                "freed_bytes": freed_bytes,
                "unneeded_bytes": unneeded_bytes,
                "debris": list(debris),
                "warnings": list(warnings),
            }
        )
        return _DONE_IN_PART if warnings else 0
    _show(invocation, decisions)
    dropped = count(sum(not decision.keep for decision in decisions), "checkpoint")
    kept = sum(decision.keep for decision in decisions)
    if unneeded_bytes is not None:
        words = f"Would drop {dropped} and keep {kept}; {size(unneeded_bytes)} would not be needed"
    else:
        words = f"Dropped {dropped}, kept {kept}; {size(freed_bytes)} freed"
    invocation.terminal.line(words)
    for name in debris:
        invocation.terminal.line(f"Removed what a killed process left: {visible(name)}")
    for warning in warnings:
        invocation.terminal.warn(warning)
    return _DONE_IN_PART if warnings else 0


def _as_json(decision: Decision) -> dict[str, Any]:
    found = decision.checkpoint
    return {
        "id": found.id,
        "name": found.name,
        "session_id": found.session_id,
        "kind": found.kind.value,
        "keep": decision.keep,
        "reason": decision.reason,
    }


def _show(invocation: Invocation, decisions: Sequence[Decision]) -> None:
    from holdfast.interfaces.cli.checkpoint_view import identifier, title

    terminal = invocation.terminal
    for decision in sorted(decisions, key=lambda d: d.checkpoint.sequence):
        found = decision.checkpoint
        verdict = "keep" if decision.keep else "drop"
        reason = terminal.paint(f"({decision.reason})", DIM)
        terminal.line(f"{verdict} {identifier(terminal, found)} {title(found)} {reason}")
