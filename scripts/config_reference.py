"""The reference of configs, from the models that check them: a page of every key, a JSON Schema."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from echo_hf.collect.sources.base import SOURCES
from echo_hf.config.checks import EngineChoice, Section
from echo_hf.config.collection import PLATFORMS
from echo_hf.config.evaluation import EvaluationConfig, JudgeConfig
from echo_hf.config.loading import Config
from echo_hf.config.sections import PostsSource
from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ENGINES
from echo_hf.engines.openai import ModerationOptions, OpenAIOptions
from echo_hf.engines.transformers import TransformersOptions
from echo_hf.engines.vllm import VllmOptions
from echo_hf.systems.anole import AnoleOptions
from echo_hf.systems.command import CommandOptions
from echo_hf.systems.diffusers import DiffusersOptions
from echo_hf.systems.files import FilesOptions
from echo_hf.systems.google_images import GoogleOptions
from echo_hf.systems.openai_images import OpenAIImagesOptions
from echo_hf.systems.registry import SYSTEMS
from echo_hf.systems.rewrite import ArtistConfig, RewriteOptions

Node = dict[str, Any]
Row = tuple[str, Node, bool]


class RecordedOptions(Section):
    """Answers from a file; expects one of the two options.

    Attributes:
        path: A file of answers, relative to the config: one JSON object a line.
        source: The answers that echo-hf brings.
    """

    path: Path | None = None
    source: Literal["quickstart"] | None = None


class RulesOptions(Section):
    """Takes no options."""


ENGINE_OPTIONS: Mapping[str, type[BaseModel]] = {
    "vllm": VllmOptions,
    "transformers": TransformersOptions,
    "openai": OpenAIOptions,
    "moderation": ModerationOptions,
    "recorded": RecordedOptions,
    "rules": RulesOptions,
}
ADAPTER_OPTIONS: Mapping[str, type[BaseModel]] = {
    "openai_images": OpenAIImagesOptions,
    "google": GoogleOptions,
    "diffusers": DiffusersOptions,
    "anole": AnoleOptions,
    "rewrite": RewriteOptions,
    "command": CommandOptions,
    "files": FilesOptions,
}
# What names a plug-in: other packages bring more, so that these are not the only values.
NAMES = {
    (EngineChoice, "kind"): ENGINES.built_in,
    (SystemConfig, "adapter"): SYSTEMS.built_in,
    (ArtistConfig, "adapter"): SYSTEMS.built_in,
    (PostsSource, "source"): sorted({*SOURCES.built_in, *PLATFORMS.built_in}),
}
FILES: Mapping[str, tuple[type[BaseModel], str]] = {
    "Benchmark config": (Config, "A benchmark, from posts to results."),
    "Comparison config": (
        EvaluationConfig,
        "Systems and judges on a benchmark that exists already. Its sections are as above.",
    ),
    "System": (SystemConfig, "An item of `systems`, there or in a file that `systems` names."),
    "Judge": (JudgeConfig, "An item of `judges`, there or in a file that `judges` names."),
}
INTRODUCTION = """# Config reference

Made by `scripts/write_docs.py` from the models that check configs: change those.

A `*` stands for the number of an item of a list, or for a name that you choose. Paths are relative
to the file that names them. An unknown key is an error. `echo_hf/config/config.schema.json` says
the same to an editor: `echo-hf init` names it in the first line of the files that it writes.
That line holds a path of your machine: before you share a config, put the schema beside it and
write `$schema=config.schema.json`.
"""
ENGINES_TEXT = """## Engines

Options beside `kind`, wherever a config names an engine. `auto` takes those of the engine that it
chooses; an engine of another package checks its own.
"""
ADAPTERS_TEXT = """## Adapters

What stands under a system's `parameters`. An adapter of another package checks its own.
"""
ENTRY = re.compile(r"^(\w+): (.*)$")
COUNTED = ("text", "path", "section", "number", "whole number")
FORMATS = {"date": "date", "path": "path", "file-path": "path"}
BOUNDS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
    ("minProperties", "maxProperties", " keys"),
)
LIMITS = {
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "pattern": "as `{}`",
}
TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "mapping",
}


def meanings_of(model: type[BaseModel]) -> dict[str, str]:
    """What each key means, as the docstrings of a class and its bases say."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            found |= dict(_attributes(inspect.getdoc(each) or ""))
    return found


def _attributes(docstring: str) -> Iterator[tuple[str, str]]:
    _, _, section = docstring.partition("Attributes:\n")
    lines = [line[4:] for line in section.splitlines()]
    entries = "\n".join(lines).replace("\n    ", " ").splitlines()
    yield from ((entry[1], entry[2]) for line in entries if (entry := ENTRY.match(line)))


class Explained(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's
        """Never: a title would be the name once more."""
        return False

    def model_schema(self, schema: Any) -> Node:
        made, model = super().model_schema(schema), schema["cls"]
        meanings = meanings_of(model)
        made.pop("title", None)
        made["description"] = (inspect.getdoc(model) or "").partition("\n")[0]
        for name, key in made.get("properties", {}).items():
            if name not in meanings:
                raise LookupError(f"{model.__name__}.{name}: its docstring says no meaning of it")
            key["description"] = meanings[name]
            if isinstance(key.get("default"), dict):
                del key["default"]  # a section's defaults stand at its own keys
            if names := NAMES.get((model, name)):
                key["anyOf"] = [{"enum": sorted(names)}, {"type": key.pop("type")}]
        return made


def config_schema() -> Node:
    classes = [one for one, _ in FILES.values()]
    classes += [*ENGINE_OPTIONS.values(), *ADAPTER_OPTIONS.values()]
    references, made = models_json_schema(
        [(one, "validation") for one in classes], schema_generator=Explained
    )
    parts: dict[str, Node] = made["$defs"]
    to = {one: references[one, "validation"] for one in classes}
    engine = parts["EngineChoice"]
    engine["allOf"] = [_where("kind", kind, to[one]) for kind, one in ENGINE_OPTIONS.items()]
    for one in ENGINE_OPTIONS.values():
        part = parts[_name(to[one])]
        part["properties"] = {"kind": {}, **part.get("properties", {})}
    for part in (parts["SystemConfig"], parts["ArtistConfig"]):
        part["allOf"] = [
            _where("adapter", adapter, {"properties": {"parameters": to[one]}})
            for adapter, one in ADAPTER_OPTIONS.items()
        ]
    for part in (parts["Config"], parts["EvaluationConfig"]):
        for key in ("systems", "judges"):
            items = part["properties"][key]
            items["items"] = {"anyOf": [{"type": "string", "format": "path"}, items["items"]]}
    items = parts["AnalysisOptions"]["properties"]["references"]
    items["items"] = {"anyOf": [{"type": "string", "format": "path"}, items["items"]]}
    judge_or_config = _if("engine", to[JudgeConfig], to[Config])
    system_or_other = _if("adapter", to[SystemConfig], judge_or_config)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A config file of echo-hf",
        "if": {"type": "array"},
        "then": {"items": {"$ref": "#/$defs/Reference"}},
        "else": _if("benchmark", to[EvaluationConfig], system_or_other),
        "$defs": parts,
    }


def _if(key: str, then: Node, otherwise: Node) -> Node:
    return {"if": {"required": [key]}, "then": then, "else": otherwise}


def _where(key: str, value: str, then: Node) -> Node:
    return {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": then}


def _name(reference: Node) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def schema_text() -> str:
    schema = config_schema()
    parts = schema.pop("$defs")
    lines = [f'"{name}": {json.dumps(one, ensure_ascii=False)}' for name, one in parts.items()]
    head = json.dumps(schema, ensure_ascii=False).removesuffix("}")
    return f'{head}, "$defs": {{\n' + ",\n".join(lines) + "\n}}\n"


def reference_page() -> str:
    parts = config_schema()["$defs"]
    lines = [INTRODUCTION]
    for title, (model, about) in FILES.items():
        rows = list(_rows(parts, model.__name__))
        top = [one for one in rows if "." not in one[0]]
        lines += [f"## {title}\n", f"{about}\n", *_table(parts, top)]
        for key, group in groupby(rows, lambda one: one[0].partition(".")[0]):
            below = list(group)[1:]
            if below and f"### `{key}`\n" not in lines:  # both kinds of config have it alike
                lines += [f"### `{key}`\n", *_table(parts, below)]
    for about, classes in ((ENGINES_TEXT, ENGINE_OPTIONS), (ADAPTERS_TEXT, ADAPTER_OPTIONS)):
        lines.append(about)
        for name, options in classes.items():
            lines += [f"### `{name}`\n", f"{parts[options.__name__]['description']}\n"]
            if rows := list(_rows(parts, options.__name__)):
                lines += _table(parts, rows)
    return "\n".join(lines).rstrip() + "\n"


def _rows(parts: Node, name: str, prefix: str = "") -> Iterator[Row]:
    """Every key of a part and below it: its full name, its schema, whether it is required."""
    for key, node in parts[name].get("properties", {}).items():
        if node:  # not the `kind` that an engine's options stand beside
            yield f"{prefix}{key}", node, key in parts[name].get("required", [])
            for below, path in _sections(parts, node):
                yield from _rows(parts, below, f"{prefix}{key}{path}.")


def _sections(parts: Node, node: Node) -> Iterator[tuple[str, str]]:
    """Parts with keys of their own that a value may be, but those that have their own table."""
    if "$ref" in node and (name := _name(node)) not in (
        SystemConfig.__name__,
        JudgeConfig.__name__,
    ):
        yield from [(name, "")] if "properties" in parts[name] else []
    for inner in _kinds(node):
        yield from _sections(parts, inner)
    for inner in (node.get("items"), node.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from ((name, f".*{path}") for name, path in _sections(parts, inner))


def _kinds(node: Node) -> list[Node]:
    return [*node.get("anyOf", []), *node.get("oneOf", [])]


def _table(parts: Node, rows: Sequence[Row]) -> Iterator[str]:
    yield "| key | type | default | range | meaning |"
    yield "|---|---|---|---|---|"
    for name, node, required in rows:
        default = (
            f"`{json.dumps(node['default'], ensure_ascii=False)}`" if "default" in node else ""
        )
        cells = (f"`{name}`", _type(parts, node), "required" if required else default)
        told = [*cells, "; ".join(dict.fromkeys(_ranges(node))), node["description"]]
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in told)} |"
    yield ""


def _type(parts: Node, node: Node) -> str:
    if "$ref" in node:
        part = parts[_name(node)]
        return "section" if "properties" in part else _type(parts, part)
    if kinds := _kinds(node):
        return _either([_type(parts, one) for one in kinds])
    if values := node.get("enum", [node["const"]] if "const" in node else []):
        return _either([f"`{value}`" for value in values])
    if node.get("type") == "array":
        inner = node.get("items") or node["prefixItems"][0]
        one = _type(parts, inner)
        return f"list of {one}{'s' * (one in COUNTED)}"
    if isinstance(inner := node.get("additionalProperties"), dict):
        one = _type(parts, inner)
        return f"mapping to {one}{'s' * (one in COUNTED)}"
    return FORMATS.get(node.get("format", ""), TYPES.get(node.get("type", ""), "anything"))


def _either(kinds: Sequence[str]) -> str:
    *others, last = dict.fromkeys(kinds)
    return f"{', '.join(others)} or {last}" if others else last


def _ranges(node: Node) -> Iterator[str]:
    """What a value has to keep to, in plain words."""
    yield from (found for kind in _kinds(node) for found in _ranges(kind))
    for least, most, unit in BOUNDS:
        low, high = node.get(least), node.get(most)
        if low is not None and high is not None:
            yield f"{low} to {high}{unit}" if low != high else f"{low}{unit}"
        elif low is not None:
            yield "not empty" if (low, bool(unit)) == (1, True) else f"at least {low}{unit}"
        elif high is not None:
            yield f"at most {high}{unit}"
    for key, words in LIMITS.items():
        if key in node:
            yield words.format(node[key])
    for inner in (*map(node.get, ("items", "additionalProperties")), *node.get("prefixItems", [])):
        if isinstance(inner, dict):
            yield from (f"each {found}" for found in _ranges(inner))
