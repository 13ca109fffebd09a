"""The files of a gold folder, as `quickstart/gold/README.md` describes them, and their reader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from echo_hf.collect.urls import canonical_url
from echo_hf.config.checks import first_error, shown_value
from echo_hf.curate.feedback import Kind, Task
from echo_hf.curate.safety import Code
from echo_hf.errors import GoldError, unknown
from echo_hf.samples.extract import LONGEST_PROMPT, Quality
from echo_hf.samples.spans import squeezed

Half = Literal["tune", "held_out"]
HALVES = (*get_args(Half), "all")
Judgement = Literal["success", "failure", "mixed"]


def folded(text: str) -> str:
    """A text as it is compared where neither case nor white space counts."""
    return squeezed(text).casefold()


def _address(text: str) -> str:
    found = canonical_url(text, fragment=True)
    if found is None:
        raise ValueError("expected the address of a post")
    return found


def _with_area(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    left, top, right, bottom = box
    if left >= right or top >= bottom:
        raise ValueError("expected left, top, right, bottom, with right and bottom outside")
    return box


Address = Annotated[str, AfterValidator(_address)]
Prompt = Annotated[str, Field(max_length=LONGEST_PROMPT, pattern=r"\S")]
Score = Annotated[int, Field(strict=True, ge=1, le=5)]
Whole = Annotated[int, Field(strict=True, ge=0)]
GoldBox = Annotated[tuple[Whole, Whole, Whole, Whole], AfterValidator(_with_area)]
Flag = Annotated[bool, Field(strict=True)]


class Part(BaseModel):
    """A part of a line: immutable, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Line(Part):
    """A line of a gold file; `names` are the fields that no other line has alike."""

    half: Half = "held_out"
    names: ClassVar[tuple[str, ...]] = ("post_url",)
    _place: str = PrivateAttr("")

    @property
    def place(self) -> str:
        return self._place

    @property
    def key(self) -> tuple[str, ...]:
        """What it speaks of: an address, and where that does not tell it apart, what more."""
        return tuple(squeezed(str(getattr(self, name))) for name in self.names)

    @property
    def addresses(self) -> Iterator[str]:
        yield self.key[0]


class RelevanceLine(Line):
    names = ("url",)
    url: Address
    score: Score
    acceptable: tuple[Score, ...] = ()


class GoldSample(Part):
    prompt: Prompt
    quality: Quality
    acceptable: tuple[Quality, ...] = ()
    post_urls: Annotated[tuple[Address, ...], Field(min_length=1)]
    feedback: tuple[Address, ...] = ()
    feedback_optional: tuple[Address, ...] = ()
    optional: Flag = False

    @property
    def heard(self) -> tuple[str, ...]:
        return (*self.feedback, *self.feedback_optional)


class ExtractLine(Line):
    names = ("root_url",)
    root_url: Address
    samples: tuple[GoldSample, ...]

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        if len(set(self.keys)) < len(self.keys):
            raise ValueError("expected samples with different prompts, which name them")
        return self

    @property
    def keys(self) -> list[tuple[str, str]]:
        return [(self.root_url, squeezed(sample.prompt)) for sample in self.samples]

    @property
    def addresses(self) -> Iterator[str]:
        yield self.root_url
        for sample in self.samples:
            yield from (*sample.post_urls, *sample.heard)


class ImageAt(Part):
    post_url: Address
    index: Whole


class ImageRole(ImageAt):
    role: Literal["input", "output", "neither"]


class Completion(Part):
    prompt: Prompt
    blanks: Mapping[str, str] = {}
    output: ImageAt


class SampleLine(Line):
    names = ("root_url", "prompt")
    root_url: Address
    prompt: Prompt


class RolesLine(SampleLine):
    pictures: tuple[ImageRole, ...]
    filled: tuple[Completion, ...] = ()
    conversation: ImageAt | None = None
    duplicates_of_conversation: tuple[ImageAt, ...] = ()
    collage: ImageAt | None = None

    @property
    def screenshots(self) -> list[tuple[ImageAt, ...]]:
        """Its conversation, with all screenshots of it, and its collage, if it has them."""
        chat = (self.conversation, *self.duplicates_of_conversation) if self.conversation else ()
        return [some for some in (chat, (self.collage,) if self.collage else ()) if some]

    @property
    def named(self) -> tuple[ImageAt, ...]:
        marked = (self.conversation, self.collage, *self.duplicates_of_conversation)
        filled = (one.output for one in self.filled)
        return (*self.pictures, *filled, *(one for one in marked if one))

    @property
    def addresses(self) -> Iterator[str]:
        yield self.root_url
        yield from (one.post_url for one in self.named)


class ScreenshotLine(Line):
    names = ("post_url", "index")
    post_url: Address
    index: Whole
    layout: Literal["conversation", "collage"]
    prompt: Annotated[str, Field(max_length=LONGEST_PROMPT)]
    inputs: tuple[GoldBox, ...]
    outputs: tuple[GoldBox, ...]


class FeedbackLine(Line):
    post_url: Address
    verdict: Judgement
    acceptable: tuple[Judgement, ...] = ()
    keyword: str | None = None
    acceptable_keywords: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_what_failed(self) -> Self:
        if bool(self.keywords) == (self.verdict == "success"):
            expected = "none" if self.keywords else "what failed, in a few words"
            raise ValueError(f"keyword: expected {expected}, as verdict is {self.verdict!r}")
        return self

    @property
    def keywords(self) -> frozenset[str]:
        """Every keyword that is no mistake, folded; none where nothing failed."""
        every = map(folded, (self.keyword or "", *self.acceptable_keywords))
        return frozenset(filter(None, every))


class TaskLine(SampleLine):
    kind: Kind
    task: Task
    acceptable: tuple[Task, ...] = ()


class SafetyLine(SampleLine):
    flagged: Flag
    categories: tuple[Code, ...] = ()

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if self.flagged != bool(self.categories):
            expected = "codes of its hazards" if self.flagged else "none"
            raise ValueError(f"categories: expected {expected}, as flagged is {self.flagged!r}")
        return self


LINES: Mapping[str, type[Line]] = {
    "relevance": RelevanceLine,
    "extract": ExtractLine,
    "roles": RolesLine,
    "screenshots": ScreenshotLine,
    "safety": SafetyLine,
    "feedback": FeedbackLine,
    "tasks": TaskLine,
}
POSTS_FILE = "posts.jsonl"


class Gold(dict[str, tuple[Any, ...]]):
    """The lines of each file that is there, by its name; those of another one are none."""

    def __missing__(self, name: str) -> tuple[Any, ...]:
        return ()

    def of(self, half: str) -> Gold:
        if half == "all":
            return self
        return Gold(
            (name, tuple(one for one in lines if one.half == half)) for name, lines in self.items()
        )

    def every(self) -> Iterator[Line]:
        for lines in self.values():
            yield from lines


def read_gold(folder: Path | str) -> Gold:
    folder, names = Path(folder), ", ".join(f"{name}.jsonl" for name in LINES)
    if not folder.is_dir():
        raise GoldError(f"no folder {str(folder)!r}: expected one with {names}")
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem not in (*LINES, "posts"):
            said = unknown("file of a gold folder", path.stem, LINES, str(folder))
            raise GoldError(f"{said}: rename it, or move it elsewhere")
    files = {name: folder / f"{name}.jsonl" for name in LINES}
    gold = Gold((name, _lines(path, LINES[name])) for name, path in files.items() if path.exists())
    if not gold:
        raise GoldError(f"{str(folder)!r} holds no gold: expected at least one of {names}")
    return gold


def _lines(path: Path, kind: type[Line]) -> tuple[Line, ...]:
    if not path.is_file():  # to read a pipe is to wait for ever
        raise GoldError(f"{str(path)!r} is not a regular file: expected one JSON object a line")
    try:
        whole = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GoldError(f"{path}: byte {error.start} is not UTF-8: save it as UTF-8") from None
    seen: dict[tuple[str, ...], Line] = {}
    for number, text in enumerate(whole.split("\n"), 1):
        if not text.strip():
            continue
        place = f"{path}:{number}"
        try:
            line = kind.model_validate(json.loads(text))
        except ValidationError as error:
            raise GoldError(first_error(error, place, kind)) from None
        except (ValueError, RecursionError) as error:
            raise GoldError(f"{place}: {shown_value(text)} is not JSON ({error})") from None
        line._place = place
        first = seen.setdefault(line.key, line)
        if first is not line:
            told = ", ".join(map(shown_value, line.key))
            raise GoldError(f"{place}: {told} stands in {first.place} too: keep one of them")
    return tuple(seen.values())
