"""The script for fish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.domain.settings.schema import HELP
from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.cli.completion.grammar import SHELLS, Kind, Option, Verb

_SCRIPT = r"""# holdfast: completion for fish. Made by: holdfast completion fish

# The verb, the number of words behind it, and whether -- stands before the present word.
function __holdfast_state
    set -l verb ''
    set -l count 0
    set -l dashes 0
    set -l option ''
    for word in (commandline -opc)[2..-1]
        if test -n "$option"
            set option ''
        else if test $dashes = 1
            set count (math $count + 1)
        else if test "$word" = --
            set dashes 1
        else if string match -q -- '-*' $word
            contains -- "$verb $word" @VALUES@; or contains -- $word -C --session
            and set option $word
        else if test -z "$verb"
            set verb $word
        else
            set count (math $count + 1)
        end
    end
    echo $verb
    echo $count
    echo $dashes
end

function __holdfast_needs_verb
    test -z (__holdfast_state)[1]
end

function __holdfast_verb
    test (__holdfast_state)[1] = $argv[1]
end

# VERB COUNT...: the present word is one of these of the verb, and does not stand behind --.
function __holdfast_word
    set -l state (__holdfast_state)
    test "$state[1]" = $argv[1]; and test $state[3] = 0; and contains $state[2] $argv[2..-1]
end

# VERB COUNT: so many words stand before, or (for a COUNT that nobody reaches) dashes.
function __holdfast_path
    set -l state (__holdfast_state)
    test "$state[1]" = $argv[1]; or return
    test $state[2] -ge $argv[2]; and return
    test $argv[2] = @FAR@; and test $state[3] = 1
end

# Asks holdfast what there is, in the workspace and session of the command line.
function __holdfast_list
    set -l words (commandline -opc)
    set -l where
    set -l option ''
    for word in $words[2..-1]
        test -n "$option"; and set -a where $option $word
        set option ''
        contains -- $word -C --session; and set option $word
    end
    $words[1] $where completion $argv[1] -- (commandline -ct) 2>/dev/null
end

complete -c holdfast -e
complete -c holdfast -f
@LINES@
"""
_FAR = 1000


def script(verbs: Sequence[Verb]) -> str:
    values = " ".join(
        f"'{verb.name} {name}'"
        for verb in verbs
        for option in verb.options
        if option.value is Kind.NOTHING
        for name in option.names
    )
    filled = _SCRIPT.replace("@VALUES@", values).replace("@FAR@", str(_FAR))
    return filled.replace("@LINES@", "\n".join(_lines(verbs)))


def _lines(verbs: Sequence[Verb]) -> Iterator[str]:
    for verb in verbs:
        yield f"complete -c holdfast -n __holdfast_needs_verb -a {verb.name} -d {_text(verb.help)}"
    yield "complete -c holdfast -n __holdfast_needs_verb -s C -x -a '(__fish_complete_directories)'"
    yield "complete -c holdfast -n __holdfast_needs_verb -l version -d 'the version of Holdfast'"
    for verb in verbs:
        for option in verb.options:
            yield _option(verb, option)
        for number, kind in enumerate(verb.words):
            yield from _word(verb, number, kind)
        if verb.behind_dashes is Kind.PATH or verb.repeats:
            first = len(verb.words) - 1 if verb.repeats else _FAR
            where = f"-n '__holdfast_path {verb.name} {first}'"
            yield f"complete -c holdfast {where} -F -a '(__holdfast_list paths)'"


def _option(verb: Verb, option: Option) -> str:
    names = " ".join(
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
    )
    value = {
        None: "",
        Kind.DIRECTORY: " -x -a '(__fish_complete_directories)'",
        Kind.SESSION: " -x -k -a '(__holdfast_list sessions)'",
    }.get(option.value, " -x")
    where = f"-n '__holdfast_verb {verb.name}'"
    return f"complete -c holdfast {where} {names}{value} -d {_text(option.help)}"


def _word(verb: Verb, number: int, kind: Kind) -> Iterator[str]:
    begin = f"complete -c holdfast -n '__holdfast_word {verb.name} {number}'"
    if kind is Kind.CHECKPOINT:
        yield f"{begin} -k -a '(__holdfast_list checkpoints)'"
    elif kind is Kind.ACTION:
        yield f"{begin} -a '{' '.join(verb.actions)}'"
    elif kind is Kind.SESSION:
        yield f"{begin} -k -a '(__holdfast_list sessions)'"
    elif kind is Kind.SETTING:
        for key, said in HELP.items():
            yield f"{begin} -a {key} -d {_text(said)}"
    elif kind is Kind.SHELL:
        yield f"{begin} -a '{' '.join(SHELLS)}'"
    elif kind is Kind.AGENT:
        yield f"{begin} -a '{' '.join(AGENTS)}'"
    elif kind is Kind.VERB:
        yield f"{begin} -a '(holdfast --help | string match -rg \"^  ([a-z]+) {{2,}}\")'"


def _text(said: str) -> str:
    escaped = said.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
