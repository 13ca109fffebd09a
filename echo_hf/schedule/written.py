"""The workflow file that has GitHub or the Hub take turns, and the steps to set it up once."""

from __future__ import annotations

import os
import re
import shlex
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal, get_args

import echo_hf
from echo_hf._infra.atomic import replace_file
from echo_hf.config.loading import load_config
from echo_hf.config.runs import find_run_of_config, find_runs_folder
from echo_hf.errors import ConfigError, unknown
from echo_hf.schedule.turn import get_schedule

ScheduleHost = Literal["github", "hf"]
MOUNT = "/state"
FILE_MARK = "echo-hf schedule"


def write_workflow(config: Path, on: str, to: Path | None = None) -> tuple[Path, list[str]]:
    """Write the workflow file, and return the steps that a person takes once.

    A file of somebody else's is not written over.
    """
    if on not in get_args(ScheduleHost):
        raise ConfigError(unknown("place", on, get_args(ScheduleHost), "--on"))
    loaded = load_config(config)
    options = get_schedule(loaded)
    if find_run_of_config(loaded):
        raise ConfigError(
            f"{str(config)!r} is what a run keeps, and no turn finds a run there: expected the "
            "file that it was read from"
        )
    if options.state is None:
        kind = "private dataset" if on == "github" else "bucket"
        raise ConfigError(
            f"{str(config)!r}: schedule.state is missing: expected ORGANISATION/NAME of a {kind} "
            "that keeps the run between two turns"
        )
    is_elsewhere = config.is_absolute() or (on == "github" and ".." in config.parts)
    if is_elsewhere or not re.fullmatch(r"[\w./-]+", str(config), re.ASCII):
        raise ConfigError(
            f"{str(config)!r} cannot stand in such a file: expected the path from the folder of "
            "the repository, of letters, digits, dots, dashes and slashes"
        )
    if on == "github" and options.hours > 6:
        raise ConfigError(
            f"{str(config)!r}: schedule.hours is {options.hours:g}: GitHub ends a turn after 6; "
            "expected at most 6, or --on hf"
        )
    extras = f"[{','.join(sorted(options.extras))}]" if options.extras else ""
    minutes = str(round(options.hours * 60))
    fields = {
        "name": loaded.name,
        "config": config.as_posix(),
        "file": config.name,
        "cron": options.cron,
        "minutes": minutes,
        "package": f"echo-hf{extras}=={echo_hf.__version__}",
        "repo_id": options.repo_id,
        "state": options.state,
        "mount": MOUNT,
        "secrets": "".join(
            f"\n          {secret}: ${{{{ secrets.{secret} }}}}" for secret in options.secrets
        ),
    }
    if on == "github":
        path = to or Path(f".github/workflows/echo-hf-{loaded.name}.yml")
        claims = f"GitHub Actions, with the repository and workflow {path.name!r}"
        dataset_ids = (options.repo_id, options.state)
        pages = (f"https://huggingface.co/datasets/{name}/settings" for name in dataset_ids)
        source, todo = (
            "github.yml",
            [
                f"make both datasets, and the second a private one: {', '.join(dataset_ids)}",
                *(f"{page}: add a trusted publisher, {claims}" for page in pages),
                f"commit {path}",
            ],
        )
    else:
        path = to or Path(f"echo_hf_{re.sub('[-.]', '_', loaded.name)}.py")
        bucket, folder = f"hf://buckets/{options.state}", config.resolve().parent
        run = os.path.relpath((find_runs_folder(loaded) / loaded.name).resolve(), folder)
        run_exclusion = [] if Path(run).parts[0] in ("runs", "..") else ["--exclude", f"{run}/*"]
        # Neither runs nor files such as .env.
        exclusions = ["--exclude", "runs/*", *run_exclusion, "--exclude", ".*"]
        job = ["hf", "jobs", "scheduled", "uv", "run", "--name", f"echo-hf-{loaded.name}"]
        job += ["--flavor", options.flavor, "--timeout", f"{minutes}m", "--no-concurrency"]
        job += ["--volume", f"{bucket}:{MOUNT}"]
        for secret in ("HF_TOKEN", *options.secrets):
            job += ["--secrets", secret]
        source, todo = (
            "job.py.txt",
            [
                f"hf buckets create {options.state} --private",
                shlex.join(["hf", "sync", str(config.parent), f"{bucket}/config", *exclusions]),
                shlex.join([*job, options.cron, str(path)]),
            ],
        )
    text = Template(files("echo_hf.schedule").joinpath(f"templates/{source}").read_text("utf-8"))
    if path.exists() and FILE_MARK not in path.read_text("utf-8", errors="replace"):
        raise ConfigError(f"{str(path)!r} is there, and no file of ours: name another with --to")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as partial:
        partial.write_text(text.substitute(fields), "utf-8")
    return path, todo
