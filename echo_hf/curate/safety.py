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
from echo_hf.config.sections import (
    NAMED_HAZARDS,
    REMOVED_HAZARDS,
    FormName,
    Hazard,
    guard_form,
    sort_hazards,
)
from echo_hf.engines.base import ImageRef, Request, Text
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure, RawText
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.stage import BY_MODEL, BY_RULE, register
from echo_hf.prompts import Prompt, load_prompt, quote_as_data
from echo_hf.reasons import Fact, NoticeReason
from echo_hf.samples.extract import TRASH
from echo_hf.samples.sample import Sample, add_provenance
from echo_hf.samples.stage import RequestContent, RowResult, SampleStage
from echo_hf.tables import Row


class SafetyNotice(NoticeReason):
    """Notices about a sample's hazards."""

    UNKNOWN_HAZARD = "unknown_hazard", "flagged without a known label; not in the benchmark"


Fact.CHANGES_TASK.mark(SafetyNotice.UNKNOWN_HAZARD)


HAZARD_BY_CODE = {hazard.value: hazard for hazard in NAMED_HAZARDS}
NO_LABEL = "no label"
MessageParts = Sequence[Text | ImageRef]
CODE_PATTERN = re.compile(r"[A-Z][0-9]{1,3}", re.ASCII | re.IGNORECASE)
GUARD_ANSWER = re.compile(
    rf"\s*(?:safe|(unsafe)(?:\s+({CODE_PATTERN.pattern}(?:[\s,]+{CODE_PATTERN.pattern})*))?)\s*",
    re.ASCII | re.IGNORECASE,
)
MAX_LABEL_CHARACTERS = 100
MAX_LABELS = 200
# Harassment has no code: insults count as hate, threats of violence as violence.
HAZARD_BY_CATEGORY = {
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
Label = Annotated[str, Field(max_length=MAX_LABEL_CHARACTERS)]
MAX_GUARD_CHARACTERS = 4000  # of one request


@dataclass(frozen=True)
class GuardVerdict:
    """A guard's verdict: its labels, their hazards, and the labels that no list knows."""

    labels: tuple[str, ...] = ()
    hazards: frozenset[Hazard] = frozenset()
    strange: tuple[str, ...] = ()


def build_guard_verdict(
    flagged: bool, labels: Iterable[str], hazard_by_label: Mapping[str, Hazard]
) -> GuardVerdict:
    """Map labels to hazards; a flag without a label, and an unknown label, count as a hazard."""
    distinct_labels = tuple(dict.fromkeys(labels))
    strange = tuple(repr(label) for label in distinct_labels if label not in hazard_by_label)
    if flagged and not distinct_labels:
        strange = (NO_LABEL,)
    unknown = {Hazard.UNKNOWN} if strange else set()
    hazards = {hazard_by_label[label] for label in distinct_labels if label in hazard_by_label}
    return GuardVerdict(distinct_labels, frozenset(hazards | unknown), strange)


@dataclass(frozen=True)
class GuardForm:
    """How a guard is asked, and how its answer is read: by our schema, or in its own words."""

    name: str
    build_message: Callable[[Sequence[ImageRef], Sequence[str]], MessageParts]
    max_tokens: int
    read_text: Callable[[str], GuardVerdict | None] = lambda _: None
    prompt: str | None = None
    answer: type[BaseModel] | None = None
    most_pictures: int | None = None

    def read(self, answer: BaseModel) -> GuardVerdict | None:
        """Return the verdict of an answer; null if it is not one."""
        if isinstance(answer, SafetyAnswer) and self.answer:
            return build_guard_verdict(bool(answer.hazards), answer.hazards, HAZARD_BY_CODE)
        if isinstance(answer, RawText) and not self.answer:
            return self.read_text(answer.text)
        return None

    def accepts(self, text: str) -> bool:
        """Return whether the guard's own words are a verdict."""
        return self.read(RawText(text)) is not None

    def require_verdict(self, answer: BaseModel) -> GuardVerdict:
        """Return the verdict of an answer that was accepted."""
        if (guard_verdict := self.read(answer)) is None:
            raise ValueError(f"{answer!r} is not an answer of form {self.name!r}")
        return guard_verdict


def build_plain_message(images: Sequence[ImageRef], texts: Sequence[str]) -> MessageParts:
    """Build the message for a guard with instructions of its own: the images, then the texts."""
    joined_text = "\n\n".join(texts).replace("<|", "< |")
    return (*images, Text(joined_text)) if texts else tuple(images)


AnsweredHazardCode = Literal[
    "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S14"
]  # fmt: skip


class SafetyAnswer(BaseModel):
    """The hazards that a model sees; none where it sees none."""

    hazards: Annotated[list[AnsweredHazardCode], Field(max_length=len(HAZARD_BY_CODE))]


def build_instructed_message(images: Sequence[ImageRef], texts: Sequence[str]) -> MessageParts:
    """Build the message for a guard with our instructions: the texts as data, then the images."""
    parts: list[Text | ImageRef] = [Text(quote_as_data("texts", list(texts)))] if texts else []
    for number, image in enumerate(images, 1):
        parts += [Text(f"Picture {number}:"), image]
    return parts


def parse_guard_words(text: str) -> GuardVerdict | None:
    """Parse `safe`, or `unsafe` with codes."""
    answer_match = GUARD_ANSWER.fullmatch(text)
    if answer_match is None:
        return None
    labels = (code.upper() for code in CODE_PATTERN.findall(answer_match[2] or ""))
    return build_guard_verdict(answer_match[1] is not None, labels, HAZARD_BY_CODE)


class ModerationAnswer(BaseModel):
    """What a moderation endpoint says: whether it found anything, and for each label if it fits."""

    model_config = ConfigDict(strict=True)

    flagged: bool
    categories: Annotated[dict[Label, bool | None], Field(max_length=MAX_LABELS)]


def parse_categories(text: str) -> GuardVerdict | None:
    """Parse the JSON of a moderation endpoint."""
    try:
        answer = ModerationAnswer.model_validate_json(text)
    except ValidationError:
        return None
    labels = sorted(label for label, fits in answer.categories.items() if fits)
    return build_guard_verdict(answer.flagged, labels, HAZARD_BY_CATEGORY)


INSTRUCTED = GuardForm(
    "instructed", build_instructed_message, 256, prompt="safety", answer=SafetyAnswer
)
# 64 tokens hold all codes.
LLAMA_GUARD = GuardForm("llama_guard", build_plain_message, 64, parse_guard_words)
MODERATION = GuardForm("moderation", build_plain_message, 256, parse_categories, most_pictures=1)
FORMS: Mapping[FormName, GuardForm] = {
    "llama_guard": LLAMA_GUARD,
    "moderation": MODERATION,
    "instructed": INSTRUCTED,
}


def split_texts(texts: Sequence[str], max_characters: int) -> list[tuple[str, ...]]:
    """Split texts into groups of at most so many characters, one for each request."""
    if sum(map(len, texts)) <= max_characters:  # nearly always
        return [tuple(texts)]
    batches: list[list[str]] = [[]]
    room = max_characters
    for part in (part for text in texts for part in _split_text(text, max_characters)):
        if batches[-1] and len(part) > room:
            batches.append([])
            room = max_characters
        batches[-1].append(part)
        room -= len(part)
    return [tuple(batch) for batch in batches]


def _split_text(text: str, max_characters: int) -> Iterator[str]:
    start = 0
    while len(text) - start > max_characters:
        end = start + max_characters
        spaces = (place for place in range(end - 1, start, -1) if text[place].isspace())
        cut = next(spaces, end - 1) + 1
        yield text[start:cut]
        start = cut
    yield text[start:]


@dataclass(frozen=True)
class GuardInput:
    """The images and texts that a guard looks at together."""

    images: tuple[str, ...]
    texts: tuple[str, ...] = ()


def list_guard_inputs(sample: Sample, max_images: int) -> list[GuardInput]:
    """Return each image alone, all images beside the first texts, then the other texts."""
    digests = (*sample["input_images"], *sample["output_images"], sample["screenshot"])
    images = tuple(dict.fromkeys(filter(None, digests)))
    comments = (comment["feedback"] for comment in sample["community_feedback"])
    first, *other_texts = split_texts([sample["prompt"], *comments], MAX_GUARD_CHARACTERS)
    starts = range(0, max(len(images), 1), max_images)
    return [
        *(GuardInput((image,)) for image in images),
        *(GuardInput(images[start : start + max_images], first) for start in starts),
        *(GuardInput((), batch) for batch in other_texts),
    ]


@register
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
    after: ClassVar[str | None] = "feedback"
    decides: ClassVar[Mapping[str, Sequence[str]]] = {BY_MODEL: ("safety",), BY_RULE: ("has_nsfw",)}
    answer: ClassVar[type[BaseModel]] = SafetyAnswer
    sends_images: ClassVar[bool] = True
    max_tokens: ClassVar[int] = INSTRUCTED.max_tokens

    images: ImageStore = field(metadata={"digest": False})
    form: FormName = "instructed"
    remove: frozenset[Hazard] = frozenset(REMOVED_HAZARDS)
    most_pictures: int = 5

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """Return the stage for the config's target and its guard."""
        remove = frozenset(config.stages.safety.remove)
        return replace(super().from_config(config, images), form=guard_form(config), remove=remove)

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Count the samples that are screened, flagged, unscreened and to be removed."""
        tally = stats["safety"].tally
        screened, unscreened = tally.get("screened", 0), tally.get("unscreened", 0)
        return (
            f"{screened:,} of {screened + unscreened:,} samples screened, "
            f"{tally.get('flagged', 0):,} flagged, {tally.get('removed', 0):,} to be removed, "
            f"{unscreened:,} unscreened"
        )

    @property
    def prompt(self) -> Prompt:
        """The instructions with the hazards; empty for a guard that has its own."""
        prompt_name = self._guard.prompt
        return load_prompt(prompt_name, self.target) if prompt_name else Prompt(self.name, "")

    def build_questions(self, row: Row) -> Iterator[RequestContent]:
        """Yield the inputs of the guard for a sample, one by one."""
        urls = [*row["post_urls"], *(post["post_url"] for post in row["community_feedback"])]
        guard_inputs = self._list_guard_inputs(row)
        digests = dict.fromkeys(
            digest for guard_input in guard_inputs for digest in guard_input.images
        )
        image_refs = {digest: ImageRef(digest, self.images.path(digest)) for digest in digests}
        for guard_input in guard_inputs:
            refs = [image_refs[digest] for digest in guard_input.images]
            images = [{"sha256": ref.sha256, "file": ref.file} for ref in refs]
            parts = self._guard.build_message(refs, guard_input.texts)
            yield parts, {"pictures": images, "texts": list(guard_input.texts)}, urls

    def _build_requests(self, rows: Sequence[Row]) -> list[list[Request]]:
        """Return one request for each input of each sample, answered in the guard's own way."""
        guard, requests_by_row = self._guard, super()._build_requests(rows)
        if guard is INSTRUCTED:  # asked like any model
            return requests_by_row
        changes: dict[str, Any] = {"answer": None, "max_tokens": guard.max_tokens}
        changes["accepts"] = guard.accepts
        return [
            [replace(request, **changes) for request in requests] for requests in requests_by_row
        ]

    def finish_row(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> RowResult:
        """Return the sample, screened or not."""
        if all(isinstance(answer, Failure) for answer in answers):
            return [row], []
        pairs = [
            (guard_input, self._guard.require_verdict(answer))
            for guard_input, answer in zip(self._list_guard_inputs(row), answers, strict=True)
            if not isinstance(answer, Failure)
        ]
        hazards = frozenset[Hazard]().union(*(guard_verdict.hazards for _, guard_verdict in pairs))
        is_removed = not hazards.isdisjoint({*self.remove, Hazard.UNKNOWN})
        if len(pairs) < len(answers) and not is_removed:
            return [row], []
        looks = [
            {
                "pictures": guard_input.images,
                "text": bool(guard_input.texts),
                "labels": guard_verdict.labels,
                "categories": sort_hazards(guard_verdict.hazards),
            }
            for guard_input, guard_verdict in pairs
        ]
        codes, engine = sort_hazards(hazards), made_by["engine"]
        model = engine.get("model") or engine.get("kind")
        screened_row = {
            **row,
            "has_nsfw": is_removed,
            "safety": {"flagged": bool(codes), "categories": codes, "model": model},
            "provenance": add_provenance(row, self.name, {**made_by, "looks": looks}),
        }
        strange = dict.fromkeys(label for _, verdict in pairs for label in verdict.strange)
        return [screened_row], [(SafetyNotice.UNKNOWN_HAZARD, label) for label in strange]

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count the samples that are screened, flagged, removed, unscreened, and have each hazard.

        Trash is none of them.
        """
        used_rows = kept.filter(pc.not_equal(kept["quality"], TRASH))
        flagged = pc.struct_field(used_rows["safety"], "flagged").combine_chunks()
        codes = pc.list_flatten(pc.struct_field(used_rows["safety"], "categories"))
        return {
            "screened": len(flagged) - flagged.null_count,
            "unscreened": flagged.null_count,
            "flagged": flagged.true_count,
            "removed": used_rows["has_nsfw"].combine_chunks().true_count,
            **Counter(codes.to_pylist()),
        }

    @property
    def _guard(self) -> GuardForm:
        return FORMS[self.form]

    def _list_guard_inputs(self, sample: Sample) -> list[GuardInput]:
        max_images = min(self.most_pictures, self._guard.most_pictures or self.most_pictures)
        return [] if sample["quality"] == TRASH else list_guard_inputs(sample, max_images)
