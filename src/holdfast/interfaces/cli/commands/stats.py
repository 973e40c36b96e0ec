"""`holdfast stats`: how much is stored, and how much space it takes."""

from __future__ import annotations

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import DIM, visible
from holdfast.interfaces.cli.wording import percent, size

ANSWERS = True


def configure(parser: Parser) -> None:
    parser.usage = "holdfast stats"
    parser.description = """\
Count the checkpoints and restores of the session, and what the store of the workspace holds: how
many bytes are stored, how many need not be because equal content is stored once, and how much of
the disk budget is used."""
    parser.epilog = """\
example:
  $ holdfast stats --json | jq .bytes_deduped"""


def run(invocation: Invocation) -> int:
    from holdfast.api.stores import lost_stores

    with invocation.open() as opened:
        session = invocation.session(opened)
        counted = opened.upkeep.statistics(session)
        used_bytes, budget_bytes = opened.upkeep.size_bytes(), opened.upkeep.budget_bytes
        sessions = len(opened.sessions.listed())
    lost = lost_stores()
    lost_bytes = sum(one.size_bytes for one in lost)
    if invocation.json:
        from holdfast.api.views.health import statistics_view

        view = statistics_view(
            session,
            counted,
            sessions=sessions,
            store_bytes=used_bytes,
            budget_bytes=budget_bytes,
            lost=lost,
        )
        invocation.emit(view)
        return 0
    for label, value in (
        ("session", visible(session)),
        ("checkpoints", f"{counted['checkpoints']:,}"),
        ("restores", f"{counted['restores']:,}"),
        ("states kept", f"{counted['snapshots']:,}, those before and after restores included"),
        ("sessions", f"{sessions:,} in this workspace"),
        ("objects", f"{counted['content_blobs']:,}"),
        ("stored", size(counted["bytes_stored"])),
        ("not stored twice", size(counted["bytes_deduped"])),
        (
            "on disk",
            f"{size(used_bytes)} of {size(budget_bytes)} ({percent(used_bytes / budget_bytes)})",
        ),
    ):
        invocation.terminal.line(f"{invocation.terminal.paint(f'{label:<17}', DIM)} {value}")
    if lost:
        words = f"{len(lost):,} ({size(lost_bytes)}); see: holdfast cleanup --stores"
        label = invocation.terminal.paint(f"{'without workspace':<17}", DIM)
        invocation.terminal.line(f"{label} {words}")
    return 0
