"""The config with which `eval --images` compares images on a release."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

import yaml

from echo_hf._infra.console import make_console, say
from echo_hf.cli.start import (
    compare_images,
    detect_engine,
    fill_choices,
    quote,
    read_template,
    schema_uri,
)
from echo_hf.config.checks import read_yaml
from echo_hf.errors import ConfigError, ReleaseError
from echo_hf.hub.load import load_manifest

MAX_NAME_CHARACTERS = 90
COMPARISON = "comparison"


def write_config(
    release: str, images: Sequence[str], judge: str | None = None, model: str | None = None
) -> Path:
    """Write the config of a comparison into the working directory, unless the same one is there."""
    fields, _, remarks = compare_images(Path(), images, release)
    path = Path(f"{_name_comparison(yaml.safe_load(fields['benchmark']))}.yaml")
    old = read_yaml(path, "config", "one of yours") if path.exists() else None
    answers = fill_choices("rules")
    if judge:
        answers, notes = detect_engine(COMPARISON, judge, model or _find_model(old, judge))
        remarks += notes
    fields |= {**answers, "name": quote(path.stem)}
    fields |= {"file": shlex.quote(str(path)), "schema": schema_uri()}
    text = Template(read_template(COMPARISON)).substitute(fields)
    for line in remarks:
        say(make_console(), line)
    if old is None:
        path.write_text(text, "utf-8")
        say(make_console(), f"wrote {path}: `echo-hf eval {fields['file']}` does the same")
    elif differing := _list_differences(old, yaml.safe_load(text)):
        raise ConfigError(
            f"{str(path)!r} is there and has other {differing}: `echo-hf eval {fields['file']}` "
            "goes on with it; move it away to begin anew"
        )
    return path


def _name_comparison(benchmark: str) -> str:
    repo_id, _, revision = benchmark.rpartition("@")
    is_folder = Path(benchmark).exists()
    try:
        place, tag = (benchmark, None) if is_folder or not repo_id else (repo_id, revision)
        name = load_manifest(place, revision=tag).name
    except ReleaseError:  # the dataset of ECHO's authors has no manifest
        name = Path(benchmark).resolve().name if is_folder else repo_id.rpartition("/")[2]
    name = re.sub(r"[^A-Za-z0-9._-]+|^[^A-Za-z0-9]+", "_", name).strip("_")[:MAX_NAME_CHARACTERS]
    return f"{name or COMPARISON}-eval"


def _find_model(old: Any, judge: str) -> str | None:
    """Find the model that an existing config names at the same server, so that it is not asked."""
    judges = old.get("judges") if isinstance(old, dict) else None
    for entry in judges if isinstance(judges, list) else ():
        engine = entry.get("engine") if isinstance(entry, dict) else None
        if isinstance(engine, dict) and engine.get("base_url") == judge:
            return str(engine.get("model"))
    return None


def _list_differences(old: Any, new: dict[str, Any]) -> str | None:
    if not isinstance(old, dict):
        return "content"
    names = dict.fromkeys([*new, *old])
    return ", ".join(name for name in names if old.get(name) != new.get(name)) or None
