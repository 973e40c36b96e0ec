"""The command line as completion sees it: verbs, their options, and what each word stands for.

Read from the parsers of the verbs, so that it cannot say anything else than they do. What a word
stands for is told by the name that the help page gives it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module

from holdfast.interfaces.cli.arguments import make_parser
from holdfast.interfaces.cli.verbs import VERBS

SHELLS = ("bash", "zsh", "fish")


class Kind(StrEnum):
    """What can stand in a place of the command line."""

    NOTHING = "nothing"  # only the person knows
    VERB = "verb"
    CHECKPOINT = "checkpoints"
    SESSION = "sessions"
    PATH = "paths"
    DIRECTORY = "directory"
    ACTION = "action"
    SETTING = "setting"
    SHELL = "shell"
    AGENT = "agent"


# By the name on the help page: what each word stands for; the last one repeats if it is a path.
WORDS: dict[str, tuple[Kind, ...]] = {
    "REASON": (),
    "QUERY": (),
    "REF": (Kind.CHECKPOINT,),
    "REF[:PATH]": (Kind.CHECKPOINT,),
    "PATH": (Kind.PATH,),
    "REF PATH": (Kind.CHECKPOINT, Kind.PATH),
    "REF TEXT": (Kind.CHECKPOINT,),
    "REF NAME": (Kind.CHECKPOINT,),
    "RANGE": (Kind.CHECKPOINT,),
    "REASON COMMAND": (),
    "CHECKPOINT": (Kind.CHECKPOINT, Kind.CHECKPOINT),
    "ACTION": (Kind.ACTION, Kind.SETTING),
    "SHELL": (Kind.SHELL,),
    "AGENT": (Kind.AGENT,),
    "FILE": (Kind.PATH,),
    "FILE[:LINE]": (Kind.PATH,),
    "FILE REF": (Kind.PATH, Kind.CHECKPOINT),
    "PATH|REF": (Kind.PATH,),
    "KEY ACTION": (Kind.ACTION,),
    "ACTION SESSION": (Kind.ACTION, Kind.SESSION),
    "DIR": (Kind.DIRECTORY,),
}
# Behind `--` a difference has paths; elsewhere words mean the same there.
BEHIND_DASHES: dict[str, Kind] = {"CHECKPOINT": Kind.PATH}
_VALUES: dict[str, Kind] = {
    "-C": Kind.DIRECTORY,
    "--session": Kind.SESSION,
    "--ref": Kind.CHECKPOINT,
}


@dataclass(frozen=True, slots=True)
class Option:
    names: tuple[str, ...]
    help: str
    value: Kind | None


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[Kind, ...] = ()
    behind_dashes: Kind = Kind.NOTHING
    actions: tuple[str, ...] = ()

    @property
    def repeats(self) -> bool:
        return bool(self.words) and self.words[-1] in (Kind.PATH, Kind.DIRECTORY)


def verbs() -> list[Verb]:
    return [_verb(name, verb.summary) for name, verb in VERBS.items()] + [
        Verb("help", "the page of a command", (), (Kind.VERB,))
    ]


def _verb(name: str, text: str) -> Verb:
    module = import_module(f"holdfast.interfaces.cli.commands.{name.replace('-', '_')}")
    actions = make_parser(name, module.configure, width=80)._actions
    metavar = next((str(a.metavar) for a in actions if not a.option_strings), "REASON")
    return Verb(
        name,
        text,
        tuple(_options(actions)),
        WORDS[metavar],
        BEHIND_DASHES.get(metavar, Kind.NOTHING),
        tuple(getattr(module, "ACTIONS", ())),
    )


def _options(actions: list[argparse.Action]) -> Iterator[Option]:
    for action in actions:
        if action.option_strings:
            names = tuple(action.option_strings)
            takes = None if action.nargs == 0 else _VALUES.get(names[0], Kind.NOTHING)
            yield Option(names, (action.help or "").replace("%%", "%"), takes)


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


def action_branches(verbs: Sequence[Verb]) -> Iterator[str]:
    """By verb: the first words that it takes."""
    for verb in verbs:
        if verb.actions:
            yield f"        {verb.name}) echo {' '.join(verb.actions)} ;;"
