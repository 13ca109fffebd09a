"""Turn reply trees into self-contained samples (section 3.2, figure D.3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf.answers import Failure
from echo_hf.collect.urls import post_id_of
from echo_hf.config import Config
from echo_hf.config_sections import Target
from echo_hf.context.answers import ExtractAnswer
from echo_hf.context.drafts import BEST_FIRST, Draft, Drafts, Post
from echo_hf.context.parts import parts, rendered
from echo_hf.context.sample_context import SAMPLES_IN_CONTEXT, context_of
from echo_hf.context.sample_id import sample_digest, sample_ids
from echo_hf.context.spans import SpanIndex
from echo_hf.engines.base import Message, Request, Text
from echo_hf.prompts import Prompt, as_data, load_prompt
from echo_hf.reasons import Reject, Status
from echo_hf.shares import share
from echo_hf.stage import ModelStage
from echo_hf.stage_rows import StageRows
from echo_hf.tables import THREADS, Table

if TYPE_CHECKING:
    from echo_hf.pictures import PictureStore
    from echo_hf.stage_result import StageStats

MOST_TOKENS = 8192


@dataclass(frozen=True)
class Extract(ModelStage):
    """Finds the prompts of a thread, the posts that show them, and what was said about them.

    Attributes:
        target: The model that people talk about.
        context_characters: Longest rendered thread for one request; a longer one is cut in parts.
    """

    name: ClassVar[str] = "extract"
    version: ClassVar[int] = 4
    inputs: ClassVar[Table] = THREADS
    outputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    answer: ClassVar[type[BaseModel]] = ExtractAnswer

    target: Target
    context_characters: int = 24_000

    @classmethod
    def from_config(cls, config: Config, pictures: PictureStore) -> Self:
        """The stage for the config's target."""
        del pictures
        return cls(config.target, config.stages.extract.context_characters)

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """The shares of each quality (section 4: 20 % and 66 %)."""
        one = stats["extract"]
        shares = [f"{share(one.tally.get(name, 0), one.kept)} {name}" for name in BEST_FIRST]
        return f"{one.kept:,} samples extracted: {', '.join(shares)}"

    @property
    def prompt(self) -> Prompt:
        """What a sample is, filled in for the target."""
        return load_prompt("extract", self.target)

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One call for each part of each thread."""
        system = Message("system", (Text(self.prompt.text),))
        target = self.target.model_dump(mode="json")
        return [self._requests_of(posts, system, target) for posts in table["posts"].to_pylist()]

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """One row a sample; a thread stays in quarantine until all its parts are answered."""
        digest = self.digest()
        made = StageRows(self.outputs)
        roots = table["root_url"].to_pylist()
        for row, (root, posts) in enumerate(zip(roots, table["posts"].to_pylist(), strict=True)):
            failed = next((one for one in answers[row] if isinstance(one, Failure)), None)
            if failed:
                made.failed(row, root, failed)
                continue
            drafts = self._drafts(posts, answers[row])
            samples = drafts.finish()
            for notice, detail in drafts.findings:
                made.say(row, root, Status.NOTED, notice, detail)
            if not samples:
                made.say(row, root, Status.REJECTED, Reject.NO_SAMPLE)
            for values in self._rows(posts, samples, digest):
                made.keep(row, root, values)
        return made.table()

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many samples have each quality, and how many prompts were modified."""
        counts = pc.value_counts(kept["quality"].combine_chunks()).to_pylist()
        modified = pc.sum(kept["prompt_modified"].cast(pa.int64())).as_py() or 0
        by_quality = {count["values"]: count["counts"] for count in counts}
        return {**by_quality, "prompt_modified": modified}

    def _requests_of(
        self, posts: list[Post], system: Message, target: Mapping[str, Any]
    ) -> list[Request]:
        every = rendered(posts, self.context_characters)
        return [
            _request(system, target, [every[number] for number in shown], posts, shown)
            for shown in parts(every, self.context_characters)
        ]

    def _drafts(self, posts: list[Post], answers: list[BaseModel | Failure]) -> Drafts:
        drafts = Drafts(posts)
        every = parts(rendered(posts, self.context_characters), self.context_characters)
        for shown, answer in zip(every, answers, strict=True):
            if isinstance(answer, ExtractAnswer):
                drafts.add(answer, shown)
        return drafts

    def _rows(
        self, posts: list[Post], samples: list[Draft], digest: str
    ) -> Iterator[dict[str, Any]]:
        written = SpanIndex([text for post in posts for text in _texts(post)])
        made_by = {"digest": digest, "engine": dict(self.answers.signature) if self.answers else {}}
        for draft, name in zip(samples, _names(posts, samples), strict=True):
            primary = posts[draft.primary]["url"]
            yield {
                **NOT_YET,
                "id": name,
                "post_id": post_id_of(primary),
                "post_urls": [posts[number]["url"] for number in draft.posts],
                "target": self.target.name,
                "prompt": draft.prompt,
                "prompt_modified": not written.holds(draft.prompt),
                "quality": draft.quality,
                "community_feedback": _feedback(posts, draft),
                "output_images": draft.pictures,
                "context": context_of(posts, draft.posts, draft.feedback),
                "sample_digest": sample_digest(draft.prompt, ()),
                "provenance": json.dumps({"extract": made_by}, sort_keys=True, default=str),
            }


NOT_YET: Mapping[str, Any] = {
    "prompt_fill_blank": False,
    "input_images": [],
    "screenshot": None,
    "is_screenshot": False,
    "input_bboxs": [],
    "output_bboxs": [],
    "has_nsfw": None,
    "safety": None,
    "review": [],
    "dehydrated": False,
    "kind": None,
    "task": None,
}


def _request(
    system: Message,
    target: Mapping[str, Any],
    asked: list[dict[str, Any]],
    posts: list[Post],
    shown: list[int],
) -> Request:
    user = Message("user", (Text(as_data("thread", asked)),))
    return Request(
        "extract",
        (system, user),
        ExtractAnswer,
        MOST_TOKENS,
        {"posts": asked, "target": target},
        tuple(posts[number]["url"] for number in shown),
    )


def _texts(post: Post) -> Iterator[str]:
    yield post["text"] or ""
    yield from (one["alt_text"] for one in post["pictures"] or [] if one["alt_text"])


def _feedback(posts: list[Post], draft: Draft) -> list[dict[str, str | None]]:
    return [
        {
            "post_id": post_id_of(posts[number]["url"]),
            "post_url": posts[number]["url"],
            "feedback": text,
            "verdict": None,
            "keyword": None,
        }
        for number, text in draft.feedback.items()
    ]


def _names(posts: list[Post], samples: list[Draft]) -> list[str]:
    siblings: dict[int, list[int]] = {}
    for draft in samples:
        siblings.setdefault(draft.primary, []).append(draft.start)
    names = {
        primary: iter(sample_ids(posts[primary]["url"], posts[primary]["text"] or "", starts))
        for primary, starts in siblings.items()
    }
    return [next(names[draft.primary]) for draft in samples]
