"""Take what people posted out of a release, where the terms of their platform ask for it."""

from __future__ import annotations

import base64
import functools
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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
    Samples,
    images_in,
    passed_on_rows,
    restricted_platforms,
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
from echo_hf.tables import SAMPLES

SHAPE = (BLOCKS, BLOCKS, CHANNELS)
CELLS = BLOCKS * BLOCKS * CHANNELS
MEANS = np.dtype("<f2")
FORM = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5}):([A-Za-z0-9+/]+={0,2})", re.ASCII)


def image_signature(image: Path) -> str | None:
    try:
        found = block_signature(image)
    except ImageError:
        return None
    blocks = found.means.astype(MEANS).tobytes() + found.contrasts.tobytes()
    return f"{found.size[0]}x{found.size[1]}:{base64.b64encode(blocks).decode()}"


def size_in(signature: str) -> tuple[int, int]:
    return _read(signature).size


def distance(image: Path, signature: str) -> float | None:
    one, other = _read(signature), block_signature(image)
    many = other.means[None], other.contrasts[None]
    if not same_shape(one.size, other.size) or not same_colors(one.means, one.contrasts, *many)[0]:
        return None
    return float(np.abs(one.means.astype(np.float32) - other.means.astype(np.float32)).mean())


def _read(signature: str) -> BlockSignature:
    found = FORM.fullmatch(signature)
    data = _decoded(found[3]) if found else b""
    if not found or len(data) != CELLS * (MEANS.itemsize + 1):
        raise SpanError(f"{signature[:40]!r} is not a signature of an image")
    means = np.frombuffer(data, MEANS, CELLS).astype(np.float16).reshape(SHAPE)
    contrasts = np.frombuffer(data, np.uint8, CELLS, CELLS * MEANS.itemsize).reshape(SHAPE)
    if not np.isfinite(means).all():
        raise SpanError(f"{signature[:40]!r} is not a signature of an image: it has no colors")
    return BlockSignature((int(found[1]), int(found[2])), means, contrasts)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


Row = Mapping[str, Any]
Signature = Callable[[str], str | None]
# Addresses, digests and what was found out; a column that is in none of the two lists is left out.
KEPT = frozenset(
    {
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
    }
)
CHANGED = frozenset(
    {
        "prompt",
        "prompt_sha256",
        "community_feedback",
        "input_images",
        "output_images",
        "screenshot",
        "picture_sources",
        "dehydrated",
        "provenance",
    }
)


def dehydrate(release_path: Path, to: Path, *, rights: Mapping[str, str] | None = None) -> Release:
    """Writes a release without the posted content that may not be passed on."""
    check_apart(release_path, to)
    verify_release(release_path)
    release = read_release(release_path)
    facts = released_facts(release)
    facts = facts if rights is None else replace(facts, rights=dict(rights))
    to.resolve().parent.mkdir(parents=True, exist_ok=True)
    place = to.resolve()
    with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder:
        store = ImageStore(Path(folder))
        every = {name: _rows(rows) for name, rows in unpacked(release, store).items()}
        held = {name: every.pop(name) for name in SAMPLE_CONFIGS if name in every}
        beside, counts = _beside(every, samples_of(held, facts.rights))
        # A sample may be in two configs.
        signature = functools.cache(lambda digest: image_signature(store.path(digest)))
        configs = {name: _passed_on(rows, signature, facts.rights) for name, rows in held.items()}
        facts = replace(facts, left_out=_counted(facts.left_out, counts))
        return write_release(to, _datasets({**configs, **beside}), store, facts)


def dehydrated(row: Row, signatures: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    prompt = row["prompt"]
    return {
        **dict.fromkeys(SAMPLES.columns),
        **{name: row[name] for name in KEPT},
        "prompt_sha256": row["prompt_sha256"] if prompt is None else text_digest(prompt),
        "community_feedback": [_without_words(one) for one in row["community_feedback"] or []],
        "input_images": [],
        "output_images": [],
        "picture_sources": _signed(row["picture_sources"], signatures or {}),
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


def _rows(dataset: Dataset) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = dataset.with_format("arrow")[:].to_pylist()
    return rows


def _datasets(configs: Mapping[str, list[dict[str, Any]]]) -> dict[str, Dataset]:
    return {
        name: Dataset(pa.Table.from_pylist(rows, CONFIGS[name].table.features.arrow_schema))
        for name, rows in configs.items()
    }


def _passed_on(
    rows: Iterable[dict[str, Any]], signature: Signature, rights: Mapping[str, str]
) -> list[dict[str, Any]]:
    return [
        dehydrated(row, {digest: signature(digest) for digest in images_in(row)})
        if restricted_platforms(row, rights)
        else row
        for row in rows
    ]


def _beside(
    configs: Mapping[str, Iterable[Row]], samples: Samples
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Counter[LeftOut]]]:
    made = {
        name: passed_on_rows(CONFIGS[name].table.name, rows, samples)
        for name, rows in configs.items()
    }
    return {name: rows for name, (rows, _) in made.items()}, {
        name: counts for name, (_, counts) in made.items()
    }


def _counted(
    before: Mapping[str, Mapping[str, int]], counts: Mapping[str, Mapping[LeftOut, int]]
) -> dict[str, dict[str, int]]:
    """What was left out before and what is now; silenced rows stay, and are counted again."""
    every = {name: dict(some) for name, some in before.items()}
    for name, found in counts.items():
        for reason, count in found.items():
            had = every.setdefault(name, {}).get(reason.value, 0)
            is_again = reason is LeftOut.SILENCED
            every[name][reason.value] = max(had, count) if is_again else had + count
    return every


def _without_words(said: Row) -> dict[str, Any]:
    text = said["feedback"]
    return {
        **said,
        "feedback": None,
        "sha256": said["sha256"] if text is None else text_digest(text),
    }


def _signed(
    entries: list[dict[str, Any]] | None, signatures: Mapping[str, str | None]
) -> list[dict[str, Any]] | None:
    if entries is None:
        return None
    return [
        {**one, "signature": signatures.get(one["sha256"], one["signature"])} for one in entries
    ]
