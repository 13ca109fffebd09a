"""Turn reply trees into self-contained samples (section 3.2, figure D.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf._infra.text import MARK, share
from echo_hf.collect.urls import post_id_of
from echo_hf.config.loading import Config
from echo_hf.config.sections import Target
from echo_hf.engines.base import Message, Request, Text
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import ModelStage, StageRows, of_row
from echo_hf.prompts import Prompt, as_data, load_prompt
from echo_hf.reasons import Notice, Reject, Status
from echo_hf.samples.sample import (
    SAMPLES_IN_CONTEXT,
    context_of,
    sample_digest,
    sample_ids,
    texts_of,
)
from echo_hf.samples.spans import SpanIndex, span_start, squeezed
from echo_hf.samples.thread_parts import ExtractAnswer, Quality, SampleAnswer, parts, rendered
from echo_hf.tables import THREADS, Table

if TYPE_CHECKING:
    from echo_hf.images.store import ImageStore
    from echo_hf.pipeline.result import StageStats


Post = Mapping[str, Any]
Finding = tuple[Notice, str]
BEST_FIRST: tuple[str, ...] = get_args(Quality)
# Addressees, links, and signs that are shown as emoji (digits and some letters can be).
NO_WORDS = re.compile(
    r"@[\w.@-]+|(?:https?://|www\.|pic\.twitter\.com/)\S*|.\ufe0f\u20e3?|[0-9]\u20e3"
)


@dataclass
class Draft:
    """A sample in the making."""

    primary: int
    start: int
    prompt: str
    quality: Quality
    posts: list[int] = field(default_factory=list)
    owned: list[int] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    feedback: dict[int, str] = field(default_factory=dict)


@dataclass
class Drafts:
    """The samples of one thread."""

    posts: Sequence[Post]
    findings: list[Finding] = field(default_factory=list)
    _drafts: list[Draft] = field(default_factory=list)
    _owner: dict[int, Draft] = field(default_factory=dict)
    _said_to: set[int] = field(default_factory=set)

    def add(self, answer: ExtractAnswer, shown: Collection[int]) -> None:
        """Takes over the answer about one part of the thread."""
        shown = frozenset(shown)
        earlier = list(self._drafts)
        prompts = {squeezed(sample.prompt) for sample in answer.samples}
        for sample in answer.samples:
            numbers = self._known(sample.posts, shown)
            prompt = sample.prompt.strip()
            if not prompt or not numbers:
                self._find(Notice.EMPTY_SAMPLE, sample.prompt[:80])
                continue
            start = span_start(prompt, self.posts[numbers[0]]["text"] or "")
            found = Draft(numbers[0], start, prompt, sample.quality)
            draft = self._merged(found, earlier, prompts)
            self._give(draft, numbers)
            self._listen(draft, sample, shown)

    def finish(self) -> list[Draft]:
        """The samples in the order they were found, with the images that came without words."""
        self._adopt_wordless()
        self._share_out_images()
        for draft in self._drafts:
            if MARK.search(draft.prompt):
                self._find(Notice.SHORTENED_PROMPT, self.posts[draft.primary]["url"])
                draft.quality = max(draft.quality, "Analysis", key=BEST_FIRST.index)
        return list(self._drafts)

    def _merged(self, found: Draft, earlier: list[Draft], prompts: Collection[str]) -> Draft:
        # Two parts of a long thread may both show a prompt; one answer tells its samples apart.
        place, text = (found.primary, found.start), squeezed(found.prompt)
        agree = [one for one in earlier if (one.primary, squeezed(one.prompt)) == (place[0], text)]
        # A draft that the answer repeats word for word waits for that.
        there = [
            one
            for one in earlier
            if found.start >= 0
            and (one.primary, one.start) == place
            and squeezed(one.prompt) not in prompts
        ]
        same = next(iter([*agree, *there]), None)
        if same is None:
            self._drafts.append(found)
            return found
        earlier[:] = [draft for draft in earlier if draft is not same]
        same.quality = min(same.quality, found.quality, key=BEST_FIRST.index)
        return same

    def _adopt_wordless(self) -> None:
        nearest: list[Draft | None] = []
        for number, post in enumerate(self.posts):
            above = nearest[post["parent"]] if post["parent"] >= 0 else None
            if above and number not in self._owner and post["pictures"] and _wordless(post["text"]):
                self._owner[number] = above
                above.owned.append(number)
                above.posts.append(number)
            nearest.append(self._owner.get(number, above))

    def _share_out_images(self) -> None:
        has: dict[str, Draft] = {}
        for draft in self._drafts:
            shown = (one["sha256"] for n in draft.owned for one in self.posts[n]["pictures"] or [])
            digests = [digest for digest in dict.fromkeys(shown) if digest]
            draft.images = [one for one in digests if has.setdefault(one, draft) is draft]
            for digest in digests:
                if has[digest] is not draft:
                    self._find(Notice.IMAGE_USED_TWICE, digest)

    def _give(self, draft: Draft, numbers: Sequence[int]) -> None:
        for number in numbers:
            owner = self._owner.setdefault(number, draft)
            if owner is draft and number not in draft.owned:
                draft.owned.append(number)
            elif owner is not draft:
                self._find(Notice.POST_USED_TWICE, self.posts[number]["url"])
            if number not in draft.posts and (owner is draft or number == draft.primary):
                draft.posts.append(number)

    def _listen(self, draft: Draft, sample: SampleAnswer, shown: Collection[int]) -> None:
        for said in sample.feedback:
            text = said.feedback.strip()
            if not text or not self._known([said.post], shown):
                continue
            if said.post in self._said_to:
                self._find(Notice.POST_USED_TWICE, self.posts[said.post]["url"])
                continue
            if written := self._as_written(said.post, text):
                self._said_to.add(said.post)
                draft.feedback[said.post] = written

    def _as_written(self, number: int, text: str) -> str:
        written = self.posts[number]["text"] or ""
        if squeezed(text) in squeezed(written):
            return text
        self._find(Notice.FEEDBACK_NOT_IN_POST, self.posts[number]["url"])
        return written.strip()

    def _known(self, numbers: Sequence[int], shown: Collection[int]) -> list[int]:
        seen = dict.fromkeys(numbers)
        for number in seen:
            if number not in shown:
                self._find(Notice.UNKNOWN_NUMBER, str(number))
        return [number for number in seen if number in shown]

    def _find(self, notice: Notice, detail: str) -> None:
        self.findings.append((notice, detail))


def _wordless(text: str | None) -> bool:
    """Whether a text says nothing: mentions, links, emoji and punctuation are no words.

    Examples:
        >>> _wordless("@mira_draws !! https://example.org/1"), _wordless("@mira_draws wow")
        (True, False)
    """
    return not any(character.isalnum() for character in NO_WORDS.sub(" ", text or ""))


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
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """The stage for the config's target."""
        del images
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
        rows = zip(table["root_url"].to_pylist(), table["posts"].to_pylist(), strict=True)
        return [
            of_row(
                root,
                (
                    Request(
                        self.name,
                        (system, Message("user", (Text(as_data("thread", asked)),))),
                        ExtractAnswer,
                        MOST_TOKENS,
                        {"posts": asked, "target": target},
                        tuple(posts[number]["url"] for number in shown),
                    )
                    for shown, asked in self._parts(posts)
                ),
            )
            for root, posts in rows
        ]

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
            drafts = Drafts(posts)
            for (shown, _), answer in zip(self._parts(posts), answers[row], strict=True):
                if isinstance(answer, ExtractAnswer):
                    drafts.add(answer, shown)
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

    def _parts(self, posts: list[Post]) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
        """Which posts each request shows, and how."""
        every = rendered(posts, self.context_characters)
        for shown in parts(every, self.context_characters):
            yield shown, [every[number] for number in shown]

    def _rows(
        self, posts: list[Post], samples: list[Draft], digest: str
    ) -> Iterator[dict[str, Any]]:
        # Of equal spans the first is told: a post's own text, then how its images are described.
        written = SpanIndex([text for post in posts for text in texts_of([post])])
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
                "community_feedback": [
                    {
                        "post_id": post_id_of(posts[number]["url"]),
                        "post_url": posts[number]["url"],
                        "feedback": text,
                        "verdict": None,
                        "keyword": None,
                    }
                    for number, text in draft.feedback.items()
                ],
                "output_images": draft.images,
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


def _names(posts: list[Post], samples: list[Draft]) -> list[str]:
    siblings: dict[int, list[int]] = {}
    for draft in samples:
        siblings.setdefault(draft.primary, []).append(draft.start)
    names = {
        primary: iter(sample_ids(posts[primary]["url"], posts[primary]["text"] or "", starts))
        for primary, starts in siblings.items()
    }
    return [next(names[draft.primary]) for draft in samples]
