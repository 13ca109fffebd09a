"""Screen samples for hazards with a guard model (section 4, and the paper's ethics statement)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf.config.loading import Config
from echo_hf.config.sections import REMOVED, FormName, Hazard, form_of, in_order
from echo_hf.curate.guards import FORMS, GuardForm, GuardInput, SafetyAnswer, looks_at
from echo_hf.engines.base import ImageRef, Request
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.prompts import Prompt, load_prompt
from echo_hf.reasons import Notice
from echo_hf.samples.sample import Sample, provenance_with
from echo_hf.samples.stage import Outcome, Question, Row, SampleStage

if TYPE_CHECKING:
    from echo_hf.pipeline.result import StageStats


NOT_ASKED = "Trash"


@dataclass(frozen=True)
class Safety(SampleStage):
    """Says which hazards a sample holds, and whether it may be in the benchmark.

    A guard looks at each image by itself, and at all images beside the prompt and the feedback
    (`looks_at`); a sample has every hazard that one of the looks found, by the codes of `Hazard`.
    A label that no list knows is a hazard that is removed, whatever the config says.

    Unscreened is a state of its own: `safety` and `has_nsfw` are null. A sample of which a look
    failed is unscreened as a whole, goes on, and stands in the quarantine as well; but what another
    look found that is removed is never lost again. Trash, which is never published, is not asked
    about.

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
        for look in self._looks(row):
            shown = [ImageRef(one, self.images.path(one)) for one in look.images]
            images = [{"sha256": one.sha256, "file": one.file} for one in shown]
            parts = self._guard.turn(shown, look.texts)
            yield parts, {"pictures": images, "texts": list(look.texts)}, urls

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One call for each look at each sample, answered in the guard's own way."""
        guard = self._guard
        accepts = None if guard.answer else guard.accepts
        own: dict[str, Any] = {
            "answer": guard.answer,
            "max_tokens": guard.max_tokens,
            "accepts": accepts,
        }
        return [[replace(one, **own) for one in asked] for asked in super().requests(table)]

    def outcome(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> Outcome:
        """The sample, screened or not."""
        pairs = [
            (look, self._guard.verdict(one))
            for look, one in zip(self._looks(row), answers, strict=True)
            if not isinstance(one, Failure)
        ]
        hazards = frozenset[Hazard]().union(*(said.hazards for _, said in pairs))
        is_removed = not hazards.isdisjoint({*self.remove, Hazard.UNKNOWN})
        if not pairs or (len(pairs) < len(answers) and not is_removed):
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
