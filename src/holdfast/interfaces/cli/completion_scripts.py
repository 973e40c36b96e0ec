"""Shell completion: a description of the command line, and the script for each shell.

Verbs, options and word kinds come from the verbs' parsers, so a script cannot differ from them. A
word's name on the help page determines its kind. The templates are `completion.bash` (3.2 or later;
needs no other package), `completion.zsh` (to be sourced, or put as `_holdfast` into a directory in
`fpath`) and `completion.fish`. Marks such as @VERBS@ show where the facts go.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files

from holdfast.domain.settings.schema import HELP, KEYS
from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.cli.arguments import make_parser
from holdfast.interfaces.cli.verbs import VERBS, command_module

SHELLS = ("bash", "zsh", "fish")


class Kind(StrEnum):
    """The kinds of words on the command line."""

    NOTHING = "nothing"  # free text
    VERB = "verb"
    CHECKPOINT = "checkpoints"
    SESSION = "sessions"
    PATH = "paths"
    DIRECTORY = "directory"
    ACTION = "action"
    SETTING = "setting"
    SHELL = "shell"
    AGENT = "agent"


# The kind of each word, by its name on the help page; the last one repeats if it is a path.
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
_VALUES: dict[str, Kind] = {
    "-C": Kind.DIRECTORY,
    "--session": Kind.SESSION,
    "--ref": Kind.CHECKPOINT,
}
_FAR = 1000
"""More words than any command line has: in fish, only `--` makes such a word a path."""


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
    paths_after_dashes: bool = False
    actions: Mapping[str, str] = field(default_factory=dict)

    @property
    def repeats(self) -> bool:
        return bool(self.words) and self.words[-1] in (Kind.PATH, Kind.DIRECTORY)


def verbs() -> list[Verb]:
    return [_verb(name, verb.summary) for name, verb in VERBS.items()] + [
        Verb("help", "the page of a command", (), (Kind.VERB,))
    ]


def _verb(name: str, text: str) -> Verb:
    module = command_module(name)
    actions = make_parser(name, module.configure, width=80)._actions
    metavar = next((str(a.metavar) for a in actions if not a.option_strings), "REASON")
    return Verb(
        name,
        text,
        tuple(_options(actions)),
        WORDS[metavar],
        metavar == "CHECKPOINT",  # other commands take the same words after `--` as before
        getattr(module, "ACTIONS", {}),
    )


def _options(actions: list[argparse.Action]) -> Iterator[Option]:
    for action in actions:
        if action.option_strings:
            names = tuple(action.option_strings)
            takes = None if action.nargs == 0 else _VALUES.get(names[0], Kind.NOTHING)
            yield Option(names, (action.help or "").replace("%%", "%"), takes)


def script(shell: str) -> str:
    """The shell's template, filled from the parsers."""
    filled = files(__package__).joinpath(f"completion.{shell}").read_text("utf-8")
    marks = {"bash": _bash_marks, "zsh": _zsh_marks, "fish": _fish_marks}[shell]
    for mark, text in marks(verbs()).items():
        filled = filled.replace(f"@{mark}@", text)
    return filled


def _bash_marks(every: Sequence[Verb]) -> dict[str, str]:
    options = {verb.name: [n for one in verb.options for n in one.names] for verb in every}
    options["''"] = ["-C", "--session", "--json", "--force", "-h", "--help", "--version"]
    return {
        "VALUES": "\n".join(_value_branches(every)),
        "WORDS": "\n".join(_word_branches(every)),
        "OPTIONS": _branches({name: f"echo '{' '.join(n)}'" for name, n in options.items()}),
        "ACTIONS": _branches({v.name: f"echo {' '.join(v.actions)}" for v in every if v.actions}),
        "VERBS": " ".join(verb.name for verb in every),
        "SETTINGS": " ".join(KEYS),
        "SHELLS": " ".join(SHELLS),
        "AGENTS": " ".join(AGENTS),
    }


def _zsh_marks(every: Sequence[Verb]) -> dict[str, str]:
    options = {v.name: [(n, one.help) for one in v.options for n in one.names] for v in every}
    found = {name: f"found=({' '.join(_pairs(pairs))})" for name, pairs in options.items()}
    found["''"] = (
        "found=('-C:work on a directory' '--session:use a session' --json --version --help)"
    )
    actions = {v.name: v.actions.items() for v in every if v.actions}
    return {
        "VALUES": "\n".join(_value_branches(every)),
        "WORDS": "\n".join(_word_branches(every)),
        "OPTIONS": _branches(found),
        "ACTIONS": _branches(
            {name: f"found=({' '.join(_pairs(a))})" for name, a in actions.items()}
        ),
        "VERBS": _column(_pairs((verb.name, verb.help) for verb in every)),
        "SETTINGS": _column(_pairs(HELP.items())),
        "SHELLS": " ".join(SHELLS),
        "AGENTS": " ".join(AGENTS),
    }


def _branches(commands: Mapping[str, str]) -> str:
    """Branches of a `case` in bash or zsh."""
    return "\n".join(f"        {name}) {command} ;;" for name, command in commands.items())


def _pairs(described: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Pairs in the format of zsh's `_describe`."""
    for word, said in described:
        pair = f"{word}:{said}".replace("'", "'\\''")
        yield f"'{pair}'"


def _column(lines: Iterable[str]) -> str:
    return "\n".join(f"                {line}" for line in lines)


def _value_branches(every: Sequence[Verb]) -> Iterator[str]:
    """The kind of an option's value, by verb and option. Flags have no branch."""
    yield "        *' -C') echo directory ;;"
    yield "        *' --session') echo sessions ;;"
    for verb in every:
        for option in verb.options:
            if option.value is Kind.NOTHING:
                names = " | ".join(f"'{verb.name} {name}'" for name in option.names)
                yield f"        {names}) echo nothing ;;"


def _word_branches(every: Sequence[Verb]) -> Iterator[str]:
    """The kind of a word, by verb and number of words before it, with `1` after dashes."""
    for verb in every:
        if verb.paths_after_dashes:
            yield f"        '{verb.name} '*' 1') echo paths ;;"
        for number, kind in enumerate(verb.words):
            rest = "*" if verb.repeats and number == len(verb.words) - 1 else f"'{number} '*"
            yield f"        '{verb.name} '{rest}) echo {kind.value} ;;"


def _fish_marks(every: Sequence[Verb]) -> dict[str, str]:
    values = (
        f"'{verb.name} {name}'"
        for verb in every
        for option in verb.options
        if option.value is Kind.NOTHING
        for name in option.names
    )
    return {
        "VALUES": " ".join(values),
        "FAR": str(_FAR),
        "LINES": "\n".join(_fish_lines(every)),
    }


def _fish_lines(every: Sequence[Verb]) -> Iterator[str]:
    begin = "complete -c holdfast"
    for verb in every:
        yield f"{begin} -n __holdfast_needs_verb -a {verb.name} -d {_fish_text(verb.help)}"
    yield f"{begin} -n __holdfast_needs_verb -s C -x -a '(__fish_complete_directories)'"
    yield f"{begin} -n __holdfast_needs_verb -l version -d 'the version of Holdfast'"
    for verb in every:
        for option in verb.options:
            yield f"{begin} -n '__holdfast_verb {verb.name}' {_fish_option(option)}"
        for number, kind in enumerate(verb.words):
            for offered in _fish_words(verb, kind):
                yield f"{begin} -n '__holdfast_word {verb.name} {number}' {offered}"
        if verb.paths_after_dashes or verb.repeats:
            first = len(verb.words) - 1 if verb.repeats else _FAR
            where = f"-n '__holdfast_path {verb.name} {first}'"
            yield f"{begin} {where} -F -a '(__holdfast_list paths)'"


def _fish_option(option: Option) -> str:
    names = " ".join(
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
    )
    value = {
        None: "",
        Kind.DIRECTORY: " -x -a '(__fish_complete_directories)'",
        Kind.SESSION: " -x -k -a '(__holdfast_list sessions)'",
    }.get(option.value, " -x")
    return f"{names}{value} -d {_fish_text(option.help)}"


def _fish_words(verb: Verb, kind: Kind) -> Iterator[str]:
    """The candidates for a word of this kind."""
    if kind in (Kind.CHECKPOINT, Kind.SESSION):
        yield f"-k -a '(__holdfast_list {kind.value})'"
    elif kind in (Kind.ACTION, Kind.SETTING):
        described = verb.actions if kind is Kind.ACTION else HELP
        yield from (f"-a {word} -d {_fish_text(said)}" for word, said in described.items())
    elif kind in (Kind.SHELL, Kind.AGENT):
        yield f"-a '{' '.join(SHELLS if kind is Kind.SHELL else AGENTS)}'"
    elif kind is Kind.VERB:
        yield "-a '(holdfast help all | string match -rg \"^  ([a-z]+) {2,}\")'"


def _fish_text(said: str) -> str:
    escaped = said.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
