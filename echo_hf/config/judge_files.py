"""Judges as files: the message that a judge is sent, and how its answer is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, ValidationError, model_validator

from echo_hf._infra.text import one_line
from echo_hf.config.checks import Section, first_error
from echo_hf.config.rubrics import (
    MAX_PROMPT_CHARACTERS,
    Scale,
    check_ends,
    parse_front_matter,
    read_instructions,
)
from echo_hf.errors import ConfigError, unknown

JudgeForm = Literal["rating", "choice", "scalar"]
Side = Literal["first", "second", "tie"]
MESSAGE = "message"
PLACEHOLDER = re.compile(r"\{([a-z][a-z_]*)\}")
TASK_PLACEHOLDERS = ("prompt", "task")
OUTPUT_PLACEHOLDERS: Mapping[JudgeForm, tuple[str, ...]] = {
    "rating": ("output",),
    "scalar": ("output",),
    "choice": ("first", "second"),
}
CHOICE_GROUP, SIDE_GROUPS = "choice", frozenset({"first", "second"})
# Keys that mean nothing for answers of a form.
UNUSED_KEYS: Mapping[JudgeForm, tuple[str, ...]] = {
    "rating": ("choices",),
    "choice": ("scale", "decimals", "combine"),
    "scalar": ("answer", "scale", "decimals", "combine", "choices"),
}
MAX_PATTERN_CHARACTERS, MAX_ALTERNATIVES = 500, 8
MAX_SEARCHED_CHARACTERS = 8_000  # the last of an answer, in which a pattern is searched
# Steps of a search from one place of an answer: some 20 repeats of a character to its end.
MAX_STEPS = 170_000
# Escapes and classes of characters as they are, then what repeats, opens a group or alternates.
PATTERN_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<repeat>(?:[*+?]|\{(?:\d+(?:,\d*)?|,\d*)\})(?P<lazy>[?+]?))"
    r"|(?P<open>\((?!\?)|\(\?(?::|P<\w+>))|(?P<group>\(\?)|(?P<close>\))|(?P<alternative>\|)|.",
    re.DOTALL,
)
REFERENCE = re.compile(r"\\(?:\\|(?P<number>[1-9])|.)", re.DOTALL)


@lru_cache(maxsize=64)
def compile_answer(pattern: str) -> re.Pattern[str]:
    """Compile the pattern of an answer, with repeats that give nothing back.

    With the bound on its steps it takes seconds at most, whatever an answer says.

    Raises:
        ValueError: It is none, or has what may search for very long.
    """
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise ValueError(
            f"has {len(pattern)} characters: expected {MAX_PATTERN_CHARACTERS} at most"
        )
    parts, alternatives = list[str](), 1
    for token in PATTERN_TOKEN.finditer(pattern):
        if token["group"] or token["lazy"] == "?":
            raise ValueError(
                f"has {token[0]!r}: expected no lazy repeats, and no groups but (...), (?:...) and "
                "(?P<name>...)"
            )
        alternatives += bool(token["alternative"])
        is_open_ended = token["repeat"] and not token["lazy"]
        parts.append(f"{token[0]}+" if is_open_ended else token[0])
    if alternatives > MAX_ALTERNATIVES:
        raise ValueError(f"has {alternatives} alternatives: expected {MAX_ALTERNATIVES} at most")
    if any(reference["number"] for reference in REFERENCE.finditer(pattern)):
        raise ValueError("refers to a group: expected groups without references")
    try:
        compiled = re.compile("".join(parts), re.IGNORECASE)
    except (re.error, OverflowError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    if _count_steps(pattern) > MAX_STEPS:
        raise ValueError(
            "repeats too often: expected few repeats, and a group that is repeated without *, + or "
            "large counts in it"
        )
    return compiled


def _count_steps(pattern: str) -> int:
    """Count the steps that a valid pattern takes at most from one place of an answer."""
    totals, atom, is_group = [0], 0, False  # of each open group; of what a repeat would repeat
    for token in PATTERN_TOKEN.finditer(pattern):
        if token["open"]:
            totals.append(0)
            atom, is_group = 0, False
        elif token["repeat"]:
            count = _read_count(token[0])
            # A character is consumed each time, and a group may repeat that is empty.
            repeated = count * (atom + 1) if is_group else min(count, MAX_SEARCHED_CHARACTERS)
            totals[-1] += repeated - atom
        else:
            is_group = bool(token["close"])
            atom = totals.pop() if is_group else 1
            totals[-1] += atom
    return totals[0]


def _read_count(repeat: str) -> int:
    """Read how often something repeats at most: as often as there are characters, if it is open."""
    if repeat[0] == "?":
        return 1
    numbers = [int(number) for number in re.findall(r"\d+", repeat)]
    is_open = repeat[0] in "*+" or ",}" in repeat
    return max(*numbers, MAX_SEARCHED_CHARACTERS, 0) if is_open else max(numbers)


class JudgeFile(Section):
    """A judge's own message and the pattern of its answers.

    Attributes:
        form: `rating`, numbers on a scale; `choice`, which of two outputs is better; or `scalar`, a
            number without words on a scale of its own, which is ranked.
        system: The system message; null for none.
        answer: What an answer looks like: a regular expression with named groups, whose repeats
            give nothing back. Of a rating each group is a number; of a choice either `choice` is a
            word of `choices`, or `first` and `second` are numbers, the higher of which wins.
        scale: Lowest and highest number of a rating; null for 1 to 10.
        decimals: Whether numbers between whole ones count.
        combine: Which of several numbers a rating is: their `mean` or the `min`.
        choices: What an answer calls the `first`, the `second` and a `tie`.
        message: What the judge is sent, with `{prompt}`, the words of the task as they are, or
            `{task}`, the same quoted as data; with `{inputs}`, its images; and with `{output}`, or
            for a choice `{first}` and `{second}`, in the order in which they are shown.
    """

    form: JudgeForm = "rating"
    system: Annotated[str, Field(min_length=1, max_length=MAX_PROMPT_CHARACTERS)] | None = None
    answer: str | None = None
    scale: Annotated[Scale, AfterValidator(check_ends)] | None = None
    decimals: bool = False
    combine: Literal["mean", "min"] = "mean"
    choices: Mapping[Side, Annotated[str, Field(min_length=1, max_length=200)]] = {}
    message: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_PROMPT_CHARACTERS, strip_whitespace=True),
    ]

    @model_validator(mode="after")
    def _check_message(self) -> Self:
        names = PLACEHOLDER.findall(self.message)
        outputs = OUTPUT_PLACEHOLDERS[self.form]
        known = (*TASK_PLACEHOLDERS, "inputs", *outputs)
        for name in names:
            if name not in known:
                raise ValueError(unknown("placeholder", name, known, f"form {self.form!r}"))
        if any(names.count(name) != 1 for name in outputs) or names.count("inputs") > 1:
            expected = " and ".join(f"{{{name}}}" for name in outputs)
            raise ValueError(f"expected {expected} once, and {{inputs}} once or not at all")
        if not set(names).intersection(TASK_PLACEHOLDERS):
            raise ValueError("has no word of the task: expected {prompt} or {task}")
        return self

    @model_validator(mode="after")
    def _check_answer(self) -> Self:
        for key in UNUSED_KEYS[self.form]:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"is of form {self.form}, which has no {key}: leave it out")
        if self.form == "scalar":
            return self
        if self.answer is None:
            raise ValueError(f"is of form {self.form}: expected answer, the pattern of its answers")
        try:
            groups = compile_answer(self.answer).groupindex.keys()
        except ValueError as error:
            raise ValueError(f"answer '{one_line(self.answer)}' {error}") from None
        if self.form == "rating" and not groups:
            raise ValueError(
                f"answer '{one_line(self.answer)}' has no named group: expected one around each "
                r"number, such as (?P<score>\d+)"
            )
        if self.form == "choice":
            is_word = groups == {CHOICE_GROUP} and {"first", "second"} <= self.choices.keys()
            if not is_word and (groups != SIDE_GROUPS or self.choices):
                raise ValueError(
                    "expected an answer with the group choice, and choices with first and second; "
                    "or with the groups first and second, and no choices"
                )
        return self

    @property
    def text(self) -> str:
        """All that a judge is told."""
        return self.message if self.system is None else f"{self.system}\n\n{self.message}"

    @property
    def wanted_form(self) -> str:
        """The form of an answer, in one line of a message."""
        return f"an answer that fits {one_line(self.answer)}"

    @property
    def shows_raw_words(self) -> bool:
        """Whether people's words stand in the message as they are, not quoted as data."""
        return "prompt" in PLACEHOLDER.findall(self.message)

    def split_message(self) -> list[tuple[str, bool]]:
        """Split the message into texts and names of placeholders, which are marked."""
        parts = PLACEHOLDER.split(self.message)
        return [(part, bool(at % 2)) for at, part in enumerate(parts) if part]


def read_judge_file(path: Path) -> JudgeFile:
    """Read a judge's message from a Markdown file with front matter.

    Raises:
        ConfigError: It is no regular file of text, lacks front matter, or has a bad value there.
    """
    fields, body = parse_front_matter(
        read_instructions(path), str(path), MESSAGE, "form: rating and answer"
    )
    try:
        return JudgeFile.model_validate({**fields, MESSAGE: body})
    except ValidationError as error:
        raise ConfigError(first_error(error, str(path), JudgeFile)) from None


def load_judge_file(file: Any) -> Any:
    """Replace the name of a file by its content; the config's error names the file."""
    if not isinstance(file, str | Path):
        return file
    path = Path(file)
    try:
        return read_judge_file(path)
    except ConfigError as error:
        message = str(error).removeprefix(f"{path}: ").removeprefix(f"{str(path)!r} ")
        raise ValueError(message) from None
