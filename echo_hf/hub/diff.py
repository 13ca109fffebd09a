"""Compare two releases: samples, causes of changes, drift, and comparability of scores."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from echo_hf.errors import ReleaseError, SpanError
from echo_hf.hub.check_changes import CheckChange, compare_checks
from echo_hf.hub.facts import (
    ALL,
    BENCHMARK_CONFIGS,
    CARRIED_CONFIGS,
    CONFIGS,
    SAMPLE_CONFIGS,
    ColumnEntry,
)
from echo_hf.hub.load import open_release
from echo_hf.hub.manifest import ConfigEntry, StageOrigin
from echo_hf.hub.redistribution import dehydrate_sample
from echo_hf.hub.release import (
    Release,
    check_ids,
    check_released,
    config_files,
    non_image_columns,
    read_config_rows,
    read_rows,
)
from echo_hf.reasons import Reason
from echo_hf.tables import CHECKS, SAMPLES, Row

StageOrigins = Mapping[str, StageOrigin]
ManifestPart = ConfigEntry | StageOrigin
DRIFTS = ("languages", "first bigrams", "tasks", "failure keywords")


class Cause(Reason):
    """Why a sample or a stage differs."""

    SOURCE = "source", "the posts or images that it names are others, or nothing else is"
    MODEL = "model", "a stage that made it has another engine, or the same with other settings"
    PROMPT = "prompt", "a stage that made it has other instructions"
    CODE_OR_OPTIONS = (
        "code_or_options",
        "a stage that made it has other code, options or another shape of answers",
    )
    STAGE = "stage", "a stage that made it is another, and the releases do not say in what"
    SELECTION = "selection", "it is equal, and in other configs"


@dataclass(frozen=True)
class StageChange:
    stage: str
    causes: tuple[Cause, ...]
    a: StageOrigin | None
    b: StageOrigin | None


@dataclass(frozen=True)
class ChangedShare:
    name: str
    a: int
    b: int
    change: float


@dataclass(frozen=True)
class Drift:
    distance: float | None
    a: int
    b: int
    movers: tuple[ChangedShare, ...] = ()


@dataclass(frozen=True)
class SharedSamples:
    """How many samples both have, and how many only one of two releases."""

    shared: int
    a: int
    b: int


@dataclass(frozen=True)
class Comparability:
    same_protocol: bool
    configs: Mapping[str, SharedSamples]

    def verdict(self, config: str) -> str:
        """Say in a sentence what may be compared on one config."""
        samples = self.configs[config]
        if not samples.shared:
            return "not comparable: no sample is in both"
        if not self.same_protocol:
            return "not comparable: the protocols differ; score both again by one"
        if samples.a or samples.b:
            text = f"comparable on the samples that both have ({samples.shared:,})"
            return f"{text}, once recomputed on those"
        return "comparable: the same samples under the same protocol"


@dataclass(frozen=True)
class ChangedSample:
    id: str
    columns: tuple[str, ...]
    causes: tuple[Cause, ...]
    left: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConfigChange:
    """Rows of one config in two releases, null where a release has no such config."""

    a: int | None
    b: int | None
    equal: bool


@dataclass(frozen=True)
class ReleaseDiff:
    a: str
    b: str
    targets: tuple[str, str]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ChangedSample, ...]
    equal: int
    remade: int
    configs: Mapping[str, ConfigChange]
    stages: tuple[StageChange, ...]
    drift: Mapping[str, Drift]
    scores: Comparability
    checks: tuple[CheckChange, ...] = ()

    @property
    def causes(self) -> dict[Cause, int]:
        """Number of changed samples by cause; a sample may have several."""
        counts = Counter(cause for sample in self.changed for cause in sample.causes)
        return {cause: counts[cause] for cause in Cause if cause in counts}

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain values that `json.dumps` takes."""
        values: dict[str, Any] = TypeAdapter(ReleaseDiff).dump_python(self, mode="json")
        values["causes"] = {str(cause): count for cause, count in self.causes.items()}
        for config, samples in values["scores"]["configs"].items():
            samples["verdict"] = self.scores.verdict(config)
        values["checks"] = [change.as_json() for change in self.checks]
        return values


def diff(a: Path | str, b: Path | str) -> ReleaseDiff:
    return compare_releases(open_release(a), open_release(b))


def compare_releases(a: Release, b: Release) -> ReleaseDiff:
    dehydrated_ids = {
        row["id"]
        for release in (a, b)
        if any(config.dehydrated for config in release.manifest.configs.values())
        for _, row in _read_samples(release)
        if row.get("dehydrated")
    }
    old, new = (_read_digests(release, dehydrated_ids) for release in (a, b))
    stages_a, stages_b = a.manifest.provenance, b.manifest.provenance
    shared = [name for name in new if name in old]
    changed = [
        change
        for name in shared
        if (change := _compare(name, old[name], new[name], stages_a, stages_b))
    ]
    equal = set(shared) - {change.id for change in changed}
    counts = zip(DRIFTS, _count(a, old.values()), _count(b, new.values()), strict=True)
    configs = {}
    for name in (name for name in CONFIGS if name not in CARRIED_CONFIGS):
        first, second = a.manifest.configs.get(name), b.manifest.configs.get(name)
        if first or second:
            old_rows, new_rows = first.rows if first else None, second.rows if second else None
            is_equal = not _is_different(first, second)
            configs[name] = ConfigChange(old_rows, new_rows, is_equal)
    return ReleaseDiff(
        a=a.manifest.name,
        b=b.manifest.name,
        targets=(a.manifest.target.name, b.manifest.target.name),
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(changed),
        equal=len(equal),
        remade=sum(old[name].provenance != new[name].provenance for name in equal),
        configs=configs,
        stages=tuple(_compare_stages(stages_a, stages_b)),
        drift={name: measure_drift(*pair) for name, *pair in counts},
        scores=Comparability(
            a.manifest.protocol == b.manifest.protocol,
            {name: _share(old, new, name) for name in BENCHMARK_CONFIGS},
        ),
        checks=compare_checks(*(read_config_rows(release, CHECKS.name) for release in (a, b))),
    )


def _compare_stages(a: StageOrigins, b: StageOrigins) -> Iterator[StageChange]:
    for name in {**b, **a}:
        old, new = a.get(name), b.get(name)
        if _is_different(old, new):
            # What collects the posts has their files in its digest.
            causes = (Cause.SOURCE,) if name == "collect" else _find_causes(old, new)
            yield StageChange(name, causes, old, new)


def _is_different(a: ManifestPart | None, b: ManifestPart | None) -> bool:
    return a is None or b is None or a.digest != b.digest


def _find_causes(a: StageOrigin | None, b: StageOrigin | None) -> tuple[Cause, ...]:
    if a is None or b is None:
        return ()
    known_prompts = a.prompt is not None and b.prompt is not None
    model = (Cause.MODEL,) if a.engine != b.engine else ()
    prompt = (Cause.PROMPT,) if known_prompts and a.prompt != b.prompt else ()
    no_prompt = a.prompt is None and b.prompt is None and a.engine is None
    return (*model, *prompt) or (
        (Cause.CODE_OR_OPTIONS,) if known_prompts or no_prompt else (Cause.STAGE,)
    )


# Chinese characters and Japanese syllables: scripts that put no space between words.
UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
MAX_PROMPT_CHARACTERS = 1_000_000
MAX_START_CHARACTERS = 1000  # in which two words are looked for
TOKEN = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}_])\w)+")


def measure_drift(a: Mapping[str, int], b: Mapping[str, int]) -> Drift:
    """Measure the total variation distance of two counts, null where one is empty."""
    size_a, size_b = sum(a.values()), sum(b.values())
    if not (size_a and size_b):
        return Drift(None, size_a, size_b)
    counts = [(name, a.get(name, 0), b.get(name, 0)) for name in {**a, **b}]
    movers = [
        ChangedShare(name, old, new, new / size_b - old / size_a) for name, old, new in counts
    ]
    movers.sort(key=lambda mover: (-abs(mover.change), mover.name))
    distance = sum(abs(mover.change) for mover in movers) / 2
    return Drift(distance, size_a, size_b, tuple(mover for mover in movers if mover.change))


def first_bigram(prompt: str) -> str | None:
    """Return the first two words of a prompt, in lower case."""
    matches = TOKEN.finditer(prompt[:MAX_START_CHARACTERS])
    words = [match[0].casefold() for match, _ in zip(matches, range(2), strict=False)]
    return " ".join(words) if len(words) == 2 else None


@dataclass(frozen=True, slots=True)
class SampleDigests:
    """Digests of a sample's columns, and the values that are counted."""

    columns: Mapping[str, bytes]
    sources: bytes
    provenance: str | None
    sample_digest: str | None
    bigram: str | None
    task: str | None
    keywords: tuple[str, ...]
    configs: list[str] = field(default_factory=list)


def _read_samples(release: Release) -> Iterator[tuple[str, Row]]:
    """Yield the samples of a release with their configs, without image bytes."""
    for config in SAMPLE_CONFIGS:
        ids: set[Any] = set()
        for path in config_files(release, config):

            def choose_columns(schema: pa.Schema, path: Path = path) -> list[str]:
                check_released(path, schema, SAMPLES, needed=["id"])  # older ones lack some
                return non_image_columns(schema)

            for row in read_rows(path, choose_columns):
                check_ids(path, [row["id"]], ids)
                if len(row.get("prompt") or "") > MAX_PROMPT_CHARACTERS:
                    raise ReleaseError(
                        f"{str(path)!r}: the prompt of sample {row['id']!r} has "
                        f"{len(row['prompt']):,} characters, expected at most "
                        f"{MAX_PROMPT_CHARACTERS:,}: it is no release of echo-hf"
                    )
                yield config, row


def _read_digests(release: Release, dehydrated_ids: Collection[str]) -> dict[str, SampleDigests]:
    """Read the samples of a release; dehydrated ones without posted content."""
    views: dict[str, SampleDigests] = {}
    for config, row in _read_samples(release):
        if row["id"] not in views:
            columns = release.manifest.columns
            kept_row = _strip_content(row, columns) if row["id"] in dehydrated_ids else row
            comments = kept_row.get("community_feedback") or []
            # Counts of a post grow by themselves.
            names = (name for name in kept_row if name not in ("provenance", "engagement"))
            views[row["id"]] = SampleDigests(
                columns={name: _hash_value(kept_row[name]) for name in names},
                sources=_hash_value(sorted(set(_list_sources(kept_row)))),
                provenance=kept_row.get("provenance"),
                sample_digest=kept_row.get("sample_digest"),
                bigram=first_bigram(kept_row.get("prompt") or ""),
                task=kept_row.get("task"),
                keywords=tuple(
                    comment["keyword"] for comment in comments if comment.get("keyword")
                ),
            )
        views[row["id"]].configs.append(config)
    return views


def _strip_content(row: Row, added: Mapping[str, ColumnEntry]) -> Row:
    try:
        columns = dict.fromkeys((*SAMPLES.columns, *added))
        clean = dehydrate_sample({**columns, **row}, added=added)
    except SpanError:  # nobody knows what it quotes
        return row
    clean["picture_sources"] = [
        {**source, "signature": None} for source in clean["picture_sources"] or []
    ]
    return {name: value for name, value in clean.items() if name in row}


def _list_sources(row: Row) -> Iterator[str]:
    urls = [comment.get("post_url") for comment in row.get("community_feedback") or []]
    yield from filter(None, [*(row.get("post_urls") or []), *urls])
    if row.get("dehydrated"):
        yield from (source["sha256"] for source in row.get("picture_sources") or [])
    for column in SAMPLES.images:
        value = row.get(column)
        for image in value if isinstance(value, list) else [value]:
            if image:
                yield json.dumps(image, sort_keys=True)


def _hash_value(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _compare(
    name: str, a: SampleDigests, b: SampleDigests, stages_a: StageOrigins, stages_b: StageOrigins
) -> ChangedSample | None:
    columns = tuple(
        column
        for column in b.columns
        if a.columns.get(column, b.columns[column]) != b.columns[column]
    )
    left = tuple(config for config in a.configs if config not in b.configs)
    joined = tuple(config for config in b.configs if config not in a.configs)
    if not (columns or left or joined):
        return None
    causes_found = set() if a.sources == b.sources else {Cause.SOURCE}
    old, new = _read_origins(a.provenance, stages_a), _read_origins(b.provenance, stages_b)
    for stage in {**old, **new}:
        if _is_different(old.get(stage), new.get(stage)):
            causes_found.update(_find_causes(old.get(stage), new.get(stage)) or {Cause.STAGE})
    causes = tuple(cause for cause in Cause if cause in causes_found) or (Cause.SOURCE,)
    return ChangedSample(name, columns, causes if columns else (Cause.SELECTION,), left, joined)


def _read_origins(provenance: str | None, stages: StageOrigins) -> dict[str, StageOrigin]:
    """Return the stages that made a sample, with their prompts where known."""
    parsed = None
    with suppress(ValueError):
        parsed = json.loads(provenance or "{}")
    origins: dict[str, StageOrigin] = {}
    for name, origin in parsed.items() if isinstance(parsed, dict) else ():
        if isinstance(origin, dict) and "digest" in origin:
            digest, engine, stage = origin["digest"], origin.get("engine"), stages.get(name)
            origins[name] = StageOrigin.model_construct(
                digest=str(digest),
                engine=engine if isinstance(engine, dict) else None,
                # A row that an earlier run made may have had other instructions than the stage now.
                prompt=stage.prompt if stage and stage.digest == digest else None,
            )
    return origins


def _count(release: Release, views: Iterable[SampleDigests]) -> list[Mapping[str, int]]:
    measured = release.stats["measured"].get(ALL)
    samples = list(views)
    return [
        measured["languages"] if measured else {},
        Counter(view.bigram for view in samples if view.bigram),
        Counter(view.task for view in samples if view.task),
        Counter(keyword for view in samples for keyword in view.keywords),
    ]


def _share(
    a: Mapping[str, SampleDigests], b: Mapping[str, SampleDigests], config: str
) -> SharedSamples:
    old, new = (
        {
            (name, view.sample_digest)
            for name, view in views.items()
            if config in view.configs and view.sample_digest is not None
        }
        for views in (a, b)
    )
    return SharedSamples(len(old & new), len(old - new), len(new - old))
