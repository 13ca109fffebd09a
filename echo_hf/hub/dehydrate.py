"""Take what people posted out of a release, where the terms of their platform ask for it."""

from __future__ import annotations

import base64
import functools
import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset

from echo_hf.curate.provenance import without_quotes
from echo_hf.errors import ImageError, ReleaseError, SpanError
from echo_hf.hub.facts import CONFIGS, SAMPLE_CONFIGS
from echo_hf.hub.redistribution import (
    addresses_of,
    images_in,
    passed_on_rows,
    restricted_posts,
    samples_of,
)
from echo_hf.hub.release import (
    Release,
    check_place,
    read_release,
    released_facts,
    unpacked,
    verify_release,
    write_release,
)
from echo_hf.images.similarity import (
    BLOCKS,
    CHANNELS,
    BlockSignature,
    block_signature,
    same_colors,
    same_shape,
)
from echo_hf.images.store import ImageStore
from echo_hf.reasons import LeftOut
from echo_hf.samples.spans import text_digest
from echo_hf.tables import SAMPLES, arrow_rows

Row = Mapping[str, Any]
SHAPE = (BLOCKS, BLOCKS, CHANNELS)
CELLS = BLOCKS * BLOCKS * CHANNELS
MEANS = np.dtype("<f2")
FORM = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5}):([A-Za-z0-9+/]+={0,2})", re.ASCII)


def image_signature(image: Path) -> str | None:
    """Size and blocks of colors of an image as text, null of what cannot be decoded."""
    try:
        found = block_signature(image)
    except ImageError:
        return None
    blocks = found.means.astype(MEANS).tobytes() + found.contrasts.tobytes()
    return f"{found.size[0]}x{found.size[1]}:{base64.b64encode(blocks).decode()}"


def read_signature(signature: str) -> BlockSignature:
    found = FORM.fullmatch(signature)
    try:
        data = base64.b64decode(found[3], validate=True) if found else b""
    except ValueError:
        data = b""
    if not found or len(data) != CELLS * (MEANS.itemsize + 1):
        raise SpanError(f"{signature[:40]!r} is not a signature of an image")
    means = np.frombuffer(data, MEANS, CELLS).astype(np.float16).reshape(SHAPE)
    contrasts = np.frombuffer(data, np.uint8, CELLS, CELLS * MEANS.itemsize).reshape(SHAPE)
    if not np.isfinite(means).all():
        raise SpanError(f"{signature[:40]!r} is not a signature of an image: it has no colors")
    return BlockSignature((int(found[1]), int(found[2])), means, contrasts)


def distance(image: Path, signature: str) -> float | None:
    """The mean distance of an image's colors from a signature, null where it is another image."""
    one, other = read_signature(signature), block_signature(image)
    many = other.means[None], other.contrasts[None]
    if not same_shape(one.size, other.size) or not same_colors(one.means, one.contrasts, *many)[0]:
        return None
    return float(np.abs(one.means.astype(np.float32) - other.means.astype(np.float32)).mean())


# Addresses, digests and what was found out; every other column is emptied or made anew.
KEPT = (
    "id",
    "post_id",
    "post_urls",
    "author",
    "target",
    "prompt_spans",
    "prompt_modified",
    "prompt_fill_blank",
    "quality",
    "is_screenshot",
    "input_bboxs",
    "output_bboxs",
    "has_nsfw",
    "safety",
    "review",
    "kind",
    "task",
    "sample_digest",
)


def dehydrated(row: Row, signatures: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """A sample without what people posted, its images named with their signatures."""
    said = [
        {
            **one,
            "feedback": None,
            "sha256": one["sha256"] if one["feedback"] is None else text_digest(one["feedback"]),
        }
        for one in row["community_feedback"] or []
    ]
    entries = row["picture_sources"] and [
        {**one, "signature": (signatures or {}).get(one["sha256"], one["signature"])}
        for one in row["picture_sources"]
    ]
    prompt = row["prompt"]
    return {
        **dict.fromkeys(SAMPLES.columns),
        **{name: row[name] for name in KEPT},
        "prompt_sha256": row["prompt_sha256"] if prompt is None else text_digest(prompt),
        "community_feedback": said,
        "input_images": [],
        "output_images": [],
        "picture_sources": entries,
        "dehydrated": True,
        "provenance": without_quotes(row["provenance"]),
    }


def holds_content(row: Row) -> bool:
    """Whether a row of samples holds anything that somebody posted, whatever it says of itself."""
    comments = [one["feedback"] for one in row["community_feedback"] or []]
    is_said = any(text is not None for text in [row["prompt"], *comments])
    return is_said or bool(images_in(row)) or without_quotes(row["provenance"]) != row["provenance"]


def check_apart(release: Path, to: Path) -> None:
    """Refuses to write a release into its own place, or into that of something else."""
    check_place(to)
    if release.resolve() == to.resolve():
        raise ReleaseError(
            f"{str(to)!r} is the release itself, which would be lost: name another folder"
        )


def dehydrate(release_path: Path, to: Path, *, rights: Mapping[str, str] | None = None) -> Release:
    """Writes a release without the posted content that may not be passed on."""
    check_apart(release_path, to)
    verify_release(release_path)
    release = read_release(release_path)
    facts = released_facts(release)
    facts = facts if rights is None else replace(facts, rights=dict(rights))
    place = to.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder:
        store = ImageStore(Path(folder))
        # A sample may be in two configs.
        signature = functools.cache(lambda digest: image_signature(store.path(digest)))
        every = {
            name: arrow_rows(rows).to_pylist() for name, rows in unpacked(release, store).items()
        }
        held = {name: every[name] for name in SAMPLE_CONFIGS if name in every}
        samples = samples_of(held, facts.rights)
        left_out = {name: dict(counts) for name, counts in facts.left_out.items()}
        for name, rows in every.items():
            if name in held:
                every[name] = [
                    dehydrated(row, {digest: signature(digest) for digest in images_in(row)})
                    if restricted_posts(addresses_of(row), facts.rights)
                    else row
                    for row in rows
                ]
                continue
            every[name], counts = passed_on_rows(CONFIGS[name].table.name, rows, samples)
            for reason, count in counts.items():
                had = left_out.setdefault(name, {}).get(reason.value, 0)
                # Silenced rows stay, and are counted again.
                again = reason is LeftOut.SILENCED
                left_out[name][reason.value] = max(had, count) if again else had + count
        made = {
            name: Dataset(pa.Table.from_pylist(rows, CONFIGS[name].table.features.arrow_schema))
            for name, rows in every.items()
        }
        return write_release(to, made, store, replace(facts, left_out=left_out))
