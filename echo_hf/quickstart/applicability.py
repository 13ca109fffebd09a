"""Which metrics fit the bundled tasks: whoever wrote the posts knows what has to stay as it is.

Of posts that people wrote a model is asked; nothing is known about them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from echo_hf.quickstart.truth import corpus, json_lines
from echo_hf.tables import APPLICABILITY

FILE = "applicability.jsonl"
PICTURE_METRICS = ("face_identity", "color_shift", "structure_distance")


def written_applicability(samples: pa.Table) -> pa.Table:
    """Which metrics fit the samples of the bundled posts that start from a picture.

    Args:
        samples: Rows of samples, with id and post_urls.

    Returns:
        Rows of `APPLICABILITY`, one for each sample that is spoken of; whether it has text to
        render is null, since nobody was asked.
    """
    said = {row["post_url"]: row for row in json_lines(corpus() / FILE)}
    rows = samples.select(["id", "post_urls"]).to_pylist()
    return pa.Table.from_pylist(list(_rows(rows, said)), APPLICABILITY.schema)


def _rows(
    samples: list[dict[str, Any]], said: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    for sample in samples:
        known = next((said[url] for url in sample["post_urls"] if url in said), None)
        if known is not None:
            flags = {name: known[name] for name in PICTURE_METRICS}
            rationale = known["rationale"]
            yield {"sample_id": sample["id"], **flags, "rationale": rationale, "outcome": "ok"}
