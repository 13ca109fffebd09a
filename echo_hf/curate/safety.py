"""Screen samples for hazards with a guard model (section 4, and the paper's ethics statement)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf.config.loading import Config
from echo_hf.config.sections import REMOVED, FormName, Hazard, Target, form_of, in_order
from echo_hf.curate.guards import (
    FORMS,
    GuardForm,
    GuardInput,
    GuardVerdict,
    SafetyAnswer,
    Sample,
    looks_at,
)
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import ModelStage, StageRows, of_row
from echo_hf.prompts import Prompt, load_prompt
from echo_hf.reasons import Notice, Status
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT
from echo_hf.tables import Table

if TYPE_CHECKING:
    from echo_hf.pipeline.result import StageStats


@dataclass(frozen=True)
class Screening:
    """The looks at a sample that were answered, each with its verdict."""

    looks: Sequence[GuardInput]
    verdicts: Sequence[GuardVerdict]

    @property
    def hazards(self) -> frozenset[Hazard]:
        """Every hazard that one of the looks found."""
        return frozenset().union(*(one.hazards for one in self.verdicts))

    @property
    def strange(self) -> list[str]:
        """What no list knows, each once."""
        return list(dict.fromkeys(label for one in self.verdicts for label in one.strange))

    def removed_by(self, remove: Collection[Hazard]) -> bool:
        """Whether a hazard was found that keeps the sample out; an unknown one always does."""
        return not self.hazards.isdisjoint({*remove, Hazard.UNKNOWN})

    def row(
        self,
        sample: Sample,
        remove: Collection[Hazard],
        model: str | None,
        made_by: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The row of the sample."""
        codes = in_order(self.hazards)
        return {
            **sample,
            "has_nsfw": self.removed_by(remove),
            "safety": {"flagged": bool(codes), "categories": codes, "model": model},
            "provenance": self._provenance(sample, made_by),
        }

    def _provenance(self, sample: Sample, made_by: Mapping[str, Any]) -> str:
        looks = [
            {
                "pictures": look.images,
                "text": bool(look.texts),
                "labels": said.labels,
                "categories": in_order(said.hazards),
            }
            for look, said in zip(self.looks, self.verdicts, strict=True)
        ]
        earlier = json.loads(sample["provenance"])
        made = {**earlier, "safety": {**made_by, "looks": looks}}
        return json.dumps(made, sort_keys=True, default=str)


NOT_ASKED = "Trash"


@dataclass(frozen=True)
class Safety(ModelStage):
    """Says which hazards a sample holds, and whether it may be in the benchmark.

    A guard looks at each image by itself, and at all images beside the prompt and the feedback
    (`looks_at`); a sample has every hazard that one of the looks found, by the codes of `Hazard`.
    A label that no list knows is a hazard that is removed, whatever the config says.

    Unscreened is a state of its own: `safety` and `has_nsfw` are null. A sample of which a look
    failed is unscreened as a whole, goes on, and stands in the quarantine as well. Trash, which is
    never published, is not asked about.

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
    inputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    outputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    answer: ClassVar[type[BaseModel]] = SafetyAnswer

    target: Target
    images: ImageStore = field(metadata={"digest": False})
    form: FormName = "instructed"
    remove: frozenset[Hazard] = frozenset(REMOVED)
    most_pictures: int = 5

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """The stage for the config's target and its guard."""
        options = config.stages.safety
        remove = frozenset(options.remove)
        return cls(config.target, images, form_of(config), remove, options.most_pictures)

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

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One call for each look at each sample."""
        opening = self._opening()
        return [self._asked(opening, sample) for sample in self.input_rows(table)]

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """Every sample goes on; one of which a look failed is quarantined beside.

        It is unscreened, unless another look found what is removed: that is never lost again.
        """
        rows = StageRows(self.outputs)
        made_by = {"digest": self.digest(), "engine": self._signature}
        for row, sample in enumerate(self.input_rows(table)):
            values = dict(sample)
            screening = self._screening(sample, answers[row])
            failed = next((one for one in answers[row] if isinstance(one, Failure)), None)
            if failed:
                rows.failed(row, sample["id"], failed)
            if screening.verdicts and (not failed or screening.removed_by(self.remove)):
                values = screening.row(sample, self.remove, self._model, made_by)
                for label in screening.strange:
                    rows.say(row, sample["id"], Status.NOTED, Notice.UNKNOWN_HAZARD, label)
            rows.keep(row, sample["id"], values)
        return rows.table()

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

    @property
    def _signature(self) -> dict[str, Any]:
        return dict(self.answers.signature) if self.answers else {}

    @property
    def _model(self) -> str | None:
        signature = self._signature
        named = signature.get("model") or signature.get("kind")
        return None if named is None else str(named)

    def _looks(self, sample: Sample) -> list[GuardInput]:
        most = min(self.most_pictures, self._guard.most_pictures or self.most_pictures)
        return [] if sample["quality"] == NOT_ASKED else looks_at(sample, most)

    def _opening(self) -> tuple[Message, ...]:
        text = self.prompt.text
        return (Message("system", (Text(text),)),) if text else ()

    def _asked(self, opening: tuple[Message, ...], sample: Sample) -> list[Request]:
        said = (one["post_url"] for one in sample["community_feedback"])
        sources = tuple(dict.fromkeys([*sample["post_urls"], *said]))
        looks = self._looks(sample)
        return of_row(sample["id"], (self._request(opening, look, sources) for look in looks))

    def _request(
        self, opening: tuple[Message, ...], look: GuardInput, sources: tuple[str, ...]
    ) -> Request:
        shown = [ImageRef(one, self.images.path(one)) for one in look.images]
        images = [{"sha256": one.sha256, "file": one.file} for one in shown]
        target = self.target.model_dump(mode="json")
        return Request(
            self.name,
            (*opening, self._guard.turn(shown, look.texts)),
            self._guard.answer,
            self._guard.max_tokens,
            {"pictures": images, "texts": list(look.texts), "target": target},
            sources,
            accepts=None if self._guard.answer else self._guard.accepts,
        )

    def _screening(self, sample: Sample, answers: Sequence[BaseModel | Failure]) -> Screening:
        pairs = zip(self._looks(sample), answers, strict=True)
        answered = [(look, one) for look, one in pairs if not isinstance(one, Failure)]
        verdicts = [self._guard.verdict(one) for _, one in answered]
        return Screening([look for look, _ in answered], verdicts)
