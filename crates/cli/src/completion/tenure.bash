# Completions of tenure for bash 4 and later.
_tenure() {
    local piece before index=0 i rest="${COMP_LINE:0:COMP_POINT}"
    local -a words=()
    # Bash splits words at colons, which resources have: what stands together belongs together.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece="${COMP_WORDS[i]}"
        if [[ -z "$piece" ]]; then
            before="$rest"
        else
            before="${rest%%"$piece"*}"
            rest="${rest#*"$piece"}"
        fi
        if ((i == 0)); then
            words[0]="$piece"
        elif [[ -z "$before" ]]; then
            words[index]+="$piece"
        else
            words[++index]="$piece"
        fi
        # The command after `--` is completed as itself, where bash-completion knows how.
        if ((i < COMP_CWORD)) && [[ "$piece" == -- ]]; then
            if declare -F _comp_command_offset > /dev/null; then
                _comp_command_offset $((i + 1))
                return
            elif declare -F _command_offset > /dev/null; then
                _command_offset $((i + 1))
                return
            fi
        fi
    done
    local current="${words[index]}" IFS=$'\013'
    COMPREPLY=($(_CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX="$index" TENURE_COMPLETE=bash \
        "${words[0]}" -- "${words[@]}" 2> /dev/null))
    if [[ "$current" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}")
    fi
    if [[ "${#COMPREPLY[@]}" == 1 && "${COMPREPLY[0]}" == *[=/:] ]]; then
        compopt -o nospace 2> /dev/null
    fi
}
complete -o bashdefault -o default -F _tenure tenure
