"""The tables that all rooms read and write: columns, keys, and each column's meaning."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Features, Image, List, Value


class Outcome(StrEnum):
    """Outcomes of a task that was given to a system: the values of `outputs.outcome`."""

    OK = "ok"
    REFUSED = "refused"
    NO_IMAGE = "no_image"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    RETIRED = "retired"


Row = Mapping[str, Any]  # a row of a table, by column
PostRow = Mapping[str, Any]  # a row of `POSTS`, or of the posts in a thread
SampleRow = Mapping[str, Any]  # a row of `SAMPLES`

STRING = Value("string")
STRINGS = List(STRING)
FLOAT = Value("float64")
INTEGER = Value("int64")
BOOLEAN = Value("bool")
BOXES = List(List(FLOAT))
USAGE = {"prompt_tokens": INTEGER, "completion_tokens": INTEGER, "cached_tokens": INTEGER}
IMAGE = {"sha256": STRING, "url": STRING, "alt_text": STRING}
IMAGES = List(IMAGE)
LINKED_IMAGES = List({**IMAGE, "same_picture_of": STRING})
SPANS = List(
    {"post_url": STRING, "field": STRING, "start": INTEGER, "end": INTEGER, "text": STRING}
)
IMAGE_SOURCES = List(
    {
        "sha256": STRING,
        "role": STRING,
        "post_url": STRING,
        "url": STRING,
        "of": STRING,
        "box": List(INTEGER),
        "signature": STRING,
    }
)
UTC = Value("timestamp[us, tz=UTC]")
ENGAGEMENT = dict.fromkeys(("likes", "views", "reposts", "replies", "bookmarks"), INTEGER)


def remap_dataset(dataset: Dataset) -> Dataset:
    """Map a dataset's file anew, so that its pages no longer count as used memory."""
    remapped: Dataset = pickle.loads(pickle.dumps(dataset)) if dataset.cache_files else dataset  # noqa: S301
    return remapped


ROWS_PER_TAKE = 10_000


def arrow_rows(dataset: Dataset, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a dataset's rows without the copies that `with_format` makes of its features."""
    return get_rows(dataset, None, columns)


def arrow_batches(
    dataset: Dataset, size: int, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    for start in range(0, len(dataset), size):
        yield get_rows(dataset, slice(start, start + size), columns)


def get_rows(
    dataset: Dataset,
    numbers: slice | npt.NDArray[np.integer[Any]] | None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Return rows of a dataset by number, in that order; all of them for null."""
    table = dataset.data.table.select(columns or dataset.column_names)
    if dataset._indices is not None:
        indices = dataset._indices.column(0)
        numbers = slice(0, len(indices)) if numbers is None else numbers
        chosen = (
            indices[numbers.start : numbers.stop]
            if isinstance(numbers, slice)
            else indices.take(pa.array(numbers))
        )
        numbers = chosen.to_numpy()
    if numbers is None or isinstance(numbers, slice):
        return table if numbers is None else table[numbers.start : numbers.stop]
    return take_rows(table, numbers)


def take_rows(table: pa.Table, positions: npt.NDArray[np.integer[Any]]) -> pa.Table:
    """Take rows of a table by number, in that order, from windows of nearby rows.

    Arrow joins all chunks of a column before it takes rows, which costs a copy of the whole, and
    may be more than a column can hold.
    """
    numbers = positions.astype(np.int64)
    is_sorted = bool((np.diff(numbers) >= 0).all())
    order = None if is_sorted else np.argsort(numbers, kind="stable")
    ascending = numbers if order is None else numbers[order]
    pieces = [table.slice(0, 0)]
    for group in np.split(ascending, np.flatnonzero(np.diff(ascending // ROWS_PER_TAKE)) + 1):
        if len(group):
            window = table.slice(group[0], group[-1] - group[0] + 1)
            is_all = len(group) == len(window) and bool((np.diff(group) == 1).all())
            pieces.append(window if is_all else window.take(pa.array(group - group[0])))
    rows = pa.concat_tables(pieces)
    return rows if order is None else rows.take(pa.array(np.argsort(order, kind="stable")))


POST_TEXT, DERIVED = "post_text", "derived"


class Column(NamedTuple):
    """A column's type, its meaning, and its type in a release where that differs.

    Only images have another: a run names them by digest, a release holds them. A column that a
    plug-in adds says what it holds: `post_text`, words of posts or of images, which are masked and
    left out as those are; or `derived`, what says nothing of them.
    """

    feature: Any
    meaning: str
    released: Any = None
    content: Literal["post_text", "derived"] | None = None


@dataclass(frozen=True)
class Table:
    name: str
    about: str
    key: tuple[str, ...]
    columns: Mapping[str, Column]

    @property
    def features(self) -> Features:
        return Features({name: column.feature for name, column in self.columns.items()})

    @cached_property
    def schema(self) -> pa.Schema:
        return self.features.arrow_schema.remove_metadata()

    @property
    def images(self) -> tuple[str, ...]:
        """Columns that hold image digests here, and the images themselves in a release."""
        return tuple(name for name, column in self.columns.items() if column.released is not None)

    @property
    def released_features(self) -> Features:
        return Features(
            {name: column.released or column.feature for name, column in self.columns.items()}
        )

    def add_columns(self, columns: Mapping[str, Column]) -> Table:
        return replace(self, columns={**self.columns, **columns}) if columns else self

    def make_empty(self) -> pa.Table:
        return self.schema.empty_table()


POSTS = Table(
    "posts",
    "one public post",
    ("url",),
    {
        "url": Column(STRING, "address of the post, without its author's name where possible"),
        "post_id": Column(STRING, "the platform's own identifier"),
        "platform": Column(STRING, "where it was posted: x, bluesky, mastodon, reddit, web, ..."),
        "author": Column(STRING, "account name of the author"),
        "text": Column(STRING, "the whole text, null when the content is missing"),
        "timestamp": Column(UTC, "when it was posted, null when unknown"),
        "lang": Column(STRING, "language code given by the platform"),
        "keywords": Column(STRINGS, "terms that found it; [] when it came along, null if unknown"),
        "pictures": Column(IMAGES, "its images: digest (null until fetched), address, alt text"),
        "parent_url": Column(STRING, "the post it replies to"),
        "quoted_url": Column(STRING, "the post it quotes, which is not its parent"),
        "engagement": Column(
            ENGAGEMENT, "counts when collected; null, never 0, where there are none"
        ),
        "missing": Column(STRING, "why the content is missing, null when it is not"),
        "relevance": Column(
            {"score": Value("int8"), "note": STRING},
            "1 (certainly not) to 5 (certainly about the target); null when not asked, "
            "score null when the call failed",
        ),
    },
)

THREADS = Table(
    "threads",
    "one reply tree",
    ("root_url",),
    {
        "root_url": Column(STRING, "the topmost known post, even when its content is missing"),
        "posts": Column(
            List(
                {
                    "url": STRING,
                    "parent": Value("int32"),
                    "depth": Value("int32"),
                    "author": STRING,
                    "text": STRING,
                    "timestamp": UTC,
                    "missing": STRING,
                    "pictures": LINKED_IMAGES,
                }
            ),
            "its posts, depth first, children by (timestamp, url); parent is an index, -1 at the "
            "root; same_picture_of: digest of the earlier image, of another post, that an image "
            "is a copy of, packed or scaled again",
        ),
    },
)

SAMPLES = Table(
    "samples",
    "one task that somebody gave to the target, with what came of it",
    ("id",),
    {
        "id": Column(STRING, "22 characters derived from the sample's sources alone"),
        "post_id": Column(STRING, "identifier of the primary post"),
        "post_urls": Column(STRINGS, "posts it was made from, the most important first"),
        "timestamp": Column(
            UTC, "when the primary post was posted; null when unknown or dehydrated"
        ),
        "keywords": Column(
            STRINGS, "search terms that found the primary post; null as for the timestamp"
        ),
        "engagement": Column(ENGAGEMENT, "counts of the primary post; null as for the timestamp"),
        "author": Column(
            STRING, "keyed hash of the primary post's author; null without a key or an author"
        ),
        "target": Column(STRING, "the model that people talk about"),
        "prompt": Column(STRING, "the instruction given to the model; null while dehydrated"),
        "prompt_sha256": Column(STRING, "sha256 of the prompt in UTF-8; null when not computed"),
        "prompt_spans": Column(
            SPANS,
            "the prompt in pieces: code points start to end of a post's text or of an image's "
            "description (field), or a few words put in between (text); empty when it cannot be "
            "given so, null when not computed",
        ),
        "prompt_modified": Column(
            BOOLEAN, "false only when the prompt is made of spans of the thread's text"
        ),
        "prompt_fill_blank": Column(BOOLEAN, "true when a template's blanks were completed"),
        "quality": Column(STRING, "Benchmark, Analysis or Trash"),
        "community_feedback": Column(
            List(
                {
                    "post_id": STRING,
                    "post_url": STRING,
                    "author": STRING,
                    "feedback": STRING,
                    "sha256": STRING,
                    "spans": SPANS,
                    "verdict": STRING,
                    "keyword": STRING,
                }
            ),
            "what the author and others said about the result, with personal data masked; author: "
            "as for the sample; feedback: null while dehydrated; sha256, spans: as for the prompt; "
            "verdict: success, failure, mixed or none, null when not asked; keyword: what failed, "
            "in a few words",
        ),
        "input_images": Column(
            STRINGS, "images that belong to the instruction, ready to use", List(Image())
        ),
        "output_images": Column(
            STRINGS,
            "images that the target made; of Trash, every image of its posts",
            List(Image()),
        ),
        "screenshot": Column(
            STRING, "a screenshot that shows the request: a conversation, or a collage", Image()
        ),
        "is_screenshot": Column(BOOLEAN, "true when the images were cut from a screenshot"),
        "input_bboxs": Column(
            BOXES, "x1, y1, x2, y2 of each input that was cut out, in pixels of the screenshot"
        ),
        "output_bboxs": Column(BOXES, "as input_bboxs, of each output: the first of output_images"),
        "picture_sources": Column(
            IMAGE_SOURCES,
            "where each image is from: its role (input, output, screenshot), in the order of the "
            "images; the post, and the address there; for what was cut out, the digest of the "
            "screenshot (of) and left, top, right, bottom in its upright pixels (box); signature: "
            "while dehydrated, size and colors of 16 x 16 blocks, to know a copy by; null when "
            "not computed",
        ),
        "has_nsfw": Column(
            BOOLEAN, "flagged with a category that is removed; null when unscreened"
        ),
        "safety": Column(
            {"flagged": BOOLEAN, "categories": STRINGS, "model": STRING},
            "the safety model's verdict: codes of every hazard it named, S1 to S14 or unknown, "
            "removed or not; null when unscreened",
        ),
        "review": Column(
            STRINGS, "why a person has to look at it before it is published; else empty"
        ),
        "doubts": Column(
            STRINGS, "why it may not be the task that it seems to be; empty when nothing is"
        ),
        "kind": Column(
            STRING, "task, or probe: an exploration of the model itself; null where not asked"
        ),
        "task": Column(
            STRING,
            "text_to_image, text_rendering, edit, style_transfer, sketch_to_image, composition or "
            "restoration; null as for kind",
        ),
        "task_phrase": Column(
            STRING, "the task in a few free words of a model; null where it gave none"
        ),
        "sample_digest": Column(STRING, "sha256 of the prompt and the inputs: what a system sees"),
        "dehydrated": Column(
            BOOLEAN, "true while posted words or images are left out: see `echo-hf hydrate`"
        ),
        "provenance": Column(
            STRING, "JSON: what made the row, stage by stage, and where words of posts stand"
        ),
    },
)

# Of the primary post of a sample.
PRIMARY_POST_COLUMNS = ("timestamp", "keywords", "engagement")
# What tables of older releases lack: null in their rows, but a draw, which is the first.
DRAW = "draw"
ADDED_COLUMNS = frozenset({*PRIMARY_POST_COLUMNS, "doubts", "task_phrase", "split", DRAW})
DRAW_COLUMN = Column(INTEGER, "number of the output among those that the system drew, from 0")

OUTPUTS = Table(
    "outputs",
    "what one system made of one sample",
    ("sample_id", "system", DRAW),
    {
        "sample_id": Column(STRING, "the sample"),
        "system": Column(STRING, "the system under test"),
        DRAW: DRAW_COLUMN,
        "sample_digest": Column(STRING, "`sample_digest` of the sample that the system saw"),
        "image": Column(STRING, "the image it made, null when it made none", Image()),
        "outcome": Column(STRING, "ok, refused, no_image, failed, unsupported or retired"),
        "stage": Column(STRING, "where it ended when it made none"),
        "code": Column(STRING, "the system's own error code"),
        "text": Column(STRING, "text returned beside or instead of an image"),
        "seed": Column(INTEGER, "seed of the run, null when the system takes none"),
        "revised_prompt": Column(STRING, "the prompt as the system rewrote it"),
        "model_reported": Column(STRING, "model name in the system's answer"),
        "latency_s": Column(FLOAT, "seconds from request to image"),
        "usage": Column(USAGE, "tokens"),
        "cost_usd": Column(FLOAT, "price in US dollars, null when unknown"),
        "provenance": Column(STRING, "JSON: what made the row"),
    },
)

RATINGS = Table(
    "ratings",
    "one judge's rating of one output",
    ("sample_id", "system", DRAW, "judge", "rubric", "repeat"),
    {
        "sample_id": Column(STRING, "the sample"),
        "system": Column(STRING, "the system whose output is rated"),
        DRAW: DRAW_COLUMN,
        "judge": Column(STRING, "the judge"),
        "rubric": Column(STRING, "overall, another rubric, or a check as NAME@VERSION"),
        "repeat": Column(INTEGER, "number of the repetition, from 0"),
        "sample_digest": Column(STRING, "`sample_digest` of the sample that the judge saw"),
        "output_sha256": Column(STRING, "digest of the image that the judge saw"),
        "prompt_digest": Column(STRING, "digest of the judge's instructions"),
        "rating": Column(FLOAT, "on the judge's own scale, null when there is none"),
        "explanation": Column(STRING, "the judge's reasons"),
        "outcome": Column(STRING, "ok, or why there is no rating"),
        "usage": Column(USAGE, "tokens"),
        "cost_usd": Column(FLOAT, "price in US dollars, null when unknown"),
        "provenance": Column(STRING, "JSON: what made the row"),
        "split": Column(
            STRING,
            "the split of the sample: a board is of one, and rates over both pooled are on none; "
            "null when it is not known",
        ),
    },
)

COMPARISONS = Table(
    "comparisons",
    "one judge's choice between two outputs",
    ("sample_id", "system_a", "system_b", DRAW, "judge", "order", "repeat"),
    {
        "sample_id": Column(STRING, "the sample"),
        "system_a": Column(STRING, "the first system by name"),
        "system_b": Column(STRING, "the second system by name"),
        DRAW: DRAW_COLUMN,
        "judge": Column(STRING, "the judge"),
        "order": Column(STRING, "ab or ba: which output was shown first"),
        "repeat": Column(INTEGER, "number of the repetition, from 0"),
        "sample_digest": Column(STRING, "`sample_digest` of the sample that the judge saw"),
        "output_a_sha256": Column(STRING, "digest of the image of the first system"),
        "output_b_sha256": Column(STRING, "digest of the image of the second system"),
        "prompt_digest": Column(STRING, "digest of the judge's instructions"),
        "winner": Column(STRING, "a, b or tie; null when there is no verdict"),
        "explanation": Column(STRING, "the judge's reasons"),
        "outcome": Column(STRING, "ok, or why there is no verdict"),
        "usage": Column(USAGE, "tokens"),
        "cost_usd": Column(FLOAT, "price in US dollars, null when unknown"),
        "provenance": Column(STRING, "JSON: what made the row"),
    },
)


def fill_draws(rows: pa.Table, table: Table) -> pa.Table:
    """Return rows with their draw, which is the first in tables of before there were several."""
    if DRAW not in table.columns:
        return rows
    if DRAW not in rows.column_names:
        draws = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
        return rows.add_column(min(table.key.index(DRAW), rows.num_columns), DRAW, draws)
    position = rows.column_names.index(DRAW)
    return rows.set_column(position, DRAW, rows[DRAW].fill_null(0))


def select_first_draws(rows: pa.Table) -> pa.Table:
    """Select what is about the first output of each system for each sample."""
    if DRAW not in rows.column_names:
        return rows
    return rows.filter(pc.equal(rows[DRAW].fill_null(0), 0))


APPLICABILITY = Table(
    "applicability",
    "whether a metric fits a sample",
    ("sample_id", "metric"),
    {
        "sample_id": Column(STRING, "the sample"),
        "metric": Column(STRING, "the metric"),
        "applies": Column(BOOLEAN, "whether it fits; null: not asked or failed"),
        "rationale": Column(STRING, "the model's reasons, for all that it was asked at once"),
        "outcome": Column(STRING, "ok, or why there is no answer"),
    },
)


def is_wide(table: Table, names: Collection[str]) -> bool:
    """Return whether rows have a column for each metric, as older versions wrote them."""
    return table is APPLICABILITY and not {"metric", "applies"} & {*names}


def make_wide_table(schema: pa.Schema) -> Table:
    """Return the table of such rows: any other column is a metric's."""
    shared = {name: APPLICABILITY.columns[name] for name in ("sample_id", "rationale", "outcome")}
    metrics = (name for name in schema.names if name not in shared)
    columns = {**shared, **dict.fromkeys(metrics, APPLICABILITY.columns["applies"])}
    return Table(APPLICABILITY.name, APPLICABILITY.about, ("sample_id",), columns)


def lengthen_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield a row for each answer of such rows, or for each metric where all answers failed."""
    shared = ("sample_id", "rationale", "outcome")
    for row in rows:
        flags = {name: flag for name, flag in row.items() if name not in shared}
        is_answered = any(flag is not None for flag in flags.values())
        for name, flag in flags.items():
            if flag is not None or not is_answered:
                values = {column: row.get(column) for column in shared}
                yield {**values, "metric": name, "applies": flag}


HUMAN = Table(
    "human",
    "one person's place for one system's output",
    ("sample_id", "rater", "system"),
    {
        "sample_id": Column(STRING, "the sample"),
        "rater": Column(STRING, "pseudonym of the person"),
        "system": Column(STRING, "the system"),
        "rank": Column(INTEGER, "1 is best, equal ranks are ties, null when it cannot be ranked"),
        "cannot_rank": Column(BOOLEAN, "the person found the outputs impossible to rank"),
        "score": Column(FLOAT, "in place of a rank: higher is better, null where there is a rank"),
    },
)

EVIDENCE = List({"sample_id": STRING, "thread": INTEGER, "label": STRING, "part": STRING})
CERTIFICATES = List(
    {
        "judge": STRING,
        "model": STRING,
        "prompt_digest": STRING,
        **dict.fromkeys(("sensitivity", "specificity", "j", "low", "high"), FLOAT),
        **dict.fromkeys(("p", "p_adjusted", "design_effect"), FLOAT),
        **dict.fromkeys(("caught", "complaints", "passed", "praise"), INTEGER),
        **dict.fromkeys(("complaint_threads", "praise_threads", "needed"), INTEGER),
        **dict.fromkeys(("unanswered", "not_fitting"), INTEGER),
        "kept": BOOLEAN,
        "reason": STRING,
    }
)
CHECKS = Table(
    "checks",
    "one version of a yes/no question that people's complaints became",
    ("name", "version"),
    {
        "name": Column(STRING, "its name; ratings have it as NAME@VERSION"),
        "version": Column(INTEGER, "from 1; an edit makes a new one"),
        "title": Column(STRING, "what people call the failure"),
        "question": Column(STRING, "the question about an output and its inputs"),
        "counts_as_yes": Column(STRING, "what counts as yes, which is a failure"),
        "fits": Column(STRING, "which samples it fits; null for all"),
        "instructions": Column(STRING, "what a judge is told"),
        "origin": Column(STRING, "model, or person for an edit"),
        "keywords": Column(STRINGS, "what the comments of its group name, the most frequent first"),
        "evidence": Column(
            EVIDENCE,
            "the samples with complaints and praise: thread, a number that is of "
            "one thread; label, complaint or praise; part, writing for what the question was "
            "written from, and proof for what it was tried on",
        ),
        "certificates": Column(
            CERTIFICATES,
            "by judge, and of the vote: share of complained-about outputs that got yes "
            "(sensitivity) and of praised ones that got no (specificity); their sum less 1 (j) "
            "with its interval (low, high); p of the exchange of threads, and after all checks "
            "are counted (p_adjusted); outputs and threads; how many more threads of each kind "
            "it would take (needed)",
        ),
        "status": Column(STRING, "proposed, kept, fell, retired, withdrawn or replaced"),
        "reason": Column(STRING, "why it is no longer asked"),
        "day": Column(STRING, "of the newest post when it was written or decided on"),
        "provenance": Column(STRING, "JSON: what wrote it"),
    },
)

LABELS = Table(
    "labels",
    "one person's answer to a check about one system's output",
    ("sample_id", "system", "check", "rater"),
    {
        "sample_id": Column(STRING, "the sample"),
        "system": Column(STRING, "the system"),
        "check": Column(STRING, "the check as NAME@VERSION"),
        "rater": Column(STRING, "pseudonym of the person"),
        "answer": Column(STRING, "yes, no or unclear"),
        "output_sha256": Column(STRING, "digest of the image that the person saw"),
    },
)

RESULTS = Table(
    "results",
    "one figure of one system",
    ("metric", "protocol", "split", "system"),
    {
        "metric": Column(STRING, "win_rate, color_shift, ..."),
        "protocol": Column(STRING, "published or corrected: whose arithmetic gave the figure"),
        "split": Column(STRING, "config of the samples it was computed on"),
        "system": Column(STRING, "the system"),
        "value": Column(FLOAT, "the figure, null when there is none"),
        "low": Column(FLOAT, "lower end of its interval, null when it has none"),
        "high": Column(FLOAT, "upper end of its interval, null when it has none"),
        "n": Column(INTEGER, "how many samples, pairs or images went into it"),
        "coverage": Column(FLOAT, "share, 0 to 1, of what could have gone into it"),
        "definition": Column(STRING, "JSON: what exactly was computed, with what models and sets"),
    },
)

RESPONSES = Table(
    "responses",
    "one stored answer of a model, for replay",
    ("request_key",),
    {
        "request_key": Column(STRING, "key of the request, 64 hexadecimal characters"),
        "task": Column(STRING, "the stage that asked"),
        "text": Column(
            STRING,
            "the answer as it came, personal data that it repeats not masked; null where the call "
            "failed",
        ),
        "finish_reason": Column(
            STRING, "stop for an answer; else length, refusal, error or needs_model"
        ),
        "usage": Column(USAGE, "tokens"),
        "sources": Column(STRINGS, "addresses of the posts that went into the request"),
    },
)

ORIGIN_COLUMNS: Mapping[str, Column] = {
    "release": Column(STRING, "tag or name of the older release that the sample is carried from"),
    "split": Column(STRING, "the split of the sample there"),
}


def _carry(table: Table, about: str) -> Table:
    columns = {"release": ORIGIN_COLUMNS["release"], **table.columns, **ORIGIN_COLUMNS}
    return Table(f"carried_{table.name}", about, ("release", *table.key), columns)


CARRIED_SAMPLES = _carry(SAMPLES, "a sample of an older release that is asked about again")
CARRIED_OUTPUTS = _carry(OUTPUTS, "what one system made of a carried sample, then or now")
CARRIED_RATINGS = _carry(RATINGS, "one of today's judges' rating of an output of a carried sample")

_SAMPLE_TABLES = (POSTS, THREADS, SAMPLES)
_RESULT_TABLES = (
    *(OUTPUTS, RATINGS, COMPARISONS, APPLICABILITY, HUMAN),
    *(CHECKS, LABELS, RESULTS, CARRIED_SAMPLES, CARRIED_OUTPUTS, CARRIED_RATINGS),
)
TABLES: Mapping[str, Table] = {
    table.name: table for table in (*_SAMPLE_TABLES, *_RESULT_TABLES, RESPONSES)
}


def release_features() -> Features:
    """Return the types of a released sample: `SAMPLES` with images in place of digests."""
    return SAMPLES.released_features


PAPER_RETRIEVED: Mapping[str, str] = {
    "text": "posts.text",
    "timestamp": "posts.timestamp",
    "replies_above": "threads.posts.parent",
    "keyword": "posts.keywords",
    "url": "posts.url",
    "author": "posts.author",
    "image_urls": "posts.pictures",
    "replies_below": "threads.posts.parent",
    "engagement": "posts.engagement",
}

# What a release keeps of them, of the primary post of each sample.
PAPER_RELEASED: Mapping[str, str] = {
    "timestamp": "samples.timestamp",
    "keyword": "samples.keywords",
    "url": "samples.post_urls",
    "engagement": "samples.engagement",
}

PAPER_PROCESSED: Mapping[str, str] = {
    name: f"samples.{name}"
    for name in (
        *("id", "post_id", "prompt", "prompt_modified", "quality", "community_feedback"),
        *("input_images", "output_images", "is_screenshot", "input_bboxs", "output_bboxs"),
    )
}

OFFICIAL_DATASET: Mapping[str, tuple[str, ...]] = {
    "text_to_image": (
        *("id", "prompt", "prompt_modified", "prompt_fill_blank"),
        *("input_images", "output_images", "community_feedback", "has_nsfw"),
    ),
    "analysis": ("id", "prompt", "prompt_modified", "quality", "community_feedback"),
    "image_to_image": ("id", "prompt", "input_images", "is_screenshot", "input_bboxs"),
}
