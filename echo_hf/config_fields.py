"""The kinds of values that configs are made of, and the section that knows its keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected words without control or formatting characters")
    return text


def _printable_lines(text: str) -> str:
    return "\n".join(_printable(line) for line in text.splitlines())


def _nameable(name: str) -> str:
    if not FOLDER_AND_TAG.fullmatch(name):
        raise ValueError(
            "expected at most 96 letters from a to z, digits, '.', '_' or '-', a letter or digit "
            "first: it names a folder and a tag"
        )
    return name


def _openable(path: Path) -> Path:
    if not str(path).isprintable() or path == Path():
        raise ValueError("expected the name of a file")
    return path


FOLDER_AND_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
Name = Annotated[str, AfterValidator(_nameable)]
Words = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200, strip_whitespace=True),
    AfterValidator(_printable),
]
Statement = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1000, strip_whitespace=True),
    AfterValidator(_printable),
]
File = Annotated[Path, AfterValidator(_openable)]
Whole = Annotated[int, Field(strict=True)]
# Several lines: Markdown of the card, or BibTeX.
Prose = Annotated[
    str,
    StringConstraints(min_length=1, max_length=5000, strip_whitespace=True),
    AfterValidator(_printable_lines),
]
License = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]


class Section(BaseModel):
    """A part of a config: immutable, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EngineChoice(BaseModel):
    """Who answers: a kind of engine and its options, which the engine itself checks."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str

    @property
    def options(self) -> dict[str, Any]:
        """The keys beside `kind`."""
        return dict(self.model_extra or {})


def check_stand_in(status: str, stands_for: str | None, note: str | None, expected: str) -> None:
    """Checks what a config says of the part of the paper that it stands for.

    Args:
        status: Whether it is the paper's own, stands in for it, or is none of the paper's.
        stands_for: The paper's name for it.
        note: What is as published, and what is not.
        expected: What a part of the paper may be, for the message.

    Raises:
        ValueError: One of today stands for one of the paper, or a substitute does not say for what.
    """
    if status == "current" and stands_for is not None:
        raise ValueError(
            f"stands_for is {stands_for!r} and status is 'current': expected {expected}"
        )
    if status == "substitute" and (stands_for is None or note is None):
        raise ValueError("expected stands_for and a note, which say what stands in for what")
