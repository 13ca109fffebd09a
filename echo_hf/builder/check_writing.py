"""Write a yes/no question from what people complain about, and refuse what is none."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, ClassVar

from datasets import List
from pydantic import BaseModel, Field

from echo_hf._infra.text import shorten_texts
from echo_hf.engines.base import Text
from echo_hf.judging.complaints import MAX_WRITING_THREADS, CommentedSample, ComplaintGroup
from echo_hf.pipeline.answers import Failure
from echo_hf.prompts import quote_as_data
from echo_hf.samples.stage import RequestContent, RowResult, SampleStage
from echo_hf.systems.checks import Evidence
from echo_hf.tables import STRING, STRINGS, Column, Row, Table

COMMENTS_PER_THREAD = 3
MAX_COMMENT, MAX_PROMPT = 280, 200  # characters
MAX_SPELLINGS = 12

TO_WRITE = Table(
    "complaints",
    "one failure that people name, with some of what they said",
    ("name",),
    {
        "name": Column(STRING, "the name of the check to be written"),
        "keyword": Column(STRING, "the failure in the most frequent words"),
        "spellings": Column(STRINGS, "other words for it"),
        "comments": Column(List({"prompt": STRING, "comment": STRING}), "tasks and comments"),
        "post_urls": Column(STRINGS, "the posts that they are from"),
    },
)
WRITTEN = Table(
    "questions",
    "one question that a model wrote",
    ("name",),
    {
        "name": Column(STRING, "the name of the check"),
        "question": Column(STRING, "the question"),
        "counts_as_yes": Column(STRING, "what counts as yes"),
        "fits": Column(STRING, "a question about a task, which tells whether it fits"),
        "made_by": Column(STRING, "JSON: stage and engine"),
    },
)


class CheckAnswer(BaseModel):
    """A question about an output, what counts as yes, and which tasks it fits."""

    question: Annotated[str, Field(min_length=1, max_length=300)]
    counts_as_yes: Annotated[str, Field(min_length=1, max_length=600)]
    fits: Annotated[str, Field(max_length=300)] | None = None


@dataclass(frozen=True)
class WriteChecks(SampleStage):
    """Stage that writes a question for each group of complaints, in one request each."""

    name: ClassVar[str] = "checks"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = TO_WRITE
    outputs: ClassVar[Table] = WRITTEN
    answer: ClassVar[type[BaseModel]] = CheckAnswer
    max_tokens: ClassVar[int] = 1024
    keeps_failed: ClassVar[bool] = False

    def build_questions(self, row: Row) -> Iterator[RequestContent]:
        """Yield the group's keyword with some of its comments."""
        fields = {name: row[name] for name in ("keyword", "spellings", "comments")}
        yield [Text(quote_as_data("complaints", fields))], fields, row["post_urls"]

    def finish_row(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> RowResult:
        """Return the question as it was answered."""
        rows = [
            {
                "name": row["name"],
                **{key: value and value.strip() for key, value in answer.model_dump().items()},
                "made_by": json.dumps(made_by, sort_keys=True, default=str),
            }
            for answer in answers
            if isinstance(answer, CheckAnswer)
        ]
        return rows, ()


def build_row(name: str, group: ComplaintGroup, evidence: Iterable[Evidence]) -> Row:
    """Build the row of `TO_WRITE` from the part of a group that is for writing.

    Of each thread some comments are shown, so that a request stays small however many there are.
    """
    names = {each.sample_id for each in evidence if each.part == "writing"}
    by_thread: dict[str, list[tuple[CommentedSample, str, str]]] = {}
    for sample in group.complaints:
        if sample.sample_id in names:
            for comment in sample.comments:
                if comment.form in group.forms:
                    entry = sample, comment.text, comment.url or ""
                    by_thread.setdefault(sample.thread, []).append(entry)
    shown = list(
        chain.from_iterable(
            by_thread[thread][:COMMENTS_PER_THREAD]
            for thread in sorted(by_thread)[:MAX_WRITING_THREADS]
        )
    )
    prompts, comments = (
        shorten_texts(texts, limit, limit * max(1, len(shown)))
        for texts, limit in (
            ([sample.prompt for sample, *_ in shown], MAX_PROMPT),
            ([text for _, text, _ in shown], MAX_COMMENT),
        )
    )
    spellings = Counter(
        comment.keyword
        for sample in {sample.sample_id: sample for sample, *_ in shown}.values()
        for comment in sample.comments
        if comment.form in group.forms and comment.keyword not in (None, group.keyword)
    )
    urls = chain.from_iterable((*sample.urls, url) for sample, _, url in shown)
    return {
        "name": name,
        "keyword": group.keyword,
        "spellings": sorted(filter(None, spellings))[:MAX_SPELLINGS],
        "comments": [
            {"prompt": prompt, "comment": comment}
            for prompt, comment in zip(prompts, comments, strict=True)
        ],
        "post_urls": sorted({*urls} - {""}),
    }
