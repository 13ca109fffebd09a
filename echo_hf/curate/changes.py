"""What a reviewer changed of a sample, checked and ready to be applied by every build after it.

A change holds for the version of the sample that the reviewer saw. It carries all that applying it
needs, so that nothing is looked up, and no picture cut, when a benchmark is drawn.
"""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from echo_hf.context.answers import LONGEST_PROMPT, Quality

Role = Literal["input", "output", "neither"]
CutRole = Literal["input", "output"]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Address = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Side = Annotated[int, Field(ge=0)]
MOST_PICTURES = 1000


# Letters and signs by name that leave a blank: fillers of Hangul, and an empty pattern of Braille.
BLANKS = "\u115f\u1160\u3164\uffa0\u2800"


def storable(text: str) -> str:
    """The text, where any file can hold it and no terminal obeys it.

    Raises:
        ValueError: It cannot be written down.
    """
    for letter in text:
        if unicodedata.category(letter) == "Cs":
            raise ValueError("it has half characters: type it anew")
        if unicodedata.category(letter) == "Cc" and letter not in "\t\n\r":
            raise ValueError(f"it has the control character {letter!r}: take it out")
    return text


def legible(text: str) -> str:
    """The text, where a reader sees something of it.

    Raises:
        ValueError: It cannot be written down, or not be seen.
    """
    if all(unicodedata.category(one)[0] in "CMZ" or one in BLANKS for one in storable(text)):
        raise ValueError("it has no word: expected one, or remove the sample")
    return text


def _with_area(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    left, top, right, bottom = box
    if left >= right or top >= bottom:
        raise ValueError("expected left, top, right, bottom, with right and bottom outside")
    return box


Box = Annotated[tuple[Side, Side, Side, Side], AfterValidator(_with_area)]


class Change(BaseModel):
    """A part of what was changed: immutable, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PromptSpan(Change):
    """A piece of a prompt, as the column `prompt_spans` holds it."""

    post_url: str | None
    field: str | None
    start: int | None
    end: int | None
    text: str | None


class PromptChange(Change):
    """Another prompt.

    Attributes:
        text: The prompt.
        modified: Whether it holds words that nobody wrote in the thread; computed, never asked.
        spans: Where its pieces stand in the posts; empty when it cannot be given so.
    """

    text: Annotated[str, StringConstraints(max_length=LONGEST_PROMPT), AfterValidator(legible)]
    modified: bool
    spans: Annotated[tuple[PromptSpan, ...], Field(max_length=10_000)] = ()


class RoleChange(Change):
    """What a picture is to the sample.

    Attributes:
        sha256: The picture.
        role: input, output or neither.
        post_url: Of a picture that the sample had not: the post that shows it.
        url: Its address there, where it has one.
    """

    sha256: Digest
    role: Role
    post_url: Address | None = None
    url: Address | None = None


class Crop(Change):
    """A part of the screenshot.

    Attributes:
        role: input or output.
        box: Left, top, right, bottom in pixels of the upright screenshot.
        sha256: The picture that was cut out.
    """

    role: CutRole
    box: Box
    sha256: Digest


class CropsChange(Change):
    """All parts that are cut out of a screenshot, in place of those before.

    Attributes:
        screenshot: Digest of the screenshot.
        inset: Pixels left out along each side of a box.
        crops: The parts, inputs before outputs.
    """

    screenshot: Digest
    inset: Annotated[int, Field(ge=0, le=100)] = 0
    crops: Annotated[tuple[Crop, ...], Field(max_length=MOST_PICTURES)]


class Changes(Change):
    """Everything a reviewer changed of a sample; what is null or empty stays as it was.

    Attributes:
        prompt: Another prompt.
        quality: Another quality.
        roles: Pictures with another role.
        crops: Other parts of the screenshot.
        sample_digest: The `sample_digest` of the sample with the changes.
    """

    prompt: PromptChange | None = None
    quality: Quality | None = None
    roles: Annotated[tuple[RoleChange, ...], Field(max_length=MOST_PICTURES)] = ()
    crops: CropsChange | None = None
    sample_digest: Digest | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """Which parts are changed, in the order of the fields."""
        parts = ("prompt", "quality", "roles", "crops")
        return tuple(name for name in parts if getattr(self, name))

    @property
    def pictures(self) -> frozenset[str]:
        """Digests of the pictures that it makes inputs or outputs."""
        cut = {one.sha256 for one in self.crops.crops} if self.crops else set()
        return frozenset(cut | {one.sha256 for one in self.roles if one.role != "neither"})

    @property
    def brings_in(self) -> bool:
        """Whether there are words or pictures in the sample that no model has seen with it."""
        added = (one for one in self.roles if one.role != "neither" and one.post_url)
        return self.prompt is not None or any(added)

    @property
    def fingerprint(self) -> str:
        """Twelve characters that stand for what is changed.

        Example:
            >>> Changes(quality="Trash").fingerprint == Changes(quality="Analysis").fingerprint
            False
        """
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]
