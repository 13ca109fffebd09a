"""Instructions for models: one file a task, filled in for the target model."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Protocol

from pydantic_core import to_json


class PromptTarget(Protocol):
    """The model that people talk about, as far as prompts need it."""

    @property
    def prompt_fields(self) -> dict[str, str]:
        """Values of the `$name` fields of prompt files."""
        ...


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    text: str


@lru_cache(maxsize=64)
def _read_template(name: str) -> string.Template:
    return string.Template(files(__package__).joinpath(f"{name}.md").read_text("utf-8"))


def load_prompt(name: str, target: PromptTarget) -> Prompt:
    """Read a prompt file and fill in the target."""
    return fill_prompt(name, target.prompt_fields)


def fill_prompt(name: str, fields: Mapping[str, str]) -> Prompt:
    return Prompt(name, _read_template(name).substitute(fields).strip())


def quote_as_data(tag: str, value: Any) -> str:
    """Render untrusted content as JSON between delimiters that it cannot imitate."""
    text = to_json(value).decode().replace("<", "\\u003c")
    return f"<{tag}>\n{text}\n</{tag}>"
