"""Say what is wrong with a config: one line, the nearest name, and never a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from echo_hf.errors import unknown

LONGEST_VALUE = 200
EXPECTED = {
    "engines": "say who answers, such as {reader: {kind: rules}}; `echo-hf engines` lists kinds",
    "target": "say who people talk about: {name: ..., developer: ..., released: 2026-03-02}",
    "posts": "say where the posts are, for example [{source: jsonl, path: posts.jsonl}]",
}
SECTIONS = {
    "target": "{name: Lumen Image, developer: Northlight, released: 2026-03-02}",
    "posts.*": "{source: jsonl, path: posts.jsonl}",
    "posts.*.columns": "{url: link, text: body}",
    "engines": "{reader: {kind: rules}}",
    "engines.*": "{kind: rules}",
    "stages": "{relevance: {keep: [4, 5]}}",
    "stages.*": "{engine: reader}",
    "splits": "{seed: 0, cap: 1000}",
    "release": "{contact: posts@example.org}",
    "analysis": "{references: [{name: PartiPrompts, path: prompts.txt}]}",
    "rights": "{x: What permits passing its posts on}",
}
NO_MAPPING = frozenset({"model_type", "dict_type", "mapping_type"})
# What a check says that found a secret: the value is not repeated.
CENSORED = "no secret"
MOST_TELLING = {"extra_forbidden": 0, "missing": 2, "too_short": 3}
SECRET = re.compile(
    r"(?:^|_)(?:(?:api_?)?key|secret|password|bearer|authorization|auth|cookie)$"
    r"|(?:^|(?:access|auth|hf|api|refresh)_)token$",
    re.IGNORECASE,
)
CREDENTIALS = re.compile(r"://[^/@\s]+@")
# As providers make them, whatever the option is called that holds one.
KEY_FORM = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-|[rs]k_(?:live|test)_|gsk_|xai-|nvapi-|hf_|gh[oprsu]_|github_pat_|glpat-"
    r"|AIza|AKIA|ASIA|r8_|xox[abeprs]-|npm_|pypi-|SG\.|\d{8,10}:AA|eyJ[\w-]{8,}\.eyJ)"
    r"[A-Za-z0-9_-]{12,}(?:\.[A-Za-z0-9_-]{12,})?"
)


def secrets_in(options: Mapping[Any, Any], inside: str = "") -> Iterator[str]:
    """Names of options that hold credentials: by their names, in addresses, or by their form.

    Args:
        options: Options of an engine.
        inside: Where they stand, for the names.

    Yields:
        What to call each of them without showing it.
    """
    for name, value in options.items():
        if SECRET.search(str(name).replace("-", "_")):
            yield f"{inside}{name}"
        elif isinstance(value, Mapping):
            yield from secrets_in(value, f"{inside}{name}.")
        elif isinstance(value, list | tuple):
            yield from secrets_in(dict(enumerate(value)), f"{inside}{name}.")
        elif isinstance(value, str) and CREDENTIALS.search(value):
            yield f"{inside}{name} with a name and password in it"
        elif isinstance(value, str) and KEY_FORM.search(value):
            yield f"{inside}{name} with a key in it"


def first_error(error: ValidationError, place: str, root: type[BaseModel]) -> str:
    """The most telling of the errors in one line.

    Args:
        error: What pydantic found.
        place: Where the data came from.
        root: The model that was to be filled.

    Returns:
        The place, the key, its value, what was expected.
    """
    every = error.errors(include_url=False, include_context=False)
    # A misspelt key is also a missing one, and an item that cannot be read is also missing from
    # its list; its own message says more.
    first = min(every, key=lambda one: MOST_TELLING.get(one["type"], 1))
    # The part that is empty tells one of several kinds of value, and is no key.
    where = ".".join(str(part) for part in first["loc"] if part != "")
    if first["type"] == "extra_forbidden":
        parent, _, key = where.rpartition(".")
        kind = f"key in {parent}" if parent else "key"
        return unknown(kind, key, _known_keys(root, first["loc"][:-1]), place)
    if first["type"] == "missing":
        return f"{place}: {where} is missing: {EXPECTED.get(where, first['msg'].lower())}"
    said = _expected(first["type"], first["loc"], first["msg"])
    shown = first["input"]
    hidden = next(secrets_in({where: shown}), None) is not None or CENSORED in said
    # What several keys contradict each other in says so itself: the whole of them says less.
    is_whole = first["type"] == "value_error" and len(repr(shown)) > LONGEST_VALUE
    if not where or hidden or is_whole:
        return f"{place}: {where}: {said}" if where else f"{place}: {said}"
    return f"{place}: {where} is {shown_value(first['input'])}: {said}"


def shown_value(value: Any) -> str:
    """A value as a message shows it, no longer than a line holds; never one with a secret."""
    if isinstance(value, Mapping) and any(secrets_in(value)):
        return "a mapping that is not shown"
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def _expected(kind: str, location: tuple[Any, ...], said: str) -> str:
    if kind in NO_MAPPING:
        if not location:
            return "expected a mapping, for example {name: value}"
        section = str(location[0]) if len(location) == 1 else f"{location[0]}.*"
        example = SECTIONS.get(section, "{key: value}")
        return f"expected a mapping, for example {example}"
    said = re.sub(r"^Value error, ", "", said)
    said = said.replace("valid tuple", "list").replace("Tuple should", "list should")
    return said[:1].lower() + said[1:]


def _known_keys(root: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    section: Any = root
    for part in location:
        if isinstance(part, int) or part == "":
            continue
        annotation = section.model_fields[part].annotation
        section = next(iter(_sections(annotation)), BaseModel)
    return list(section.model_fields)


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _sections(inner)
