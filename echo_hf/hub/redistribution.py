"""Which samples and which rows beside them may be passed on with what people posted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from echo_hf.collect.urls import platform_of
from echo_hf.curate.provenance import OUTPUT, SCREENSHOT, without_quotes
from echo_hf.reasons import LeftOut

# Platforms whose terms let others pass on the addresses of posts, but not the posts.
RESTRICTED = frozenset({"x"})
Sample = Mapping[str, Any]


def restricted_platforms(sample: Sample, rights: Collection[str] = ()) -> list[str]:
    """The platforms whose terms forbid passing on what a sample holds, told by its addresses."""
    return restricted_posts(addresses_of(sample), rights)


def restricted_posts(urls: Iterable[str | None], rights: Collection[str] = ()) -> list[str]:
    """The platforms among the addresses of posts whose terms forbid passing these on."""
    named = {platform_of(url) for url in urls if url}
    return sorted((named & RESTRICTED) - set(rights))


def may_pass_on_all(rights: Collection[str]) -> bool:
    """Whether nothing is forbidden that no right is stated to."""
    return set(rights) >= RESTRICTED


def addresses_of(sample: Sample) -> Iterator[str | None]:
    """The addresses of all posts that a sample names or quotes, some of them several times."""
    yield from sample.get("post_urls") or []
    said = sample.get("community_feedback") or []
    yield from (one["post_url"] for one in said)
    lists = [sample.get("prompt_spans"), sample.get("picture_sources")]
    for some in [*lists, *(one.get("spans") for one in said)]:
        yield from (one["post_url"] for one in some or [])


Row = Mapping[str, Any]
# What may repeat the words of a post: said by a system, its server or a judge who saw them.
QUOTING: Mapping[str, tuple[str, ...]] = {
    "outputs": ("text", "revised_prompt", "code"),
    "ratings": ("explanation",),
    "comparisons": ("explanation",),
    "applicability": ("rationale",),
}
FROM_IMAGES = "image_to_image"
UNKNOWN = ""  # in the place of a digest


@dataclass(frozen=True)
class Samples:
    """What the samples of a release mean for the rows beside them."""

    free: frozenset[str]
    of_words: frozenset[str]
    posted: frozenset[str]
    rights: Mapping[str, str]


def samples_of(configs: Mapping[str, Iterable[Row]], rights: Mapping[str, str]) -> Samples:
    """Looks through the samples of a release."""
    every = [(name, row) for name, rows in configs.items() for row in rows]
    held = [(name, row) for name, row in every if restricted_platforms(row, rights)]
    ids = {row["id"] for _, row in held}
    with_inputs = {row["id"] for name, row in held if name == FROM_IMAGES or _has_inputs(row)}
    return Samples(
        frozenset(row["id"] for _, row in every) - ids,
        frozenset(ids - with_inputs),
        frozenset({UNKNOWN, *(digest for _, row in held for digest in _posted(row))}),
        rights,
    )


def images_in(row: Row) -> list[str]:
    """The digests of the images that a row of samples holds."""
    lists = [*(row["input_images"] or []), *(row["output_images"] or []), row["screenshot"]]
    return [digest for digest in lists if digest is not None]


def without_words(table: str, row: Row) -> dict[str, Any]:
    """A row about a sample that must not be passed on, of another table than the samples."""
    silent = {**row, **dict.fromkeys(QUOTING.get(table, ()))}
    return silent | {name: without_quotes(row[name]) for name in {"provenance"} & set(row)}


def passed_on_rows(
    table: str, rows: Iterable[Row], samples: Samples
) -> tuple[list[dict[str, Any]], Counter[LeftOut]]:
    """The rows of a table beside the samples as they may be passed on."""
    kept: list[dict[str, Any]] = []
    counts: Counter[LeftOut] = Counter()
    for row in rows:
        if _may_quote(row, samples):
            counts[LeftOut.MAY_QUOTE] += 1
        elif _is_free(row, samples):
            kept.append(dict(row))
        else:
            kept.append(_without_images(without_words(table, row), samples))
            counts[LeftOut.SILENCED] += table in QUOTING
    return kept, +counts


def _may_quote(row: Row, samples: Samples) -> bool:
    """Whether it is an answer about such posts, or about nobody knows which."""
    if "sources" not in row or may_pass_on_all(samples.rights):
        return False
    return not row["sources"] or bool(restricted_posts(row["sources"], samples.rights))


def _is_free(row: Row, samples: Samples) -> bool:
    if "sample_id" not in row or may_pass_on_all(samples.rights):
        return True
    return row["sample_id"] in samples.free


def _without_images(row: dict[str, Any], samples: Samples) -> dict[str, Any]:
    """Without a posted image that was given back, or an edit of one."""
    if row.get("image") is None:
        return row
    is_drawn = row["sample_id"] in samples.of_words and row["image"] not in samples.posted
    return row if is_drawn else {**row, "image": None}


def _has_inputs(row: Row) -> bool:
    """Whether it has, or may have: once it is dehydrated only its noted images tell."""
    noted = row["picture_sources"]
    if row["input_images"] or noted is None:
        return True
    return any(one["role"] not in (OUTPUT, SCREENSHOT) for one in noted)


def _posted(row: Row) -> list[str]:
    noted = [one["sha256"] for one in row["picture_sources"] or []]
    return [*images_in(row), *filter(None, noted)]
