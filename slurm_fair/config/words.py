"""The configuration in words: one line per key, from which the commented file and docs/configuration.md are made.

`python -m slurm_fair.config.words` prints docs/configuration.md anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from slurm_fair.config.checks import CHOICES
from slurm_fair.config.sections import Config
from slurm_fair.config.tree import DEFAULT_PATH
from slurm_fair.errors import PolicyError
from slurm_fair.policy.registry import DEFAULT_POLICY, kind_of, load, names
from slurm_fair.policy.setting_words import SettingWords, explanation_of

SECTIONS = {
    "scope": "Which jobs are managed. Jobs without GPUs, heterogeneous jobs and jobs in reservations are left to "
    "plain Slurm in any case; what they hold is charged to their accounts.",
    "lease": "The lease rules. All lengths are seconds.",
    "policy": "Who gets the next lease. A policy's own settings go into a section [policy.<name>].",
    "tenants": "A tenant is a Slurm account.",
    "slurm": "How to talk to Slurm.",
    "storage": "The journal: what was seen, decided and done.",
    "throughput": "What is learned of the speeds of jobs, from what they report.",
    "profiler": "Short turns on each GPU type for jobs whose speed is not known there and whose users asked for "
    "it (fair-sbatch --profile). They come before the policy, on free GPUs; nobody is stopped for them.",
    "guard": "Limits on what one tick may do; what exceeds them waits for the next tick.",
    "log": "The daemon's log, on standard error.",
}
KEYS = {
    "scope.partitions": "managed partitions; empty: every partition that has GPUs",
    "scope.accounts": "managed accounts (tenants); empty: all",
    "scope.qos": "managed QOS; empty: all",
    "scope.plain": "batch jobs that do not say that they can save. quota: they are never stopped, and start "
    "within their account's own share; revoke: they may use idle GPUs, and are requeued without a question when "
    "their lease is over, if their user allows a requeue; leave: they are left to plain Slurm",
    "scope.interactive": "srun and salloc. leave: they are left to plain Slurm; gate: they wait behind a gate for "
    "GPUs of their account's own share, and are never stopped",
    "scope.unplanned": "jobs that nobody can plan: heterogeneous ones, and those that ask for several GPU types. "
    "leave: they are left to plain Slurm; refuse: the submit hook refuses them, and says why",
    "lease.term": "length of a lease: who holds GPUs may keep them so long before others are weighed again",
    "lease.interval": "when the cluster is looked at. auto: when something has changed, when leases are renewed, "
    "and at least every 10 s; a number: every so many seconds, at most a third of the term is sensible",
    "lease.interval_min": "the least time between two looks that follow changes (interval = auto), and between "
    "two questions whether something has changed; looks may also come less often, so that they take no more "
    "than a twentieth of one core of slurmctld",
    "lease.grace": "how long a job may save its state after it was asked to give its GPUs back, where it names no "
    "grace of its own; fair-sbatch always names one (--grace, or 120 s)",
    "lease.max_grace": "the most that a job gets which asks for its own grace (fair-sbatch --grace)",
    "lease.min_runtime": "a job that was started is not asked before it ran so long",
    "lease.align": "rolling: each lease ends a term after its start, and large jobs find room by reserve_after; "
    "aligned: all end together",
    "lease.renewal": "with rolling leases: how long a renewed lease lasts, at most a term; auto: a quarter of the "
    "term, so that who had a term makes way sooner; term: a term. Shorter leases that are over are "
    "renewed together, a sixteenth of a renewed lease apart (14 s with a term of 900 s), 15 s at most; until "
    "then others may get their GPUs",
    "lease.reserve_after": "with rolling leases: how long a gang that stands first and fits nowhere waits at most "
    "before nodes are set aside for it (fair: reserve_part), and a gang that has run a term more; term: as long "
    "as a lease, never: no nodes are set aside",
    "lease.start_timeout": "a job whose gate is open for so long without starting gives its GPUs to the next one",
    "lease.publish_dir": "folder of the daemon's account alone (mode 0755), where users' commands find the queue "
    "and jobs the end of their lease; jobs on other machines need a shared file system; empty: none",
    "policy.name": "the policy in force; docs/fair.md says what a site sets of fair",
    "policy.plan_limit": "seconds in which a plan must be made, and at most half a lease, or 5 s. A policy that "
    "calls a solver runs in a process of its own, which is killed then: its quick plan stands in, or leases stay "
    "as they are",
    "policy.plan_memory_mb": "address space that the process of such a policy may take, in MB, 256 or more",
    "policy.late_plan": "what becomes of a plan that such a policy makes too late. drop: it is given up; next: "
    "leases stay as they are, and what of it still fits counts at the next look",
    "policy.settings": "settings of a policy, in a section of its name",
    "tenants.weights": "shares by account, such as { vision = 2 }, in the place of its RawShares in Slurm; "
    "the other accounts keep Slurm's",
    "tenants.memory_days": "how long a tenant without jobs still counts in everybody's quota",
    "tenants.half_life": "seconds after which what a tenant had and was owed counts half when tenants are "
    "compared, as Slurm's PriorityDecayHalfLife; 0: it counts for ever, as in the paper. Reports tell all of it",
    "tenants.counted": "who counts in everybody's quota. seen: a tenant from its first job on, as long as "
    "`memory_days` says; all: each account that Slurm knows shares for, from the beginning",
    "tenants.job_share": "how a tenant's share is owed to its jobs. proportional: by their weights, as in the "
    "paper; max-min: what small jobs cannot use is owed to their siblings",
    "tenants.gpu_weights": "what a GPU of each type counts in charges, quotas and reports, such as "
    "{ a100 = 1, v100 = 0.5 }; a type that is not named counts 1, a GPU without a type is named gpu. "
    '"slurm": as the TRESBillingWeights of the managed partitions have it',
    "slurm.gate": "what keeps a waiting job back. begin: a begin time that Slurm lets pass by itself; "
    "hold: a hold, which the controller turns into such a begin time when it first sees the job",
    "slurm.transport": "how the daemon talks to Slurm. cli: by Slurm's commands; "
    "auto: the best way of this version, which is cli",
    "slurm.reports": "how jobs answer. auto: in their own folder, and in their Slurm comment where that is "
    "not heard; file, comment: that way alone; none: not at all. What they report of their progress goes the same "
    "ways",
    "slurm.conf": "slurm.conf to use; empty: $SLURM_CONF, else the usual place, else Slurm's own search",
    "slurm.bin_dir": "folder of Slurm's commands; empty: from the PATH",
    "slurm.timeout": "seconds after which a Slurm command is given up",
    "slurm.client_timeout": "MessageTimeout of the daemon's own Slurm commands: "
    "a slurmctld that does not answer delays it only that long",
    "slurm.requeue_delay": "seconds that Slurm keeps a requeued job back by itself (`slurm-fair check` tells)",
    "slurm.notice": "leave a held job of the daemon's own in the queue, by which a second daemon with another "
    "storage is refused",
    "storage.dir": "folder of the journal, on a local disk, for the daemon's account alone",
    "storage.keep_days": "how long whole ticks are kept; what reports are made of is kept longer",
    "storage.max_mb": "size above which ticks go earlier, then the events and accounts of tenants of long ago",
    "throughput.learn": "learn how fast jobs of a class are and how long they run, and tell policies so of the "
    "next ones; false: of each job only what it reports itself",
    "throughput.alike": "what makes two jobs of one tenant a class. name: the job name without its numbers; "
    "script: the batch script, of which fair-sbatch stamps a hash; model: the model that they report; all: all "
    "three; first: model, script or name, the first that is known. What no job says, its name stands for",
    "throughput.half_life_days": "days after which a measurement counts half",
    "throughput.links": "rates of the links between GPUs by type, such as { a100 = { link = 6e10, net = 5e9 } }, "
    "as `slurm-fair bench-links` prints them: link between GPUs of one node, net between nodes, bus and host what "
    "the GPUs of a node share; speed is that of one GPU against the first type. Only what it is against net "
    "counts; a type that is not named is guessed",
    "profiler.enabled": "measure jobs' speeds in short turns on each GPU type; "
    "`throughput.learn` must be true, and `slurm.reports` not none",
    "profiler.gpus": "GPUs that such turns may have at a time; a job that asks for more gets none",
    "profiler.seconds": "length of a turn, from the start of its job, unless enough steps are reported before",
    "profiler.gpu_hours": "GPU-hours a day (UTC) for such turns: one begins only where all of it is left",
    "profiler.iterations": "steps that a job must have reported before its turn ends early, 10 to 50 as a rule",
    "profiler.tries": "turns that a job gets on one GPU type, if no speed comes of them",
    "guard.max_revokes": "jobs asked and requeued in one tick, together at most; requeues come first",
    "guard.max_opens": "gates opened in one tick, at most",
    "guard.max_closes": "gates closed or renewed in one tick, at most",
    "guard.shrink_alarm": "fraction of the queue that may vanish between two looks; "
    "more is believed only when seen again",
    "log.level": "debug, info, warning or error: lines below it are not written",
    "log.json": "one JSON object a line instead of text",
}
_HEAD = f"""\
# The configuration of slurm_fair. The usual place is {DEFAULT_PATH}; $SLURM_FAIR_CONFIG or --config name another.
# Every key is optional; what stands here behind a # is the default. `slurm-fair check` looks whether it fits
# this cluster, and `systemctl reload slurm-fair` (SIGHUP) takes a changed file over; a bad one is refused.
"""


def keys() -> Iterator[tuple[str, str, Any]]:
    """Section, key and default of everything that can be set, in order."""
    default = Config()
    for section in fields(Config):
        part = getattr(default, section.name)
        if is_dataclass(part):
            for key in fields(part):
                yield section.name, key.name, getattr(part, key.name)


def explained_policies() -> list[str]:
    """Policies that explain their settings, the one that is in force by default first."""
    explained = [policy for policy in names() if explanation_of(policy) is not None]
    return sorted(explained, key=lambda policy: policy != DEFAULT_POLICY)


def policy_keys(policy: str) -> Iterator[tuple[str, Any]]:
    """Setting and default of everything that can be set for a policy, in its own order."""
    usual: Any = load(policy, {})
    for setting in fields(usual):
        yield setting.name, getattr(usual, setting.name)


def _explained(policy: str) -> SettingWords:
    explanation = explanation_of(policy)
    if explanation is None:
        raise PolicyError(f"policy {policy} does not explain its settings")
    return explanation


def toml(value: Any) -> str:
    """A default as TOML writes it."""
    if isinstance(value, Mapping):
        return "{}"
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def commented_file(given: Mapping[str, Any], partitions: tuple[str, ...] = ()) -> str:
    """The configuration file with every key; only the keys `given` are in force."""
    lines, now = [_HEAD.rstrip()], ""
    for section, key, default in keys():
        if section != now:
            lines += ["", f"# {SECTIONS[section]}", f"[{section}]"]
            now = section
        name = f"{section}.{key}"
        if name == "policy.settings":
            lines += ["", f"# {KEYS[name]}", *_commented_policies()]
            continue
        lines += ["", f"# {KEYS[name]}{_choice(CHOICES.get(name, ()))}"]
        if name == "scope.partitions" and partitions:
            lines.append(f"# with GPUs in this cluster: {toml(partitions)}")
        lines.append(f"{key} = {toml(given[name])}" if name in given else f"#{key} = {toml(default)}")
    return "\n".join(lines) + "\n"


def _commented_policies() -> Iterator[str]:
    for policy in explained_policies():
        words = _explained(policy)
        yield f"#[policy.{policy}]"
        for key, default in policy_keys(policy):
            yield f"# {words.of[key]}{_choice(_choices_of(policy, key))}"
            yield f"#{key} = {toml(default)}"


def _choice(choices: Sequence[str]) -> str:
    return f" ({' | '.join(choices)})" if choices else ""


def _choices_of(policy: str, key: str) -> Sequence[str]:
    """The words that a setting of a policy may be; none where it is no word."""
    hint = get_type_hints(kind_of(policy))[key]
    return get_args(hint) if get_origin(hint) is Literal else ()


def config_page() -> str:
    lines = [_PAGE_HEAD.rstrip()]
    now = ""
    for section, key, default in keys():
        if section != now:
            lines += _table(section, SECTIONS[section])
            now = section
        name = f"{section}.{key}"
        shown = "[policy.<name>]" if name == "policy.settings" else key
        lines.append(_row(shown, default, CHOICES.get(name, ()), KEYS[name]))
    for policy in explained_policies():
        words = _explained(policy)
        lines += _table(f"policy.{policy}", words.policy)
        for key, default in policy_keys(policy):
            lines.append(_row(key, default, _choices_of(policy, key), words.of[key]))
    return "\n".join(lines) + "\n"


def _table(section: str, words: str) -> tuple[str, ...]:
    return "", f"## [{section}]", "", words, "", "| key | default | meaning |", "| --- | --- | --- |"


def _row(shown: str, default: Any, choices: Sequence[str], words: str) -> str:
    choice = f" One of {', '.join(f'`{word}`' for word in choices)}." if choices else ""
    return f"| `{shown}` | `{toml(default)}` | {_cell(words)}.{choice} |"


def _cell(text: str) -> str:
    sentence = text[0].upper() + text[1:]
    return sentence.replace("|", "\\|")


_PAGE_HEAD = f"""\
# Configuration

One TOML file: `{DEFAULT_PATH}`, or the one that `$SLURM_FAIR_CONFIG` or `--config` names. Every key is optional.
An unknown key or a value of the wrong kind is refused with one line that names the nearest known key; then nothing
starts (exit code 2).
`slurm-fair init` writes this file with comments, `slurm-fair check` says whether it fits the cluster.
`systemctl reload slurm-fair` (SIGHUP) takes changes over; a bad file is refused and the old configuration stays.
`[storage] dir`, `[slurm] conf`, `[slurm] client_timeout` and `[slurm] notice` wait for a restart, as the log says.
So does a change of slurm.conf itself.
"""

if __name__ == "__main__":
    print(config_page(), end="")
