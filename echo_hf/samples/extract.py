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

from echo_hf._infra.text import MARK, format_share
from echo_hf.collect.urls import post_id_of
from echo_hf.engines.base import Text
from echo_hf.engines.rules import remove_notes
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.stage import BY_MODEL, BY_RULE, register
from echo_hf.prompts import quote_as_data
from echo_hf.reasons import NoticeReason
from echo_hf.samples.sample import (
    Finding,
    SampleNotice,
    context_of,
    sample_digest,
    sample_ids,
    texts_of,
)
from echo_hf.samples.spans import SpanIndex, find_span_start, squeeze
from echo_hf.samples.stage import RequestContent, RowResult, SampleStage
from echo_hf.samples.threads import ThreadReject
from echo_hf.tables import THREADS, PostRow, Row, Table

MAX_PROMPT = 12_000
MAX_FEEDBACK_CHARACTERS = 4000
MAX_POSTS = 256  # of one request
MAX_SAMPLES = MAX_POSTS

Quality = Literal["Benchmark", "Analysis", "Trash"]
QUALITIES: tuple[str, ...] = get_args(Quality)  # best first
TRASH = "Trash"  # what no later stage is asked about
# Mentions, links, and characters shown as emoji (digits and some letters can be).
NON_WORDS = re.compile(
    r"@[\w.@-]+|(?:https?://|www\.|pic\.twitter\.com/)\S*|.\ufe0f\u20e3?|[0-9]\u20e3"
)
POST_OVERHEAD_CHARACTERS = 240  # upper limit for a post's JSON without its texts
MAX_MARK = len("\\n [... 999999999 characters left out]")


class PostFeedback(BaseModel):
    """What one post says about the result."""

    post: int
    feedback: Annotated[str, Field(max_length=MAX_FEEDBACK_CHARACTERS)]


class SampleAnswer(BaseModel):
    """One task, the posts that show it, and what was said about it."""

    prompt: Annotated[str, Field(max_length=MAX_PROMPT)]
    quality: Quality
    posts: Annotated[list[int], Field(max_length=MAX_POSTS)]
    feedback: Annotated[list[PostFeedback], Field(max_length=MAX_POSTS)] = []


class ExtractAnswer(BaseModel):
    """The samples of one reply tree, or of one part of it."""

    samples: Annotated[list[SampleAnswer], Field(max_length=MAX_SAMPLES)]


def render_posts(posts: Sequence[PostRow], max_characters: int) -> list[dict[str, Any]]:
    """Return posts as a model is shown them: whole where all fit, else the long ones cut."""
    authors: dict[str, int] = {}
    rendered_posts = []
    for number, post in enumerate(posts):
        author, images = post["author"], post["pictures"] or []
        if author:  # numbered in the order of the posts
            author = f"author {authors.setdefault(author, len(authors) + 1)}"
        rendered_post = {
            "number": number,
            "parent": post["parent"],
            "author": author,
            "text": post["text"],
            "pictures": len(images),
            "alt_texts": [image["alt_text"] for image in images if image["alt_text"]],
            "missing": post["missing"],
        }
        rendered_posts.append(rendered_post)
    if _fits(rendered_posts, max_characters):
        return rendered_posts
    return [_shorten_post(post, (max_characters - 2) // 4) for post in rendered_posts]


def split_thread(posts: Sequence[PostRow], max_characters: int) -> list[list[int]]:
    """Split a thread into requests; each has the posts above its own, and the root author's."""
    if _fits(posts, max_characters):
        return [list(range(len(posts)))]
    sizes = [_size(post) + 1 for post in posts]  # and a comma
    max_characters -= 2
    author = next((post["author"] for post in posts if post["author"]), None)
    own = [n for n, post in enumerate(posts) if n == 0 or (author and post["author"] == author)]
    common = set(_select_fitting(own, sizes, max_characters // 4))
    slices: list[list[int]] = []
    used = 0
    for number in range(len(posts)):
        if number in common:
            continue
        is_full = used + sizes[number] > max_characters // 2
        if not slices or is_full or len(slices[-1]) == MAX_POSTS // 2:
            slices.append([])
            used = 0
        slices[-1].append(number)
        used += sizes[number]
    parts = []
    for piece in slices:
        # In depth-first order the ancestors of its first post are all that a slice lacks.
        ancestors, number = list[int](), piece[0]
        while (number := posts[number]["parent"]) >= 0:
            ancestors.append(number)
        fitting = _select_fitting(ancestors, sizes, max_characters // 4)
        parts.append(sorted({*common, *fitting, *piece}))
    return parts


def _fits(posts: Sequence[PostRow], max_characters: int) -> bool:
    # An answer cannot name more posts.
    return len(posts) <= MAX_POSTS and _size(posts) < max_characters


def _size(value: Any) -> int:
    text = to_json(value).decode()
    return len(text) + 5 * text.count("<")  # sent as \u003c


def _shorten_post(post: dict[str, Any], room: int) -> dict[str, Any]:
    """Cut a post to a size: half of it for its images' descriptions, the rest for its text."""
    if _size(post) < room:
        return post
    room -= POST_OVERHEAD_CHARACTERS
    alt_texts: list[str] = []
    room_left = room // 2 - MAX_MARK - 4
    for number, alt_text in enumerate(post["alt_texts"]):
        if room_left < 2 * MAX_MARK and _size(alt_text) > room_left:
            alt_texts.append(f"[... {len(post['alt_texts']) - number} descriptions left out]")
            break
        alt_texts.append(_shorten(alt_text, room_left))
        room_left -= _size(alt_texts[-1]) + 1
    text = post["text"] and _shorten(post["text"], room - _size(alt_texts))
    return {**post, "text": text, "alt_texts": alt_texts}


def _shorten(text: str, room: int) -> str:
    if _size(text) <= room:
        return text
    within = text[:room]
    keep = bisect_right(range(room), room - MAX_MARK, key=lambda end: _size(within[:end])) - 1
    keep = max(keep, 0)
    return f"{text[:keep]} [... {len(text) - keep} characters left out]"


def _select_fitting(numbers: Sequence[int], sizes: Sequence[int], room: int) -> Iterator[int]:
    for count, number in enumerate(numbers, 1):
        room -= sizes[number]
        if number == 0 or (room >= 0 and count < MAX_POSTS // 4):
            yield number


@dataclass
class SampleDraft:
    """A sample before its images and comments are settled."""

    primary: int
    start: int
    prompt: str
    quality: Quality
    posts: list[int] = field(default_factory=list)
    owned: list[int] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    feedback: dict[int, str] = field(default_factory=dict)


def _is_wordless(post: PostRow) -> bool:
    # Mentions, links, emoji and punctuation are no words.
    return not any(map(str.isalnum, NON_WORDS.sub(" ", post["text"] or "")))


@dataclass
class ThreadDrafts:
    """Collects the samples of one thread from the answers about its parts."""

    posts: Sequence[PostRow]
    findings: list[Finding] = field(default_factory=list)
    _drafts: list[SampleDraft] = field(default_factory=list)
    _owner: dict[int, SampleDraft] = field(default_factory=dict)
    _feedback_posts: set[int] = field(default_factory=set)

    def add(self, answer: ExtractAnswer, shown_numbers: Collection[int]) -> None:
        """Add the answer about one part of the thread."""
        shown_numbers = frozenset(shown_numbers)
        earlier = list(self._drafts)
        prompts = {squeeze(remove_notes(sample.prompt.strip())) for sample in answer.samples}
        for sample in answer.samples:
            numbers = self._check_numbers(sample.posts, shown_numbers)
            prompt = remove_notes(whole_prompt := sample.prompt.strip())
            if prompt != whole_prompt:
                self._note(SampleNotice.NOTES_LEFT_OUT, whole_prompt[len(prompt) :].strip()[:80])
            if not prompt or not numbers:
                self._note(SampleNotice.EMPTY_SAMPLE, sample.prompt[:80])
                continue
            start = find_span_start(prompt, self.posts[numbers[0]]["text"] or "")
            new = SampleDraft(numbers[0], start, prompt, sample.quality)
            draft = self._merge_draft(new, earlier, prompts)
            self._add_posts(draft, numbers)
            self._add_feedback(draft, sample, shown_numbers)

    def finish(self) -> list[SampleDraft]:
        """Return the samples in the order they were found, with the images of wordless posts."""
        self._adopt_wordless()
        self._assign_images()
        for draft in self._drafts:
            if MARK.search(draft.prompt):
                self._note(SampleNotice.SHORTENED_PROMPT, self.posts[draft.primary]["url"])
                draft.quality = max(draft.quality, "Analysis", key=QUALITIES.index)
        return list(self._drafts)

    def _merge_draft(
        self, new: SampleDraft, earlier: list[SampleDraft], prompts: Collection[str]
    ) -> SampleDraft:
        # Two parts of a long thread may both show a prompt; one answer tells its samples apart.
        same_post = [(old, squeeze(old.prompt)) for old in earlier if old.primary == new.primary]
        alike = [old for old, prompt in same_post if prompt == squeeze(new.prompt)]
        # A draft whose prompt this answer repeats is left for that sample.
        not_repeated = [old for old, prompt in same_post if prompt not in prompts]
        same_start = [old for old in not_repeated if old.start == new.start >= 0]
        if not (alike or same_start):
            self._drafts.append(new)
            return new
        match = [*alike, *same_start][0]
        earlier[:] = [draft for draft in earlier if draft is not match]
        match.quality = min(match.quality, new.quality, key=QUALITIES.index)
        return match

    def _adopt_wordless(self) -> None:
        nearest: list[SampleDraft | None] = []
        for number, post in enumerate(self.posts):
            above = nearest[post["parent"]] if post["parent"] >= 0 else None
            if above and number not in self._owner and post["pictures"] and _is_wordless(post):
                self._owner[number] = above
                above.owned.append(number)
                above.posts.append(number)
            nearest.append(self._owner.get(number, above))

    def _assign_images(self) -> None:
        owner_of: dict[str, SampleDraft] = {}
        for draft in self._drafts:
            images = (image for n in draft.owned for image in self.posts[n]["pictures"] or [])
            for digest in filter(None, dict.fromkeys(image["sha256"] for image in images)):
                if owner_of.setdefault(digest, draft) is draft:
                    draft.images.append(digest)
                else:
                    self._note(SampleNotice.IMAGE_USED_TWICE, digest)

    def _add_posts(self, draft: SampleDraft, numbers: Sequence[int]) -> None:
        for number in numbers:
            owner = self._owner.setdefault(number, draft)
            if owner is draft and number not in draft.owned:
                draft.owned.append(number)
            elif owner is not draft:
                self._note(SampleNotice.POST_USED_TWICE, self.posts[number]["url"])
            if number not in draft.posts and (owner is draft or number == draft.primary):
                draft.posts.append(number)

    def _add_feedback(
        self, draft: SampleDraft, sample: SampleAnswer, shown_numbers: Collection[int]
    ) -> None:
        for feedback in sample.feedback:
            text = feedback.feedback.strip()
            if not text or not self._check_numbers([feedback.post], shown_numbers):
                continue
            post = self.posts[feedback.post]
            if feedback.post in self._feedback_posts:
                self._note(SampleNotice.POST_USED_TWICE, post["url"])
                continue
            post_text = post["text"] or ""
            if squeeze(text) not in squeeze(post_text):
                self._note(SampleNotice.FEEDBACK_NOT_IN_POST, post["url"])
                text = post_text.strip()
            if text:
                self._feedback_posts.add(feedback.post)
                draft.feedback[feedback.post] = text

    def _check_numbers(self, numbers: Sequence[int], shown_numbers: Collection[int]) -> list[int]:
        distinct = dict.fromkeys(numbers)
        for number in distinct:
            if number not in shown_numbers:
                self._note(SampleNotice.UNKNOWN_NUMBER, str(number))
        return [number for number in distinct if number in shown_numbers]

    def _note(self, notice: NoticeReason, detail: str) -> None:
        self.findings.append((notice, detail))


@register
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
    after: ClassVar[str | None] = "download"
    makes_rows: ClassVar[bool] = True
    decides: ClassVar[Mapping[str, Sequence[str]]] = {
        BY_MODEL: ("post_urls", "prompt", "quality", "community_feedback"),
        BY_RULE: ("id", "prompt_modified"),
    }
    inputs: ClassVar[Table] = THREADS
    answer: ClassVar[type[BaseModel]] = ExtractAnswer
    max_tokens: ClassVar[int] = 8192
    keeps_failed: ClassVar[bool] = False

    context_characters: int = 24_000

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Say the share of each quality (section 4: 20 % and 66 %)."""
        tally, kept = stats["extract"].tally, stats["extract"].kept
        shares = [f"{format_share(tally.get(name, 0), kept)} {name}" for name in QUALITIES]
        return f"{kept:,} samples extracted: {', '.join(shares)}"

    def build_questions(self, row: Row) -> Iterator[RequestContent]:
        """Yield the thread, whole or in parts."""
        for numbers, shown_posts in self._split(row["posts"]):
            urls = [row["posts"][number]["url"] for number in numbers]
            yield [Text(quote_as_data("thread", shown_posts))], {"posts": shown_posts}, urls

    def finish_row(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> RowResult:
        """Return one row for each sample."""
        drafts = ThreadDrafts(row["posts"])
        parts: Sequence[Sequence[int]] = [range(len(row["posts"]))]  # one part has all posts
        if len(answers) != 1:
            parts = [numbers for numbers, _ in self._split(row["posts"])]
        for numbers, answer in zip(parts, answers, strict=True):
            if isinstance(answer, ExtractAnswer):
                drafts.add(answer, numbers)
        if not (samples := drafts.finish()):
            drafts.findings.append((ThreadReject.NO_SAMPLE, None))
        return list(self._make_rows(row["posts"], samples, made_by)), drafts.findings

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count the samples of each quality, and the modified prompts."""
        counts = pc.value_counts(kept["quality"].combine_chunks()).to_pylist()
        modified = pc.sum(kept["prompt_modified"].cast(pa.int64())).as_py() or 0
        by_quality = {count["values"]: count["counts"] for count in counts}
        return {**by_quality, "prompt_modified": modified}

    def _split(self, posts: Sequence[PostRow]) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
        """Yield the posts of each request by number, and as they are shown."""
        rendered_posts = render_posts(posts, self.context_characters)
        for numbers in split_thread(rendered_posts, self.context_characters):
            yield numbers, [rendered_posts[number] for number in numbers]

    def _make_rows(
        self, posts: Sequence[PostRow], samples: Sequence[SampleDraft], made_by: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        # The first of equal spans counts, so a post's text comes before its images' descriptions.
        span_index = SpanIndex([text for post in posts for text in texts_of([post])])
        starts: dict[int, list[int]] = {}
        for draft in samples:
            starts.setdefault(draft.primary, []).append(draft.start)
        ids = {
            primary: iter(sample_ids(posts[primary]["url"], posts[primary]["text"] or "", places))
            for primary, places in starts.items()
        }
        for draft in samples:
            primary = posts[draft.primary]["url"]
            yield {
                "id": next(ids[draft.primary]),
                "post_id": post_id_of(primary),
                "post_urls": [posts[number]["url"] for number in draft.posts],
                "target": self.target.name,
                "prompt": draft.prompt,
                "prompt_modified": not span_index.contains(draft.prompt),
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
