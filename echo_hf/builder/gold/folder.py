"""Read the files of a gold folder, which `quickstart/gold/README.md` describes."""

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
from echo_hf.config.checks import first_error, format_value
from echo_hf.curate.feedback import SampleKind, TaskName
from echo_hf.curate.safety import AnsweredHazardCode
from echo_hf.errors import GoldError, unknown
from echo_hf.samples.extract import MAX_PROMPT, Quality
from echo_hf.samples.spans import squeeze

Half = Literal["tune", "held_out"]
HALVES = (*get_args(Half), "all")
FeedbackVerdict = Literal["success", "failure", "mixed"]
POSTS_FILE = "posts.jsonl"


def fold_text(text: str) -> str:
    """Normalize a text for comparisons where neither case nor white space counts."""
    return squeeze(text).casefold()


def _check_url(text: str) -> str:
    url = canonical_url(text, fragment=True)
    if url is None:
        raise ValueError("expected the address of a post")
    return url


def _check_area(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    left, top, right, bottom = box
    if left >= right or top >= bottom:
        raise ValueError("expected left, top, right, bottom, with right and bottom outside")
    return box


PostUrl = Annotated[str, AfterValidator(_check_url)]
PromptText = Annotated[str, Field(max_length=MAX_PROMPT, pattern=r"\S")]
RelevanceScore = Annotated[int, Field(strict=True, ge=1, le=5)]
Natural = Annotated[int, Field(strict=True, ge=0)]
GoldBox = Annotated[tuple[Natural, Natural, Natural, Natural], AfterValidator(_check_area)]
StrictBool = Annotated[bool, Field(strict=True)]


class GoldPart(BaseModel):
    """A part of a line: immutable, and closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


LINES: dict[str, type[GoldLine]] = {}  # by the name of the file


class GoldLine(GoldPart):
    """A line of a gold file; `names` are the fields whose values identify it in its file."""

    file: ClassVar[str]
    measures: ClassVar[str]  # of the answers to it
    half: Half = "held_out"
    names: ClassVar[tuple[str, ...]] = ("post_url",)
    _place: str = PrivateAttr("")

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if "file" in vars(cls):
            LINES[cls.file] = cls

    @property
    def place(self) -> str:
        return self._place

    @property
    def key(self) -> tuple[str, ...]:
        """The values that identify the line; the first is an address."""
        return tuple(squeeze(str(getattr(self, name))) for name in self.names)

    @property
    def addresses(self) -> Iterator[str]:
        yield self.key[0]


class RelevanceLine(GoldLine):
    file = "relevance"
    measures = "keep_precision keep_recall drop_precision drop_recall score_accuracy"
    names = ("url",)
    url: PostUrl
    score: RelevanceScore
    acceptable: tuple[RelevanceScore, ...] = ()


class GoldSample(GoldPart):
    prompt: PromptText
    quality: Quality
    acceptable: tuple[Quality, ...] = ()
    post_urls: Annotated[tuple[PostUrl, ...], Field(min_length=1)]
    feedback: tuple[PostUrl, ...] = ()
    feedback_optional: tuple[PostUrl, ...] = ()
    optional: StrictBool = False

    @property
    def feedback_urls(self) -> tuple[str, ...]:
        return (*self.feedback, *self.feedback_optional)


class ExtractLine(GoldLine):
    file = "extract"
    measures = """sample_precision sample_recall prompt_similarity prompts_exact quality_accuracy
        feedback_precision feedback_recall"""
    names = ("root_url",)
    root_url: PostUrl
    samples: tuple[GoldSample, ...]

    @model_validator(mode="after")
    def _check_distinct(self) -> Self:
        if len(set(self.keys)) < len(self.keys):
            raise ValueError("expected samples with different prompts, which name them")
        return self

    @property
    def keys(self) -> list[tuple[str, str]]:
        return [(self.root_url, squeeze(sample.prompt)) for sample in self.samples]

    @property
    def addresses(self) -> Iterator[str]:
        yield self.root_url
        for sample in self.samples:
            yield from (*sample.post_urls, *sample.feedback_urls)


class ImagePlace(GoldPart):
    post_url: PostUrl
    index: Natural


class ImageRole(ImagePlace):
    role: Literal["input", "output", "neither"]


class TemplateCompletion(GoldPart):
    prompt: PromptText
    blanks: Mapping[str, str] = {}
    output: ImagePlace


class SampleLine(GoldLine):
    names = ("root_url", "prompt")
    root_url: PostUrl
    prompt: PromptText


class RolesLine(SampleLine):
    file = "roles"
    measures = """picture_role_accuracy screenshot_precision screenshot_recall
        completion_precision blanks_filled"""
    pictures: tuple[ImageRole, ...]
    filled: tuple[TemplateCompletion, ...] = ()
    conversation: ImagePlace | None = None
    duplicates_of_conversation: tuple[ImagePlace, ...] = ()
    collage: ImagePlace | None = None

    @property
    def screenshots(self) -> list[tuple[ImagePlace, ...]]:
        """The images of its conversation, and those of its collage, if it has them."""
        chat = (self.conversation, *self.duplicates_of_conversation) if self.conversation else ()
        return [images for images in (chat, (self.collage,) if self.collage else ()) if images]

    @property
    def all_images(self) -> tuple[ImagePlace, ...]:
        marked = (self.conversation, self.collage, *self.duplicates_of_conversation)
        filled = (filling.output for filling in self.filled)
        return (*self.pictures, *filled, *(image for image in marked if image))

    @property
    def addresses(self) -> Iterator[str]:
        yield self.root_url
        yield from (image.post_url for image in self.all_images)


class ScreenshotLine(GoldLine):
    file = "screenshots"
    measures = "box_iou box_precision box_recall role_accuracy prompt_similarity"
    names = ("post_url", "index")
    post_url: PostUrl
    index: Natural
    layout: Literal["conversation", "collage"]
    prompt: Annotated[str, Field(max_length=MAX_PROMPT)]
    inputs: tuple[GoldBox, ...]
    outputs: tuple[GoldBox, ...]


class SafetyLine(SampleLine):
    file = "safety"
    measures = "removal_precision removal_recall keep_recall hazard_recall"
    flagged: StrictBool
    categories: tuple[AnsweredHazardCode, ...] = ()

    @model_validator(mode="after")
    def _check_categories(self) -> Self:
        if self.flagged != bool(self.categories):
            expected = "codes of its hazards" if self.flagged else "none"
            raise ValueError(f"categories: expected {expected}, as flagged is {self.flagged!r}")
        return self


class FeedbackLine(GoldLine):
    file = "feedback"
    measures = "verdict_accuracy keyword_accuracy"
    post_url: PostUrl
    verdict: FeedbackVerdict
    acceptable: tuple[FeedbackVerdict, ...] = ()
    keyword: str | None = None
    acceptable_keywords: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_keyword(self) -> Self:
        if bool(self.keywords) == (self.verdict == "success"):
            expected = "none" if self.keywords else "what failed, in a few words"
            raise ValueError(f"keyword: expected {expected}, as verdict is {self.verdict!r}")
        return self

    @property
    def keywords(self) -> frozenset[str]:
        """Every acceptable keyword, folded; none where nothing failed."""
        folded_keywords = map(fold_text, (self.keyword or "", *self.acceptable_keywords))
        return frozenset(filter(None, folded_keywords))


class TaskLine(SampleLine):
    file = "tasks"
    measures = "kind_accuracy task_accuracy"
    kind: SampleKind
    task: TaskName
    acceptable: tuple[TaskName, ...] = ()


class Gold(dict[str, tuple[Any, ...]]):
    """The lines of each file that is there, by its name; an absent file has none."""

    def __missing__(self, name: str) -> tuple[Any, ...]:
        return ()

    def select_half(self, half: str) -> Gold:
        if half == "all":
            return self
        return Gold(
            (name, tuple(row for row in lines if row.half == half)) for name, lines in self.items()
        )

    def iterate_lines(self) -> Iterator[GoldLine]:
        for lines in self.values():
            yield from lines


def read_gold(folder: Path | str) -> Gold:
    folder, names = Path(folder), ", ".join(f"{name}.jsonl" for name in LINES)
    if not folder.is_dir():
        raise GoldError(f"no folder {str(folder)!r}: expected one with {names}")
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem not in (*LINES, "posts"):
            problem = unknown("file of a gold folder", path.stem, LINES, str(folder))
            raise GoldError(f"{problem}: rename it, or move it elsewhere")
    files = {name: folder / f"{name}.jsonl" for name in LINES}
    existing = {name: path for name, path in files.items() if path.exists()}
    gold = Gold((name, _read_lines(path, LINES[name])) for name, path in existing.items())
    if not gold:
        raise GoldError(f"{str(folder)!r} holds no gold: expected at least one of {names}")
    return gold


def _read_lines(path: Path, line_class: type[GoldLine]) -> tuple[GoldLine, ...]:
    if not path.is_file():  # reading a pipe would never end
        raise GoldError(f"{str(path)!r} is not a regular file: expected one JSON object a line")
    try:
        content = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GoldError(f"{path}: byte {error.start} is not UTF-8: save it as UTF-8") from None
    line_by_key: dict[tuple[str, ...], GoldLine] = {}
    for number, text in enumerate(content.split("\n"), 1):
        if not text.strip():
            continue
        place = f"{path}:{number}"
        try:
            line = line_class.model_validate(json.loads(text))
        except ValidationError as error:
            raise GoldError(first_error(error, place, line_class)) from None
        except (ValueError, RecursionError) as error:
            raise GoldError(f"{place}: {format_value(text)} is not JSON ({error})") from None
        line._place = place
        first = line_by_key.setdefault(line.key, line)
        if first is not line:
            key_text = ", ".join(map(format_value, line.key))
            raise GoldError(f"{place}: {key_text} stands in {first.place} too: keep one of them")
    return tuple(line_by_key.values())
