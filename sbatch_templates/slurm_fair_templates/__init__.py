"""Batch templates with lease support: a user's script inside the runtime that talks to the controller."""

from slurm_fair_templates.options import GATES, PASS_ON, Options, parse_choices
from slurm_fair_templates.quoting import shell_words
from slurm_fair_templates.rendering import render, template_folders, wrap
from slurm_fair_templates.sbatch_options import (
    WITH_VALUE,
    WITHOUT_VALUE,
    CommandLine,
    Given,
    directives,
    split,
)
from slurm_fair_templates.stamp import SIGNALS, StampWords, script_hash, stamped
from slurm_fair_templates.submission import (
    gpus_asked,
    may_not_be_requeued,
    notes,
    notes_on_size,
    refuse_too_late,
    script_of_wrap,
    submit_argv,
)

__all__ = [
    "GATES",
    "PASS_ON",
    "SIGNALS",
    "WITHOUT_VALUE",
    "WITH_VALUE",
    "CommandLine",
    "Given",
    "Options",
    "StampWords",
    "directives",
    "gpus_asked",
    "may_not_be_requeued",
    "notes",
    "notes_on_size",
    "parse_choices",
    "refuse_too_late",
    "render",
    "script_hash",
    "script_of_wrap",
    "shell_words",
    "split",
    "stamped",
    "submit_argv",
    "template_folders",
    "wrap",
]
