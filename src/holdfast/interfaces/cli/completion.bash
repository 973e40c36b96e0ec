# holdfast: completion for bash. Made by: holdfast completion bash

# Asks holdfast what there is, in the workspace and session of the command line.
_holdfast_list() {
    local line
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        # Paths that are on the disk bash knows by itself, unless -C says where they are.
        [[ $1 == paths && -n $here && (-e ${line%/} || -L ${line%/}) ]] && continue
        [[ $line == "$cur"* ]] && COMPREPLY+=("$line")
    done < <("${COMP_WORDS[0]}" "${where[@]}" completion "$1" -- "$cur" 2>/dev/null)
}

# The candidates of another program, one a line. (There is a builtin for it, but not in bash 3.2.)
_holdfast_take() {
    local line
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done
}

# The kind of the value of an option, or nothing if it takes none.
_holdfast_value() {
    case "$1 $2" in
@VALUES@
    esac
}

# The kind of a word: the verb, how many words stand before it, whether behind --.
_holdfast_word() {
    case "$1 $2 $3" in
@WORDS@
    esac
}

# The first words that a verb takes.
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
    local cur=${COMP_WORDS[COMP_CWORD]} verb='' option='' dashes='' kind='' word='' here=1 count=0 i
    local -a where=()
    COMPREPLY=()
    [[ $cur == '=' ]] && cur=''
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -n $option ]]; then
            [[ $word == '=' ]] && continue
            [[ $option == -C ]] && where+=(-C "${word/#\~/$HOME}") && here=''
            [[ $option == --session ]] && where+=(--session "$word")
            option=''
        elif [[ -n $dashes ]]; then
            count=$((count + 1))
        elif [[ $word == -- ]]; then
            dashes=1
        elif [[ $word == -* ]]; then
            [[ -n $(_holdfast_value "$verb" "$word") ]] && option=$word
        elif [[ -z $verb ]]; then
            verb=$word
        else
            count=$((count + 1))
        fi
    done
    if [[ -n $option ]]; then
        kind=$(_holdfast_value "$verb" "$option")
    elif [[ -z $dashes && $cur == -* ]]; then
        _holdfast_take < <(compgen -W "$(_holdfast_options "$verb")" -- "$cur")
        return
    elif [[ -z $verb ]]; then
        kind=verb
    else
        kind=$(_holdfast_word "$verb" "$count" "$dashes")
    fi
    case $kind in
        verb) _holdfast_take < <(compgen -W '@VERBS@' -- "$cur") ;;
        action) _holdfast_take < <(compgen -W "$(_holdfast_actions "$verb")" -- "$cur") ;;
        setting) _holdfast_take < <(compgen -W '@SETTINGS@' -- "$cur") ;;
        shell) _holdfast_take < <(compgen -W '@SHELLS@' -- "$cur") ;;
        agent) _holdfast_take < <(compgen -W '@AGENTS@' -- "$cur") ;;
        directory)
            compopt -o filenames 2>/dev/null
            _holdfast_take < <(compgen -d -- "$cur") ;;
        paths)
            compopt -o filenames 2>/dev/null
            [[ -n $here ]] && _holdfast_take < <(compgen -f -- "$cur")
            _holdfast_list paths
            if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
                compopt -o nospace 2>/dev/null
            fi ;;
        checkpoints | sessions)
            _holdfast_list "$kind"
            if [[ ${#COMPREPLY[@]} -eq 1 ]]; then
                COMPREPLY=("$(printf '%q' "${COMPREPLY[0]}")")
            fi ;;
    esac
    return 0
}

complete -o nosort -F _holdfast holdfast 2>/dev/null || complete -F _holdfast holdfast
