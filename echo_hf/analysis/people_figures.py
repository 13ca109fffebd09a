"""Figures of people: what they say failed, how they work with the model, when they posted."""

from __future__ import annotations

from pydantic import NonNegativeInt

from echo_hf.analysis.figures import Counts, Figures


class Example(Figures):
    """Words of a post: its address, when it was posted (ISO 8601, UTC), its first characters."""

    post_url: str | None
    time: str | None
    text: str | None


class FailureKeyword(Figures):
    """One kind of failure that people speak of.

    Attributes:
        keyword: Its most frequent spelling.
        comments: Comments that speak of it.
        samples: Samples that those are about.
        spellings: Comments by spelling, as models gave them.
        by_month: Comments by month, such as `2025-03`; those without a time are in none.
        examples: Some of the comments.
    """

    keyword: str
    comments: NonNegativeInt
    samples: NonNegativeInt
    spellings: Counts
    by_month: Counts
    examples: tuple[Example, ...]


class Failures(Figures):
    """What people say failed.

    Attributes:
        keywords: The most frequent first.
        verdicts: Comments by verdict, `unasked` where there is none.
        unnamed: Failures without a keyword.
        untimed: Comments with a keyword whose time is not known.
    """

    keywords: tuple[FailureKeyword, ...]
    verdicts: Counts
    unnamed: NonNegativeInt
    untimed: NonNegativeInt


class WordCloud(Figures):
    """A word cloud of the failures.

    Attributes:
        svg: The picture, to be shown inside a page; words are escaped.
        words: How many keywords it shows.
        left_out: Keywords that it does not show, by reason.
    """

    svg: str
    words: NonNegativeInt
    left_out: Counts


class Workaround(Figures):
    """A comment that speaks of success where another one spoke of a failure.

    Attributes:
        id: The sample.
        prompt: The first words of its prompt.
        failed: Keywords of the failures that came before.
        comment: What was said then.
    """

    id: str
    prompt: str | None
    failed: tuple[str, ...]
    comment: Example


class Probe(Figures):
    """A request that explores the model itself.

    Attributes:
        id: The sample.
        prompt: The first words of its prompt.
        post: Its primary post.
        comments: How many comments it has.
    """

    id: str
    prompt: str | None
    post: Example
    comments: NonNegativeInt


class Interaction(Figures):
    """How people work with the model (figure 5): ways round failures, and probes."""

    workarounds: tuple[Workaround, ...]
    probes: tuple[Probe, ...]


class Day(Figures):
    """Posts of one day, 0:00 to 24:00 UTC.

    Attributes:
        date: ISO 8601.
        since_release: Days since the release; 0 is its day.
        posts: All posts.
        found: Those that a keyword found.
        came_along: Those that came along in their threads.
        unknown: Those whose file does not say.
    """

    date: str
    since_release: int
    posts: NonNegativeInt
    found: NonNegativeInt
    came_along: NonNegativeInt
    unknown: NonNegativeInt


class Activity(Figures):
    """Posts over time (figure 5c).

    Attributes:
        days: Those with a post, in order.
        keywords: Posts by the search term that found them; a post may have several.
        undated: Posts without a time; in no day.
    """

    days: tuple[Day, ...]
    keywords: Counts
    undated: NonNegativeInt


class FunnelStep(Figures):
    """One stage of the build (figure 2).

    Attributes:
        stage: Name.
        rows_in: Rows it read.
        kept: Rows that went on.
        reads: What those rows are.
        makes: What these rows are.
        lost: Rows rejected or in quarantine, by reason.
        headline: What the stage says of itself, null where it says nothing.
    """

    stage: str
    rows_in: NonNegativeInt
    kept: NonNegativeInt
    reads: str
    makes: str
    lost: Counts
    headline: str | None
