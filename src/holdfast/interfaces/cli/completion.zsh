#compdef holdfast
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
        action)
            _holdfast_actions "$verb"
            _describe action found ;;
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
