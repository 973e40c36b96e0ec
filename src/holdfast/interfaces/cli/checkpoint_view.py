"""A checkpoint in a line or two, for people and for pipes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Kind, Skipped, SkipReason
from holdfast.domain.ids import CheckpointId, short
from holdfast.domain.intent import DEFAULT_CONFIDENCE
from holdfast.interfaces.cli.terminal import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    ORANGE,
    RED,
    YELLOW,
    Terminal,
    visible,
)
from holdfast.interfaces.cli.wording import count, headline, percent, size
from holdfast.values.classes import replace

SURE, FAIRLY_SURE = 0.9, 0.7
CERTAIN = 1.0
_LONGEST_REASON = 160
_MOST_SKIPPED = 20


def confidence_colour(confidence: float) -> str:
    """Green from 90%, yellow from 70%, else orange."""
    if confidence >= SURE:
        return GREEN
    return YELLOW if confidence >= FAIRLY_SURE else ORANGE


def given_confidence(kind: Kind, confidence: float) -> float | None:
    """The confidence that the user gave; None if there is none. Automatic checkpoints, and those
    without one, store a default value."""
    given = kind is Kind.MANUAL or (kind is Kind.INITIAL and confidence != CERTAIN)
    return confidence if given and confidence != DEFAULT_CONFIDENCE else None


def confidence_mark(terminal: Terminal, confidence: float) -> str:
    return f"{terminal.paint('●', confidence_colour(confidence))} {percent(confidence)}"


def confidence_word(checkpoint: Checkpoint) -> str:
    """The confidence in a line for programs; a dash if none was given."""
    sure = given_confidence(checkpoint.kind, checkpoint.intent.confidence)
    return "-" if sure is None else f"{sure:.2f}"


def shown_id(terminal: Terminal, checkpoint_id: str) -> str:
    """Short for people, full for programs."""
    return short(checkpoint_id) if terminal.for_people else checkpoint_id


def identifier(terminal: Terminal, checkpoint: Checkpoint) -> str:
    """The id, with the name if it has one."""
    name = f" {terminal.paint(visible(checkpoint.name), BOLD)}" if checkpoint.name else ""
    return terminal.paint(shown_id(terminal, checkpoint.id), CYAN) + name


def show_saved_first(terminal: Terminal, saved: CheckpointId | None) -> None:
    """Shown after a command that deleted checkpoints."""
    if saved is not None:
        terminal.sentence(f"  Unsaved changes were saved first: {shown_id(terminal, saved)}", DIM)


def title(checkpoint: Checkpoint) -> str:
    from holdfast.domain.restore.selections import (  # a save lists nothing
        selected_words,
        selection_of,
    )

    words = headline(checkpoint.intent.reasoning, _LONGEST_REASON)
    selected = selection_of(checkpoint)
    if selected is None or not selected.paths:
        return words
    return f"{words}: {visible(selected_words(selected))}"


def kind_colour(kind: Kind) -> str:
    if kind.is_record:
        return DIM
    return RED if kind is Kind.RISKY else "0"


def change_words(changed: ChangeCounts) -> str:
    parts = [
        f"{number:,} {word}"
        for number, word in (
            (changed.added, "added"),
            (changed.modified, "modified"),
            (changed.removed, "removed"),
        )
        if number
    ]
    return ", ".join(parts) or "nothing changed"


def change_marks(changed: ChangeCounts) -> str:
    return f"+{changed.added} ~{changed.modified} -{changed.removed}"


def left_out_words(skipped: Iterable[Skipped]) -> str:
    """The number of left-out paths by reason; empty if none matters."""
    missed = [s for s in skipped if s.reason is not SkipReason.NAMED and not s.is_expected]
    counts = Counter(s.reason.value for s in missed)
    return ", ".join(f"{number:,} {reason}" for reason, number in counts.most_common())


def list_skipped(terminal: Terminal, skipped: Iterable[Skipped]) -> None:
    """The paths that `left_out_words` counts, and ignored paths that are captured anyway."""
    for skip in skipped:
        if skip.is_expected:
            continue
        path = terminal.path(skip.path)
        terminal.line(f"  {path}: {terminal.paint(visible(_why(skip)), DIM)}")


def list_first_skipped(terminal: Terminal, skipped: Sequence[Skipped]) -> None:
    """As many of them as fit on a screen beside a command's result."""
    list_skipped(terminal, skipped[:_MOST_SKIPPED])
    show_more(terminal, len(skipped) - _MOST_SKIPPED, "more (list: holdfast status --skipped)")


def show_more(terminal: Terminal, number: int, words: str = "more (--json lists all)") -> None:
    """The number of paths that are not listed, if any."""
    if number > 0:
        terminal.sentence(f"  … and {number:,} {words}", DIM)


def _why(skip: Skipped) -> str:
    """The recorded reason, with readable sizes."""
    number, _, unit = skip.detail.partition(" ")
    if (
        skip.reason in (SkipReason.TOO_LARGE, SkipReason.OVER_BUDGET)
        and unit == "bytes"
        and number.isdigit()
    ):
        return replace(skip, detail=size(int(number))).describe()
    return skip.describe()


def files_words(checkpoint: Checkpoint) -> str:
    return count(checkpoint.files, "file")
