# holdfast: completion for fish. Made by: holdfast completion fish

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
