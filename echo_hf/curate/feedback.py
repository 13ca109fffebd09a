"""Name the kind of each task, and what people say succeeded or failed (section 4, figures 4, 5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf.answers import Failure
from echo_hf.config import Config
from echo_hf.config_sections import Target
from echo_hf.context.sample_context import SAMPLES_IN_CONTEXT
from echo_hf.curate.comments import Comment, Sample, Verdicts, parts_of
from echo_hf.curate.feedback_answer import FeedbackAnswer
from echo_hf.curate.keywords import WITH_KEYWORD
from echo_hf.engines.base import Message, Request, Text
from echo_hf.prompts import Prompt, as_data, load_prompt
from echo_hf.reasons import Notice, Status
from echo_hf.shares import share
from echo_hf.stage import ModelStage
from echo_hf.stage_rows import StageRows
from echo_hf.tables import Table

if TYPE_CHECKING:
    from echo_hf.pictures import PictureStore
    from echo_hf.stage_result import StageStats

MOST_TOKENS = 4096
NOT_ASKED = "Trash"
VERDICTS = ("success", "failure", "mixed", "none")


@dataclass(frozen=True)
class Feedback(ModelStage):
    """Says of each comment whether it speaks of success or failure, and of each sample its task.

    A sample whose call failed goes on without verdicts, and stands in the quarantine as well.
    Trash is not asked about.

    Attributes:
        target: The model that people talk about.
    """

    name: ClassVar[str] = "feedback"
    version: ClassVar[int] = 3
    inputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    outputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    answer: ClassVar[type[BaseModel]] = FeedbackAnswer

    target: Target

    @classmethod
    def from_config(cls, config: Config, pictures: PictureStore) -> Self:
        """The stage for the config's target."""
        del pictures
        return cls(config.target)

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """The share of failures among the comments, and the number of probes."""
        tally = stats["feedback"].tally
        judged = sum(tally.get(verdict, 0) for verdict in VERDICTS)
        failures = sum(tally.get(verdict, 0) for verdict in WITH_KEYWORD)
        return (
            f"{failures:,} of {judged:,} comments speak of a failure ({share(failures, judged)}); "
            f"{tally.get('probe', 0):,} samples explore the model itself"
        )

    @property
    def prompt(self) -> Prompt:
        """What tasks and failures are, filled in for the target."""
        return load_prompt("feedback", self.target)

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One call for each sample, or for each so many of its comments."""
        system = Message("system", (Text(self.prompt.text),))
        target = self.target.model_dump(mode="json")
        return [
            [self._request(system, target, sample, part) for part in self._parts(sample)]
            for sample in self.input_rows(table)
        ]

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """The samples with what was found; one whose call failed is quarantined beside."""
        engine = dict(self.answers.signature) if self.answers else {}
        made_by = {"digest": self.digest(), "engine": engine}
        rows = StageRows(self.outputs)
        for row, sample in enumerate(self.input_rows(table)):
            failed = next((one for one in answers[row] if isinstance(one, Failure)), None)
            if failed:
                rows.failed(row, sample["id"], failed)
            values = {name: sample[name] for name in self.outputs.columns}
            values |= self._judged(rows, row, sample, answers[row], made_by)
            rows.keep(row, sample["id"], values)
        return rows.table()

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many comments have each verdict, and how many samples each kind and task."""
        said = pc.list_flatten(kept["community_feedback"])
        verdicts = pc.struct_field(said, "verdict").to_pylist()
        every = [*verdicts, *kept["kind"].to_pylist(), *kept["task"].to_pylist()]
        return dict(sorted(Counter(name for name in every if name).items()))

    def _judged(
        self,
        rows: StageRows,
        row: int,
        sample: Sample,
        answers: Sequence[BaseModel | Failure],
        made_by: Mapping[str, Any],
    ) -> dict[str, Any]:
        verdicts = Verdicts(sample["community_feedback"])
        given = []
        for part, answer in zip(self._parts(sample), answers, strict=True):
            if isinstance(answer, FeedbackAnswer):
                verdicts.add(answer, part)
                given.append(answer)
        for notice, detail in verdicts.findings:
            rows.say(row, sample["id"], Status.NOTED, notice, detail)
        if not given:
            return {}
        named = dict.fromkeys(f"{one.kind or 'null'} {one.task or 'null'}" for one in given)
        if len(named) > 1:
            rows.say(row, sample["id"], Status.NOTED, Notice.PARTS_DISAGREE, ", ".join(named))
        return {
            "community_feedback": verdicts.feedback(),
            "kind": given[0].kind,
            "task": given[0].task,
            "provenance": _provenance(sample, made_by),
        }

    def _parts(self, sample: Sample) -> list[list[Comment]]:
        return [] if sample["quality"] == NOT_ASKED else parts_of(sample)

    def _request(
        self,
        system: Message,
        target: Mapping[str, Any],
        sample: Sample,
        comments: Sequence[Comment],
    ) -> Request:
        shown = {
            "prompt": sample["prompt"],
            "quality": sample["quality"],
            "inputs": len(sample["input_images"]),
            "outputs": len(sample["output_images"]),
            "comments": comments,
        }
        said = sample["community_feedback"]
        return Request(
            self.name,
            (system, Message("user", (Text(as_data("sample", shown)),))),
            FeedbackAnswer,
            MOST_TOKENS,
            {**shown, "target": target},
            tuple(
                dict.fromkeys(
                    [*sample["post_urls"], *(said[one["comment"]]["post_url"] for one in comments)]
                )
            ),
        )


def _provenance(sample: Sample, made_by: Mapping[str, Any]) -> str:
    earlier = json.loads(sample["provenance"])
    return json.dumps({**earlier, "feedback": made_by}, sort_keys=True, default=str)
