#!/bin/bash
#SBATCH --gres=gpu:4
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --comment="my own slurm_fair:v1,signal=USR2,grace=120,gate=+1800"
#SBATCH --begin=now+1800
# A request may come while the job still starts: it is counted from the first line on, and answered later.
slurm_fair_requests=0
trap 'slurm_fair_requests=$((slurm_fair_requests + 1))' USR2

export SLURM_FAIR_MANAGED=1
export SLURM_FAIR_SIGNAL=USR2
export SLURM_FAIR_GRACE=120
export SLURM_FAIR_GPUS_CHOICES=''
export SLURM_FAIR_GPUS_REFERENCE=''
export SLURM_FAIR_LR_RULE=fixed
export SLURM_FAIR_APP=''
export SLURM_FAIR_LEASE_PY=''
export SLURM_FAIR_PUBLISH_DIR=''
# Never taken from the environment: a job submitted from inside a job would inherit its parent's.
slurm_fair_job=${SLURM_JOB_ID:-none}
if [[ -n ${SLURM_ARRAY_JOB_ID:-} ]]; then slurm_fair_job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID; fi
export SLURM_FAIR_DIR=$PWD/.slurm-fair/$slurm_fair_job
slurm_fair_checkpoint_command=''
slurm_fair_pass_on=local
slurm_fair_exits_when_saved=no
slurm_fair_reports=file
# ---- slurm_fair runtime, protocol version 1: between the controller's signal and the training program ----
slurm_fair_restart=${SLURM_RESTART_COUNT:-0}
slurm_fair_signal_number=$(kill -l "$SLURM_FAIR_SIGNAL")
slurm_fair_asked=0
slurm_fair_answered=0
slurm_fair_child=
slurm_fair_saver=
slurm_fair_interrupted=
slurm_fair_ending=

slurm_fair_now() { printf '%(%s)T' -1; }

# Write beside and rename: a reader sees the old file or the new one. A later run's file is left alone.
slurm_fair_put() { # name, JSON members
    local file=$SLURM_FAIR_DIR/$1 beside=$SLURM_FAIR_DIR/.$1.$BASHPID old='' newest='"restart": *([0-9]+)'
    [[ -n $SLURM_FAIR_DIR ]] || return 1
    [[ -f $file ]] && old=$(<"$file")
    [[ $old =~ $newest ]] && ((BASH_REMATCH[1] > slurm_fair_restart)) && return 1
    (
        umask 077
        printf '{"v": 1, "restart": %d, %s, "time": %d}\n' "$slurm_fair_restart" "$2" "$(slurm_fair_now)" \
            >"$beside"
    ) && mv -f -- "$beside" "$file"
}

slurm_fair_acknowledge() { # request, true|false, seconds
    slurm_fair_put ack.json "\"request\": $1, \"saved\": $2, \"step\": null, \"path\": null, \"save_s\": $3"
}

slurm_fair_family() { # a process and all its descendants
    local kid
    echo "$1"
    for kid in $(cat "/proc/$1"/task/*/children 2>/dev/null); do slurm_fair_family "$kid"; done
}

# Whether a process has a handler for the request signal: any other would die of it.
slurm_fair_catches() {
    local key value
    while read -r key value; do
        [[ $key == SigCgt: ]] && return $((!(0x$value >> (slurm_fair_signal_number - 1) & 1)))
    done <"/proc/$1/status"
    return 1
} 2>/dev/null

# srun hands the signal to its tasks, on whatever node, whether they catch it or not: only if asked for.
slurm_fair_is_wanted_step() {
    [[ $slurm_fair_pass_on == steps && $(<"/proc/$1/comm") == srun ]]
} 2>/dev/null

slurm_fair_pass_signal_on() {
    local process
    for process in $(slurm_fair_family "$slurm_fair_child"); do
        if slurm_fair_catches "$process" || slurm_fair_is_wanted_step "$process"; then
            kill -s "$SLURM_FAIR_SIGNAL" "$process" 2>/dev/null
        fi
    done
}

# The user's own command saves the state beside the running program; one save at a time, one for each request.
slurm_fair_save() { # request, the saver before this one
    local began=$SECONDS saved=false
    while [[ -n $2 ]] && kill -0 "$2" 2>/dev/null; do sleep 0.2; done
    SLURM_FAIR_REQUEST=$1 bash -c "$slurm_fair_checkpoint_command" && saved=true
    slurm_fair_acknowledge "$1" "$saved" $((SECONDS - began))
}

# Where the controller cannot see our files, the answer travels in the job's own comment.
slurm_fair_tell_by_comment() { # request
    local deadline=$((SECONDS + SLURM_FAIR_GRACE)) answer='' saved=0 word words=() kept=()
    local mine="\"restart\": *$slurm_fair_restart,.*\"request\": *$1,"
    until [[ $answer =~ $mine ]]; do
        ((SECONDS < deadline)) || return
        sleep 0.2
        answer=$(cat "$SLURM_FAIR_DIR/ack.json" 2>/dev/null)
    done
    [[ $answer =~ \"saved\":\ *true ]] && saved=1
    read -ra words <<<"$(squeue -h -j "$slurm_fair_job" -o %k)"
    for word in "${words[@]}"; do
        [[ $word == slurm_fair_ack:* || $word == "(null)" ]] || kept+=("$word")
    done
    kept+=("slurm_fair_ack:restart=$slurm_fair_restart,saved=$saved,time=$(slurm_fair_now)")
    scontrol update "JobId=$slurm_fair_job" "Comment=${kept[*]}"
}

slurm_fair_ask_child() { # once for each request
    if ((slurm_fair_requests <= slurm_fair_asked)); then return; fi
    slurm_fair_asked=$slurm_fair_requests
    if [[ $slurm_fair_reports == comment ]]; then
        slurm_fair_background slurm_fair_tell_by_comment "$slurm_fair_requests"
    fi
    slurm_fair_put request.json "\"request\": $slurm_fair_requests"
    if [[ -n $slurm_fair_checkpoint_command ]]; then
        slurm_fair_background slurm_fair_save "$slurm_fair_requests" "$slurm_fair_saver"
        slurm_fair_saver=$!
    elif [[ $slurm_fair_pass_on != none ]]; then
        slurm_fair_pass_signal_on
    fi
}

slurm_fair_on_request() {
    slurm_fair_interrupted=1
    slurm_fair_requests=$((slurm_fair_requests + 1))
    if [[ -n $slurm_fair_child ]]; then slurm_fair_ask_child; fi
}

slurm_fair_on_term() {
    local group
    slurm_fair_interrupted=1
    slurm_fair_ending=1
    for group in $slurm_fair_child $slurm_fair_saver; do kill -s TERM -- "-$group" 2>/dev/null; done
    if [[ -z $slurm_fair_child ]]; then exit 143; fi
}

# Programs that know only TERM save and exit on it. A TERM that asks looks like one that ends the run.
slurm_fair_on_term_as_request() {
    if ((slurm_fair_requests > slurm_fair_answered)) || [[ -z $slurm_fair_child ]]; then
        slurm_fair_on_term
    else
        slurm_fair_on_request
    fi
}

# A process group of its own and the job's standard input, which a plain background command has not.
slurm_fair_background() {
    set -m
    "$@" &
    set +m
}

# A trap ends `wait` early; the shell keeps the true exit code for the next one.
slurm_fair_wait() { # process
    local code
    while :; do
        slurm_fair_interrupted=
        wait "$1"
        code=$?
        if [[ -z $slurm_fair_interrupted ]]; then return "$code"; fi
    done
}

# The program saved and left: answer for it, wait for the requeue; nobody came, so run it again.
slurm_fair_rests() { # its exit code
    local deadline=$((SECONDS + SLURM_FAIR_GRACE)) pause
    [[ $slurm_fair_exits_when_saved == yes && -z $slurm_fair_ending ]] || return 1
    ((slurm_fair_requests > slurm_fair_answered)) || return 1
    (($1 == 0 || $1 == 128 + slurm_fair_signal_number)) || return 1
    slurm_fair_answered=$slurm_fair_requests
    slurm_fair_child=
    trap 'exit 143' TERM
    slurm_fair_acknowledge "$slurm_fair_answered" true 0 || return 1
    while ((SECONDS < deadline)); do
        sleep 1 &
        pause=$!
        wait "$pause"
    done
    return 0
}

slurm_fair_keep_script() { # standard input to a file that only we can read
    slurm_fair_script=$SLURM_FAIR_DIR/script
    if [[ -z $SLURM_FAIR_DIR ]]; then slurm_fair_script=$(mktemp) || return; fi
    (umask 077 && cat >"$slurm_fair_script.$$") && mv -f -- "$slurm_fair_script.$$" "$slurm_fair_script"
}

slurm_fair_set_traps() {
    trap slurm_fair_on_request "$SLURM_FAIR_SIGNAL"
    trap slurm_fair_on_term TERM
    if [[ $SLURM_FAIR_SIGNAL == TERM ]]; then trap slurm_fair_on_term_as_request TERM; fi
}

slurm_fair_main() { # command and arguments
    local code
    while :; do
        slurm_fair_set_traps
        slurm_fair_background "$@"
        slurm_fair_child=$!
        slurm_fair_ask_child
        slurm_fair_wait "$slurm_fair_child"
        code=$?
        slurm_fair_rests "$code" || break
    done
    exit "$code"
}

if ! (umask 077 && mkdir -p -- "$SLURM_FAIR_DIR"); then
    echo "slurm_fair: cannot make $SLURM_FAIR_DIR; the job runs on, but cannot answer the controller" >&2
    SLURM_FAIR_DIR=
fi
# ---- end of the runtime ----
slurm_fair_keep_script <<'SLURM_FAIR_7ceb83a8c2f887e4' || exit 1
python train.py
SLURM_FAIR_7ceb83a8c2f887e4

slurm_fair_command=(/bin/bash "$slurm_fair_script" )
slurm_fair_main "${slurm_fair_command[@]}"
