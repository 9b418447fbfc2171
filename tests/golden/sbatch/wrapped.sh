#!/bin/bash
#SBATCH --job-name=vision
#SBATCH --gres=gpu:2   # two of them
#SBATCH -t 10
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
slurm_fair_reports=auto
slurm_fair_report_seconds=900
# ---- slurm_fair runtime, protocol version 1: between the controller's signal and the training program ----
slurm_fair_restart=${SLURM_RESTART_COUNT:-0}
slurm_fair_signal_number=$(kill -l "$SLURM_FAIR_SIGNAL")
slurm_fair_written=0
slurm_fair_asked=0
slurm_fair_answered=0
slurm_fair_child=
slurm_fair_saver=
slurm_fair_watcher=
slurm_fair_reporter=
slurm_fair_asked_at=
slurm_fair_interrupted=
slurm_fair_ending=
slurm_fair_folder=
slurm_fair_open=
slurm_fair_look_seconds=${slurm_fair_look_seconds:-30} # a job that did not answer is requeued so long after its grace at the latest

# The size of this run. What sbatch put into the environment of an elastic job is the size that was asked for, and
# srun would give its steps no more (slurm-facts: stale-gpu-variables).
slurm_fair_size() {
    local shown
    export SLURM_FAIR_NODES=${SLURM_JOB_NUM_NODES:-1}
    export SLURM_FAIR_GPUS=$((${SLURM_GPUS_ON_NODE:-0} * SLURM_FAIR_NODES)) SLURM_FAIR_LR_FACTOR=1
    if [[ -z $SLURM_FAIR_GPUS_CHOICES ]]; then return 0; fi
    if ((SLURM_FAIR_NODES > 1)) && [[ -n ${SLURM_GPUS:-} ]]; then # they may not lie evenly on its nodes
        shown=$(squeue -h -j "$SLURM_JOB_ID" -O tres-alloc:300 2>/dev/null)
        if [[ $shown =~ gres/gpu=([0-9]{1,5})([^0-9]|$) ]]; then SLURM_FAIR_GPUS=${BASH_REMATCH[1]}; fi
    fi
    # With the type before the number, where one was asked for.
    [[ -z ${SLURM_GPUS:-} ]] || SLURM_GPUS=${SLURM_GPUS%"${SLURM_GPUS##*:}"}$SLURM_FAIR_GPUS
    [[ -z ${SLURM_GPUS_PER_NODE:-} ]] ||
        SLURM_GPUS_PER_NODE=${SLURM_GPUS_PER_NODE%"${SLURM_GPUS_PER_NODE##*:}"}$SLURM_GPUS_ON_NODE
    SLURM_FAIR_LR_FACTOR=$(slurm_fair_lr_factor)
}

# What the learning rate of the usual size is to be multiplied by in this run; 1 where the rule says nothing of it.
slurm_fair_lr_factor() {
    local usual=${SLURM_FAIR_GPUS_REFERENCE:-${SLURM_FAIR_GPUS_CHOICES%%,*}}
    LC_ALL=C awk -v gpus="$SLURM_FAIR_GPUS" -v usual="$usual" -v rule="$SLURM_FAIR_LR_RULE" 'BEGIN {
        if (rule == "linear" || rule == "sqrt") { rate[gpus] = gpus; rate[usual] = usual }
        else for (at = split(rule, pairs, ","); at > 0; at--) { split(pairs[at], pair, "="); rate[pair[1] + 0] = pair[2] + 0 }
        factor = rate[gpus] > 0 && rate[usual] > 0 ? rate[gpus] / rate[usual] : 1
        printf "%.9g\n", rule == "sqrt" ? sqrt(factor) : factor
    }' 2>/dev/null || echo 1
}

slurm_fair_now() { printf '%(%s)T' -1; }

# A line in the job's own output; what others wrote is in it.
slurm_fair_say() { # text
    local LC_ALL=C text="slurm_fair: $*"
    text=${text//[^[:print:]]/?}
    printf '%s\n' "${text:0:300}" >&2
}

# Go into a folder, made if need be, if it is ours: no link is followed, and nobody else may write there.
slurm_fair_enter() { # name
    local at
    at=$(readlink /proc/self/cwd)
    mkdir -m 711 -- "$1" 2>/dev/null
    cd -P -- "./$1" 2>/dev/null && [[ $(readlink /proc/self/cwd) == "${at%/}/$1" && -O . ]] && chmod 711 .
}

# Whether what we put into a folder of all can be exchanged by nobody: it is root's (or ours) and sticky, or closed.
slurm_fair_is_safe() { # folder
    local owner mode
    read -r owner mode < <(stat -c '%u %a' -- "$1" 2>/dev/null) || return 1
    [[ $owner == 0 || $owner == "$EUID" ]] && ((8#$mode & 8#1000 || !(8#$mode & 8#22)))
}

# Whether every account may pass on its way to a folder; else the controller may not, and is told by our comment.
slurm_fair_is_open() { # path
    local at=$1 above=() mode
    while [[ $at == /*/* ]]; do at=${at%/*} above+=("${at%/*}"); done
    for mode in $(stat -c %a -- "$1" "${above[@]:-/}" 2>/dev/null); do ((8#$mode & 1)) || return 1; done
}

# Where the messages lie. They are for the controller in the working folder; else for the programs of this node.
slurm_fair_make_folder() {
    local here folder
    here=$(readlink "/proc/$$/cwd")
    if (slurm_fair_enter .slurm-fair && slurm_fair_enter "$slurm_fair_job"); then
        slurm_fair_folder=${here%/}/.slurm-fair/$slurm_fair_job
        if slurm_fair_is_open "$slurm_fair_folder"; then slurm_fair_open=yes; fi
        return
    fi
    for folder in /tmp /dev/shm /var/tmp; do
        slurm_fair_is_safe "$folder" && folder=$(mktemp -d -p "$folder" 2>/dev/null) || continue
        trap "rm -rf -- '$folder'" EXIT
        mkdir -m 700 -- "$folder/$slurm_fair_job" && slurm_fair_folder=$folder/$slurm_fair_job && break
    done
    case $slurm_fair_reports in
        auto | comment) slurm_fair_say "$SLURM_FAIR_DIR is not this user's alone: answers go by the job's comment" ;;
        *) slurm_fair_say "$SLURM_FAIR_DIR is not this user's alone: the job runs, but cannot answer the controller" ;;
    esac
    SLURM_FAIR_DIR=$slurm_fair_folder
}

# Into the folder of messages, if it still is where it was made: others may write in the working folder.
slurm_fair_go_in() {
    [[ -n $slurm_fair_folder ]] && cd -P -- "$slurm_fair_folder" 2>/dev/null &&
        [[ $(readlink /proc/self/cwd) == "$slurm_fair_folder" && -O . && -O .. ]]
}

slurm_fair_get() ( # name of a message
    slurm_fair_go_in && [[ -f $1.json && -O $1.json ]] && head -c 65536 -- "$1.json"
) 2>/dev/null

# Write beside and rename: a reader sees the old file or the new one. A later run's file is left alone.
slurm_fair_put() ( # name of a message, its mode, JSON members
    beside=.$1.json.$BASHPID
    newest='"restart": *([0-9]+)'
    slurm_fair_go_in || exit 1
    [[ $(slurm_fair_get "$1") =~ $newest ]] && ((BASH_REMATCH[1] > slurm_fair_restart)) && exit 1
    umask 077
    [[ ! -e $beside ]] || rm -f -- "$beside"
    set -C
    printf '{"v": 1, "what": "%s", "job": "%s", "restart": %d, %s, "time": %d}\n' \
        "$1" "$slurm_fair_job" "$slurm_fair_restart" "$3" "$(slurm_fair_now)" >"$beside" &&
        chmod "$2" "$beside" && mv -f -- "$beside" "$1.json"
)

slurm_fair_acknowledge() { # request, true|false, seconds
    slurm_fair_put ack 644 "\"request\": $1, \"saved\": $2, \"step\": null, \"save_s\": $3"
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

# Put a token into the job's own comment, in the place of the last one of its name; the rest stays as it was.
# One process of ours at a time: the second would undo what the first one wrote.
slurm_fair_change_comment() { # name of the token, its text
    local comment token=" *slurm_fair_$1:[^[:space:]]*" until=$((SECONDS + 5)) code=1
    until [[ -z $slurm_fair_folder ]] || (slurm_fair_go_in && mkdir -- .comment) 2>/dev/null || ((SECONDS >= until)); do sleep 0.1; done
    if comment=$(squeue -h -j "$slurm_fair_job" -o %k 2>/dev/null) && [[ -n $comment ]]; then
        [[ $comment == "(null)" ]] && comment=
        while [[ $comment =~ $token ]]; do comment=${comment/"${BASH_REMATCH[0]}"/}; done
        comment+=" slurm_fair_$1:$2"
        scontrol update "JobId=$slurm_fair_job" "Comment=${comment# }" 2>/dev/null
        code=$?
    fi
    (slurm_fair_go_in && rmdir -- .comment) 2>/dev/null
    return "$code"
}

# Where the controller cannot see our files, the answer travels in the job's own comment.
slurm_fair_tell_by_comment() { # true|false
    local saved=0
    [[ $1 == true ]] && saved=1
    slurm_fair_change_comment ack \
        "job=$slurm_fair_job,restart=$slurm_fair_restart,saved=$saved,time=$(slurm_fair_now)"
}

# The numbers of the program's report as they stand in the comment; nothing where there is none of this run.
slurm_fair_reported() {
    local said key number values='' head="\"job\": \"$slurm_fair_job\", \"restart\": $slurm_fair_restart,"
    said=$(slurm_fair_get report)
    [[ $said == *"$head"* ]] || return 1
    for key in step steps epoch epochs batch_size steps_per_s samples_per_s time; do
        number="\"$key\": *([0-9][0-9.eE+-]{0,23})[,}]"
        if [[ $said =~ $number ]]; then values+=",$key=${BASH_REMATCH[1]}"; fi
    done
    [[ $values == *,time=* ]] && printf '%s' "job=$slurm_fair_job,restart=$slurm_fair_restart$values"
}

# Beside the program: tells by the comment what it reports, after a minute and then once a lease.
slurm_fair_tell_reports() {
    local said last='' every=60 until
    while :; do
        until=$((SECONDS + every))
        while ((SECONDS < until)); do
            slurm_fair_runs || return 0
            sleep 5
        done
        every=$slurm_fair_report_seconds
        said=$(slurm_fair_reported) && [[ $said != "$last" ]] || continue
        slurm_fair_change_comment report "$said" && last=$said
    done
}

slurm_fair_begin_to_tell() { # where the controller does not see our files
    if [[ $slurm_fair_reports == comment || $slurm_fair_reports == auto && $slurm_fair_open != yes ]]; then
        slurm_fair_background slurm_fair_tell_reports
        slurm_fair_reporter=$!
    fi
}

# Why we were asked, and for whom, where the site publishes it for this run and this request.
slurm_fair_why() { # time of the request
    local said when='"asked": *\{ *"time": *([0-9]+)' why='"why": *"([^"\\]+)' run='"restart": *([0-9]+)'
    local whom='"for": *\[ *\{ *"job": *"([^"\\]+)", *"tenant": *"([^"\\]*)"(.*)'
    said=$(head -c 65536 -- "$SLURM_FAIR_PUBLISH_DIR/$slurm_fair_job.json" 2>/dev/null)
    [[ $said =~ $run ]] && ((BASH_REMATCH[1] == slurm_fair_restart)) || return 1
    [[ $said =~ $when ]] && ((BASH_REMATCH[1] >= $1 - 60)) || return 1
    said=${said#*\"asked\":}
    [[ $said =~ $why ]] && why=${BASH_REMATCH[1]} || why="its lease is over"
    if [[ $said =~ $whom && ${BASH_REMATCH[1]} == "$slurm_fair_job" ]]; then
        why+=", it is to run elsewhere"
    elif [[ $said =~ $whom ]]; then
        why+=", for job ${BASH_REMATCH[1]}${BASH_REMATCH[2]:+ of ${BASH_REMATCH[2]}}"
        [[ ${BASH_REMATCH[3]} == *'"job":'* ]] && why+=" and others"
    fi
    printf '%s' "$why"
} 2>/dev/null

# Says in the job's output what happens, and tells by the comment what the controller has not read.
# The requeue may come a moment after the answer: what there is to say is said before the run ends.
slurm_fair_watch() { # request, when it came
    local answer why='' until=$((SECONDS + 2)) deadline=$((SECONDS + SLURM_FAIR_GRACE)) saved=false asked last
    local mine="\"job\": \"$slurm_fair_job\", \"restart\": $slurm_fair_restart, .*\"request\": $1, "
    local step='"step": ([0-9]+)' seconds='"save_s": ([0-9.]+)'
    printf -v asked 'asked to save at %(%H:%M:%S)T' "$2"
    trap 'slurm_fair_ending=1; trap "" TERM' TERM
    while slurm_fair_runs && ((SECONDS < deadline)); do
        last=$slurm_fair_ending # what is read when the signal comes is read once more
        answer=$(slurm_fair_get ack)
        [[ $answer =~ $mine ]] || answer=
        if [[ -n $asked ]]; then why=$(slurm_fair_why "$2"); fi
        if [[ -n $asked ]] && { [[ -n $why$answer$last ]] || ((SECONDS >= until)); }; then
            slurm_fair_say "$asked${why:+ ($why)}"
            asked=
        fi
        if [[ -n $answer || -n $last ]]; then break; fi
        if [[ -z $asked ]] && { [[ -n $why ]] || ((SECONDS >= until + 8)); } && slurm_fair_is_withdrawn; then
            slurm_fair_say_it_goes_on "$1" "nobody needs its GPUs any more"
            return 0
        fi
        [[ -n $slurm_fair_ending ]] || { sleep 0.2; } 2>/dev/null # bash would tell of a sleep that was ended
    done
    if [[ -z $answer ]]; then # its requeue comes with the look after the grace
        [[ -z $asked ]] || slurm_fair_say "$asked"
        slurm_fair_sleep "$slurm_fair_look_seconds" && slurm_fair_say_it_goes_on "$1" "nobody took the GPUs"
        return 0
    fi
    [[ $answer =~ \"saved\":\ true ]] && saved=true
    [[ $answer =~ $step ]] && step=" step ${BASH_REMATCH[1]}" || step=
    [[ $answer =~ $seconds ]] && seconds=" in ${BASH_REMATCH[1]} s" || seconds=
    if [[ $saved == true ]]; then
        slurm_fair_say "saved$step$seconds, waiting to be requeued"
    else
        slurm_fair_say "nothing could be saved, waiting to be requeued"
    fi
    if [[ -n $slurm_fair_ending ]]; then return 0; fi
    if [[ $slurm_fair_reports == comment || $slurm_fair_reports == auto && $slurm_fair_open != yes ]]; then
        slurm_fair_tell_by_comment "$saved"
    elif [[ $slurm_fair_reports == auto ]]; then
        slurm_fair_sleep 3 && slurm_fair_tell_by_comment "$saved"
    fi
    slurm_fair_sleep $((deadline - SECONDS)) && slurm_fair_say_it_goes_on "$1" "nobody took the GPUs"
}

# Whether a request that was not answered yet is withdrawn: the job is published with a lease that ends later, and
# nothing is asked of it.
slurm_fair_is_withdrawn() {
    local said run='"restart": *([0-9]+)' end='"lease_end": *([0-9]{1,12})'
    said=$(head -c 65536 -- "$SLURM_FAIR_PUBLISH_DIR/$slurm_fair_job.json" 2>/dev/null)
    [[ $said != *'"asked"'* && $said =~ $run ]] && ((BASH_REMATCH[1] == slurm_fair_restart)) || return 1
    [[ $said =~ $end ]] && ((BASH_REMATCH[1] > $(slurm_fair_now)))
} 2>/dev/null

slurm_fair_say_it_goes_on() { # request, why; nothing where a newer request has come
    local number='"request": *([0-9]+)'
    if [[ $(slurm_fair_get request) =~ $number ]] && ((BASH_REMATCH[1] > $1)); then return 0; fi
    slurm_fair_say "$2, the job goes on"
}

slurm_fair_runs() { [[ -e /proc/$$/cwd ]]; }

slurm_fair_sleep() { # seconds; false if the job has ended meanwhile
    local until=$((SECONDS + $1))
    while ((SECONDS < until)); do
        slurm_fair_runs && [[ -z $slurm_fair_ending ]] || return 1
        sleep 0.2
    done
}

slurm_fair_say_run() {
    local answer step="\"job\": \"$slurm_fair_job\", .*\"saved\": true, \"step\": ([0-9]+)" where=${SLURM_JOB_NODELIST:-$HOSTNAME}
    if ((slurm_fair_restart == 0)); then return; fi
    answer=$(slurm_fair_get ack)
    [[ $answer =~ $step ]] && step=", step ${BASH_REMATCH[1]} is saved" || step=
    slurm_fair_say "run $((slurm_fair_restart + 1)) begins on $where$step"
}

slurm_fair_put_request() { # if it is not written yet
    if ((slurm_fair_requests <= slurm_fair_written)); then return; fi
    slurm_fair_written=$slurm_fair_requests
    slurm_fair_put request 600 "\"request\": $slurm_fair_requests"
}

slurm_fair_ask_child() { # once for each request
    if ((slurm_fair_requests <= slurm_fair_asked)); then return; fi
    slurm_fair_asked=$slurm_fair_requests
    slurm_fair_asked_at=$(slurm_fair_now)
    slurm_fair_background slurm_fair_watch "$slurm_fair_requests" "$slurm_fair_asked_at"
    slurm_fair_watcher=$!
    slurm_fair_put_request
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
    if [[ -z $slurm_fair_child ]]; then slurm_fair_leave 143; fi
}

# What ends first of the run's processes may take the others with it: the last words come before.
slurm_fair_leave() { # exit code
    if [[ -n $slurm_fair_reporter ]]; then kill -s KILL -- "-$slurm_fair_reporter" 2>/dev/null; fi
    if [[ -n $slurm_fair_watcher ]]; then
        kill -s TERM -- "-$slurm_fair_watcher" 2>/dev/null
        slurm_fair_wait "$slurm_fair_watcher"
        # It was ended before it could set its trap.
        if (($? == 128 + 15)); then slurm_fair_ending=1 && slurm_fair_watch "$slurm_fair_requests" "$slurm_fair_asked_at"; fi
    fi
    exit "$1"
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
    trap 'slurm_fair_leave 143' TERM
    slurm_fair_acknowledge "$slurm_fair_answered" true 0 || return 1
    while ((SECONDS < deadline)); do
        sleep 1 &
        pause=$!
        wait "$pause"
    done
    return 0
}

# The script is run out of a descriptor: a name that leads to it could be made to lead elsewhere.
slurm_fair_keep_script() {
    local folder file number=
    for folder in /tmp /dev/shm /var/tmp; do
        slurm_fair_is_safe "$folder" && file=$(mktemp -p "$folder" 2>/dev/null) || continue
        printf '%s\n' "$slurm_fair_text" >"$file" && exec {number}<"$file"
        rm -f -- "$file"
        [[ -n $number && -O /dev/fd/$number ]] && break
        number=
    done
    # No room for a file anywhere: a pipe does it too, but can be read only once.
    if [[ -z $number ]]; then exec {number}< <(printf '%s\n' "$slurm_fair_text"); fi
    slurm_fair_script=/proc/$$/fd/$number
    unset slurm_fair_text
}

slurm_fair_set_traps() {
    trap slurm_fair_on_request "$SLURM_FAIR_SIGNAL"
    trap slurm_fair_on_term TERM
    if [[ $SLURM_FAIR_SIGNAL == TERM ]]; then trap slurm_fair_on_term_as_request TERM; fi
}

slurm_fair_main() { # command and arguments
    local code
    slurm_fair_begin_to_tell
    while :; do
        slurm_fair_set_traps
        slurm_fair_put_request
        slurm_fair_background "$@"
        slurm_fair_child=$!
        slurm_fair_ask_child
        slurm_fair_wait "$slurm_fair_child"
        code=$?
        slurm_fair_rests "$code" || break
    done
    slurm_fair_leave "$code"
}

slurm_fair_size
slurm_fair_make_folder
slurm_fair_say_run
# ---- end of the runtime ----
slurm_fair_text='#!/bin/bash -l
#SBATCH --job-name=vision
#SBATCH --gres=gpu:2   # two of them

# a comment
#SBATCH -t 10
srun python train.py "$@"
#SBATCH --hold'
slurm_fair_keep_script

slurm_fair_command=(/bin/bash -l "$slurm_fair_script" --lr 0.1 'it'"'"'s')
slurm_fair_main "${slurm_fair_command[@]}"
