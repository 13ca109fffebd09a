"""Write a yes/no question from what people complain about, and refuse what is none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, ClassVar

from datasets import List
from pydantic import BaseModel, Field

from echo_hf._infra.text import shorten_texts
from echo_hf.curate.personal_data import find_personal_data
from echo_hf.engines.base import Text
from echo_hf.judging.complaints import MAX_WRITING_THREADS, CommentedSample, ComplaintGroup
from echo_hf.pipeline.answers import Failure
from echo_hf.prompts import quote_as_data
from echo_hf.reasons import Reason
from echo_hf.samples.stage import RequestContent, RowResult, SampleStage
from echo_hf.systems.checks import Evidence
from echo_hf.tables import STRING, STRINGS, Column, Row, Table

COMMENTS_PER_THREAD = 3
MAX_COMMENT, MAX_PROMPT = 280, 200  # characters
MAX_SPELLINGS = 12
MAX_ACRONYM = 4  # letters, as in RGB, which names nobody
SHARED_WORDS = 6  # in a row, of a question and a post

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


class NoCheck(Reason):
    """Why a question is not asked of judges."""

    NO_QUESTION = "no_question", "it is no single question that ends with a question mark"
    NAMES = "names", "it names a person, an account, a product or a work"
    NOT_LOOKING = "not_looking", "it asks for more than looking at pictures and their task"
    ADDRESSES_JUDGE = "addresses_judge", "it speaks to the one who answers"
    REPEATS_POST = "repeats_post", "it repeats six words of a post"
    MARKUP = "markup", "it holds markup, an address or an account"
    NOT_WRITTEN = "not_written", "the model that writes gave no answer that can be used"


MARKUP = re.compile(r"[<>\[\]{}|`\\#@$*_~^]|://|www\.|&\w+;|[\x00-\x1f]")
ADDRESSED = re.compile(
    r"\b(you|yours?|please|disregard|ignore (?:all|any|every|previous|the above|this|these)"
    r"|system prompt|(?:these|your|my|previous) instructions?|assistant|judges?|raters?"
    r"|evaluators?|annotators?|ratings?|scores?|(?:always|say) (?:yes|no)"
    r"|(?:rate|answer|reply|respond) (?:it|with|yes|no|that|this))\b",
    re.IGNORECASE,
)
NOT_SEEN = re.compile(
    r"\b(comments?|commenters?|(?:under|in|of|from) (?:the|a|this|its) posts?|tweets?|users?"
    r"|authors?|community|complain\w*|viral"
    r"|people (?:say|think|write|mean|like|call)|search\w*|google\w*|click\w*|visit\w*|download\w*"
    r"|websites?|file ?names?|metadata|remember|know (?:who|whose)|made by"
    r"|which (?:system|model))\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[^\W_]+")


class CheckAnswer(BaseModel):
    """A question about an output, what counts as yes, and which tasks it fits."""

    question: Annotated[str, Field(min_length=10, max_length=300)]
    counts_as_yes: Annotated[str, Field(min_length=10, max_length=600)]
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
    urls = chain.from_iterable((*sample.urls, url) for sample, _, url in shown)
    return {
        "name": name,
        "keyword": group.keyword,
        "spellings": list(group.spellings)[1 : MAX_SPELLINGS + 1],
        "comments": [
            {"prompt": prompt, "comment": comment}
            for prompt, comment in zip(prompts, comments, strict=True)
        ],
        "post_urls": sorted({*urls} - {""}),
    }


def find_fault(
    texts: Sequence[str | None], posts: Iterable[str] = (), names: Set[str] = frozenset()
) -> tuple[NoCheck, str] | None:
    """Return why the texts of a check, its question first, cannot be used; null where they can.

    Args:
        texts: The question, what counts as yes, and what it fits; null for one that is missing.
        posts: What people wrote, none of which may be repeated.
        names: Names of accounts and of the target in small letters, none of which may be in them.
    """
    question, *others = texts
    if question is None or not question.endswith("?") or question.count("?") != 1:
        return NoCheck.NO_QUESTION, (question or "")[-40:]
    for text in filter(None, (question, *others)):
        if fault := find_name(text, names):
            return fault
        for reason, pattern in (
            (NoCheck.ADDRESSES_JUDGE, ADDRESSED),
            (NoCheck.NOT_LOOKING, NOT_SEEN),
        ):
            if match := pattern.search(text):
                return reason, match[0]
    own = set(chain.from_iterable(_list_runs(text) for text in texts if text))
    for post in posts:
        if shared := own.intersection(_list_runs(post)):
            return NoCheck.REPEATS_POST, " ".join(min(shared))
    return None


def find_name(text: str, names: Set[str] = frozenset()) -> tuple[NoCheck, str] | None:
    """Return markup or a name in a text: a capital within a sentence, an account, an address."""
    if match := MARKUP.search(text):
        return NoCheck.MARKUP, match[0]
    for word in WORD.finditer(text):
        begins = not text[: word.start()].strip() or text[: word.start()].rstrip()[-1] in ".?!:"
        is_acronym = len(word[0]) == 1 or (word[0].isupper() and len(word[0]) <= MAX_ACRONYM)
        if word[0][0].isupper() and not begins and not is_acronym:
            return NoCheck.NAMES, word[0]
    if personal := find_personal_data(text):
        return NoCheck.NAMES, text[slice(*personal[0][:2])]
    named = names & set(WORD.findall(text.casefold()))
    return (NoCheck.NAMES, min(named)) if named else None


def _list_runs(text: str) -> Iterator[tuple[str, ...]]:
    words = WORD.findall(text.casefold())
    return zip(*(words[start:] for start in range(SHARED_WORDS)), strict=False)
