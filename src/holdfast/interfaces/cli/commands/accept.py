"""`holdfast accept [RANGE]`: squash checkpoints into one git commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import can_ask, require_confirmation
from holdfast.interfaces.cli.terminal import DIM, visible, visible_bytes
from holdfast.interfaces.cli.wording import count, headline

if TYPE_CHECKING:
    from holdfast.api.exchange import AcceptRange
    from holdfast.domain.git.commits import AcceptOutcome
    from holdfast.interfaces.cli.terminal import Terminal

_SHOWN = 50


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast accept [RANGE] [-m MESSAGE] [--edit] [--dry-run] [--yes]\n"
        '           [--co-author "NAME <MAIL>"]'
    )
    parser.description = """\
Squash a range of checkpoints into one git commit on the current branch.

RANGE is A..B (changes from A to B), A.. (up to HEAD), ..B (everything in B), or B alone. Without
it, the range starts at the last accepted or approved checkpoint, or at the first one, and ends at
HEAD. On a branch without commits, everything in HEAD is committed.

The message is written from the checkpoint reasons. Use -m to replace it, --edit to edit it, and the
setting accept_template to change its layout. Author, signature and hooks work as in git commit.
Only paths that git tracks or would track are committed. Others are listed.

Your files and your staged changes stay as they are. The command refuses if staged changes conflict
with the checkpoint, if a merge or rebase is in progress, or if HEAD is detached. On a terminal, it
shows a preview and asks first. Elsewhere it needs --yes.

To undo the commit: git reset --soft HEAD~1"""
    parser.epilog = """\
examples:
  $ holdfast accept --dry-run
  $ holdfast accept -m "Add a login page" --co-author "Ada <ada@example.org>"
  $ holdfast accept before-refactor..HEAD --edit"""
    parser.add_argument("words", nargs="*", metavar="RANGE", help="the range of checkpoints: A..B")
    parser.add_argument("-m", "--message", metavar="MESSAGE", help="the commit message")
    parser.add_argument("--edit", action="store_true", help="edit the message first")
    parser.add_argument(
        "--co-author",
        dest="co_authors",
        action="append",
        default=[],
        metavar="WHO",
        help="add a Co-authored-by line; can be repeated",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be committed, and change nothing"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def run(invocation: Invocation) -> int:
    from holdfast.api.exchange import CommitWish

    words = invocation.at_most(1, "a range")
    options = invocation.options
    with invocation.open() as opened:
        acceptance = opened.git.prepare(
            invocation.scope(opened),
            words[0] if words else None,
            message=options.message,
            co_authors=options.co_authors,
        )
        if options.dry_run:
            with invocation.busy("looking", opened):
                outcome = opened.git.preview(acceptance)
            _report(invocation, acceptance.range, outcome)
            return 0
        wish = CommitWish(acceptance.message, edit=options.edit)
        shown = False
        if not options.yes:
            outcome = opened.git.preview(acceptance)
            outcome.plan.require_clear()
            _ask(invocation, acceptance.range, outcome)
            head = outcome.plan.head
            wish = CommitWish(wish.message, wish.edit, checked=True, expected_head=head)
            shown = True
        if options.edit:
            outcome = opened.git.commit(acceptance, wish)
        else:
            with invocation.busy("committing", opened):
                outcome = opened.git.commit(acceptance, wish)
    _report(invocation, acceptance.range, outcome, shown=shown)
    return 0


def _ask(invocation: Invocation, chosen: AcceptRange, outcome: AcceptOutcome) -> None:
    if can_ask(invocation):
        aside = invocation.terminal.stderr_copy()
        _show_plan(aside, chosen, outcome)
        aside.warn(*outcome.warnings)
    require_confirmation(
        invocation,
        f"a commit needs confirmation: {count(len(outcome.plan.paths), 'file')}",
        "Commit?",
        hint="preview it with --dry-run; confirm it with --yes",
    )


def _report(
    invocation: Invocation, chosen: AcceptRange, outcome: AcceptOutcome, *, shown: bool = False
) -> None:
    if invocation.json:
        from holdfast.api.views.git import accept_view

        invocation.emit(accept_view(chosen, outcome, invocation.elapsed_ms))
        return
    terminal = invocation.terminal
    if outcome.commit is None:
        _show_plan(terminal, chosen, outcome)
    else:
        mark = terminal.tick
        files = count(len(outcome.plan.paths), "file")
        subject = headline(outcome.message)
        terminal.sentence(f"{mark} Committed {files} as {outcome.commit[:10]}: {subject}")
        if not shown:
            _show_left_out(terminal, outcome)
        terminal.sentence(f"  undo the commit: {outcome.undo}", DIM)
    if not shown:
        terminal.warn(*outcome.warnings)
    if outcome.commit is None:
        terminal.sentence("Nothing was changed (dry run).")


def _show_plan(terminal: Terminal, chosen: AcceptRange, outcome: AcceptOutcome) -> None:
    plan = outcome.plan
    branch = visible_bytes((plan.branch or b"HEAD").removeprefix(b"refs/heads/"))
    made = [one for one in chosen.checkpoints if not one.kind.is_record] or chosen.checkpoints
    what = count(len(made), "checkpoint")
    terminal.sentence(f"{what} would become one commit on {branch}:")
    for path in plan.paths[:_SHOWN]:
        terminal.sentence(f"  {path.status}  {visible_bytes(path.path)}")
    if len(plan.paths) > _SHOWN:
        terminal.sentence(f"  and {len(plan.paths) - _SHOWN:,} more")
    terminal.sentence("with this message:")
    for line in outcome.message.rstrip("\n").split("\n"):
        terminal.sentence(f"  {visible(line)}".rstrip())
    _show_left_out(terminal, outcome)
    for obstacle in plan.obstacles:
        terminal.sentence(f"Blocked: {visible(obstacle.reason)}; {visible(obstacle.way_out)}")


def _show_left_out(terminal: Terminal, outcome: AcceptOutcome) -> None:
    left_out = outcome.plan.left_out
    if left_out:
        terminal.sentence("not included:")
    for path in left_out[:_SHOWN]:
        terminal.sentence(f"  {visible_bytes(path.path)}  {path.reason.value}")
    if len(left_out) > _SHOWN:
        terminal.sentence(f"  and {len(left_out) - _SHOWN:,} more")
