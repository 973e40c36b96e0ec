"""The script for zsh; to be sourced, or put as `_holdfast` into a directory of `fpath`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.domain.settings.schema import HELP
from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.cli.completion.grammar import (
    SHELLS,
    Verb,
    action_branches,
    value_branches,
    word_branches,
)

_SCRIPT = r"""#compdef holdfast
# holdfast: completion for zsh. Made by: holdfast completion zsh

# Asks holdfast what there is, in the workspace and session of the command line.
_holdfast_list() {
    local line
    found=()
    for line in ${(f)"$(${(Q)words[1]} $where completion $1 -- ${(Q)PREFIX} 2>/dev/null)"}; do
        found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
}

_holdfast_value() {
    case "$1 $2" in
@VALUES@
    esac
}

_holdfast_word() {
    case "$1 $2 $3" in
@WORDS@
    esac
}

_holdfast_actions() {
    case "$1" in
@ACTIONS@
    esac
}

_holdfast_options() {
    case "$1" in
@OPTIONS@
    esac
}

_holdfast() {
    local verb='' option='' dashes='' kind='' word=''
    local -a where found
    integer i count=0
    for ((i = 2; i < CURRENT; i++)); do
        word=${(Q)words[i]}
        if [[ -n $option ]]; then
            [[ $option == -C ]] && where+=(-C ${word/#\~/$HOME})
            [[ $option == --session ]] && where+=(--session $word)
            option=''
        elif [[ -n $dashes ]]; then
            count+=1
        elif [[ $word == -- ]]; then
            dashes=1
        elif [[ $word == -* ]]; then
            [[ -n $(_holdfast_value "$verb" $word) ]] && option=$word
        elif [[ -z $verb ]]; then
            verb=$word
        else
            count+=1
        fi
    done
    if [[ -n $option ]]; then
        kind=$(_holdfast_value "$verb" $option)
    elif [[ -z $dashes && $PREFIX == -* ]]; then
        _holdfast_options "$verb"
        _describe -o option found
        return
    elif [[ -z $verb ]]; then
        kind=verb
    else
        kind=$(_holdfast_word "$verb" $count "$dashes")
    fi
    case $kind in
        verb)
            found=(
@VERBS@
            )
            _describe -t commands command found ;;
        action) compadd $(_holdfast_actions "$verb") ;;
        setting)
            found=(
@SETTINGS@
            )
            _describe setting found ;;
        shell) compadd @SHELLS@ ;;
        agent) compadd @AGENTS@ ;;
        directory) _files -/ ;;
        paths)
            _holdfast_list paths
            found=(${${found%:}//\\:/:})
            local above=${(Q)PREFIX%${PREFIX##*/}}
            local -a gone=()
            for word in $found; do [[ -e $word || -L ${word%/} ]] || gone+=($word); done
            if [[ -n ${where[(r)-C]} ]]; then
                compadd -f -S '' -p "$above" -- ${found#$above}
            elif (( $#gone )); then
                # One list with what is on the disk: two would hide each other's common beginning.
                found=(${above}*(N-/))
                gone+=(${^found}/ ${above}*(N^-/))
                compadd -f -S '' -p "$above" -- ${gone#$above}
            else
                _files
            fi ;;
        checkpoints)
            _holdfast_list checkpoints
            _describe -V -t checkpoints checkpoint found ;;
        sessions)
            _holdfast_list sessions
            _describe -V -t sessions session found ;;
    esac
}

if [[ ${funcstack[1]} == _holdfast ]]; then
    _holdfast "$@"
else
    compdef _holdfast holdfast
fi
"""


def script(verbs: Sequence[Verb]) -> str:
    filled = _SCRIPT
    for mark, text in {
        "@VALUES@": "\n".join(value_branches(verbs)),
        "@WORDS@": "\n".join(word_branches(verbs)),
        "@ACTIONS@": "\n".join(action_branches(verbs)),
        "@OPTIONS@": "\n".join(_options(verbs)),
        "@VERBS@": "\n".join(f"                {_pair(v.name, v.help)}" for v in verbs),
        "@SETTINGS@": "\n".join(f"                {_pair(k, HELP[k])}" for k in HELP),
        "@SHELLS@": " ".join(SHELLS),
        "@AGENTS@": " ".join(AGENTS),
    }.items():
        filled = filled.replace(mark, text)
    return filled


def _pair(word: str, said: str) -> str:
    pair = f"{word}:{said}".replace("'", "'\\''")
    return f"'{pair}'"


def _options(verbs: Sequence[Verb]) -> Iterator[str]:
    for verb in verbs:
        pairs = [_pair(name, option.help) for option in verb.options for name in option.names]
        yield f"        {verb.name}) found=(" + " ".join(pairs) + ") ;;"
    found = "'-C:work on a directory' '--session:use a session' --json --version --help"
    yield f"        '') found=({found}) ;;"
