"""The parameters of each adapter as Markdown, from the classes that check them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from echo_hf.systems.anole_tokens import AnoleOptions
from echo_hf.systems.command import CommandOptions
from echo_hf.systems.diffusers_classes import DiffusersOptions
from echo_hf.systems.files import FilesOptions
from echo_hf.systems.google_images import GoogleOptions
from echo_hf.systems.openai_images import OpenAIImagesOptions
from echo_hf.systems.rewrite import RewriteOptions

ADAPTERS: Mapping[str, type[BaseModel]] = {
    "openai_images": OpenAIImagesOptions,
    "google": GoogleOptions,
    "diffusers": DiffusersOptions,
    "anole": AnoleOptions,
    "rewrite": RewriteOptions,
    "command": CommandOptions,
    "files": FilesOptions,
}
ENTRY = re.compile(r"^(\w+): (.*)$")
LONGEST_DEFAULT = 50


def parameter_lines() -> Iterator[str]:
    """One table an adapter: each parameter, its default, and what it means."""
    for adapter, options in ADAPTERS.items():
        yield f"### `{adapter}`\n"
        yield "| parameter | default | |"
        yield "|---|---|---|"
        meanings = meanings_of(options)
        for name, field in options.model_fields.items():
            yield f"| `{name}` | {_default(field.default)} | {meanings[name]} |"
        yield ""


def meanings_of(options: type[BaseModel]) -> dict[str, str]:
    """What each parameter means, as the docstrings of a class and its bases say."""
    found: dict[str, str] = {}
    for each in reversed(options.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            found |= dict(_attributes(inspect.getdoc(each) or ""))
    return found


def _attributes(docstring: str) -> Iterator[tuple[str, str]]:
    _, _, section = docstring.partition("Attributes:\n")
    lines = [line[4:] for line in section.splitlines()]
    entries = "\n".join(lines).replace("\n    ", " ").splitlines()
    yield from ((entry[1], entry[2]) for line in entries if (entry := ENTRY.match(line)))


def _default(value: Any) -> str:
    if value is PydanticUndefined:
        return ""
    if value in (None, (), {}):
        return "none"
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    shown = ", ".join(map(str, value)) if isinstance(value, tuple) else shown
    return f"`{shown}`" if len(shown) <= LONGEST_DEFAULT else "see the code"
