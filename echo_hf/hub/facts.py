"""What a release says of itself: configs, facts, failed calls, what its samples lean towards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from pydantic import BaseModel, ConfigDict, NonNegativeInt, StringConstraints, ValidationError

from echo_hf.config.collection import Search
from echo_hf.config.sections import Target
from echo_hf.pipeline.result import StageResult
from echo_hf.tables import SAMPLES, TABLES, Table, arrow_rows

MOST_LISTED = 1000
RequestKey = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class FailedCalls(BaseModel):
    """Rows of a stage that wait for an answer for one reason, and the keys of their requests."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: NonNegativeInt
    requests: tuple[RequestKey, ...] = ()
    unlisted: NonNegativeInt = 0


def failed_calls(result: StageResult) -> dict[str, FailedCalls]:
    table = arrow_rows(result.quarantine, ["_reason", "_request"])
    grouped = table.group_by("_reason").aggregate([("_request", "distinct"), ([], "count_all")])
    found = {}
    for row in grouped.sort_by("_reason").to_pylist():
        keys = sorted(filter(None, row["_request_distinct"]))
        found[row["_reason"]] = FailedCalls(
            rows=row["count_all"],
            requests=tuple(keys[:MOST_LISTED]),
            unlisted=max(0, len(keys) - MOST_LISTED),
        )
    return found


def problem(error: ValidationError, whole: str = "the file") -> str:
    """What is wrong first in something that was read: where, the value, what was expected."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or whole
    return f"{place} is {str(first['input'])[:80]!r}, {first['msg'].lower()}"


NOT_LANGUAGES = frozenset({"art", "mis", "mul", "und", "zxx"})


@lru_cache
def language(code: str | None) -> str | None:
    """The language of a platform's code, null where it names none."""
    primary = re.split(r"[-_]", (code or "").strip().lower())[0]
    named = {"in": "id", "iw": "he", "ji": "yi"}.get(primary, primary)
    # qaa to qtz are private: X uses them for posts without words.
    real = re.fullmatch(r"(?!q[a-t][a-z]$)[a-z]{2,3}", named)
    return named if real and named not in NOT_LANGUAGES else None


def languages(codes: Iterable[str]) -> list[str]:
    return sorted({named for code in codes if (named := language(code))})


class ReleaseConfig(NamedTuple):
    """A config: what it holds in a few words, and the table of its rows."""

    about: str
    table: Table


_HELD = {
    "image_to_image": "benchmark samples that start from one or more images",
    "text_to_image": "benchmark samples that start from words alone",
    "analysis": "every sample with a clear task that was not flagged, to study what people do",
    "outputs": "what the systems under test made of the samples",
    "ratings": "what judges said about the outputs",
    "comparisons": "what judges chose between two outputs",
    "applicability": "which specialised metrics fit which benchmark sample",
    "results": "the figures of each system",
    "responses": "the answers of the models that made the samples, to build them again without a "
    "model",
}
CONFIGS: Mapping[str, ReleaseConfig] = {
    name: ReleaseConfig(about, TABLES.get(name, SAMPLES)) for name, about in _HELD.items()
}
BENCHMARK_CONFIGS = ("image_to_image", "text_to_image")
SAMPLE_CONFIGS = tuple(name for name, config in CONFIGS.items() if config.table is SAMPLES)
# What a run keeps beside its stages, under the name of the config.
SCORE_CONFIGS = tuple(name for name in CONFIGS if name not in (*SAMPLE_CONFIGS, "results"))


def default_config(rows: Mapping[str, int]) -> str:
    held = [name for name in CONFIGS if name in rows]
    return next((name for name in held if rows[name]), held[0])


ALL = "all"
UNKNOWN = "unknown"


class SampleCounts(BaseModel):
    """Counts over some samples; what cannot be told is counted under `unknown`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    samples: NonNegativeInt
    languages: Mapping[str, NonNegativeInt]
    platforms: Mapping[str, NonNegativeInt]
    tasks: Mapping[str, NonNegativeInt]
    doubts: Mapping[str, NonNegativeInt] = {}  # a sample may have several
    authors: NonNegativeInt
    repeated_authors: NonNegativeInt
    unknown_authors: NonNegativeInt


def measure(configs: Mapping[str, Dataset], posts: Dataset) -> dict[str, SampleCounts]:
    """Counts over each config's samples, and over all of them, by their primary posts."""
    rows = {}
    for name in filter(configs.__contains__, SAMPLE_CONFIGS):
        samples = arrow_rows(configs[name], ["id", "post_urls", "task", "doubts"]).to_pylist()
        rows[name] = {row["id"]: (row, (row["post_urls"] or [None])[0]) for row in samples}
    every = {key: row for some in rows.values() for key, row in some.items()}
    table = arrow_rows(posts, ["url", "lang", "platform", "author"])
    wanted = pa.array(sorted({url for _, url in every.values() if url}), pa.string())
    found = table.filter(pc.is_in(table["url"], value_set=wanted)).to_pylist()
    known = {row["url"]: row for row in found}
    parts = {ALL: every, **rows}
    return {
        name: _counts([(row, known.get(url, {})) for row, url in part.values()])
        for name, part in parts.items()
    }


def _counts(rows: list[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> SampleCounts:
    def values(names: Iterable[str | None]) -> dict[str, int]:
        counts = Counter(name or UNKNOWN for name in names)
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    # One name on two platforms may be two people.
    authors = Counter((post["platform"], post["author"]) for _, post in rows if post.get("author"))
    return SampleCounts(
        samples=len(rows),
        languages=values(language(post.get("lang")) for _, post in rows),
        platforms=values(post.get("platform") for _, post in rows),
        tasks=values(row["task"] for row, _ in rows),
        doubts=values(doubt for row, _ in rows for doubt in row["doubts"] or ()),
        authors=len(authors),
        repeated_authors=sum(count > 1 for count in authors.values()),
        unknown_authors=len(rows) - authors.total(),
    )


Counts = Mapping[str, int | Mapping[str, int]]
LICENSE_NOTE = (
    "The posts and images belong to the people who published them, and this dataset passes on "
    "no right to them. Use them for research, and name the posts (`post_urls`) that you show."
)


@dataclass(frozen=True, kw_only=True)
class Statements:
    """What the card says that neither the rows nor the run do."""

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
class ReleaseFacts(Statements):
    """Facts about a release, as the run that built it knows them."""

    name: str
    target: Target
    protocol: Literal["published", "corrected"] = "corrected"
    funnel: Mapping[str, Counts] = field(default_factory=dict)
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules_built: bool = False
    measured: Mapping[str, SampleCounts] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    failed: Mapping[str, Mapping[str, FailedCalls]] = field(default_factory=dict)
    searches: Mapping[str, Search] = field(default_factory=dict)  # by platform
