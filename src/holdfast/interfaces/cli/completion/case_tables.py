"""The tables of the command line as branches of a `case`, which bash and zsh write alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.interfaces.cli.completion.grammar import Kind, Verb


def value_branches(verbs: Sequence[Verb]) -> Iterator[str]:
    """By verb and option: the kind of its value. Options that are flags have no branch."""
    yield "        *' -C') echo directory ;;"
    yield "        *' --session') echo sessions ;;"
    for verb in verbs:
        for option in verb.options:
            if option.value is Kind.NOTHING:
                names = " | ".join(f"'{verb.name} {name}'" for name in option.names)
                yield f"        {names}) echo nothing ;;"


def word_branches(verbs: Sequence[Verb]) -> Iterator[str]:
    """By verb, number of words before, and `1` behind dashes: the kind of the word."""
    for verb in verbs:
        if verb.behind_dashes is Kind.PATH:
            yield f"        '{verb.name} '*' 1') echo paths ;;"
        for number, kind in enumerate(verb.words):
            rest = "*" if verb.repeats and number == len(verb.words) - 1 else f"'{number} '*"
            yield f"        '{verb.name} '{rest}) echo {kind.value} ;;"
