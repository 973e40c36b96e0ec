"""`holdfast stats`: how much is stored, and how much space it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.wording import count_words
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import DIM, visible
from holdfast.interfaces.cli.wording import percent, size

if TYPE_CHECKING:
    from holdfast.api.upkeep import Usage

ANSWERS = True


def configure(parser: Parser) -> None:
    parser.usage = "holdfast stats [--usage]"
    parser.description = """\
Show the number of checkpoints and restores in the session, and how much the store uses: bytes
stored, bytes saved by storing equal content once, and the share of the disk budget.

With --usage, also show how often checkpoints are restored, and an estimate of the time that saved.
The numbers come from the local store and are never sent anywhere."""
    parser.epilog = """\
examples:
  $ holdfast stats --usage
  $ holdfast stats --json | jq .bytes_deduped"""
    parser.add_argument(
        "--usage", action="store_true", help="also count restores by kind and the time saved"
    )


def run(invocation: Invocation) -> int:
    from holdfast.api.stores import lost_stores

    with invocation.open() as opened:
        session = invocation.session(opened)
        counted = opened.upkeep.statistics(session)
        used_bytes, budget_bytes = opened.upkeep.size_bytes(), opened.upkeep.budget_bytes
        sessions = len(opened.sessions.listed())
        usage = opened.upkeep.usage() if invocation.options.usage else None
    lost = lost_stores()
    lost_bytes = sum(one.size_bytes for one in lost)
    if invocation.json:
        from holdfast.api.views.health import statistics_view, usage_view

        view = statistics_view(
            session,
            counted,
            sessions=sessions,
            store_bytes=used_bytes,
            budget_bytes=budget_bytes,
            lost=lost,
        )
        if usage is not None:
            view["usage"] = usage_view(usage)
        invocation.emit(view)
        return 0
    facts = [
        ("session", visible(session)),
        ("checkpoints", f"{counted['checkpoints']:,}"),
        ("restores", f"{counted['restores']:,}"),
        ("states kept", f"{counted['snapshots']:,}, including those before and after restores"),
        ("sessions", f"{sessions:,} in this workspace"),
        ("objects", f"{counted['content_blobs']:,}"),
        ("stored", size(counted["bytes_stored"])),
        ("deduplicated", size(counted["bytes_deduped"])),
        (
            "on disk",
            f"{size(used_bytes)} of {size(budget_bytes)} ({percent(used_bytes / budget_bytes)})",
        ),
    ]
    if lost:
        words = f"{len(lost):,} ({size(lost_bytes)}); see: holdfast cleanup --stores"
        facts.append(("without workspace", words))
    if usage is not None:
        facts += _usage_facts(usage)
    for label, value in facts:
        invocation.terminal.line(f"{invocation.terminal.paint(f'{label:<17}', DIM)} {value}")
    return 0


def _usage_facts(usage: Usage) -> list[tuple[str, str]]:
    counts = ", ".join(f"{count:,} {kind.value}" for kind, count in usage.restores.items())
    of_all = f"of {count_words(usage.sessions, 'session')}"
    return [
        ("restores by kind", f"{counts}; all sessions"),
        ("restored in", f"{usage.sessions_with_restores:,} {of_all}"),
        ("saved by hand in", f"{usage.sessions_with_manual_checkpoints:,} {of_all}"),
        ("time saved", f"about {_minutes(usage.saved_ns)}, at most an hour counted per restore"),
    ]


def _minutes(duration_ns: int) -> str:
    minutes = round(duration_ns / 60e9)
    return f"{minutes // 60:,} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
