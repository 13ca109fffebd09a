"""Of the tables beside the samples: what may repeat posts that must not be passed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from echo_hf.curate.picture_sources import OUTPUT, SCREENSHOT
from echo_hf.curate.provenance_quotes import without_quotes
from echo_hf.hub.rights import may_pass_on_all, restricted_platforms, restricted_posts
from echo_hf.reasons import LeftOut

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
    """What the samples of a release mean for the rows beside them.

    Attributes:
        free: Names of samples that may be passed on as they are.
        of_words: Names of others that are known to start from words alone.
        posted: Digests of the pictures of others.
        rights: By platform what permits passing its posts on.
    """

    free: frozenset[str]
    of_words: frozenset[str]
    posted: frozenset[str]
    rights: Mapping[str, str]


def samples_of(configs: Mapping[str, Iterable[Row]], rights: Mapping[str, str]) -> Samples:
    """Looks through the samples of a release.

    Args:
        configs: Rows of samples by config, pictures by digest.
        rights: By platform what permits passing its posts on.

    Returns:
        What must be known of them.
    """
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


def pictures_in(row: Row) -> list[str]:
    """The digests of the pictures that a row of samples holds.

    Example:
        >>> pictures_in({"input_images": ["a"], "output_images": None, "screenshot": "b"})
        ['a', 'b']
    """
    lists = [*(row["input_images"] or []), *(row["output_images"] or []), row["screenshot"]]
    return [digest for digest in lists if digest is not None]


def without_words(table: str, row: Row) -> dict[str, Any]:
    """A row about a sample that must not be passed on, of another table than the samples.

    Ratings and choices stay; what systems and judges said about the posted words and pictures
    does not, and neither do quotations in their provenance.

    Args:
        table: Name of the table.
        row: A row of it.

    Returns:
        The row with null in the place of such texts.

    Raises:
        SpanError: The provenance is no JSON object.

    Example:
        >>> without_words("ratings", {"rating": 7.0, "explanation": "The fox is red."})
        {'rating': 7.0, 'explanation': None}
    """
    silent = {**row, **dict.fromkeys(QUOTING.get(table, ()))}
    return silent | {name: without_quotes(row[name]) for name in {"provenance"} & set(row)}


def passed_on_rows(
    table: str, rows: Iterable[Row], samples: Samples
) -> tuple[list[dict[str, Any]], Counter[LeftOut]]:
    """The rows of a table beside the samples as they may be passed on.

    Args:
        table: Name of the table.
        rows: Its rows, pictures by digest.
        samples: What the release holds of samples; a row about another one is taken for one about
            a sample that must not be passed on.

    Returns:
        The rows that may be passed on, and how many are not there, or lack texts and pictures.
    """
    kept: list[dict[str, Any]] = []
    counts: Counter[LeftOut] = Counter()
    for row in rows:
        if _may_quote(row, samples):
            counts[LeftOut.MAY_QUOTE] += 1
        elif _is_free(row, samples):
            kept.append(dict(row))
        else:
            kept.append(_without_pictures(without_words(table, row), samples))
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


def _without_pictures(row: dict[str, Any], samples: Samples) -> dict[str, Any]:
    """Without a posted picture that was given back, or an edit of one."""
    if row.get("image") is None:
        return row
    is_drawn = row["sample_id"] in samples.of_words and row["image"] not in samples.posted
    return row if is_drawn else {**row, "image": None}


def _has_inputs(row: Row) -> bool:
    """Whether it has, or may have: once it is dehydrated only its noted pictures tell."""
    noted = row["picture_sources"]
    if row["input_images"] or noted is None:
        return True
    return any(one["role"] not in (OUTPUT, SCREENSHOT) for one in noted)


def _posted(row: Row) -> list[str]:
    noted = [one["sha256"] for one in row["picture_sources"] or []]
    return [*pictures_in(row), *filter(None, noted)]
