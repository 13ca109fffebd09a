"""Facts that a release states of itself: configs, failed calls, counts over samples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Features
from pydantic import (
    ConfigDict,
    JsonValue,
    NonNegativeInt,
    StringConstraints,
    ValidationError,
    field_validator,
)

from echo_hf._infra.text import one_line
from echo_hf.config.checks import Name, Section
from echo_hf.config.collection import Search
from echo_hf.config.sections import Target
from echo_hf.hub.commitments import Opening, Reveal, Seal
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_order import is_plain
from echo_hf.reasons import Reason
from echo_hf.tables import (
    CARRIED_OUTPUTS,
    CARRIED_RATINGS,
    CARRIED_SAMPLES,
    SAMPLES,
    TABLES,
    Column,
    Table,
    arrow_rows,
)


class LeftOut(Reason):
    """Why a row of a run is not in a release, a score or a ranking."""

    NOT_RELEASED = "not_released", "its sample is not in the release"
    OTHER_SAMPLE = "other_sample", "its sample has another prompt or other inputs by now"
    OTHER_OUTPUT = "other_output", "a rating of an image in whose place the system drew another"
    MAY_QUOTE = "may_quote", "it may repeat posts that must not be passed on"
    SILENCED = ("silenced", "only the texts and images in them, which may repeat restricted posts")
    OUTPUT_NOT_CLEANED = "output_not_cleaned", "only the image, whose metadata cannot be removed"
    SEALED = "sealed", "it is of a sealed sample, or of posts or images that one has"
    UNFIT = "unfit", "an answer of half characters, a damaged one, or a longer one than is read"


MAX_LISTED_KEYS = 1000
MAX_MEANING_CHARACTERS = 400
RequestKey = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class FailedCalls(Section):
    """Rows of a stage that wait for an answer for one reason, and the keys of their requests."""

    rows: NonNegativeInt
    requests: tuple[RequestKey, ...] = ()
    unlisted: NonNegativeInt = 0


def count_failed_calls(result: StageResult) -> dict[str, FailedCalls]:
    table = arrow_rows(result.quarantine, ["_reason", "_request"])
    grouped = table.group_by("_reason").aggregate([("_request", "distinct"), ([], "count_all")])
    calls = {}
    for row in grouped.sort_by("_reason").to_pylist():
        keys = sorted(filter(None, row["_request_distinct"]))
        calls[row["_reason"]] = FailedCalls(
            rows=row["count_all"],
            requests=tuple(keys[:MAX_LISTED_KEYS]),
            unlisted=max(0, len(keys) - MAX_LISTED_KEYS),
        )
    return calls


def describe_problem(error: ValidationError, root_name: str = "the file") -> str:
    """Describe the first validation error: place, value, and what was expected."""
    first_error = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(map(str, first_error["loc"])) or root_name
    return f"{place} is {str(first_error['input'])[:80]!r}, {first_error['msg'].lower()}"


NOT_LANGUAGES = frozenset({"art", "mis", "mul", "und", "zxx"})


@lru_cache
def parse_language(code: str | None) -> str | None:
    """Return the language of a platform's code, null where it names none."""
    primary = re.split(r"[-_]", (code or "").strip().lower())[0]
    current = {"in": "id", "iw": "he", "ji": "yi"}.get(primary, primary)
    # qaa to qtz are private: X uses them for posts without words.
    is_language = re.fullmatch(r"(?!q[a-t][a-z]$)[a-z]{2,3}", current)
    return current if is_language and current not in NOT_LANGUAGES else None


def known_languages(codes: Iterable[str]) -> list[str]:
    return sorted({language for code in codes if (language := parse_language(code))})


class ReleaseConfig(NamedTuple):
    """A config: what it holds in a few words, and the table of its rows."""

    about: str
    table: Table


_ABOUT = {
    "image_to_image": "benchmark samples that start from one or more images",
    "text_to_image": "benchmark samples that start from words alone",
    "analysis": "every sample with a clear task that was not flagged, to study what people do",
    "outputs": "what the systems under test made of the samples",
    "ratings": "what judges said about the outputs",
    "comparisons": "what judges chose between two outputs",
    "human": "how people ranked the outputs; they have numbers, and no names",
    "applicability": "which specialised metrics fit which benchmark sample",
    "checks": "questions that people's complaints became, and what proves them",
    "results": "the figures of each system",
    "responses": "the answers of the models that made the samples, to build them again without a "
    "model",
    "carried_samples": "samples of older releases, by which systems of several releases compare",
    "carried_outputs": "what systems of then and of now made of the carried samples",
    "carried_ratings": "what today's judges said about these outputs",
}
CONFIGS: Mapping[str, ReleaseConfig] = {
    name: ReleaseConfig(about, TABLES.get(name, SAMPLES)) for name, about in _ABOUT.items()
}


class ColumnEntry(Section):
    """A column of samples that a stage of another package added."""

    stage: Name
    content: Literal["post_text", "derived"]
    meaning: Annotated[str, StringConstraints(max_length=MAX_MEANING_CHARACTERS)]
    type: JsonValue

    @classmethod
    def from_column(cls, stage: str, column: Column) -> Self:
        feature = Features({stage: column.feature}).to_dict()[stage]
        meaning = one_line(column.meaning)[:MAX_MEANING_CHARACTERS]
        return cls(stage=stage, content=column.content, meaning=meaning, type=feature)

    @field_validator("type")
    @classmethod
    def _check_type(cls, value: JsonValue) -> JsonValue:
        if not is_plain(value):
            raise ValueError("expected a plain type of a column, such as that of a text")
        return value

    @property
    def column(self) -> Column:
        feature = Features.from_dict({self.stage: self.type})[self.stage]
        return Column(feature, self.meaning, content=self.content)


def get_table(config: str, added: Mapping[str, ColumnEntry]) -> Table:
    """Return the table of a config's rows, of samples with the columns of other packages."""
    table = CONFIGS[config].table
    columns = {name: entry.column for name, entry in added.items()}
    return table.add_columns(columns) if config in SAMPLE_CONFIGS else table


BENCHMARK_CONFIGS = ("image_to_image", "text_to_image")
SAMPLE_CONFIGS = tuple(name for name, config in CONFIGS.items() if config.table is SAMPLES)
# What a run keeps beside its stages, under the name of the config.
CARRIED_CONFIGS = (CARRIED_SAMPLES.name, CARRIED_OUTPUTS.name, CARRIED_RATINGS.name)
POSTED_CONFIGS = (*SAMPLE_CONFIGS, CARRIED_SAMPLES.name)  # which hold words and images of posts
SCORE_CONFIGS = tuple(
    name for name in CONFIGS if name not in (*SAMPLE_CONFIGS, *CARRIED_CONFIGS, "results")
)
CARRIED_FOLDER = "carried"  # of a run


def choose_default_config(rows: Mapping[str, int]) -> str:
    names = [name for name in CONFIGS if name in rows]
    return next((name for name in names if rows[name]), names[0])


ALL = "all"
UNKNOWN = "unknown"


class SampleCounts(Section):
    """Counts over some samples; what cannot be told is counted under `unknown`."""

    samples: NonNegativeInt
    languages: Mapping[str, NonNegativeInt]
    platforms: Mapping[str, NonNegativeInt]
    tasks: Mapping[str, NonNegativeInt]
    doubts: Mapping[str, NonNegativeInt] = {}  # a sample may have several
    authors: NonNegativeInt
    repeated_authors: NonNegativeInt
    unknown_authors: NonNegativeInt


def count_samples(configs: Mapping[str, Dataset], posts: Dataset) -> dict[str, SampleCounts]:
    """Count each config's samples and all of them, by their primary posts."""
    rows = {}
    for name in filter(configs.__contains__, SAMPLE_CONFIGS):
        samples = arrow_rows(configs[name], ["id", "post_urls", "task", "doubts"]).to_pylist()
        rows[name] = {row["id"]: (row, (row["post_urls"] or [None])[0]) for row in samples}
    every_sample = {key: row for config_rows in rows.values() for key, row in config_rows.items()}
    table = arrow_rows(posts, ["url", "lang", "platform", "author"])
    urls = pa.array(sorted({url for _, url in every_sample.values() if url}), pa.string())
    post_rows = table.filter(pc.is_in(table["url"], value_set=urls)).to_pylist()
    posts_by_url = {row["url"]: row for row in post_rows}
    parts = {ALL: every_sample, **rows}
    return {
        name: _count_rows([(row, posts_by_url.get(url, {})) for row, url in part.values()])
        for name, part in parts.items()
    }


def _count_rows(rows: list[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> SampleCounts:
    def count_names(names: Iterable[str | None]) -> dict[str, int]:
        counts = Counter(name or UNKNOWN for name in names)
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    # One name on two platforms may be two people.
    authors = Counter((post["platform"], post["author"]) for _, post in rows if post.get("author"))
    return SampleCounts(
        samples=len(rows),
        languages=count_names(parse_language(post.get("lang")) for _, post in rows),
        platforms=count_names(post.get("platform") for _, post in rows),
        tasks=count_names(row["task"] for row, _ in rows),
        doubts=count_names(doubt for row, _ in rows for doubt in row["doubts"] or ()),
        authors=len(authors),
        repeated_authors=sum(count > 1 for count in authors.values()),
        unknown_authors=len(rows) - authors.total(),
    )


NestedCounts = Mapping[str, int | Mapping[str, int]]
LICENSE_NOTE = (
    "The posts and images belong to the people who published them, and this dataset passes on "
    "no right to them. Use them for research, and name the posts (`post_urls`) that you show."
)


@dataclass(frozen=True, kw_only=True)
class CardStatements:
    """Statements of the card that are neither in the rows nor in the run."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    languages: tuple[str, ...] = ()
    license: str = "other"
    license_name: str = "posts-belong-to-their-authors"
    license_note: str = LICENSE_NOTE
    repository: str | None = None
    contact: str | None = None
    rights: Mapping[str, str] = field(default_factory=dict)
    removed_categories: tuple[str, ...] | None = None
    citation: str | None = None
    metadata_stripper: int | None = None


@dataclass(frozen=True)
class ReleaseFacts(CardStatements):
    """Facts about a release, as the run that built it knows them."""

    name: str
    target: Target
    protocol: Literal["published", "corrected"] = "corrected"
    funnel: Mapping[str, NestedCounts] = field(default_factory=dict)
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules_built: bool = False
    measured: Mapping[str, SampleCounts] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    failed: Mapping[str, Mapping[str, FailedCalls]] = field(default_factory=dict)
    searches: Mapping[str, Search] = field(default_factory=dict)  # by platform
    columns: Mapping[str, ColumnEntry] = field(default_factory=dict)  # of stages of others
    sealed: Seal | None = None
    revealed: Mapping[str, Reveal] = field(default_factory=dict)  # by tag
    openings: tuple[Opening, ...] = ()
