"""Guards: models that say whether an image or a text is hazardous, each asked in its own way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from echo_hf.config.sections import NAMED, FormName, Hazard
from echo_hf.engines.base import ImageRef, Text
from echo_hf.pipeline.answers import RawText
from echo_hf.prompts import as_data
from echo_hf.samples.sample import Sample

KNOWN = {one.value: one for one in NAMED}
NO_LABEL = "no label"
Parts = Sequence[Text | ImageRef]


@dataclass(frozen=True)
class GuardVerdict:
    labels: tuple[str, ...] = ()
    hazards: frozenset[Hazard] = frozenset()
    strange: tuple[str, ...] = ()


def verdict(flagged: bool, labels: Iterable[str], known: Mapping[str, Hazard]) -> GuardVerdict:
    named = tuple(dict.fromkeys(labels))
    strange = tuple(repr(label) for label in named if label not in known)
    if flagged and not named:
        strange = (NO_LABEL,)
    unknown = {Hazard.UNKNOWN} if strange else set()
    hazards = {known[label] for label in named if label in known}
    return GuardVerdict(named, frozenset(hazards | unknown), strange)


@dataclass(frozen=True)
class GuardForm:
    """How a guard is asked, and how its answer is read: an `answer` of ours, or its own words."""

    name: str
    turn: Callable[[Sequence[ImageRef], Sequence[str]], Parts]
    max_tokens: int
    read_text: Callable[[str], GuardVerdict | None] = lambda _: None
    prompt: str | None = None
    answer: type[BaseModel] | None = None
    most_pictures: int | None = None

    def read(self, answer: BaseModel) -> GuardVerdict | None:
        if isinstance(answer, SafetyAnswer) and self.answer:
            return verdict(bool(answer.hazards), answer.hazards, KNOWN)
        if isinstance(answer, RawText) and not self.answer:
            return self.read_text(answer.text)
        return None

    def accepts(self, text: str) -> bool:
        return self.read(RawText(text)) is not None

    def verdict(self, answer: BaseModel) -> GuardVerdict:
        if (found := self.read(answer)) is None:
            raise ValueError(f"{answer!r} is not an answer of form {self.name!r}")
        return found


def bare_turn(images: Sequence[ImageRef], texts: Sequence[str]) -> Parts:
    """What a guard with instructions of its own is told: the images, then the texts."""
    written = "\n\n".join(texts).replace("<|", "< |")
    return (*images, Text(written)) if texts else tuple(images)


Code = Literal[
    "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S14"
]  # fmt: skip


class SafetyAnswer(BaseModel):
    """The hazards that a model sees; none where it sees none."""

    model_config = ConfigDict(extra="ignore")

    hazards: Annotated[list[Code], Field(max_length=len(KNOWN))]


def instructed_turn(images: Sequence[ImageRef], texts: Sequence[str]) -> Parts:
    parts: list[Text | ImageRef] = [Text(as_data("texts", list(texts)))] if texts else []
    for number, image in enumerate(images, 1):
        parts += [Text(f"Picture {number}:"), image]
    return parts


CODE = re.compile(r"[A-Z][0-9]{1,3}", re.ASCII | re.IGNORECASE)
ANSWER = re.compile(
    rf"\s*(?:safe|(unsafe)(?:\s+({CODE.pattern}(?:[\s,]+{CODE.pattern})*))?)\s*",
    re.ASCII | re.IGNORECASE,
)


def read_words(text: str) -> GuardVerdict | None:
    found = ANSWER.fullmatch(text)
    if found is None:
        return None
    labels = (code.upper() for code in CODE.findall(found[2] or ""))
    return verdict(found[1] is not None, labels, KNOWN)


LONGEST_LABEL = 100
MOST_LABELS = 200
# Harassment has no code of its own: insults stand with hate, threats of violence with violence.
KNOWN_CATEGORIES = {
    "harassment": Hazard.HATE,
    "harassment/threatening": Hazard.VIOLENT_CRIMES,
    "hate": Hazard.HATE,
    "hate/threatening": Hazard.HATE,
    "illicit": Hazard.NON_VIOLENT_CRIMES,
    "illicit/violent": Hazard.VIOLENT_CRIMES,
    "self-harm": Hazard.SELF_HARM,
    "self-harm/instructions": Hazard.SELF_HARM,
    "self-harm/intent": Hazard.SELF_HARM,
    "sexual": Hazard.SEXUAL_CONTENT,
    "sexual/minors": Hazard.CHILD_EXPLOITATION,
    "violence": Hazard.VIOLENT_CRIMES,
    "violence/graphic": Hazard.VIOLENT_CRIMES,
}
Label = Annotated[str, Field(max_length=LONGEST_LABEL)]


class ModerationAnswer(BaseModel):
    """What a moderation endpoint says: whether it found anything, and for each label if it fits."""

    model_config = ConfigDict(extra="ignore", strict=True)

    flagged: bool
    categories: Annotated[dict[Label, bool | None], Field(max_length=MOST_LABELS)]


def read_categories(text: str) -> GuardVerdict | None:
    try:
        answer = ModerationAnswer.model_validate_json(text)
    except ValidationError:
        return None
    labels = sorted(label for label, fits in answer.categories.items() if fits)
    return verdict(answer.flagged, labels, KNOWN_CATEGORIES)


INSTRUCTED = GuardForm("instructed", instructed_turn, 256, prompt="safety", answer=SafetyAnswer)
LLAMA_GUARD = GuardForm("llama_guard", bare_turn, 64, read_words)  # 64: all codes at once
MODERATION = GuardForm("moderation", bare_turn, 256, read_categories, most_pictures=1)
FORMS: Mapping[FormName, GuardForm] = {
    "llama_guard": LLAMA_GUARD,
    "moderation": MODERATION,
    "instructed": INSTRUCTED,
}


def pieces(texts: Sequence[str], longest: int) -> list[tuple[str, ...]]:
    """Shares texts out to requests."""
    shared: list[list[str]] = [[]]
    room = longest
    for part in (part for text in texts for part in _parts(text, longest)):
        if shared[-1] and len(part) > room:
            shared.append([])
            room = longest
        shared[-1].append(part)
        room -= len(part)
    return [tuple(some) for some in shared]


def _parts(text: str, longest: int) -> Iterator[str]:
    start = 0
    while len(text) - start > longest:
        end = start + longest
        spaces = (place for place in range(end - 1, start, -1) if text[place].isspace())
        cut = next(spaces, end - 1) + 1
        yield text[start:cut]
        start = cut
    yield text[start:]


LONGEST_TEXTS = 4000  # of a look


@dataclass(frozen=True)
class GuardInput:
    images: tuple[str, ...]
    texts: tuple[str, ...] = ()


def looks_at(sample: Sample, most_pictures: int) -> list[GuardInput]:
    """Each image by itself, all of them beside the first words, then the rest of the words."""
    every = (*sample["input_images"], *sample["output_images"], sample["screenshot"])
    images = tuple(dict.fromkeys(one for one in every if one))
    said = (one["feedback"] for one in sample["community_feedback"])
    first, *rest = pieces([sample["prompt"], *said], LONGEST_TEXTS)
    starts = range(0, max(len(images), 1), most_pictures)
    return [
        *(GuardInput((one,)) for one in images),
        *(GuardInput(images[at : at + most_pictures], first) for at in starts),
        *(GuardInput((), some) for some in rest),
    ]
