"""Which samples and which rows beside them may be passed on with what people posted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from echo_hf.collect.urls import platform_of
from echo_hf.curate.provenance import OUTPUT, SCREENSHOT, without_quotes
from echo_hf.reasons import LeftOut

Row = Mapping[str, Any]
# Platforms whose terms let others pass on the addresses of posts, but not the posts.
RESTRICTED = frozenset({"x"})
# What may repeat the words of a post: said by a system, its server or a judge who saw them.
QUOTING: Mapping[str, tuple[str, ...]] = {
    "outputs": ("text", "revised_prompt", "code"),
    "ratings": ("explanation",),
    "comparisons": ("explanation",),
    "applicability": ("rationale",),
}


def restricted_posts(urls: Iterable[str | None], rights: Collection[str] = ()) -> list[str]:
    """The platforms among the addresses of posts whose terms forbid passing these on."""
    named = {platform_of(url) for url in urls if url}
    return sorted((named & RESTRICTED) - set(rights))


def may_pass_on_all(rights: Collection[str]) -> bool:
    """Whether nothing is forbidden that no right is stated to."""
    return set(rights) >= RESTRICTED


def addresses_of(sample: Row) -> Iterator[str | None]:
    """The addresses of all posts that a sample names or quotes, some of them several times."""
    yield from sample.get("post_urls") or []
    said = sample.get("community_feedback") or []
    lists = [sample.get("prompt_spans"), sample.get("picture_sources")]
    for some in [said, *lists, *(one.get("spans") for one in said)]:
        yield from (one["post_url"] for one in some or [])


def images_in(row: Row) -> list[str]:
    """The digests of the images that a row of samples holds."""
    lists = [*(row["input_images"] or []), *(row["output_images"] or []), row["screenshot"]]
    return [digest for digest in lists if digest is not None]


@dataclass(frozen=True)
class Samples:
    """What the samples of a release mean for the rows beside them.

    Attributes:
        free: Ids of those that may be passed on.
        of_words: Ids of the others that have no inputs.
        posted: Digests of the images of the others.
        rights: The rights that the release states.
    """

    free: frozenset[str]
    of_words: frozenset[str]
    posted: frozenset[str]
    rights: Mapping[str, str]


def samples_of(configs: Mapping[str, Iterable[Row]], rights: Mapping[str, str]) -> Samples:
    """Looks through the samples of a release."""
    free, held, with_inputs = set(), set(), set()
    posted = {""}  # in the place of a digest: unknown
    for name, rows in configs.items():
        for row in rows:
            if not restricted_posts(addresses_of(row), rights):
                free.add(row["id"])
                continue
            held.add(row["id"])
            noted = row["picture_sources"]
            posted |= {*images_in(row), *(one["sha256"] for one in noted or [])} - {None}
            # Once it is dehydrated only its noted images tell.
            roles = {one["role"] for one in noted or []} - {OUTPUT, SCREENSHOT}
            if name == "image_to_image" or row["input_images"] or noted is None or roles:
                with_inputs.add(row["id"])
    return Samples(frozenset(free - held), frozenset(held - with_inputs), frozenset(posted), rights)


def passed_on_rows(
    table: str, rows: Iterable[Row], samples: Samples
) -> tuple[list[dict[str, Any]], Counter[LeftOut]]:
    """The rows of a table beside the samples as they may be passed on."""
    kept: list[dict[str, Any]] = []
    counts: Counter[LeftOut] = Counter()
    whole = may_pass_on_all(samples.rights)
    for row in rows:
        about = row.get("sources")
        # An answer about such posts, or about nobody knows which.
        restricted = not about or restricted_posts(about, samples.rights)
        if "sources" in row and not whole and restricted:
            counts[LeftOut.MAY_QUOTE] += 1
            continue
        if whole or "sample_id" not in row or row["sample_id"] in samples.free:
            kept.append(dict(row))
            continue
        silent = {**row, **dict.fromkeys(QUOTING.get(table, ()))}
        if "provenance" in row:
            silent["provenance"] = without_quotes(row["provenance"])
        # Without a posted image that was given back, or an edit of one.
        drawn = row["sample_id"] in samples.of_words and row.get("image") not in samples.posted
        kept.append(silent if drawn or "image" not in row else {**silent, "image": None})
        counts[LeftOut.SILENCED] += table in QUOTING
    return kept, +counts
