"""Name the kind of each task, and what people say succeeded or failed (section 4, figures 4, 5)."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from echo_hf._infra.text import share, shortened
from echo_hf.config.loading import Config
from echo_hf.config.sections import Target
from echo_hf.engines.base import Message, Request, Text
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import ModelStage, StageRows, of_row
from echo_hf.prompts import Prompt, as_data, load_prompt
from echo_hf.reasons import Notice, Status
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT
from echo_hf.tables import Table

if TYPE_CHECKING:
    from echo_hf.images.store import ImageStore
    from echo_hf.pipeline.result import StageStats


MOST_COMMENTS = 64  # of one request: no request shows more
LONGEST_KEYWORD = 60

Kind = Literal["task", "probe"]
Task = Literal[
    "text_to_image",
    "text_rendering",
    "edit",
    "style_transfer",
    "sketch_to_image",
    "composition",
    "restoration",
]
Verdict = Literal["success", "failure", "mixed", "none"]


class JudgedComment(BaseModel):
    """Whether one comment speaks of success or failure, and of which failure."""

    model_config = ConfigDict(extra="ignore")

    comment: Annotated[int, Field(ge=0, le=999_999)]
    verdict: Verdict
    keyword: Annotated[str, Field(max_length=LONGEST_KEYWORD)] | None = None


class FeedbackAnswer(BaseModel):
    """What kind of task a sample is, and what each comment says about its result."""

    model_config = ConfigDict(extra="ignore")

    kind: Kind | None = None
    task: Task | None = None
    feedback: Annotated[list[JudgedComment], Field(max_length=MOST_COMMENTS)]


MOST_WORDS = 6
WITH_KEYWORD = frozenset({"failure", "mixed"})


def failure_keyword(judged: JudgedComment) -> tuple[str | None, Notice | None]:
    """The keyword of a verdict, in small letters, without control and formatting characters."""
    given = (judged.keyword or "").split()
    if not given:
        return None, None
    if judged.verdict not in WITH_KEYWORD:
        return None, Notice.KEYWORD_WITHOUT_FAILURE
    words = [word for word in map(_visible, given) if word]
    if not 0 < len(words) <= MOST_WORDS:
        return None, Notice.BAD_KEYWORD
    return " ".join(words).lower(), None


def _visible(word: str) -> str:
    return "".join(c for c in word if not unicodedata.category(c).startswith("C"))


LONGEST_TEXT = 4000
LONGEST_TEXTS = 16_000  # of a part; a single comment is shorter
Sample = Mapping[str, Any]
Comment = Mapping[str, Any]
Finding = tuple[Notice, str]


def parts_of(sample: Sample) -> list[list[Comment]]:
    """Cuts the comments on a sample into parts that an answer can name and a model can read."""
    parts: list[list[Comment]] = [[]]
    room = LONGEST_TEXTS
    for comment in _comments(sample):
        room -= len(comment["text"])
        if len(parts[-1]) == MOST_COMMENTS or (parts[-1] and room < 0):
            parts.append([])
            room = LONGEST_TEXTS - len(comment["text"])
        parts[-1].append(comment)
    return parts


def _comments(sample: Sample) -> Iterator[Comment]:
    said = sample["community_feedback"]
    author = {post["url"]: post["author"] for post in sample["context"]}
    asker = author.get(sample["post_urls"][0])
    texts = shortened([one["feedback"] for one in said], LONGEST_TEXT, LONGEST_TEXT * len(said))
    for number, (one, text) in enumerate(zip(said, texts, strict=True)):
        by_author = asker is not None and author.get(one["post_url"]) == asker
        yield {"comment": number, "text": text, "by_author": by_author}


@dataclass
class Verdicts:
    """The verdicts on the comments of one sample."""

    comments: Sequence[Mapping[str, Any]]
    findings: list[Finding] = field(default_factory=list)
    _given: dict[int, JudgedComment] = field(default_factory=dict)

    def add(self, answer: FeedbackAnswer, part: Iterable[Comment]) -> None:
        """Takes over the answer about one part of the comments."""
        shown = {one["comment"] for one in part}
        for judged in answer.feedback:
            name = f"comment {judged.comment}"
            if judged.comment not in shown:
                self.findings.append((Notice.UNKNOWN_NUMBER, name))
            elif judged.comment not in self._given:
                self._take(judged, name)
            elif self._given[judged.comment] != judged:
                self.findings.append((Notice.JUDGED_TWICE, name))
        for number in sorted(shown - set(self._given)):
            self.findings.append((Notice.UNJUDGED_COMMENT, self.comments[number]["post_url"]))

    def feedback(self) -> list[dict[str, Any]]:
        """The comments with their verdicts; null where there is none."""
        return [{**one, **self._verdict(number)} for number, one in enumerate(self.comments)]

    def _take(self, judged: JudgedComment, name: str) -> None:
        self._given[judged.comment] = judged
        _, notice = failure_keyword(judged)
        if notice:
            self.findings.append((notice, f"{name}: {judged.keyword!r}"))

    def _verdict(self, number: int) -> dict[str, str | None]:
        if (judged := self._given.get(number)) is None:
            return {"verdict": None, "keyword": None}
        keyword, _ = failure_keyword(judged)
        return {"verdict": judged.verdict, "keyword": keyword}


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
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """The stage for the config's target."""
        del images
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
            of_row(
                sample["id"],
                (self._request(system, target, sample, part) for part in self._parts(sample)),
            )
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
