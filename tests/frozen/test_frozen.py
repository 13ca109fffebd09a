"""What users meet stays as it is until somebody changes it on purpose, wherever the code lives."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import re
import runpy
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import entry_points
from inspect import formatannotation
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import typer
from datasets import Features
from pydantic import BaseModel

import echo_hf
from echo_hf.collect.platforms.base import PLATFORMS
from echo_hf.collect.sources.base import SOURCES
from echo_hf.engines.base import ENGINES
from echo_hf.systems.registry import SYSTEMS
from echo_hf.tables import TABLES

Frozen = Callable[[str, Any], None]
TREE = Path(echo_hf.__file__).parents[1]
# What differs between machines, days, and places of the code.
VOLATILE = {"seconds", "versions", "libraries", "digest", "digests", "made_by"}
TOLD = (
    *("name", "param_type_name", "opts", "secondary_opts", "help", "default", "required", "nargs"),
    *("multiple", "count", "is_flag", "envvar", "hidden", "min", "max", "metavar"),
)
OF_A_RUN = re.compile(r"(report/)?(cache|pictures|thumbs)/|.*\.(lock|sqlite)")


def types(text: str) -> str:
    return re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", text).replace("'", "")


def signature(value: Any) -> str:
    try:
        shown = inspect.signature(value)
    except ValueError:
        return "(*args)"
    if isinstance(value, type) and issubclass(value, BaseModel):
        return f"({', '.join(shown.parameters)})"  # the types and defaults stand in the schema
    text = types(str(shown))
    for name in re.findall(r"Unpack\[(\w+)\]", text):
        text += f" {sorted(value.__globals__[name].__annotations__)}"
    return text


def described(value: Any) -> Any:
    if not isinstance(value, type):
        return signature(value) if callable(value) else type(value).__name__
    found = {"": signature(value)}
    ours = [base for base in value.__mro__ if base.__module__.startswith("echo_hf")]
    for name, member in (item for base in reversed(ours) for item in vars(base).items()):
        # What a property, a cached one, and a method of a class have beneath.
        beneath = [getattr(member, key, None) for key in ("fget", "func", "__func__")]
        (function, *_) = (*filter(None, beneath), member)
        if inspect.isfunction(function) and not name.startswith("_"):
            found[name] = type(member).__name__ + signature(function)
    fields = {name for base in ours for name in inspect.get_annotations(base)}
    return {**found, "fields": sorted(name for name in fields if not name.startswith("_"))}


def test_public_signatures(frozen: Frozen) -> None:
    found = {}
    for part in (echo_hf, echo_hf.scores, echo_hf.metrics):
        found[part.__name__] = {name: described(getattr(part, name)) for name in part.__all__}
    frozen("signatures", found)


def verbs(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    options = []
    for one in command.params:
        told = {key: str(value) for key in TOLD if (value := getattr(one, key, None))}
        options.append({**told, "type": types(formatannotation(one.type_descriptor.annotation))})
    yield name, {"help": command.help, "hidden": command.hidden, "options": options}
    for below, each in getattr(command, "commands", {}).items():
        yield from verbs(each, f"{name} {below}".strip())


def test_options_of_every_verb(frozen: Frozen) -> None:
    (entry,) = entry_points(group="console_scripts", name="echo-hf")
    home = vars(sys.modules[entry.load().__module__])
    (app,) = (one for one in home.values() if isinstance(one, typer.Typer) and one.info.name)
    found = dict(verbs(typer.main.get_command(app)))
    frozen("options", {"order": list(found), "verbs": found})


def is_steady(key: str, value: Any) -> bool:
    return key not in VOLATILE and not (key == "source" and len(str(value)) == 64)


def steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: steady(one) for key, one in value.items() if is_steady(key, one)}
    if isinstance(value, list):
        return [steady(one) for one in value]
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError):
            return steady(json.loads(value))
    return float(f"{value:.9g}") if isinstance(value, float) else value


def sha256(value: Any) -> str:
    text = json.dumps(steady(value), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def tables(run: Path) -> dict[str, pq.ParquetFile]:
    files = {file.relative_to(run).as_posix(): file for file in sorted(run.rglob("*.parquet"))}
    return {name: pq.ParquetFile(file) for name, file in files.items() if "cache" not in name}


def read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def test_content_of_the_quickstart(frozen: Frozen, quickstart_run: Path) -> None:
    """The bundled corpus gives the same rows, funnel and figures, kept by the same parameters."""
    run = quickstart_run
    rows = {name: file.read().to_pylist() for name, file in tables(run).items()}
    results = read(run / "results.json")
    for split, figures in results.pop("details").items():
        results |= {f"details/{split}/{name}": each for name, each in figures.items()}
    stats = {file.parent.name: read(file) for file in run.glob("stages/*/stats.json")}
    digests = {file.parent.name: read(file) for file in run.glob("stages/*/digest.json")}
    files = (file.relative_to(run).as_posix() for file in run.rglob("*") if file.is_file())
    found = {
        "tables": {name: f"{len(each)} rows: {sha256(each)}" for name, each in rows.items()},
        "results": {name: sha256(each) for name, each in results.items()},
        "stats": steady(stats),
        "kept_by": {stage: sha256(each["describe"]) for stage, each in digests.items()},
        "files": sorted(file for file in files if not OF_A_RUN.match(file)),
    }
    frozen("quickstart", found)


def test_keys_and_columns_of_the_tables(frozen: Frozen) -> None:
    """Of all that there are, also those that the quickstart does not write."""
    found = {}
    for name, table in TABLES.items():
        images, columns = [*table.images], [*table.columns]
        found[name] = {"key": [*table.key], "columns": columns, "images": images}
    frozen("tables", found)


def test_features_of_the_tables(frozen: Frozen, quickstart_run: Path) -> None:
    found = {}
    for name, file in tables(quickstart_run).items():
        columns = Features.from_arrow_schema(file.schema_arrow).items()
        found[name] = [f"{column}: {kind}" for column, kind in columns]
    frozen("features", found)


def imported(file: Path) -> Iterator[str]:
    runpy.run_path(str(file))
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("echo_hf"):
            home = ".".join(str(node.module).split(".")[:3])
            yield from (f"{home}:{one.name}" for one in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("echo_hf"):
            yield ast.unparse(node)


def test_ways_in_from_outside(frozen: Frozen) -> None:
    project = tomllib.loads((TREE / "pyproject.toml").read_text("utf-8"))["project"]
    apps = ("leaderboard_space/app.py", "metric_space/app.py", "metric_space/echo.py")
    found = {
        "entry_points": {key: project.get(key, {}) for key in ("scripts", "entry-points")},
        "plug_ins": sorted(one.group for one in (ENGINES, PLATFORMS, SOURCES, SYSTEMS)),
        "spaces": {name: sorted(imported(next(TREE.glob(f"echo_hf/**/{name}")))) for name in apps},
    }
    frozen("ways_in", found)
