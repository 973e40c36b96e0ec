"""A purge as people read it, before and after."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.domain.ids import short
from holdfast.domain.paths import to_text
from holdfast.domain.purges import count_in_words
from holdfast.domain.text_replacement import PURGED_MARK
from holdfast.interfaces.cli.terminal import GREEN, RED, Terminal, visible, visible_bytes
from holdfast.interfaces.cli.wording import count, duration, first_line, shortened, size

if TYPE_CHECKING:
    from holdfast.api.upkeep import PurgePlan, TextPurgePlan
    from holdfast.domain.purges import Holder, PurgeOutcome, PurgeProof
    from holdfast.interfaces.cli.invocation import Invocation

PARTIAL = 3
_TITLE_LENGTH = 60
_SET_ASIDE = "set-aside/"
_SAID = ("story.db", "catalog.db")


def show_plan(invocation: Invocation, plan: PurgePlan) -> int:
    """A dry run: what would happen, or what would stand in its way."""
    if invocation.json:
        from holdfast.api.views.upkeep import purge_plan_view

        invocation.emit(purge_plan_view(plan, invocation.elapsed_ms))
        return 0
    describe_plan(invocation.terminal, plan)
    _show_holders(invocation.terminal, plan.holders)
    for refusal in plan.refusals:
        invocation.terminal.warn(f"would be refused: {refusal}")
    if plan.refusals:
        invocation.terminal.note(f"hint: {plan.hint}")
    invocation.terminal.sentence("Nothing was changed (dry run).")
    return 0


def describe_plan(terminal: Terminal, plan: PurgePlan) -> None:
    for path in plan.paths:
        terminal.sentence(f"  path        {visible_bytes(path)}")
    for checkpoint in plan.removed:
        title = shortened(first_line(checkpoint.intent.reasoning), _TITLE_LENGTH)
        terminal.sentence(f"  checkpoint  {short(checkpoint.id)} {visible(title)}")
    changed = count(len(plan.changed), "checkpoint")
    if plan.changed:
        terminal.sentence(f"  {changed} lose it and stay")
    for path in plan.stays_elsewhere:
        terminal.sentence(f"  also at     {visible_bytes(path)}")
    terminal.sentence(f"  {count(len(plan.gone), 'object')} would be gone for good")


def show_outcome(invocation: Invocation, outcome: PurgeOutcome) -> int:
    status = PARTIAL if outcome.proof.traces else 0
    if invocation.json:
        from holdfast.api.views.upkeep import purge_view

        invocation.emit(purge_view(outcome, invocation.elapsed_ms))
        return status
    terminal = invocation.terminal
    done = "Finished an interrupted purge" if outcome.resumed else "Purged"
    what = count(outcome.objects, "object")
    removed = count(len(outcome.removed), "checkpoint")
    changed = count(len(outcome.changed), "checkpoint")
    parts = [f"{removed} gone"] if outcome.removed else []
    parts += [f"{changed} changed"] if outcome.changed else []
    parts += [f"{what} removed", f"{size(outcome.freed_bytes)} freed"]
    mark = terminal.paint("✗", RED) if outcome.proof.traces else terminal.paint("✓", GREEN)
    terminal.sentence(f"{mark} {done}: {', '.join(parts)}, {duration(invocation.elapsed_ms)}")
    _show_proof(terminal, outcome.proof)
    _show_holders(terminal, outcome.holders)
    for path in outcome.still_in_workspace:
        way = "is still in the workspace", "unless an ignore rule leaves it out"
        if path.startswith(b"/"):
            way = (
                "lies in a directory that is followed, or agent_state names it",
                "unless you purge that directory, or change that setting",
            )
        terminal.warn(f"{to_text(path)} {way[0]}, and the next checkpoint saves it again {way[1]}")
    for warning in outcome.warnings:
        terminal.warn(warning)
    return status


def show_text_plan(invocation: Invocation, plan: TextPurgePlan) -> int:
    if invocation.json:
        from holdfast.api.views.upkeep import text_purge_plan_view

        invocation.emit(text_purge_plan_view(plan, invocation.elapsed_ms))
        return 0
    describe_text_plan(invocation.terminal, plan)
    invocation.terminal.sentence("Nothing was changed (dry run).")
    return 0


def describe_text_plan(terminal: Terminal, plan: TextPurgePlan) -> None:
    terminal.sentence(f"  the text is in {count_in_words(plan.said) or 'nothing that was said'}")
    _show_text_left(terminal, plan.paths, plan.components)


def show_text_outcome(invocation: Invocation, outcome: PurgeOutcome) -> int:
    """Nothing of it is shown: it may be a secret."""
    proof = outcome.proof
    left = proof.traces or proof.elsewhere or proof.components
    status = PARTIAL if left else 0
    if invocation.json:
        from holdfast.api.views.upkeep import text_purge_view

        invocation.emit(text_purge_view(outcome, invocation.elapsed_ms))
        return status
    terminal = invocation.terminal
    mark = terminal.paint("✗", RED) if proof.traces else terminal.paint("✓", GREEN)
    where = f"replaced by {PURGED_MARK} in {count_in_words(outcome.said)}"
    done = f"Purged the text: {where}" if outcome.said else "Nothing that was said has this text"
    terminal.sentence(f"{mark} {done}, {duration(invocation.elapsed_ms)}")
    looked = f"{count(proof.files, 'file')} of the store, {size(proof.searched_bytes)}"
    found = "something was found" if proof.traces else "nothing was found"
    terminal.sentence(f"  searched {looked}, outside of saved files: {found}")
    _show_traces(terminal, proof)
    _show_text_left(terminal, proof.elsewhere, proof.components)
    for warning in outcome.warnings:
        terminal.warn(warning)
    return status


def _show_text_left(terminal: Terminal, paths: Sequence[bytes], components: Sequence[str]) -> None:
    for path in paths:
        name = visible_bytes(path)
        terminal.warn(f"{name} has it in checkpoints: holdfast purge {shlex.quote(name)}")
    for name in components:
        terminal.warn(f"checkpoints have it in what {visible(name)} saved: holdfast purge REF")


def _show_holders(terminal: Terminal, holders: Sequence[Holder]) -> None:
    """Other places are a person's to clean: a purge touches the store only."""
    for one in holders:
        way = f": {visible(one.how)}" if one.how else ""
        said = f"{visible(one.where)}: {visible(one.what)}{way}"
        terminal.warn(f"still there, {said}" if one.is_held else f"not searched, {said}")


def _show_proof(terminal: Terminal, proof: PurgeProof) -> None:
    looked = f"{count(proof.files, 'file')} of the store, {size(proof.searched_bytes)}"
    wanted = f"{count(proof.digests, 'digest')} and {count(proof.samples, 'sample')} of bytes"
    found = "something was found" if proof.traces else "nothing was found"
    terminal.sentence(f"  searched {looked}, for {wanted}: {found}")
    _show_traces(terminal, proof)
    if any(trace.file.startswith(_SAID) for trace in proof.traces):
        terminal.warn("it was quoted; this replaces it there: holdfast purge --text TEXT")
    for name in proof.components:
        terminal.warn(f"checkpoints hold some of the same bytes in what {visible(name)} saved")
    for path in proof.elsewhere:
        terminal.warn(f"{to_text(path)} holds some of the same bytes, and was not removed")


def _show_traces(terminal: Terminal, proof: PurgeProof) -> None:
    for trace in proof.traces:
        terminal.sentence(f"  left in {visible(trace.file)}: {visible(trace.what)}")
    if any(trace.file.startswith(_SET_ASIDE) for trace in proof.traces):
        terminal.warn(
            "what was set aside from the store is not rewritten: delete its directory set-aside "
            "when you need nothing of it, and purge again"
        )
