"""Name each task, and what people say succeeded or failed (section 4, figures 1, 4, 5)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, Field

from echo_hf._infra.text import share, shortened
from echo_hf.engines.base import Message, Request, Text
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.prompts import Prompt, as_data, load_prompt
from echo_hf.reasons import Failed, Notice
from echo_hf.samples.sample import Finding, Sample, provenance_with
from echo_hf.samples.stage import Outcome, Question, Row, SampleStage

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
LONGEST_PHRASE = 200


class JudgedComment(BaseModel):
    """Whether one comment speaks of success or failure, and of which failure."""

    comment: Annotated[int, Field(ge=0, le=999_999)]
    verdict: Verdict
    keyword: Annotated[str, Field(max_length=LONGEST_KEYWORD)] | None = None


class FeedbackAnswer(BaseModel):
    """What kind of task a sample is, and what each comment says about its result."""

    kind: Kind | None = None
    task: Task | None = None
    feedback: Annotated[list[JudgedComment], Field(max_length=MOST_COMMENTS)]


class PhraseAnswer(BaseModel):
    """A sample's task in a few free words; null where no image is asked for."""

    task_phrase: Annotated[str, Field(max_length=LONGEST_PHRASE)] | None = None


PHRASE_SCHEMA = PhraseAnswer.model_json_schema()
MOST_WORDS = 6
MOST_PHRASE_WORDS = 12  # eight are asked for
MARKUP = re.compile(r"[@#<>{}\[\]|\\`]|://|www\.")  # or an account, an address: no words
LONGEST_TEXT = 4000
LONGEST_TEXTS = 16_000  # of a part; a single comment is shorter
VERDICTS: tuple[str, ...] = get_args(Verdict)
WITH_KEYWORD = frozenset({"failure", "mixed"})
NOT_ASKED = "Trash"
Comment = Mapping[str, Any]


def failure_keyword(judged: JudgedComment) -> tuple[str | None, Notice | None]:
    """The keyword of a verdict, in small letters, without control and formatting characters."""
    if not (judged.keyword or "").split():
        return None, None
    if judged.verdict not in WITH_KEYWORD:
        return None, Notice.KEYWORD_WITHOUT_FAILURE
    words = visible_words(judged.keyword or "")
    if not 0 < len(words) <= MOST_WORDS:
        return None, Notice.BAD_KEYWORD
    return " ".join(words).lower(), None


def visible_words(text: str) -> list[str]:
    """The words of a text without control and formatting characters."""
    visible = (
        "".join(one for one in word if not unicodedata.category(one).startswith("C"))
        for word in text.split()
    )
    return [word for word in visible if word]


def task_phrase(given: str) -> str | None:
    """A phrase in small letters without a full stop; null where it is no phrase for a task."""
    words = visible_words(unicodedata.normalize("NFKC", given).casefold().strip(" .!\"'"))
    phrase = " ".join(words)
    is_short = 1 < len(words) <= MOST_PHRASE_WORDS
    return phrase if is_short and not MARKUP.search(phrase) else None


def parts_of(sample: Sample) -> list[list[Comment]]:
    """Cuts the comments on a sample into parts that an answer can name and a model can read."""
    said = sample["community_feedback"]
    if not said:
        return [[]]
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

    The task is named twice: as one of seven kinds, beside the verdicts, and in a few free words,
    in a request of its own. A sample whose call failed goes on without what it asked for, and
    stands in the quarantine as well; only an engine that is no model may leave out the phrase.
    Trash is not asked about.

    Attributes:
        target: The model that people talk about.
    """

    name: ClassVar[str] = "feedback"
    version: ClassVar[int] = 4
    answer: ClassVar[type[BaseModel]] = FeedbackAnswer
    phrase_tokens: ClassVar[int] = 256

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
    def phrase_prompt(self) -> Prompt:
        """The instructions for the phrase, filled in for the target."""
        return load_prompt(f"{self.name}_phrase", self.target)

    def describe(self) -> dict[str, Any]:
        """As for any stage, with both prompts and both answers."""
        said = super().describe()
        prompt = f"{said['prompt']}\n\n{self.phrase_prompt.text}"
        return {**said, "prompt": prompt, "schema": [said["schema"], PHRASE_SCHEMA]}

    def _asked(self, rows: Sequence[Row]) -> list[list[Request]]:
        """On the comments of each row, and last on the phrase for its task."""
        opening = Message("system", (Text(self.phrase_prompt.text),))
        every = super()._asked(rows)
        for asked, row in zip(every, rows, strict=True):
            if asked:
                shown = {name: asked[0].inputs[name] for name in ("prompt", "inputs", "outputs")}
                phrase = Request(
                    self.name,
                    (opening, Message("user", (Text(as_data("request", shown)),))),
                    PhraseAnswer,
                    self.phrase_tokens,
                    {**shown, "target": asked[0].inputs["target"]},
                    tuple(row["post_urls"]),
                    row=asked[0].row,
                    part=len(asked),
                )
                asked.append(phrase)
        return every

    def _finished(
        self, given: Sequence[Row], answers: Sequence[list[BaseModel | Failure]]
    ) -> pa.Table:
        # Rules know no phrases, so that no later call of theirs could mend a row without one.
        reasons = (bool(some) and getattr(some[-1], "reason", None) for some in answers)
        said = [
            [*some[:-1], PhraseAnswer()] if reason is Failed.NEEDS_MODEL else some
            for some, reason in zip(answers, reasons, strict=True)
        ]
        return super()._finished(given, said)

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
        """The sample with what was answered of it."""
        *judged, phrased = answers or [PhraseAnswer()]
        some = any(isinstance(one, FeedbackAnswer) for one in judged)
        pairs = zip(judged, self._parts(row), strict=True) if some else ()
        answered = [(one, part) for one, part in pairs if isinstance(one, FeedbackAnswer)]
        said = phrased.task_phrase if isinstance(phrased, PhraseAnswer) else None
        if not answered and not said:
            return [row], []
        comments, findings = judged_comments(row["community_feedback"], answered)
        kinds = dict.fromkeys((one.kind, one.task) for one, _ in answered)
        if len(kinds) > 1:
            named = ", ".join(f"{kind or 'null'} {task or 'null'}" for kind, task in kinds)
            findings.append((Notice.PARTS_DISAGREE, named))
        kind, task = next(iter(kinds), (None, None))
        phrase = task_phrase(said) if said else None
        if said and phrase is None:
            findings.append((Notice.BAD_PHRASE, repr(said)))
        made = {"community_feedback": comments, "kind": kind, "task": task, "task_phrase": phrase}
        return [{**row, **made, "provenance": provenance_with(row, self.name, made_by)}], findings

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many comments have each verdict, and samples each kind and task, or a phrase."""
        said = pc.list_flatten(kept["community_feedback"])
        verdicts = pc.struct_field(said, "verdict").to_pylist()
        every = [*verdicts, *kept["kind"].to_pylist(), *kept["task"].to_pylist()]
        counts = Counter(name for name in every if name)
        counts["phrased"] = len(kept) - kept["task_phrase"].null_count
        return dict(sorted(counts.items()))

    def _parts(self, sample: Sample) -> list[list[Comment]]:
        return [] if sample["quality"] == NOT_ASKED else parts_of(sample)
