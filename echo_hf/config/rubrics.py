"""Rubrics: questions to judges about outputs, as Markdown files with front matter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from echo_hf._infra.registry import Registry
from echo_hf._infra.regular_file import read_regular
from echo_hf.config.checks import (
    Section,
    Statement,
    Words,
    check_unequal,
    first_error,
    match_pattern,
    parse_yaml,
)
from echo_hf.errors import ConfigError

FORM_PLACEHOLDER = "$form"
MAX_PROMPT_CHARACTERS = 100_000
FRONT_MATTER = re.compile(r"---[^\S\n]*\n(.*?)^---[^\S\n]*$\n?(.*)", re.DOTALL | re.MULTILINE)
NameRule = match_pattern("[a-z][a-z0-9_]{0,79}", "a name of lower-case letters, digits and '_'")
# Other figures stand beside those of metrics and rubrics under these names, and so do columns.
FIGURES = ("win_rate", "win_rate_human_corrected", "human_corrected", "bradley_terry")
RESERVED = frozenset({*FIGURES, "sample_id", "metric", "applies", "rationale", "outcome"})
OVERALL, TEXT_RENDERING = "overall", "text_rendering"
SPEAKS_TO_JUDGE = "speaks_to_judge"  # counted with what OCR reads, and no metric of its own
PUBLISHED_SCALE = (1.0, 10.0)
AnswerKind = Literal["rating", "yes_no"]
Split = Literal["image_to_image", "text_to_image"]
ScaleEnd = Annotated[float, Field(ge=-1000, le=1000)]
Scale = tuple[ScaleEnd, ScaleEnd]


def check_ends(scale: Scale) -> Scale:
    lowest, highest = scale
    if lowest >= highest:
        raise ValueError("expected the lowest first")
    return scale


class Rubric(Section):
    """A question to judges about outputs, with the outputs that it is asked about.

    Attributes:
        name: What the table of ratings calls it; figures of other rubrics than `overall` have it.
        title: What the report calls it; empty for its name.
        answer: `rating`, a number on the scale; or `yes_no`, which is kept as a rating of 1 or 0
            and shown as the share of yes.
        scale: Lowest and highest rating, null for 1 to 10; a judge may have one of its own.
        sees_inputs: Whether a judge is shown the input images, too.
        better: Whether `higher` or `lower` figures are better.
        splits: The splits whose samples it fits; empty for all.
        question: Which samples it fits, in words that a model decides by, as it does for metrics;
            instead of splits.
        instructions: What a judge is told. `$form` stands where the form of the answer belongs;
            without it that comes last.
    """

    name: Annotated[str, NameRule]
    title: Words | None = None
    answer: AnswerKind = "rating"
    scale: Annotated[Scale, AfterValidator(check_ends)] | None = None
    sees_inputs: bool = True
    better: Literal["higher", "lower"] = "higher"
    splits: tuple[Split, ...] = ()
    question: Statement | None = None
    instructions: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_PROMPT_CHARACTERS, strip_whitespace=True),
    ]

    _check_splits = field_validator("splits")(check_unequal)

    @model_validator(mode="after")
    def _check_answer(self) -> Self:
        if self.answer == "yes_no" and self.scale is not None:
            raise ValueError("has answer yes_no and a scale: expected one of them")
        if self.splits and self.question:
            raise ValueError("has splits and question: expected one of them")
        return self

    @property
    def label(self) -> str:
        return self.title or self.name

    def fill_form(self, form: str) -> str:
        """Return the instructions with the form of the answer in its place."""
        if FORM_PLACEHOLDER in self.instructions:
            return self.instructions.replace(FORM_PLACEHOLDER, form)
        return f"{self.instructions}\n\n{form}"


RUBRICS: Registry[Rubric, None] = Registry(
    "rubric", "echo_hf.rubrics", packages=("echo_hf.prompts.rubrics",)
)


def register_rubric(file: Path | Traversable) -> Rubric:
    """Read a rubric of a package, so that judges of every config may rate by it."""
    rubric = parse_rubric(file.read_text("utf-8"), str(file))
    return RUBRICS.register(rubric.name)(rubric)


def read_rubric(path: Path) -> Rubric:
    """Read a rubric of a config.

    Raises:
        ConfigError: It is no regular file of text, lacks front matter, or has a bad value there.
    """
    return parse_rubric(read_instructions(path), str(path))


def read_instructions(path: Path) -> str:
    try:
        text = read_regular(path, max_bytes=4 * MAX_PROMPT_CHARACTERS).decode()
    except FileNotFoundError:
        raise ConfigError(f"{str(path)!r} does not exist: expected a text file") from None
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text.strip() or len(text) > MAX_PROMPT_CHARACTERS:
        raise ConfigError(
            f"{str(path)!r} cannot be used: expected a text file of 1 to "
            f"{MAX_PROMPT_CHARACTERS:,} characters in UTF-8"
        )
    return text


def parse_front_matter(
    text: str, place: str, body_key: str, example: str
) -> tuple[dict[str, Any], str]:
    """Parse the fields before a text, and the text; refuse a field that the text itself is."""
    match = FRONT_MATTER.match(text)
    try:
        fields = parse_yaml(match[1]) if match else None
    except yaml.YAMLError as error:
        raise ConfigError(f"{place}: front matter: {' '.join(str(error).split())}") from error
    if match is None or not isinstance(fields, dict):
        raise ConfigError(
            f"{place}: expected front matter, which begins with a line of ---, such as {example}, "
            f"ends with another, and {body_key} below it"
        )
    if body_key in fields:
        raise ConfigError(f"{place}: {body_key}: expected below the front matter")
    return fields, match[2]


def parse_rubric(text: str, place: str, defaults: Mapping[str, Any] | None = None) -> Rubric:
    """Parse front matter and instructions; only where there are defaults the first may lack."""
    match = FRONT_MATTER.match(text)
    if match is None and defaults is not None:
        fields, body = dict[str, Any](), text
    else:
        fields, body = parse_front_matter(
            text, place, "instructions", "name: sharpness and answer: rating"
        )
    try:
        return Rubric.model_validate({**(defaults or {}), **fields, "instructions": body})
    except ValidationError as error:
        raise ConfigError(first_error(error, place, Rubric)) from None
