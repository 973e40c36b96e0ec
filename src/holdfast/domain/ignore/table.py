"""Patterns with and without slashes, indexed so that each directory has to check only a few.

Algorithm: a pattern with a slash is split at its last one. The front selects the directories it
applies to (by text, or by expression); the back is a pattern for the names in them. So each
directory has a table for its names, usually the one that all directories share.

Guarantee: the same answer as matching each pattern against each path.
Not guaranteed: an answer for a directory outside the one that holds the ignore file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from holdfast.domain.ignore.glob import Run, Token, Tokens, expression_of, texts_of
from holdfast.domain.ignore.names import (
    EMPTY_NAMES,
    Alternation,
    NameTable,
    NumberedTokens,
    make_alternation,
    make_name_table,
)
from holdfast.values.classes import NamedTuple, dataclass


class Placement(NamedTuple):
    """Directories selected by an expression, and the patterns for the names in them."""

    fullmatch: Callable[[bytes], re.Match[bytes] | None]  # of a directory, ending with a slash
    names: NameTable


@dataclass(frozen=True, slots=True)
class PatternTable:
    """The patterns that apply to files, or those that apply to directories."""

    everywhere: NameTable
    by_directory: dict[bytes, NameTable]
    placements: tuple[Placement, ...]
    unsplit: tuple[Alternation, ...]  # the rare patterns that need the whole path

    def names_in(self, directory: bytes) -> NameTable:
        """The patterns for the names in a directory, without those in `unsplit`."""
        names = self.everywhere
        if directory in self.by_directory:
            names = names.merged(self.by_directory[directory])
        if self.placements:
            prefix = directory + b"/" if directory else b""
            for placement in self.placements:
                if placement.fullmatch(prefix):
                    names = names.merged(placement.names)
        return names

    def below(self, above: PatternTable, by: int) -> PatternTable:
        """This table with all patterns of another ranked above it."""
        by_directory = self.by_directory.copy()
        for directory, names in above.by_directory.items():
            by_directory[directory] = by_directory.get(directory, EMPTY_NAMES).merged(
                names.raised(by)
            )
        raised = tuple(
            Placement(each.fullmatch, each.names.raised(by)) for each in above.placements
        )
        return PatternTable(
            everywhere=self.everywhere.merged(above.everywhere.raised(by)),
            by_directory=by_directory,
            placements=self.placements + raised,
            unsplit=self.unsplit + tuple(each.raised(by) for each in above.unsplit),
        )


EMPTY_TABLE = PatternTable(EMPTY_NAMES, {}, (), ())


def make_table(
    name_patterns: Sequence[NumberedTokens], path_patterns: Sequence[NumberedTokens], base: bytes
) -> PatternTable:
    """A table of one ignore file's patterns; path patterns are relative to `base`."""
    before: Tokens = tuple(bytes((byte,)) for byte in base + b"/") if base else ()
    everywhere = list(name_patterns)
    by_directory: dict[bytes, list[NumberedTokens]] = {}
    by_expression: dict[bytes, list[NumberedTokens]] = {}
    unsplit: list[NumberedTokens] = []
    for pattern in path_patterns:
        parts = split_path(pattern.tokens)
        if parts is None:
            unsplit.append(pattern)
            continue
        front, back = parts
        named = NumberedTokens(pattern.number, back)
        texts = texts_of((*before, *front))
        if front == (Run.DIRECTORIES,):
            everywhere.append(named)
        elif texts is not None:
            for text in texts:
                by_directory.setdefault(text.removesuffix(b"/"), []).append(named)
        else:
            by_expression.setdefault(expression_of((*before, *front)), []).append(named)
    return PatternTable(
        make_name_table(sorted(everywhere, key=lambda each: each.number)),
        {directory: make_name_table(each) for directory, each in by_directory.items()},
        tuple(
            Placement(re.compile(expression, re.DOTALL).fullmatch, make_name_table(each))
            for expression, each in by_expression.items()
        ),
        make_alternation(unsplit, before),
    )


def split_path(tokens: Tokens) -> tuple[Tokens, Tokens] | None:
    """Split a path pattern into one for `directory/` and one for the names in it.

    None if `**` is in the middle of a name, where git lets it cross directories anyway.
    """
    at = len(tokens)
    while at and tokens[at - 1] not in (b"/", Run.DIRECTORIES):
        at -= 1
    front, back = tokens[:at], tokens[at:]
    if front and front[-1] is Run.DIRECTORIES and not _ends_a_name(front[:-1]):
        return None
    if back == (Run.ANYTHING,):
        return (*front, Run.ANYTHING), (Run.WITHIN_NAME,)
    return None if Run.ANYTHING in back or not back else (front, back)


def _ends_a_name(tokens: Sequence[Token]) -> bool:
    last = next((token for token in reversed(tokens) if token is not Run.DIRECTORIES), b"/")
    return last == b"/"
