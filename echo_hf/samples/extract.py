"""Turn reply trees into self-contained samples (section 3.2, figure D.3)."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, Field
from pydantic_core import to_json

from echo_hf._infra.text import MARK, share
from echo_hf.collect.urls import post_id_of
from echo_hf.engines.base import Text
from echo_hf.engines.rules import without_notes
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.prompts import as_data
from echo_hf.reasons import Notice, Reject
from echo_hf.samples.sample import Finding, context_of, sample_digest, sample_ids, texts_of
from echo_hf.samples.spans import SpanIndex, span_start, squeezed
from echo_hf.samples.stage import Outcome, Question, Row, SampleStage
from echo_hf.tables import THREADS, Table

LONGEST_PROMPT = 12_000
LONGEST_FEEDBACK = 4000
MOST_POSTS = 256  # of a part of a thread: no part shows more
MOST_SAMPLES = MOST_POSTS

Quality = Literal["Benchmark", "Analysis", "Trash"]
BEST_FIRST: tuple[str, ...] = get_args(Quality)
# Addressees, links, and signs that are shown as emoji (digits and some letters can be).
NO_WORDS = re.compile(
    r"@[\w.@-]+|(?:https?://|www\.|pic\.twitter\.com/)\S*|.\ufe0f\u20e3?|[0-9]\u20e3"
)


class PostFeedback(BaseModel):
    """What one post says about the result."""

    post: int
    feedback: Annotated[str, Field(max_length=LONGEST_FEEDBACK)]


class SampleAnswer(BaseModel):
    """One task, the posts that show it, and what was said about it."""

    prompt: Annotated[str, Field(max_length=LONGEST_PROMPT)]
    quality: Quality
    posts: Annotated[list[int], Field(max_length=MOST_POSTS)]
    feedback: Annotated[list[PostFeedback], Field(max_length=MOST_POSTS)] = []


class ExtractAnswer(BaseModel):
    """The samples of one reply tree, or of one part of it."""

    samples: Annotated[list[SampleAnswer], Field(max_length=MOST_SAMPLES)]


Post = Mapping[str, Any]
FRAME = 240  # most characters of a post's JSON without what people wrote
LONGEST_MARK = len("\\n [... 999999999 characters left out]")


def rendered(posts: Sequence[Post], longest: int) -> list[dict[str, Any]]:
    """Posts as a model is shown them: whole where all fit, else with long ones cut."""
    authors: dict[str, int] = {}
    shown = [
        {
            "number": number,
            "parent": post["parent"],
            "author": post["author"]
            and f"author {authors.setdefault(post['author'], len(authors) + 1)}",
            "text": post["text"],
            "pictures": len(post["pictures"] or []),
            "alt_texts": [one["alt_text"] for one in post["pictures"] or [] if one["alt_text"]],
            "missing": post["missing"],
        }
        for number, post in enumerate(posts)
    ]
    if _fits(shown, longest):
        return shown
    return [_bounded(post, (longest - 2) // 4) for post in shown]


def parts(shown: Sequence[Post], longest: int) -> list[list[int]]:
    """Which posts go into one request each, with what they answer and the root author's own."""
    if _fits(shown, longest):
        return [list(range(len(shown)))]
    sizes = [_size(post) + 1 for post in shown]  # a comma each
    longest -= 2
    author = next((post["author"] for post in shown if post["author"]), None)
    own = [n for n, post in enumerate(shown) if n == 0 or (author and post["author"] == author)]
    spine = set(_fitting(own, sizes, longest // 4))
    slices: list[list[int]] = []
    used = 0
    for number in range(len(shown)):
        if number in spine:
            continue
        full = used + sizes[number] > longest // 2
        if not slices or full or len(slices[-1]) == MOST_POSTS // 2:
            slices.append([])
            used = 0
        slices[-1].append(number)
        used += sizes[number]
    every = []
    for some in slices:
        # In depth-first order this is all that a slice needs from outside itself.
        above, number = list[int](), some[0]
        while (number := shown[number]["parent"]) >= 0:
            above.append(number)
        every.append(sorted({*spine, *_fitting(above, sizes, longest // 4), *some}))
    return every


def _fits(shown: Sequence[Post], longest: int) -> bool:
    # No more posts than an answer can name.
    return len(shown) <= MOST_POSTS and _size(shown) < longest


def _size(value: Any) -> int:
    text = to_json(value).decode()
    return len(text) + 5 * text.count("<")  # sent as \u003c


def _bounded(post: dict[str, Any], room: int) -> dict[str, Any]:
    """A post that takes no more room: its descriptions get half of it, its text the rest."""
    if _size(post) < room:
        return post
    room -= FRAME
    alt_texts: list[str] = []
    left = room // 2 - LONGEST_MARK - 4
    for number, alt_text in enumerate(post["alt_texts"]):
        if left < 2 * LONGEST_MARK and _size(alt_text) > left:
            alt_texts.append(f"[... {len(post['alt_texts']) - number} descriptions left out]")
            break
        alt_texts.append(_shortened(alt_text, left))
        left -= _size(alt_texts[-1]) + 1
    text = post["text"] and _shortened(post["text"], room - _size(alt_texts))
    return {**post, "text": text, "alt_texts": alt_texts}


def _shortened(text: str, room: int) -> str:
    if _size(text) <= room:
        return text
    within = text[:room]
    keep = bisect_right(range(room), room - LONGEST_MARK, key=lambda end: _size(within[:end])) - 1
    keep = max(keep, 0)
    return f"{text[:keep]} [... {len(text) - keep} characters left out]"


def _fitting(numbers: Sequence[int], sizes: Sequence[int], room: int) -> Iterator[int]:
    for nth, number in enumerate(numbers, 1):
        room -= sizes[number]
        if number == 0 or (room >= 0 and nth < MOST_POSTS // 4):
            yield number


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


def _is_wordless(post: Post) -> bool:
    # Mentions, links, emoji and punctuation are no words.
    return not any(map(str.isalnum, NO_WORDS.sub(" ", post["text"] or "")))


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
        prompts = {squeezed(without_notes(sample.prompt.strip())) for sample in answer.samples}
        for sample in answer.samples:
            numbers = self._known(sample.posts, shown)
            prompt = without_notes(whole := sample.prompt.strip())
            if prompt != whole:
                self._find(Notice.NOTES_LEFT_OUT, whole[len(prompt) :].strip()[:80])
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
        near = [(one, squeezed(one.prompt)) for one in earlier if one.primary == found.primary]
        agree = [one for one, prompt in near if prompt == squeezed(found.prompt)]
        # A draft that the answer repeats word for word waits for that.
        waiting = [one for one, prompt in near if prompt not in prompts]
        there = [one for one in waiting if one.start == found.start >= 0]
        if not (agree or there):
            self._drafts.append(found)
            return found
        same = [*agree, *there][0]
        earlier[:] = [draft for draft in earlier if draft is not same]
        same.quality = min(same.quality, found.quality, key=BEST_FIRST.index)
        return same

    def _adopt_wordless(self) -> None:
        nearest: list[Draft | None] = []
        for number, post in enumerate(self.posts):
            above = nearest[post["parent"]] if post["parent"] >= 0 else None
            if above and number not in self._owner and post["pictures"] and _is_wordless(post):
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
            post = self.posts[said.post]
            if said.post in self._said_to:
                self._find(Notice.POST_USED_TWICE, post["url"])
                continue
            written = post["text"] or ""
            if squeezed(text) not in squeezed(written):
                self._find(Notice.FEEDBACK_NOT_IN_POST, post["url"])
                text = written.strip()
            if text:
                self._said_to.add(said.post)
                draft.feedback[said.post] = text

    def _known(self, numbers: Sequence[int], shown: Collection[int]) -> list[int]:
        seen = dict.fromkeys(numbers)
        for number in seen:
            if number not in shown:
                self._find(Notice.UNKNOWN_NUMBER, str(number))
        return [number for number in seen if number in shown]

    def _find(self, notice: Notice, detail: str) -> None:
        self.findings.append((notice, detail))


@dataclass(frozen=True)
class Extract(SampleStage):
    """Finds the prompts of a thread, the posts that show them, and what was said about them.

    A thread stays in quarantine until all its parts are answered.

    Attributes:
        target: The model that people talk about.
        context_characters: Longest rendered thread for one request; a longer one is cut in parts.
    """

    name: ClassVar[str] = "extract"
    version: ClassVar[int] = 6
    inputs: ClassVar[Table] = THREADS
    answer: ClassVar[type[BaseModel]] = ExtractAnswer
    max_tokens: ClassVar[int] = 8192
    keeps_failed: ClassVar[bool] = False

    context_characters: int = 24_000

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """The shares of each quality (section 4: 20 % and 66 %)."""
        one = stats["extract"]
        shares = [f"{share(one.tally.get(name, 0), one.kept)} {name}" for name in BEST_FIRST]
        return f"{one.kept:,} samples extracted: {', '.join(shares)}"

    def questions(self, row: Row) -> Iterator[Question]:
        """The thread, whole or in parts."""
        for shown, asked in self._parts(row["posts"]):
            urls = [row["posts"][number]["url"] for number in shown]
            yield [Text(as_data("thread", asked))], {"posts": asked}, urls

    def outcome(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> Outcome:
        """One row a sample."""
        drafts = Drafts(row["posts"])
        every: Sequence[Sequence[int]] = [range(len(row["posts"]))]  # where one part shows all
        if len(answers) != 1:
            every = [one for one, _ in self._parts(row["posts"])]
        for shown, answer in zip(every, answers, strict=True):
            if isinstance(answer, ExtractAnswer):
                drafts.add(answer, shown)
        if not (samples := drafts.finish()):
            drafts.findings.append((Reject.NO_SAMPLE, None))
        return list(self._rows(row["posts"], samples, made_by)), drafts.findings

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many samples have each quality, and how many prompts were modified."""
        counts = pc.value_counts(kept["quality"].combine_chunks()).to_pylist()
        modified = pc.sum(kept["prompt_modified"].cast(pa.int64())).as_py() or 0
        by_quality = {count["values"]: count["counts"] for count in counts}
        return {**by_quality, "prompt_modified": modified}

    def _parts(self, posts: Sequence[Post]) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
        """Which posts each request shows, and how."""
        every = rendered(posts, self.context_characters)
        for shown in parts(every, self.context_characters):
            yield shown, [every[number] for number in shown]

    def _rows(
        self, posts: Sequence[Post], samples: Sequence[Draft], made_by: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        # Of equal spans the first is told: a post's own text, then how its images are described.
        written = SpanIndex([text for post in posts for text in texts_of([post])])
        starts: dict[int, list[int]] = {}
        for draft in samples:
            starts.setdefault(draft.primary, []).append(draft.start)
        names = {
            primary: iter(sample_ids(posts[primary]["url"], posts[primary]["text"] or "", some))
            for primary, some in starts.items()
        }
        for draft in samples:
            primary = posts[draft.primary]["url"]
            yield {
                "id": next(names[draft.primary]),
                "post_id": post_id_of(primary),
                "post_urls": [posts[number]["url"] for number in draft.posts],
                "target": self.target.name,
                "prompt": draft.prompt,
                "prompt_modified": not written.holds(draft.prompt),
                "prompt_fill_blank": False,
                "quality": draft.quality,
                "community_feedback": [
                    {
                        "post_id": post_id_of(posts[number]["url"]),
                        "post_url": posts[number]["url"],
                        "feedback": text,
                    }
                    for number, text in draft.feedback.items()
                ],
                "input_images": [],
                "output_images": draft.images,
                "is_screenshot": False,
                "input_bboxs": [],
                "output_bboxs": [],
                "review": [],
                "doubts": [],
                "dehydrated": False,
                "context": context_of(posts, draft.posts, draft.feedback),
                "sample_digest": sample_digest(draft.prompt, ()),
                "provenance": json.dumps({"extract": made_by}, sort_keys=True, default=str),
            }
