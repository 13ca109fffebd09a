"""What may be passed on of what people posted, and a release without the rest."""

from __future__ import annotations

import base64
import functools
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset

from echo_hf._infra.atomic import check_replaceable
from echo_hf.collect.urls import platform_of
from echo_hf.curate.provenance import OUTPUT, SCREENSHOT, prompt_source, remove_quotes
from echo_hf.errors import ImageError, ReleaseError, SpanError
from echo_hf.hub.facts import CONFIGS, SAMPLE_CONFIGS
from echo_hf.hub.release import (
    NAMES,
    Part,
    Release,
    batches_on_disk,
    parts_of,
    read_release,
    released_facts,
    rows_of,
    rows_on_disk,
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
from echo_hf.pipeline.runner import LEAST_ROWS, cores, forked
from echo_hf.pipeline.stage import table_bytes
from echo_hf.reasons import LeftOut
from echo_hf.samples.spans import repeats_source, text_digest
from echo_hf.tables import OF_POST, SAMPLES

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
    lists = [*(row["input_images"] or []), *(row["output_images"] or []), row["screenshot"]]
    return [digest for digest in lists if digest is not None]


@dataclass
class Samples:
    """What the samples of a release mean for the rows beside them, once each was looked at."""

    rights: Mapping[str, str]
    free: set[str] = field(default_factory=set)  # ids
    held: set[str] = field(default_factory=set)
    with_inputs: set[str] = field(default_factory=set)  # of those that are held
    # Digests of the images of those that are held; "" in the place of one is unknown.
    posted: set[str] = field(default_factory=lambda: {""})

    def add(self, others: Samples) -> None:
        for one in fields(self)[1:]:
            getattr(self, one.name).update(getattr(others, one.name))

    def holds(self, config: str, row: Row) -> bool:
        """Notes a sample, and says whether it may not be passed on."""
        if not restricted_posts(addresses_of(row), self.rights):
            self.free.add(row["id"])
            return False
        self.held.add(row["id"])
        noted = row["picture_sources"]
        self.posted |= {*images_in(row), *(one["sha256"] for one in noted or [])} - {None}
        # Once it is dehydrated only its noted images tell.
        roles = {one["role"] for one in noted or []} - {OUTPUT, SCREENSHOT}
        if config == "image_to_image" or row["input_images"] or noted is None or roles:
            self.with_inputs.add(row["id"])
        return True


def passed_on_rows(
    table: str, rows: Iterable[Row], samples: Samples
) -> tuple[list[dict[str, Any]], Counter[LeftOut]]:
    """The rows of a table beside the samples as they may be passed on."""
    if may_pass_on_all(samples.rights):
        return [dict(row) for row in rows], Counter()
    kept: list[dict[str, Any]] = []
    counts: Counter[LeftOut] = Counter()
    for row in rows:
        about, name = row.get("sources"), row.get("sample_id")
        # An answer about such posts, or about nobody knows which.
        if "sources" in row and (not about or restricted_posts(about, samples.rights)):
            counts[LeftOut.MAY_QUOTE] += 1
        elif "sample_id" not in row or (name in samples.free and name not in samples.held):
            kept.append(dict(row))
        else:
            silent = {**row, **dict.fromkeys(QUOTING.get(table, ()))}
            if "provenance" in row:
                silent["provenance"] = remove_quotes(row["provenance"])
            # Without a posted image that was given back, or an edit of one.
            of_words = name in samples.held and name not in samples.with_inputs
            drawn = of_words and row.get("image") not in samples.posted
            kept.append(silent if drawn or "image" not in row else {**silent, "image": None})
            counts[LeftOut.SILENCED] += table in QUOTING
    return kept, +counts


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


def read_signature(signature: str) -> BlockSignature:
    found = FORM.fullmatch(signature)
    try:
        data = base64.b64decode(found[3], validate=True) if found else b""
    except ValueError:
        data = b""
    if not found or len(data) != CELLS * (MEANS.itemsize + 1):
        raise SpanError(f"{signature[:40]!r} is not a signature of an image")
    shape = (BLOCKS, BLOCKS, CHANNELS)
    means = np.frombuffer(data, MEANS, CELLS).astype(np.float16).reshape(shape)
    contrasts = np.frombuffer(data, np.uint8, CELLS, CELLS * MEANS.itemsize).reshape(shape)
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
    *("id", "post_id", "post_urls", "author", "target", "prompt_spans", "prompt_modified"),
    *("prompt_fill_blank", "quality", "is_screenshot", "input_bboxs", "output_bboxs"),
    *("has_nsfw", "safety", "review", "doubts", "kind", "task", "sample_digest"),
)


def dehydrated(row: Row, signatures: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """A sample without what people posted, its images named with their signatures."""

    def digest(text: str | None, noted: str | None) -> str | None:
        return noted if text is None else text_digest(text)

    return {
        **dict.fromkeys(SAMPLES.columns),
        **{name: row[name] for name in KEPT},
        "prompt_sha256": digest(row["prompt"], row["prompt_sha256"]),
        "community_feedback": [
            {**one, "feedback": None, "sha256": digest(one["feedback"], one["sha256"])}
            for one in row["community_feedback"] or []
        ],
        # A model's own words, unless it copied them: hydrating does not bring those back.
        "task_phrase": None
        if repeats_source([row["task_phrase"] or ""], [prompt_source(row["prompt"] or "")])
        else row["task_phrase"],
        "input_images": [],
        "output_images": [],
        "picture_sources": row["picture_sources"]
        and [
            {**one, "signature": (signatures or {}).get(one["sha256"], one["signature"])}
            for one in row["picture_sources"]
        ],
        "dehydrated": True,
        "provenance": remove_quotes(row["provenance"]),
    }


def holds_content(row: Row) -> bool:
    """Whether a row of samples holds anything that somebody posted, whatever it says of itself."""
    comments = [one["feedback"] for one in row["community_feedback"] or []]
    told = [row["prompt"], *comments, *(row[name] for name in OF_POST)]
    is_said = any(one is not None for one in told)
    return is_said or bool(images_in(row)) or remove_quotes(row["provenance"]) != row["provenance"]


def check_apart(release: Path, to: Path) -> None:
    check_replaceable(to.resolve(), NAMES)
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
        store, processes = ImageStore(Path(folder)), cores()
        samples, made = Samples(facts.rights), dict[str, Dataset]()
        known: dict[str, str | None] = {}  # a sample may be in two configs
        left_out = {name: dict(counts) for name, counts in facts.left_out.items()}
        # The samples before what is beside them, which depends on all of them.
        for name in sorted(release.manifest.configs, key=lambda name: name not in SAMPLE_CONFIGS):
            table, counts = CONFIGS[name].table, Counter[LeftOut]()
            file = store.root / f"{name}.arrow"
            if name in SAMPLE_CONFIGS:
                batches = _dehydrated(release, name, store, samples, known, processes)
                made[name] = batches_on_disk(batches, table, file)
            else:
                new, counts = passed_on_rows(table.name, rows_of(release, name, store), samples)
                made[name] = rows_on_disk(new, table, file)
            for reason, count in counts.items():
                had = left_out.setdefault(name, {}).get(reason.value, 0)
                # Silenced rows stay, and are counted again.
                again = reason is LeftOut.SILENCED
                left_out[name][reason.value] = max(had, count) if again else had + count
        facts = replace(facts, left_out=left_out)
        return write_release(to, made, store, facts, processes=processes)


RECENT = 4096  # signatures that each process has at hand, 3 KB each


def _dehydrated(
    release: Release,
    config: str,
    store: ImageStore,
    samples: Samples,
    known: dict[str, str | None],
    processes: int,
) -> Iterator[pa.Table]:
    """The rows of a config as they may be passed on; notes samples, and signatures of images."""
    recent = functools.lru_cache(RECENT)(lambda digest: image_signature(store.path(digest)))

    def made_of(part: Part) -> tuple[pa.Buffer, Samples, dict[str, str | None]]:
        own, drawn, rows = Samples(samples.rights), dict[str, str | None](), []
        for row in rows_of(release, config, store, [part]):
            if own.holds(config, row):
                here = {one: known.get(one) or recent(one) for one in images_in(row)}
                drawn |= here
                rows.append(dehydrated(row, here))
            else:
                rows.append(row)
        return table_bytes(pa.Table.from_pylist(rows, SAMPLES.schema)), own, drawn

    if release.manifest.configs[config].rows < LEAST_ROWS:
        processes = 1
    parts = parts_of(release, config)
    for _, made in forked(lambda: made_of, parts, processes, f"samples of {config!r}"):
        rows, own, drawn = made
        samples.add(own)
        known |= drawn
        yield pa.ipc.open_stream(rows).read_all()
