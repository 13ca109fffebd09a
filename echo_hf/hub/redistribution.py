"""Decide which posted content may be redistributed, and write releases without the rest."""

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
from echo_hf.collect.urls import platform_of, restricted_platforms
from echo_hf.curate.provenance import (
    OUTPUT,
    SCREENSHOT,
    note_left_out,
    prompt_source,
    remove_quotes,
)
from echo_hf.errors import ImageError, ReleaseError, SpanError
from echo_hf.hub.facts import POSTED_CONFIGS, SAMPLE_CONFIGS, ColumnEntry, LeftOut
from echo_hf.hub.release import (
    NAMES,
    Release,
    RowGroups,
    find_table,
    read_config_rows,
    read_release,
    read_release_facts,
    split_row_groups,
    store_batches,
    store_table_rows,
    verify_release,
    write_release,
)
from echo_hf.images.similarity import (
    BLOCKS,
    CHANNELS,
    BlockSignature,
    compute_signature,
    is_same_shape,
    match_colors,
)
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.runner import MIN_PARALLEL_ROWS, count_cores, fork_map
from echo_hf.pipeline.stage import table_bytes
from echo_hf.samples.spans import repeats_source, text_digest
from echo_hf.tables import ORIGIN_COLUMNS, POST_TEXT, PRIMARY_POST_COLUMNS, SAMPLES, Row

# What may repeat the words of a post: said by a system, its server or a judge who saw them.
QUOTING_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "outputs": ("text", "revised_prompt", "code"),
    "ratings": ("explanation",),
    "comparisons": ("explanation",),
    "applicability": ("rationale",),
    "carried_outputs": ("text", "revised_prompt", "code"),
    "carried_ratings": ("explanation",),
}


def find_restricted(urls: Iterable[str | None], rights: Collection[str] = ()) -> list[str]:
    platforms = {platform_of(url) for url in urls if url}
    return sorted((platforms & restricted_platforms()) - set(rights))


def has_no_restrictions(rights: Collection[str]) -> bool:
    """Return whether a right is stated to the posts of every restricted platform."""
    return set(rights) >= restricted_platforms()


def iterate_post_urls(sample: Row) -> Iterator[str | None]:
    """Yield the addresses of all posts that a sample names or quotes, with repetitions."""
    yield from sample.get("post_urls") or []
    comments = sample.get("community_feedback") or []
    lists = [sample.get("prompt_spans"), sample.get("picture_sources")]
    for entries in [comments, *lists, *(comment.get("spans") for comment in comments)]:
        yield from (entry["post_url"] for entry in entries or [])


def list_images(row: Row) -> list[str]:
    lists = [*(row["input_images"] or []), *(row["output_images"] or []), row["screenshot"]]
    return [digest for digest in lists if digest is not None]


@dataclass
class RestrictedSamples:
    """The restricted samples of a release, on which the rows beside them depend."""

    rights: Mapping[str, str]
    free: set[str] = field(default_factory=set)  # ids
    held: set[str] = field(default_factory=set)
    with_inputs: set[str] = field(default_factory=set)  # of those that are held
    # Digests of the images of those that are held; "" in the place of one is unknown.
    posted: set[str] = field(default_factory=lambda: {""})

    def add(self, others: RestrictedSamples) -> None:
        for field_ in fields(self)[1:]:
            getattr(self, field_.name).update(getattr(others, field_.name))

    def record_restriction(self, config: str, row: Row) -> bool:
        """Record a sample, and return whether it is restricted."""
        if not find_restricted(iterate_post_urls(row), self.rights):
            self.free.add(row["id"])
            return False
        self.held.add(row["id"])
        entries = row["picture_sources"]
        self.posted |= {*list_images(row), *(entry["sha256"] for entry in entries or [])} - {None}
        # Once it is dehydrated only its noted images tell.
        roles = {entry["role"] for entry in entries or []} - {OUTPUT, SCREENSHOT}
        config = row.get("split") or config  # of a carried sample
        if config == "image_to_image" or row["input_images"] or entries is None or roles:
            self.with_inputs.add(row["id"])
        return True


def select_public_rows(
    table: str, rows: Iterable[Row], samples: RestrictedSamples
) -> tuple[list[dict[str, Any]], Counter[LeftOut]]:
    """Select the rows of a table that may be redistributed, emptied where needed."""
    if has_no_restrictions(samples.rights):
        return [dict(row) for row in rows], Counter()
    kept: list[dict[str, Any]] = []
    counts: Counter[LeftOut] = Counter()
    for row in rows:
        urls, name = row.get("sources"), row.get("sample_id")
        # An answer about such posts, or about nobody knows which.
        if "sources" in row and (not urls or find_restricted(urls, samples.rights)):
            counts[LeftOut.MAY_QUOTE] += 1
        elif "sample_id" not in row or (name in samples.free and name not in samples.held):
            kept.append(dict(row))
        else:
            emptied = {**row, **dict.fromkeys(QUOTING_COLUMNS.get(table, ()))}
            if "provenance" in row:
                emptied["provenance"] = remove_quotes(row["provenance"])
            # Without a posted image that was given back, or an edit of one.
            has_words_only = name in samples.held and name not in samples.with_inputs
            signed = has_words_only and row.get("image") not in samples.posted
            kept.append(emptied if signed or "image" not in row else {**emptied, "image": None})
            counts[LeftOut.SILENCED] += table in QUOTING_COLUMNS
    return kept, +counts


CELLS = BLOCKS * BLOCKS * CHANNELS
MEANS = np.dtype("<f2")
SIGNATURE_FORM = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5}):([A-Za-z0-9+/]+={0,2})", re.ASCII)


def encode_signature(image: Path) -> str | None:
    try:
        signature = compute_signature(image)
    except ImageError:
        return None
    blocks = signature.means.astype(MEANS).tobytes() + signature.contrasts.tobytes()
    return f"{signature.size[0]}x{signature.size[1]}:{base64.b64encode(blocks).decode()}"


def read_signature(signature: str) -> BlockSignature:
    match = SIGNATURE_FORM.fullmatch(signature)
    try:
        data = base64.b64decode(match[3], validate=True) if match else b""
    except ValueError:
        data = b""
    if not match or len(data) != CELLS * (MEANS.itemsize + 1):
        raise SpanError(f"{signature[:40]!r} is not a signature of an image")
    shape = (BLOCKS, BLOCKS, CHANNELS)
    means = np.frombuffer(data, MEANS, CELLS).astype(np.float16).reshape(shape)
    contrasts = np.frombuffer(data, np.uint8, CELLS, CELLS * MEANS.itemsize).reshape(shape)
    if not np.isfinite(means).all():
        raise SpanError(f"{signature[:40]!r} is not a signature of an image: it has no colors")
    return BlockSignature((int(match[1]), int(match[2])), means, contrasts)


def measure_distance(image: Path, signature: str) -> float | None:
    """Measure the mean color distance of an image; null where it is another image."""
    expected, actual = read_signature(signature), compute_signature(image)
    many = actual.means[None], actual.contrasts[None]
    if (
        not is_same_shape(expected.size, actual.size)
        or not match_colors(expected.means, expected.contrasts, *many)[0]
    ):
        return None
    return float(np.abs(expected.means.astype(np.float32) - actual.means.astype(np.float32)).mean())


# Addresses, digests and what was found out; every other column is emptied or made anew.
KEPT_COLUMNS = (
    *("id", "post_id", "post_urls", "author", "target", "prompt_spans", "prompt_modified"),
    *("prompt_fill_blank", "quality", "is_screenshot", "input_bboxs", "output_bboxs"),
    *("has_nsfw", "safety", "review", "doubts", "kind", "task", "sample_digest"),
)


def dehydrate_sample(
    row: Row,
    signatures: Mapping[str, str | None] | None = None,
    added: Mapping[str, ColumnEntry] | None = None,
) -> dict[str, Any]:
    """Return a sample without posted content, its images named with their signatures.

    Columns of other packages with words of posts are left out as well, which the provenance says.
    """
    texts = list_texts(added or {})

    def hash_text(text: str | None, known_digest: str | None) -> str | None:
        return known_digest if text is None else text_digest(text)

    return {
        **dict.fromkeys(SAMPLES.columns),
        **{name: row[name] for name in KEPT_COLUMNS},
        **{name: row[name] for name in ORIGIN_COLUMNS if name in row},
        **{name: None if name in texts else row[name] for name in added or ()},
        "prompt_sha256": hash_text(row["prompt"], row["prompt_sha256"]),
        "community_feedback": [
            {
                **comment,
                "feedback": None,
                "sha256": hash_text(comment["feedback"], comment["sha256"]),
            }
            for comment in row["community_feedback"] or []
        ],
        # A model's own words, unless it copied them: hydrating does not bring those back.
        "task_phrase": None
        if repeats_source([row["task_phrase"] or ""], [prompt_source(row["prompt"] or "")])
        else row["task_phrase"],
        "input_images": [],
        "output_images": [],
        "picture_sources": row["picture_sources"]
        and [
            {**source, "signature": (signatures or {}).get(source["sha256"], source["signature"])}
            for source in row["picture_sources"]
        ],
        "dehydrated": True,
        "provenance": note_left_out(
            remove_quotes(row["provenance"]), [name for name in texts if row[name] is not None]
        ),
    }


def list_texts(added: Mapping[str, ColumnEntry]) -> list[str]:
    return [name for name, entry in added.items() if entry.content == POST_TEXT]


def has_content(row: Row, added: Mapping[str, ColumnEntry]) -> bool:
    """Return whether a sample holds any posted content, whatever it says of itself."""
    comments = [comment["feedback"] for comment in row["community_feedback"] or []]
    names = (*PRIMARY_POST_COLUMNS, *list_texts(added))
    texts = [row["prompt"], *comments, *(row[name] for name in names)]
    has_text = any(text is not None for text in texts)
    return (
        has_text or bool(list_images(row)) or remove_quotes(row["provenance"]) != row["provenance"]
    )


def check_other_folder(release: Path, to: Path) -> None:
    check_replaceable(to.resolve(), NAMES)
    if release.resolve() == to.resolve():
        raise ReleaseError(
            f"{str(to)!r} is the release itself, which would be lost: name another folder"
        )


def dehydrate(release_path: Path, to: Path, *, rights: Mapping[str, str] | None = None) -> Release:
    """Write a release without the content that must not be redistributed."""
    check_other_folder(release_path, to)
    verify_release(release_path)
    release = read_release(release_path)
    facts = read_release_facts(release)
    facts = facts if rights is None else replace(facts, rights=dict(rights))
    place = to.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder:
        store, processes = ImageStore(Path(folder)), count_cores()
        samples, datasets = RestrictedSamples(facts.rights), dict[str, Dataset]()
        signatures: dict[str, str | None] = {}  # a sample may be in two configs
        left_out = {name: dict(counts) for name, counts in facts.left_out.items()}
        # The samples before what is beside them, which depends on all of them.
        for name in sorted(release.manifest.configs, key=lambda name: name not in POSTED_CONFIGS):
            table, counts = find_table(release, name), Counter[LeftOut]()
            file = store.root / f"{name}.arrow"
            if name in POSTED_CONFIGS:
                batches = _iterate_dehydrated(release, name, store, samples, signatures, processes)
                datasets[name] = store_batches(batches, table, file)
            else:
                public, counts = select_public_rows(
                    table.name, read_config_rows(release, name, store), samples
                )
                datasets[name] = store_table_rows(public, table, file)
            for reason, count in counts.items():
                earlier = left_out.setdefault(name, {}).get(reason.value, 0)
                # Silenced rows stay, and are counted again.
                recounts = reason is LeftOut.SILENCED
                left_out[name][reason.value] = max(earlier, count) if recounts else earlier + count
        facts = replace(facts, left_out=left_out)
        return write_release(to, datasets, store, facts, processes=processes)


RECENT = 4096  # signatures that each process has at hand, 3 KB each


def _iterate_dehydrated(
    release: Release,
    config: str,
    store: ImageStore,
    samples: RestrictedSamples,
    signatures: dict[str, str | None],
    processes: int,
) -> Iterator[pa.Table]:
    """Yield a config's rows for redistribution; collects samples and signatures."""
    added = release.manifest.columns if config in SAMPLE_CONFIGS else {}
    sign = functools.lru_cache(RECENT)(lambda digest: encode_signature(store.path(digest)))

    def process_part(part: RowGroups) -> tuple[pa.Buffer, RestrictedSamples, dict[str, str | None]]:
        noted, signed, rows = RestrictedSamples(samples.rights), dict[str, str | None](), []
        for row in read_config_rows(release, config, store, [part]):
            if noted.record_restriction(config, row):
                own = {
                    digest: signatures.get(digest) or sign(digest) for digest in list_images(row)
                }
                signed |= own
                rows.append(dehydrate_sample(row, own, added))
            else:
                rows.append(row)
        table = pa.Table.from_pylist(rows, find_table(release, config).schema)
        return table_bytes(table), noted, signed

    if release.manifest.configs[config].rows < MIN_PARALLEL_ROWS:
        processes = 1
    parts = split_row_groups(release, config)
    for _, outcome in fork_map(lambda: process_part, parts, processes, f"samples of {config!r}"):
        rows, noted, signed = outcome
        samples.add(noted)
        signatures |= signed
        yield pa.ipc.open_stream(rows).read_all()
