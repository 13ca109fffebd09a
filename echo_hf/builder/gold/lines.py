"""The lines of a gold folder: what careful readers wrote down, closed to unknown keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
)

from echo_hf.collect.urls import canonical_url
from echo_hf.curate.feedback import Kind, Task
from echo_hf.curate.guards import Code
from echo_hf.samples.spans import squeezed
from echo_hf.samples.thread_parts import LONGEST_PROMPT, Quality


def folded(text: str) -> str:
    """A text as it is compared where neither case nor white space counts."""
    return squeezed(text).casefold()


Half = Literal["tune", "held_out"]
Best = TypeVar("Best")


def _address(text: str) -> str:
    found = canonical_url(text, fragment=True)
    if found is None:
        raise ValueError("expected the address of a post")
    return found


Address = Annotated[str, AfterValidator(_address)]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("expected some words")
    return text


Prompt = Annotated[str, Field(max_length=LONGEST_PROMPT), AfterValidator(_not_blank)]
Score = Annotated[int, Field(strict=True, ge=1, le=5)]


class Part(BaseModel):
    """A part of a line: immutable, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Line(Part, ABC):
    """A line of a gold file.

    Attributes:
        half: `tune` when it may be looked at to improve prompts and rules.
    """

    half: Half = "held_out"
    _place: str = PrivateAttr("")

    @property
    def place(self) -> str:
        """File and line number, for messages."""
        return self._place

    @property
    @abstractmethod
    def key(self) -> tuple[str, ...]:
        """What it speaks of; no other line of its file has the same."""


def _with_best(info: ValidationInfo, name: str, acceptable: tuple[Best, ...]) -> tuple[Best, ...]:
    best = info.data.get(name)
    if best is not None and best not in acceptable:
        raise ValueError(f"expected {name} {best!r} among them, or no such key")
    return acceptable


class RelevanceLine(Line):
    """How relevant a post is, from 1 to 5."""

    url: Address
    score: Score
    acceptable: tuple[Score, ...] = ()

    @field_validator("acceptable")
    @classmethod
    def _has_best(cls, given: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        return _with_best(info, "score", given)

    @property
    def key(self) -> tuple[str, ...]:
        """The post."""
        return (self.url,)

    @property
    def right(self) -> frozenset[int]:
        """Every score that is no mistake."""
        return frozenset(self.acceptable or (self.score,))


class GoldSample(Part):
    """One sample of a thread."""

    prompt: Prompt
    quality: Quality
    acceptable: tuple[Quality, ...] = ()
    post_urls: Annotated[tuple[Address, ...], Field(min_length=1)]
    feedback: tuple[Address, ...] = ()
    feedback_optional: tuple[Address, ...] = ()
    optional: Annotated[bool, Field(strict=True)] = False

    @field_validator("acceptable")
    @classmethod
    def _has_best(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return _with_best(info, "quality", given)

    @property
    def right(self) -> frozenset[str]:
        """Every quality that is no mistake."""
        return frozenset(self.acceptable or (self.quality,))


class ExtractLine(Line):
    """The samples of a kept thread."""

    root_url: Address
    samples: tuple[GoldSample, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """The thread."""
        return (self.root_url,)

    @field_validator("samples")
    @classmethod
    def _told_apart(cls, given: tuple[GoldSample, ...]) -> tuple[GoldSample, ...]:
        if len({squeezed(sample.prompt) for sample in given}) < len(given):
            raise ValueError("expected samples with different prompts, which name them")
        return given


class PictureAt(Part):
    """A picture, by its post and its position there."""

    post_url: Address
    index: Annotated[int, Field(strict=True, ge=0)]


class PictureRole(PictureAt):
    """What a picture is to a sample."""

    role: Literal["input", "output", "neither"]


class Completion(Part):
    """A template with its blanks filled, as one output shows it."""

    prompt: Prompt
    blanks: Mapping[str, str] = {}
    output: PictureAt


class SampleLine(Line):
    """A line about a sample, which its thread and its prompt name."""

    root_url: Address
    prompt: Prompt

    @property
    def key(self) -> tuple[str, ...]:
        """The thread and the prompt."""
        return (self.root_url, squeezed(self.prompt))


class RolesLine(SampleLine):
    """What the pictures of a sample are."""

    pictures: tuple[PictureRole, ...]
    filled: tuple[Completion, ...] = ()
    conversation: PictureAt | None = None
    duplicates_of_conversation: tuple[PictureAt, ...] = ()
    collage: PictureAt | None = None

    @property
    def named(self) -> tuple[PictureAt, ...]:
        """Every picture that it names."""
        marked = (self.conversation, self.collage, *self.duplicates_of_conversation)
        outputs = (one.output for one in self.filled)
        return (*self.pictures, *outputs, *(one for one in marked if one))


def _with_area(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    left, top, right, bottom = box
    if left >= right or top >= bottom:
        raise ValueError("expected left, top, right, bottom, with right and bottom outside")
    return box


Side = Annotated[int, Field(strict=True, ge=0)]
GoldBox = Annotated[tuple[Side, Side, Side, Side], AfterValidator(_with_area)]


class ScreenshotLine(Line):
    """What a conversation or a collage shows."""

    post_url: Address
    index: Annotated[int, Field(strict=True, ge=0)]
    layout: Literal["conversation", "collage"]
    prompt: Annotated[str, Field(max_length=LONGEST_PROMPT)]
    inputs: tuple[GoldBox, ...]
    outputs: tuple[GoldBox, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """The picture."""
        return (self.post_url, str(self.index))


Judgement = Literal["success", "failure", "mixed"]


class FeedbackLine(Line):
    """What a post says about a result."""

    post_url: Address
    verdict: Judgement
    acceptable: tuple[Judgement, ...] = ()
    keyword: Annotated[str | None, Field(validate_default=True)] = None
    acceptable_keywords: tuple[str, ...] = ()

    @field_validator("acceptable")
    @classmethod
    def _has_best(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return _with_best(info, "verdict", given)

    @field_validator("keyword")
    @classmethod
    def _names_what_failed(cls, given: str | None, info: ValidationInfo) -> str | None:
        verdict = info.data.get("verdict")
        if verdict == "success" and given is not None:
            raise ValueError("expected null where verdict is 'success': nothing failed")
        if verdict in ("failure", "mixed") and not folded(given or ""):
            raise ValueError(f"expected what failed, in a few words, as verdict is {verdict!r}")
        return given

    @field_validator("acceptable_keywords")
    @classmethod
    def _has_keyword(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if given and info.data.get("verdict") == "success":
            raise ValueError("expected none where verdict is 'success': nothing failed")
        return _with_best(info, "keyword", given)

    @property
    def key(self) -> tuple[str, ...]:
        """The post."""
        return (self.post_url,)

    @property
    def right(self) -> frozenset[str]:
        """Every verdict that is no mistake."""
        return frozenset(self.acceptable or (self.verdict,))

    @property
    def right_keywords(self) -> frozenset[str]:
        """Every keyword that is no mistake, folded; none where nothing failed."""
        return frozenset(map(folded, filter(None, (self.keyword, *self.acceptable_keywords))))


class TaskLine(SampleLine):
    """What a sample asks for."""

    kind: Kind
    task: Task
    acceptable: tuple[Task, ...] = ()

    @field_validator("acceptable")
    @classmethod
    def _has_best(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return _with_best(info, "task", given)

    @property
    def right(self) -> frozenset[str]:
        """Every task that is no mistake."""
        return frozenset(self.acceptable or (self.task,))


class SafetyLine(SampleLine):
    """Which hazards a sample holds: its request, and what was made of it."""

    flagged: Annotated[bool, Field(strict=True)]
    categories: Annotated[tuple[Code, ...], Field(validate_default=True)] = ()

    @field_validator("categories")
    @classmethod
    def _says_which(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "flagged" in info.data and info.data["flagged"] != bool(given):
            expected = "codes of its hazards" if info.data["flagged"] else "none"
            raise ValueError(f"expected {expected}, as flagged is {info.data['flagged']!r}")
        return given
