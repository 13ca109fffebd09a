"""Score how likely a post is about images made with the target (section 3.1, figure D.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from echo_hf._infra.text import format_share
from echo_hf.collect.sources.base import PostNotice
from echo_hf.config.sections import MAX_POSTS_PER_REQUEST, Target
from echo_hf.engines.base import Message, Packing, Request, Text
from echo_hf.pipeline.answers import Failure, NotedAnswer
from echo_hf.pipeline.packing import NUMBERS
from echo_hf.pipeline.stage import (
    ModelStage,
    RowIssue,
    issue_rows,
    keep_rows,
    order_rows,
    parent_lists,
    register,
    row_keys,
)
from echo_hf.prompts import Prompt, load_prompt, quote_as_data
from echo_hf.tables import POSTS, Table

if TYPE_CHECKING:
    from echo_hf.pipeline.result import StageStats


MAX_NOTE_CHARACTERS = 120
MAX_ANSWER_TOKENS = 160
QUOTED_FIELDS = ("text", "pictures", "alt_texts")
RELEVANCE = POSTS.schema.field("relevance").type


class RelevanceAnswer(NotedAnswer):
    """A score from 1 (certainly not) to 5 (certainly), with a note where it is unsure."""

    model_config = ConfigDict(extra="ignore")
    keyed_lengths: ClassVar[Mapping[str, int]] = {"note": 300}

    score: Annotated[int, Field(ge=1, le=5)]
    # The schema tells models the limit; a longer note is cut with a notice, and the score stays.
    note: Annotated[str, Field(json_schema_extra={"maxLength": MAX_NOTE_CHARACTERS})] | None = None


class Numbered(BaseModel):
    """Which of several posts an answer is about."""

    number: Annotated[int, Field(ge=NUMBERS.start, lt=NUMBERS.stop)]


class NumberedRelevanceAnswer(RelevanceAnswer, Numbered):
    """The score of one of several posts."""


class PackedRelevanceAnswer(BaseModel):
    """The scores of several posts, in one answer."""

    posts: Annotated[list[NumberedRelevanceAnswer], Field(max_length=MAX_POSTS_PER_REQUEST)]


@register
@dataclass(frozen=True)
class Relevance(ModelStage):
    """Scores the text of posts that a search found; all posts go on, scored or not.

    Where a file does not say what found its posts, all of them are scored.

    A post whose call failed goes on with a null score, because it may be the context of another,
    and stands in the quarantine as well.

    Attributes:
        target: The model that people talk about.
        posts_per_request: Most posts of one request to a model; each keeps an answer of its own.
    """

    name: ClassVar[str] = "relevance"
    version: ClassVar[int] = 2
    after: ClassVar[str | None] = "collect"
    inputs: ClassVar[Table] = POSTS
    outputs: ClassVar[Table] = POSTS
    answer: ClassVar[type[BaseModel]] = RelevanceAnswer

    target: Target
    posts_per_request: int = 1

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Say how many posts are relevant (section 3.1: 47 %), and what stays with them."""
        tally = stats["relevance"].tally
        posts_by_score = {score: tally.get(f"score_{score}", 0) for score in range(1, 6)}
        relevant, scored = posts_by_score[4] + posts_by_score[5], sum(posts_by_score.values())
        kept_note = ""
        if threads := stats.get("threads"):
            posts = threads.tally.get("posts", 0)
            kept_note = f"; {threads.kept:,} threads with {posts:,} posts stay"
        yield_text = format_share(relevant, scored)
        return f"{relevant:,} of {scored:,} scored posts are relevant ({yield_text}){kept_note}"

    @property
    def prompt(self) -> Prompt:
        """The instructions with the scale, filled in for the target."""
        return load_prompt("relevance", self.target)

    def describe(self) -> dict[str, Any]:
        """Return what decides the result; of several posts in one request, how they are asked."""
        description = super().describe()
        if (packing := self.make_packing(self.posts_per_request)) is None:
            del description["parameters"]["posts_per_request"]
            return description
        packed = {"prompt": self._packed_prompt.text, "schema": packing.answer.model_json_schema()}
        return {**description, "packed": packed}

    @property
    def _packed_prompt(self) -> Prompt:
        return load_prompt("relevance_packed", self.target)

    def make_packing(self, size: int) -> Packing | None:
        """Return how so many posts are asked about in one request; null for one post."""
        if size == 1:
            return None
        system = Message("system", (Text(self._packed_prompt.text),))
        return Packing(size, system, PackedRelevanceAnswer, QUOTED_FIELDS)

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """Return one request for each post with text or described images that is to be scored."""
        packing = self.make_packing(self.posts_per_request)
        system = Message("system", (Text(self.prompt.text),))
        target = self.target.model_dump(mode="json")
        readable = pc.or_(
            pc.greater(pc.utf8_length(table["text"]).fill_null(0), 0),
            pc.greater(pc.list_value_length(table["pictures"]).fill_null(0), 0),
        )
        by_search = pc.fill_null(pc.greater(pc.list_value_length(table["keywords"]), 0), True)
        texts, urls = table["text"].to_pylist(), table["url"].to_pylist()
        images = table["pictures"].to_pylist()
        rows: list[list[Request]] = [[] for _ in urls]
        # Before pyarrow 24 `pc.indices_nonzero` crashes on an array without chunks.
        for row in compress(range(len(urls)), pc.and_(readable, by_search).to_pylist()):
            post_images, url = images[row] or [], urls[row]
            alt_texts = [image["alt_text"] for image in post_images if image["alt_text"]]
            post = {"text": texts[row] or "", "pictures": len(post_images), "alt_texts": alt_texts}
            user = Message("user", (Text(quote_as_data("post", post)),))
            inputs, messages = {**post, "target": target}, (system, user)
            options: dict[str, Any] = {"row": url, "packing": packing}
            shape = messages, RelevanceAnswer, MAX_ANSWER_TOKENS
            rows[row] = [Request("relevance", *shape, inputs, (url,), **options)]
        return rows

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """Return the posts with their scores; failed calls are quarantined beside them."""
        posts, keys = table.select(list(POSTS.columns)), row_keys(table, POSTS)
        parsed = [row[0] if row else None for row in answers]
        answered = {
            row: first for row, first in enumerate(parsed) if isinstance(first, RelevanceAnswer)
        }
        unscored: dict[str, Any] = {"score": None, "note": None}
        scores = [answer and unscored for answer in parsed]
        for row, answer in answered.items():
            note = answer.note and answer.note[:MAX_NOTE_CHARACTERS]
            scores[row] = {"score": answer.score, "note": note}
        at = posts.schema.get_field_index("relevance")
        posts = posts.set_column(at, POSTS.schema.field(at), pa.array(scores, RELEVANCE))
        failed = {row: first for row, first in enumerate(parsed) if isinstance(first, Failure)}
        issues = [
            RowIssue([keys[row].as_py()], failure.reason, failure.detail, failure.request)
            for row, failure in failed.items()
        ]
        cut = [
            row
            for row, answer in answered.items()
            if answer.note_is_cut or len(answer.note or "") > MAX_NOTE_CHARACTERS
        ]
        notices = [RowIssue([keys[row].as_py()], PostNotice.CUT_NOTE) for row in cut]
        kept = keep_rows(posts, parent_lists(keys))
        return order_rows(
            [
                (range(len(parsed)), kept),
                (list(failed), issue_rows(POSTS, issues)),
                (cut, issue_rows(POSTS, notices)),
            ]
        )

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count the posts that got each score."""
        scores = pc.struct_field(kept["relevance"].combine_chunks(), "score")
        counts = pc.value_counts(scores.drop_null()).to_pylist()
        return {f"score_{count['values']}": count["counts"] for count in counts}
