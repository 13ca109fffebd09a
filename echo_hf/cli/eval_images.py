"""The config with which `eval` compares images on a release: written once, then gone on with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

import yaml

from echo_hf._infra.console import say, terminal
from echo_hf.cli.start import choices, compare_images, machine, quoted, schema, template
from echo_hf.config.checks import read_yaml
from echo_hf.errors import ConfigError, ReleaseError
from echo_hf.hub.load import load_manifest

LONGEST_NAME = 90
WHAT = "comparison"


def write_config(
    release: str, images: Sequence[str], judge: str | None = None, model: str | None = None
) -> Path:
    """Writes the config of a comparison into the working directory; the same one stays."""
    fields, _, remarks = compare_images(Path(), images, release)
    path = Path(f"{_name(yaml.safe_load(fields['benchmark']))}.yaml")
    before = read_yaml(path, "config", "one of yours") if path.exists() else None
    answering = choices("rules")
    if judge:
        answering, more = machine(WHAT, judge, model or _model_of(before, judge))
        remarks += more
    fields |= {**answering, "name": quoted(path.stem)}
    fields |= {"file": shlex.quote(str(path)), "schema": schema()}
    text = Template(template(WHAT)).substitute(fields)
    for line in remarks:
        say(terminal(), line)
    if before is None:
        path.write_text(text, "utf-8")
        say(terminal(), f"wrote {path}: `echo-hf eval {fields['file']}` does the same")
    elif differing := _differing(before, yaml.safe_load(text)):
        raise ConfigError(
            f"{str(path)!r} is there and has other {differing}: `echo-hf eval {fields['file']}` "
            "goes on with it; move it away to begin anew"
        )
    return path


def _name(benchmark: str) -> str:
    """Names a comparison after its release."""
    repo_id, _, revision = benchmark.rpartition("@")
    is_folder = Path(benchmark).exists()
    try:
        place, at = (benchmark, None) if is_folder or not repo_id else (repo_id, revision)
        name = load_manifest(place, revision=at).name
    except ReleaseError:  # the dataset of ECHO's authors has no manifest
        name = Path(benchmark).resolve().name if is_folder else repo_id.rpartition("/")[2]
    name = re.sub(r"[^A-Za-z0-9._-]+|^[^A-Za-z0-9]+", "_", name).strip("_")[:LONGEST_NAME]
    return f"{name or WHAT}-eval"


def _model_of(before: Any, judge: str) -> str | None:
    """The model that a file written before names at the same server, which need not be asked."""
    judges = before.get("judges") if isinstance(before, dict) else None
    for entry in judges if isinstance(judges, list) else ():
        engine = entry.get("engine") if isinstance(entry, dict) else None
        if isinstance(engine, dict) and engine.get("base_url") == judge:
            return str(engine.get("model"))
    return None


def _differing(before: Any, now: dict[str, Any]) -> str | None:
    if not isinstance(before, dict):
        return "content"
    names = dict.fromkeys([*now, *before])
    return ", ".join(name for name in names if before.get(name) != now.get(name)) or None
