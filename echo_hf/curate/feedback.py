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

from echo_hf._infra.text import format_share, shorten_texts
from echo_hf.engines.base import Failed, Message, Request, Text
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.stage import BY_MODEL, register
from echo_hf.prompts import Prompt, load_prompt, quote_as_data
from echo_hf.reasons import Fact, NoticeReason
from echo_hf.samples.extract import TRASH
from echo_hf.samples.sample import Finding, Sample, SampleNotice, add_provenance
from echo_hf.samples.stage import RequestContent, RowResult, SampleStage
from echo_hf.tables import Row


class FeedbackNotice(NoticeReason):
    """Notices about what was judged of comments."""

    UNJUDGED_COMMENT = "unjudged_comment", "the model gave no verdict on a comment"
    JUDGED_TWICE = "judged_twice", "the model gave a comment two verdicts; the first one counts"
    PARTS_DISAGREE = "parts_disagree", "its parts differ in kind or task; the first answer counts"
    BAD_KEYWORD = "bad_keyword", "the keyword is not a short name of a failure; it is left out"
    BAD_PHRASE = "bad_phrase", "the phrase is no short name of a task; it is left out"
    KEYWORD_WITHOUT_FAILURE = "keyword_without_failure", "a keyword without a failure is left out"


Fact.CHANGES_TASK.mark(FeedbackNotice.PARTS_DISAGREE)


MAX_COMMENTS = 64  # of one request
MAX_KEYWORD_CHARACTERS = 60

SampleKind = Literal["task", "probe"]
TaskName = Literal[
    "text_to_image",
    "text_rendering",
    "edit",
    "style_transfer",
    "sketch_to_image",
    "composition",
    "restoration",
]
FeedbackVerdict = Literal["success", "failure", "mixed", "none"]
MAX_PHRASE_CHARACTERS = 200
MAX_KEYWORD_WORDS = 6
MAX_PHRASE_WORDS = 12  # the prompt asks for eight
MARKUP_SIGN = re.compile(r"[@#<>{}\[\]|\\`]|://|www\.")  # or of an account or address
MAX_TEXT = 4000
MAX_TEXTS = 16_000  # of one request; a single comment is shorter
VERDICTS: tuple[str, ...] = get_args(FeedbackVerdict)
KEYWORD_VERDICTS = frozenset({"failure", "mixed"})


BRITISH = {
    "aeroplane": "airplane",
    "behaviour": "behavior",
    "centre": "center",
    "colour": "color",
    "coloured": "colored",
    "colouring": "coloring",
    "discolouration": "discoloration",
    "grey": "gray",
    "mould": "mold",
    "stylised": "stylized",
}
# Singular words that end in s.
SINGULAR = re.compile(r"(?:ss|us|is|as|os|news|lens|glasses|always)$")
MIN_PLURAL_CHARACTERS = 4
RULE = "case folded, NFKC, signs as spaces, American spelling, plain plurals as singulars, sorted"


def normalize_keyword(keyword: str) -> str:
    """Return the form that all spellings of a keyword have in common."""
    folded = unicodedata.normalize("NFKC", keyword).casefold().replace("'", "").replace("’", "")
    words = set()
    for word in re.findall(r"[^\W_]+", folded):
        if len(word) >= MIN_PLURAL_CHARACTERS and word.endswith("s") and not SINGULAR.search(word):
            word = word[:-1]
        words.add(BRITISH.get(word, word))
    return " ".join(sorted(words))


class JudgedComment(BaseModel):
    """Whether one comment speaks of success or failure, and of which failure."""

    comment: Annotated[int, Field(ge=0, le=999_999)]
    verdict: FeedbackVerdict
    keyword: Annotated[str, Field(max_length=MAX_KEYWORD_CHARACTERS)] | None = None


class FeedbackAnswer(BaseModel):
    """What kind of task a sample is, and what each comment says about its result."""

    kind: SampleKind | None = None
    task: TaskName | None = None
    feedback: Annotated[list[JudgedComment], Field(max_length=MAX_COMMENTS)]


class PhraseAnswer(BaseModel):
    """A sample's task in a few free words; null where no image is asked for."""

    task_phrase: Annotated[str, Field(max_length=MAX_PHRASE_CHARACTERS)] | None = None


PHRASE_SCHEMA = PhraseAnswer.model_json_schema()
CommentRow = Mapping[str, Any]


def read_failure_keyword(judged: JudgedComment) -> tuple[str | None, NoticeReason | None]:
    """Return the keyword of a verdict in small letters, or a notice why there is none."""
    if not (judged.keyword or "").split():
        return None, None
    if judged.verdict not in KEYWORD_VERDICTS:
        return None, FeedbackNotice.KEYWORD_WITHOUT_FAILURE
    words = list_visible_words(judged.keyword or "")
    if not 0 < len(words) <= MAX_KEYWORD_WORDS:
        return None, FeedbackNotice.BAD_KEYWORD
    return " ".join(words).lower(), None


def list_visible_words(text: str) -> list[str]:
    """Return the words of a text without control and formatting characters."""
    visible = (
        "".join(char for char in word if not unicodedata.category(char).startswith("C"))
        for word in text.split()
    )
    return [word for word in visible if word]


def normalize_phrase(answered: str) -> str | None:
    """Return a phrase in small letters without a full stop; null if it does not name a task."""
    words = list_visible_words(unicodedata.normalize("NFKC", answered).casefold().strip(" .!\"'"))
    phrase = " ".join(words)
    is_short = 1 < len(words) <= MAX_PHRASE_WORDS
    return phrase if is_short and not MARKUP_SIGN.search(phrase) else None


def split_comments(sample: Sample) -> list[list[CommentRow]]:
    """Split the comments on a sample into parts that a model can read and an answer can number."""
    comments = sample["community_feedback"]
    if not comments:
        return [[]]
    authors = {post["url"]: post["author"] for post in sample["context"]}
    asker = authors.get(sample["post_urls"][0])
    texts = [post["feedback"] for post in comments]
    texts = shorten_texts(texts, MAX_TEXT, MAX_TEXT * len(comments))
    parts: list[list[CommentRow]] = [[]]
    room = MAX_TEXTS
    for number, (post, text) in enumerate(zip(comments, texts, strict=True)):
        length = len(text or "")
        if len(parts[-1]) == MAX_COMMENTS or (parts[-1] and room < length):
            parts.append([])
            room = MAX_TEXTS
        room -= length
        by_author = asker is not None and authors.get(post["post_url"]) == asker
        parts[-1].append({"comment": number, "text": text, "by_author": by_author})
    return parts


def add_verdicts(
    comments: Sequence[CommentRow], answered: Iterable[tuple[FeedbackAnswer, Sequence[CommentRow]]]
) -> tuple[list[dict[str, Any]], list[Finding]]:
    """Return the comments with their verdicts, null where there is none, and the findings."""
    rows: list[dict[str, Any]] = [{**post, "verdict": None, "keyword": None} for post in comments]
    findings: list[Finding] = []
    judged_as: dict[int, JudgedComment] = {}
    for answer, part in answered:
        numbers = {post["comment"] for post in part}
        for judged in answer.feedback:
            number, name = judged.comment, f"comment {judged.comment}"
            if number not in numbers:
                findings.append((SampleNotice.UNKNOWN_NUMBER, name))
            elif judged_as.setdefault(number, judged) != judged:
                findings.append((FeedbackNotice.JUDGED_TWICE, name))
            elif rows[number]["verdict"] is None:
                keyword, notice = read_failure_keyword(judged)
                rows[number] |= {"verdict": judged.verdict, "keyword": keyword}
                if notice:
                    findings.append((notice, f"{name}: {judged.keyword!r}"))
        urls = (comments[number]["post_url"] for number in sorted(numbers - set(judged_as)))
        findings += [(FeedbackNotice.UNJUDGED_COMMENT, url) for url in urls]
    return rows, findings


@register
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
    after: ClassVar[str | None] = "screenshots"
    decides: ClassVar[Mapping[str, Sequence[str]]] = {
        BY_MODEL: ("community_feedback", "kind", "task", "task_phrase")
    }
    answer: ClassVar[type[BaseModel]] = FeedbackAnswer
    phrase_tokens: ClassVar[int] = 256

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Say the share of failures among the comments, and the number of probes."""
        tally = stats["feedback"].tally
        judged = sum(tally.get(verdict, 0) for verdict in VERDICTS)
        failures = sum(tally.get(verdict, 0) for verdict in KEYWORD_VERDICTS)
        failed = format_share(failures, judged)
        return (
            f"{failures:,} of {judged:,} comments speak of a failure ({failed}); "
            f"{tally.get('probe', 0):,} samples explore the model itself"
        )

    @property
    def phrase_prompt(self) -> Prompt:
        """The instructions for the phrase, filled in for the target."""
        return load_prompt(f"{self.name}_phrase", self.target)

    def describe(self) -> dict[str, Any]:
        """Return what decides the result, with both prompts and both answers."""
        description = super().describe()
        prompt = f"{description['prompt']}\n\n{self.phrase_prompt.text}"
        return {**description, "prompt": prompt, "schema": [description["schema"], PHRASE_SCHEMA]}

    def _build_requests(self, rows: Sequence[Row]) -> list[list[Request]]:
        """Return the requests about each row's comments, and last about the phrase for its task."""
        opening = Message("system", (Text(self.phrase_prompt.text),))
        requests = super()._build_requests(rows)
        for row_requests, row in zip(requests, rows, strict=True):
            if row_requests:
                inputs = row_requests[0].inputs
                fields = {name: inputs[name] for name in ("prompt", "inputs", "outputs")}
                phrase = Request(
                    self.name,
                    (opening, Message("user", (Text(quote_as_data("request", fields)),))),
                    PhraseAnswer,
                    self.phrase_tokens,
                    {**fields, "target": inputs["target"]},
                    tuple(row["post_urls"]),
                    row=row_requests[0].row,
                    part=len(row_requests),
                )
                row_requests.append(phrase)
        return requests

    def _finish_rows(
        self, inputs: Sequence[Row], answers: Sequence[list[BaseModel | Failure]]
    ) -> pa.Table:
        # Rules never answer phrases, so a later run with them could not complete the row.
        completed = []
        for row_answers in answers:
            last = row_answers[-1] if row_answers else None
            needs_model = isinstance(last, Failure) and last.reason is Failed.NEEDS_MODEL
            completed.append([*row_answers[:-1], PhraseAnswer()] if needs_model else row_answers)
        return super()._finish_rows(inputs, completed)

    def build_questions(self, row: Row) -> Iterator[RequestContent]:
        """Yield the sample with its comments, in parts where there are many."""
        texts = row["community_feedback"]
        for comments in self._split_parts(row):
            fields = {
                "prompt": row["prompt"],
                "quality": row["quality"],
                "inputs": len(row["input_images"]),
                "outputs": len(row["output_images"]),
                "comments": comments,
            }
            urls = [*row["post_urls"], *(texts[post["comment"]]["post_url"] for post in comments)]
            yield [Text(quote_as_data("sample", fields))], fields, urls

    def finish_row(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> RowResult:
        """Return the sample with what was answered about it."""
        *judged, phrase_answer = answers or [PhraseAnswer()]
        has_verdicts = any(isinstance(answer, FeedbackAnswer) for answer in judged)
        pairs = zip(judged, self._split_parts(row), strict=True) if has_verdicts else ()
        answered = [(answer, part) for answer, part in pairs if isinstance(answer, FeedbackAnswer)]
        phrase_text = phrase_answer.task_phrase if isinstance(phrase_answer, PhraseAnswer) else None
        if not answered and not phrase_text:
            return [row], []
        comments, findings = add_verdicts(row["community_feedback"], answered)
        kinds = dict.fromkeys((answer.kind, answer.task) for answer, _ in answered)
        if len(kinds) > 1:
            disagreement = ", ".join(f"{kind or 'null'} {task or 'null'}" for kind, task in kinds)
            findings.append((FeedbackNotice.PARTS_DISAGREE, disagreement))
        kind, task = next(iter(kinds), (None, None))
        phrase = normalize_phrase(phrase_text) if phrase_text else None
        if phrase_text and phrase is None:
            findings.append((FeedbackNotice.BAD_PHRASE, repr(phrase_text)))
        fields = {"community_feedback": comments, "kind": kind, "task": task, "task_phrase": phrase}
        return [{**row, **fields, "provenance": add_provenance(row, self.name, made_by)}], findings

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count the comments by verdict, the samples by kind and task, and the phrases."""
        comments = pc.list_flatten(kept["community_feedback"])
        verdicts = pc.struct_field(comments, "verdict").to_pylist()
        names = [*verdicts, *kept["kind"].to_pylist(), *kept["task"].to_pylist()]
        counts = Counter(name for name in names if name)
        counts["phrased"] = len(kept) - kept["task_phrase"].null_count
        return dict(sorted(counts.items()))

    def _split_parts(self, sample: Sample) -> list[list[CommentRow]]:
        return [] if sample["quality"] == TRASH else split_comments(sample)
