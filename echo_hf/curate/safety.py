"""Screen samples for hazards with a guard model (section 4, and the paper's ethics statement)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from echo_hf.config.loading import Config
from echo_hf.config.sections import NAMED, REMOVED, FormName, Hazard, form_of, in_order
from echo_hf.engines.base import ImageRef, Request, Text
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure, RawText
from echo_hf.pipeline.result import StageStats
from echo_hf.prompts import Prompt, as_data, load_prompt
from echo_hf.reasons import Notice
from echo_hf.samples.sample import Sample, provenance_with
from echo_hf.samples.stage import Outcome, Question, Row, SampleStage

KNOWN = {one.value: one for one in NAMED}
NO_LABEL = "no label"
Parts = Sequence[Text | ImageRef]
CODE = re.compile(r"[A-Z][0-9]{1,3}", re.ASCII | re.IGNORECASE)
ANSWER = re.compile(
    rf"\s*(?:safe|(unsafe)(?:\s+({CODE.pattern}(?:[\s,]+{CODE.pattern})*))?)\s*",
    re.ASCII | re.IGNORECASE,
)
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
LONGEST_TEXTS = 4000  # of a look
NOT_ASKED = "Trash"


@dataclass(frozen=True)
class GuardVerdict:
    """What a guard said: its labels, the hazards they stand for, and labels that no list knows."""

    labels: tuple[str, ...] = ()
    hazards: frozenset[Hazard] = frozenset()
    strange: tuple[str, ...] = ()


def verdict(flagged: bool, labels: Iterable[str], known: Mapping[str, Hazard]) -> GuardVerdict:
    """What labels stand for; a flag without one, and an unknown one, are a hazard as well."""
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
        """The verdict of an answer, null where it is none."""
        if isinstance(answer, SafetyAnswer) and self.answer:
            return verdict(bool(answer.hazards), answer.hazards, KNOWN)
        if isinstance(answer, RawText) and not self.answer:
            return self.read_text(answer.text)
        return None

    def accepts(self, text: str) -> bool:
        """Whether the guard's own words are a verdict."""
        return self.read(RawText(text)) is not None

    def verdict(self, answer: BaseModel) -> GuardVerdict:
        """The verdict of an answer that was accepted."""
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

    hazards: Annotated[list[Code], Field(max_length=len(KNOWN))]


def instructed_turn(images: Sequence[ImageRef], texts: Sequence[str]) -> Parts:
    """What a guard is told that has our instructions: the texts as data, then the images."""
    parts: list[Text | ImageRef] = [Text(as_data("texts", list(texts)))] if texts else []
    for number, image in enumerate(images, 1):
        parts += [Text(f"Picture {number}:"), image]
    return parts


def read_words(text: str) -> GuardVerdict | None:
    """Reads `safe`, or `unsafe` with codes."""
    found = ANSWER.fullmatch(text)
    if found is None:
        return None
    labels = (code.upper() for code in CODE.findall(found[2] or ""))
    return verdict(found[1] is not None, labels, KNOWN)


class ModerationAnswer(BaseModel):
    """What a moderation endpoint says: whether it found anything, and for each label if it fits."""

    model_config = ConfigDict(strict=True)

    flagged: bool
    categories: Annotated[dict[Label, bool | None], Field(max_length=MOST_LABELS)]


def read_categories(text: str) -> GuardVerdict | None:
    """Reads the JSON of a moderation endpoint."""
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
    if sum(map(len, texts)) <= longest:  # as nearly all
        return [tuple(texts)]
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


@dataclass(frozen=True)
class GuardInput:
    """What a guard looks at together."""

    images: tuple[str, ...]
    texts: tuple[str, ...] = ()


def looks_at(sample: Sample, most_pictures: int) -> list[GuardInput]:
    """Each image by itself, all of them beside the first words, then the rest of the words."""
    every = (*sample["input_images"], *sample["output_images"], sample["screenshot"])
    images = tuple(dict.fromkeys(filter(None, every)))
    said = (one["feedback"] for one in sample["community_feedback"])
    first, *rest = pieces([sample["prompt"], *said], LONGEST_TEXTS)
    starts = range(0, max(len(images), 1), most_pictures)
    return [
        *(GuardInput((one,)) for one in images),
        *(GuardInput(images[at : at + most_pictures], first) for at in starts),
        *(GuardInput((), some) for some in rest),
    ]


@dataclass(frozen=True)
class Safety(SampleStage):
    """Says which hazards a sample holds, and whether it may be in the benchmark.

    A guard looks at each image by itself, and at all images beside the prompt and the feedback;
    a sample has every hazard that one of the looks found, by the codes of `Hazard`. A label that no
    list knows is a hazard that is removed, whatever the config says. A sample of which a look
    failed is unscreened (`safety` and `has_nsfw` are null), goes on, and stands in the quarantine
    as well, unless another look found what is removed. Trash is not asked about.

    Even with several looks a guard overlooks much: what it passes is not proved harmless.

    Attributes:
        target: The model that people talk about.
        images: Where the bytes of the images are.
        form: How the guard is asked: a name of `FORMS`.
        remove: The hazards that keep a sample out of the benchmark.
        most_pictures: Most images of one request.
    """

    name: ClassVar[str] = "safety"
    version: ClassVar[int] = 1
    answer: ClassVar[type[BaseModel]] = SafetyAnswer
    sends_images: ClassVar[bool] = True
    max_tokens: ClassVar[int] = INSTRUCTED.max_tokens

    images: ImageStore = field(metadata={"digest": False})
    form: FormName = "instructed"
    remove: frozenset[Hazard] = frozenset(REMOVED)
    most_pictures: int = 5

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """The stage for the config's target and its guard."""
        remove = frozenset(config.stages.safety.remove)
        return replace(super().from_config(config, images), form=form_of(config), remove=remove)

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """How many samples were screened, flagged and are to be removed, and how many were not."""
        tally = stats["safety"].tally
        screened, unscreened = tally.get("screened", 0), tally.get("unscreened", 0)
        return (
            f"{screened:,} of {screened + unscreened:,} samples screened, "
            f"{tally.get('flagged', 0):,} flagged, {tally.get('removed', 0):,} to be removed, "
            f"{unscreened:,} unscreened"
        )

    @property
    def prompt(self) -> Prompt:
        """What the hazards are; empty for a guard that knows its own."""
        named = self._guard.prompt
        return load_prompt(named, self.target) if named else Prompt(self.name, "")

    def questions(self, row: Row) -> Iterator[Question]:
        """The sample, a look at a time."""
        urls = [*row["post_urls"], *(one["post_url"] for one in row["community_feedback"])]
        looks = self._looks(row)
        every = dict.fromkeys(one for look in looks for one in look.images)
        known = {one: ImageRef(one, self.images.path(one)) for one in every}
        for look in looks:
            shown = [known[one] for one in look.images]
            images = [{"sha256": one.sha256, "file": one.file} for one in shown]
            parts = self._guard.turn(shown, look.texts)
            yield parts, {"pictures": images, "texts": list(look.texts)}, urls

    def _asked(self, rows: Sequence[Row]) -> list[list[Request]]:
        """One call for each look at each sample, answered in the guard's own way."""
        guard, every = self._guard, super()._asked(rows)
        if guard is INSTRUCTED:  # asked as any model is
            return every
        own: dict[str, Any] = {"answer": None, "max_tokens": guard.max_tokens}
        own["accepts"] = guard.accepts
        return [[replace(one, **own) for one in asked] for asked in every]

    def outcome(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> Outcome:
        """The sample, screened or not."""
        if all(isinstance(one, Failure) for one in answers):
            return [row], []
        pairs = [
            (look, self._guard.verdict(one))
            for look, one in zip(self._looks(row), answers, strict=True)
            if not isinstance(one, Failure)
        ]
        hazards = frozenset[Hazard]().union(*(said.hazards for _, said in pairs))
        is_removed = not hazards.isdisjoint({*self.remove, Hazard.UNKNOWN})
        if len(pairs) < len(answers) and not is_removed:
            return [row], []
        looks = [
            {
                "pictures": look.images,
                "text": bool(look.texts),
                "labels": said.labels,
                "categories": in_order(said.hazards),
            }
            for look, said in pairs
        ]
        codes, engine = in_order(hazards), made_by["engine"]
        model = engine.get("model") or engine.get("kind")
        made = {
            **row,
            "has_nsfw": is_removed,
            "safety": {"flagged": bool(codes), "categories": codes, "model": model},
            "provenance": provenance_with(row, self.name, {**made_by, "looks": looks}),
        }
        strange = dict.fromkeys(label for _, said in pairs for label in said.strange)
        return [made], [(Notice.UNKNOWN_HAZARD, label) for label in strange]

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many samples are screened, flagged, removed, unscreened, and have each hazard.

        Trash is none of them.
        """
        asked = kept.filter(pc.not_equal(kept["quality"], NOT_ASKED))
        flagged = pc.struct_field(asked["safety"], "flagged").combine_chunks()
        codes = pc.list_flatten(pc.struct_field(asked["safety"], "categories"))
        return {
            "screened": len(flagged) - flagged.null_count,
            "unscreened": flagged.null_count,
            "flagged": flagged.true_count,
            "removed": asked["has_nsfw"].combine_chunks().true_count,
            **Counter(codes.to_pylist()),
        }

    @property
    def _guard(self) -> GuardForm:
        return FORMS[self.form]

    def _looks(self, sample: Sample) -> list[GuardInput]:
        most = min(self.most_pictures, self._guard.most_pictures or self.most_pictures)
        return [] if sample["quality"] == NOT_ASKED else looks_at(sample, most)
