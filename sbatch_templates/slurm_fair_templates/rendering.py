"""Batch scripts out of layered templates: the package's, over them the site's, over them the user's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from slurm_fair.errors import TemplateError
from slurm_fair_templates.deadline import gate_seconds
from slurm_fair_templates.options import Options
from slurm_fair_templates.quoting import Ready, directive, shell, shell_lines, shell_words
from slurm_fair_templates.sbatch_options import Given, directive_lines, directives
from slurm_fair_templates.stamp import stamped
from slurm_fair_templates.submission import gpus_asked

PACKAGE = Path(__file__).parent
SITE = Path("/etc/slurm/slurm-fair/templates")
SUFFIX = ".sbatch.j2"
_REPORT_SECONDS = 300  # a job changes its comment no more often


class _Environment(ImmutableSandboxedEnvironment):
    """Every value is quoted unless it is Ready; what a block or macro has put together is."""

    concat: Callable[[Iterable[str]], str] = staticmethod(lambda parts: Ready("".join(parts)))


def template_folders(environ: Mapping[str, str]) -> tuple[Path, Path]:
    """The user's and the site's folder, in this order."""
    home = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config"
    return Path(home) / "slurm-fair" / "templates", SITE


def render(
    name: str,
    script: str,
    options: Options,
    *,
    arguments: Sequence[str] = (),
    sbatch: Mapping[str, str] | None = None,
    search: tuple[Path, Path] | None = None,
) -> str:
    """A batch script to keep and to submit with plain sbatch; `sbatch` are the options for its #SBATCH lines.

    One that asks for no GPUs has no gate: nobody would open it.
    """
    lines = directive_lines(script)
    options_given = [*directives(script), *(Given((), key, value) for key, value in (sbatch or {}).items())]
    given = {option.name: option.value or "" for option in options_given}
    lines += [
        f"#SBATCH --{key}={directive(value)}" for key, value in (sbatch or {}).items() if key != "comment"
    ]
    gated = options.gate != "none" and not {"begin", "hold"} & given.keys()
    gated = gated and gpus_asked(options_given, {}) > 0
    limit = given.get("time-min") or given.get("time", "")
    seconds = gate_seconds(options.gate_seconds, given.get("deadline"), limit, now=None)
    gate = ("hold" if options.gate == "hold" else f"+{seconds}") if gated else ""
    comment = stamped(given.get("comment", ""), options.stamp(gate))
    lines += ["#SBATCH --requeue", "#SBATCH --open-mode=append", f"#SBATCH --comment={directive(comment)}"]
    if gated:
        lines.append("#SBATCH --hold" if options.gate == "hold" else f"#SBATCH --begin=now+{seconds}")
    return _fill(name, script, arguments, options, lines, search)


def wrap(
    script: str, arguments: Sequence[str], options: Options, search: tuple[Path, Path] | None = None
) -> str:
    """A user's own script inside the runtime; its #SBATCH lines stand first, ours come as argv (submit_argv)."""
    if not script.startswith("#!"):
        raise TemplateError(
            "script: the first line must be #! and the path of an interpreter, as sbatch wants it"
        )
    return _fill(options.template, script, arguments, options, directive_lines(script), search)


def _fill(
    name: str,
    script: str,
    arguments: Sequence[str],
    options: Options,
    lines: Sequence[str],
    search: tuple[Path, Path] | None,
) -> str:
    """Render one template with everything it may use."""
    _check_script(script)
    values = {
        "directives": [Ready(line) for line in lines],
        "script": shell_lines(script.removesuffix("\n")),
        "interpreter": shell_words(interpreter(script)),
        "arguments": shell_words(arguments),
        "signal": options.signal,
        "grace_seconds": options.grace_seconds,
        "gpus_choices": ",".join(map(str, options.gpus_choices)),
        "gpus_reference": options.gpus_reference or "",
        "lr_rule": options.lr_rule,
        "app": options.app,
        "lease_py": options.lease_py,
        "publish_dir": options.publish_dir,
        "checkpoint_command": options.checkpoint_command,
        "pass_on": options.pass_on,
        "exits_when_saved": options.exits_when_saved or options.signal == "TERM",
        "reports": options.reports,
        "report_seconds": max(options.gate_seconds // 2, _REPORT_SECONDS),  # the gate is two leases long
    }
    folders = template_folders(os.environ) if search is None else search
    try:
        return str(_environment(folders).get_template(name + SUFFIX).render(values))
    except jinja2.TemplateNotFound as error:
        places = ", ".join(str(folder) for folder in (*folders, PACKAGE))
        raise TemplateError(f"template {error}: not found in {places}") from None
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"{error.filename or name}:{error.lineno}: {error.message}") from None
    except jinja2.TemplateError as error:
        raise TemplateError(f"template {name}: {error}") from None


def _environment(folders: tuple[Path, Path]) -> jinja2.Environment:
    """The layers; `user/`, `site/` and `package/` before a name say which layer is meant."""
    layers = {"user": folders[0], "site": folders[1], "package": PACKAGE}
    loaders = {layer: jinja2.FileSystemLoader(folder) for layer, folder in layers.items()}
    environment = _Environment(
        loader=jinja2.ChoiceLoader([*loaders.values(), jinja2.PrefixLoader(loaders)]),
        undefined=jinja2.StrictUndefined,
        finalize=shell,
        autoescape=False,  # a shell script: `shell` quotes, HTML's rules would break it
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["directive"] = directive
    return environment


def interpreter(script: str) -> tuple[str, ...]:
    """The #! line as the kernel takes it: a path, and all the rest as one argument; bash where there is none."""
    first = script.partition("\n")[0]
    words = first.removeprefix("#!").split(maxsplit=1) if first.startswith("#!") else []
    return tuple(word.rstrip() for word in words) or ("/bin/bash",)


def _check_script(script: str) -> None:
    """Refuse what sbatch refuses, before the wrapping hides it."""
    if not script.strip():
        raise TemplateError("script: it is empty")
    if "\0" in script:
        raise TemplateError("script: it has a zero byte, so it is a program; write a script that starts it")
    if "\r\n" in script:
        raise TemplateError("script: its lines end as on DOS (\\r\\n); mend it with dos2unix")
