"""Name the kind of each task, and what people say succeeded or failed (section 4, figures 4, 5)."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from echo_hf._infra.text import share, shortened
from echo_hf.engines.base import Text
from echo_hf.pipeline.answers import Failure
from echo_hf.prompts import as_data
from echo_hf.reasons import Notice
from echo_hf.samples.sample import Finding, Sample, provenance_with
from echo_hf.samples.stage import Outcome, Question, Row, SampleStage

if TYPE_CHECKING:
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
LONGEST_TEXT = 4000
LONGEST_TEXTS = 16_000  # of a part; a single comment is shorter
VERDICTS: tuple[str, ...] = get_args(Verdict)
WITH_KEYWORD = frozenset({"failure", "mixed"})
NOT_ASKED = "Trash"
Comment = Mapping[str, Any]


def failure_keyword(judged: JudgedComment) -> tuple[str | None, Notice | None]:
    """The keyword of a verdict, in small letters, without control and formatting characters."""
    given = (judged.keyword or "").split()
    if not given:
        return None, None
    if judged.verdict not in WITH_KEYWORD:
        return None, Notice.KEYWORD_WITHOUT_FAILURE
    visible = (
        "".join(one for one in word if not unicodedata.category(one).startswith("C"))
        for word in given
    )
    words = [word for word in visible if word]
    if not 0 < len(words) <= MOST_WORDS:
        return None, Notice.BAD_KEYWORD
    return " ".join(words).lower(), None


def parts_of(sample: Sample) -> list[list[Comment]]:
    """Cuts the comments on a sample into parts that an answer can name and a model can read."""
    said = sample["community_feedback"]
    author = {post["url"]: post["author"] for post in sample["context"]}
    asker = author.get(sample["post_urls"][0])
    texts = shortened([one["feedback"] for one in said], LONGEST_TEXT, LONGEST_TEXT * len(said))
    parts: list[list[Comment]] = [[]]
    room = LONGEST_TEXTS
    for number, (one, text) in enumerate(zip(said, texts, strict=True)):
        length = len(text or "")
        if len(parts[-1]) == MOST_COMMENTS or (parts[-1] and room < length):
            parts.append([])
            room = LONGEST_TEXTS
        room -= length
        by_author = asker is not None and author.get(one["post_url"]) == asker
        parts[-1].append({"comment": number, "text": text, "by_author": by_author})
    return parts


def judged_comments(
    comments: Sequence[Comment], answered: Iterable[tuple[FeedbackAnswer, Sequence[Comment]]]
) -> tuple[list[dict[str, Any]], list[Finding]]:
    """The comments of a sample with their verdicts, null where there is none; what was noticed."""
    made: list[dict[str, Any]] = [{**one, "verdict": None, "keyword": None} for one in comments]
    findings: list[Finding] = []
    given: dict[int, JudgedComment] = {}
    for answer, part in answered:
        shown = {one["comment"] for one in part}
        for judged in answer.feedback:
            number, name = judged.comment, f"comment {judged.comment}"
            if number not in shown:
                findings.append((Notice.UNKNOWN_NUMBER, name))
            elif given.setdefault(number, judged) != judged:
                findings.append((Notice.JUDGED_TWICE, name))
            elif made[number]["verdict"] is None:
                keyword, notice = failure_keyword(judged)
                made[number] |= {"verdict": judged.verdict, "keyword": keyword}
                if notice:
                    findings.append((notice, f"{name}: {judged.keyword!r}"))
        silent = (comments[number]["post_url"] for number in sorted(shown - set(given)))
        findings += [(Notice.UNJUDGED_COMMENT, url) for url in silent]
    return made, findings


@dataclass(frozen=True)
class Feedback(SampleStage):
    """Says of each comment whether it speaks of success or failure, and of each sample its task.

    A sample whose call failed goes on without verdicts, and stands in the quarantine as well.
    Trash is not asked about.

    Attributes:
        target: The model that people talk about.
    """

    name: ClassVar[str] = "feedback"
    version: ClassVar[int] = 3
    answer: ClassVar[type[BaseModel]] = FeedbackAnswer

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

    def questions(self, row: Row) -> Iterator[Question]:
        """The sample with its comments, or with each so many of them."""
        said = row["community_feedback"]
        for comments in self._parts(row):
            shown = {
                "prompt": row["prompt"],
                "quality": row["quality"],
                "inputs": len(row["input_images"]),
                "outputs": len(row["output_images"]),
                "comments": comments,
            }
            urls = [*row["post_urls"], *(said[one["comment"]]["post_url"] for one in comments)]
            yield [Text(as_data("sample", shown))], shown, urls

    def outcome(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> Outcome:
        """The sample with what was found; without verdicts where nothing was answered."""
        pairs = zip(answers, self._parts(row), strict=True)
        answered = [(one, part) for one, part in pairs if isinstance(one, FeedbackAnswer)]
        if not answered:
            return [row], []
        comments, findings = judged_comments(row["community_feedback"], answered)
        kinds = dict.fromkeys((one.kind, one.task) for one, _ in answered)
        if len(kinds) > 1:
            named = ", ".join(f"{kind or 'null'} {task or 'null'}" for kind, task in kinds)
            findings.append((Notice.PARTS_DISAGREE, named))
        kind, task = next(iter(kinds))
        made = {"community_feedback": comments, "kind": kind, "task": task}
        return [{**row, **made, "provenance": provenance_with(row, self.name, made_by)}], findings

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many comments have each verdict, and how many samples each kind and task."""
        said = pc.list_flatten(kept["community_feedback"])
        verdicts = pc.struct_field(said, "verdict").to_pylist()
        every = [*verdicts, *kept["kind"].to_pylist(), *kept["task"].to_pylist()]
        return dict(sorted(Counter(name for name in every if name).items()))

    def _parts(self, sample: Sample) -> list[list[Comment]]:
        return [] if sample["quality"] == NOT_ASKED else parts_of(sample)
