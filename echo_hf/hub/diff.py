"""Two releases compared: samples, what made the difference, drift, and whether scores compare."""

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
from echo_hf.hub.facts import ALL, BENCHMARK_CONFIGS, CONFIGS, SAMPLE_CONFIGS
from echo_hf.hub.load import release_at
from echo_hf.hub.manifest import ConfigEntry, StageOrigin
from echo_hf.hub.redistribution import dehydrated
from echo_hf.hub.release import (
    Release,
    check_ids,
    check_released,
    files_of,
    read_rows,
    without_images,
)
from echo_hf.reasons import Reason
from echo_hf.tables import SAMPLES

Row = Mapping[str, Any]
Origins = Mapping[str, StageOrigin]
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
class Mover:
    name: str
    a: int
    b: int
    change: float


@dataclass(frozen=True)
class Drift:
    distance: float | None
    a: int
    b: int
    movers: tuple[Mover, ...] = ()


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
        """What may be compared on one config, in a sentence."""
        found = self.configs[config]
        if not found.shared:
            return "not comparable: no sample is in both"
        if not self.same_protocol:
            return "not comparable: the protocols differ; score both again by one"
        if found.a or found.b:
            said = f"comparable on the samples that both have ({found.shared:,})"
            return f"{said}, once recomputed on those"
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

    @property
    def causes(self) -> dict[Cause, int]:
        """How many changed samples have each cause; one may have several."""
        counts = Counter(cause for sample in self.changed for cause in sample.causes)
        return {cause: counts[cause] for cause in Cause if cause in counts}

    def as_json(self) -> dict[str, Any]:
        """The whole comparison as plain values that `json.dumps` takes."""
        plain: dict[str, Any] = TypeAdapter(ReleaseDiff).dump_python(self, mode="json")
        plain["causes"] = {str(cause): count for cause, count in self.causes.items()}
        for config, found in plain["scores"]["configs"].items():
            found["verdict"] = self.scores.verdict(config)
        return plain


def diff(a: Path | str, b: Path | str) -> ReleaseDiff:
    return compare(release_at(a), release_at(b))


def compare(a: Release, b: Release) -> ReleaseDiff:
    silent = {
        row["id"]
        for release in (a, b)
        if any(config.dehydrated for config in release.manifest.configs.values())
        for _, row in _samples(release)
        if row.get("dehydrated")
    }
    old, new = (_views(release, silent) for release in (a, b))
    before, now = a.manifest.provenance, b.manifest.provenance
    both = [name for name in new if name in old]
    changed = [one for name in both if (one := _changed(name, old[name], new[name], before, now))]
    kept = set(both) - {one.id for one in changed}
    counts = zip(DRIFTS, _counts(a, old.values()), _counts(b, new.values()), strict=True)
    held_a, held_b = a.manifest.configs, b.manifest.configs
    return ReleaseDiff(
        a=a.manifest.name,
        b=b.manifest.name,
        targets=(a.manifest.target.name, b.manifest.target.name),
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(changed),
        equal=len(kept),
        remade=sum(old[name].provenance != new[name].provenance for name in kept),
        configs={
            name: _config_change(held_a.get(name), held_b.get(name))
            for name in CONFIGS
            if name in held_a or name in held_b
        },
        stages=tuple(_stages(before, now)),
        drift={name: drift(*pair) for name, *pair in counts},
        scores=Comparability(
            a.manifest.protocol == b.manifest.protocol,
            {name: _shared(old, new, name) for name in BENCHMARK_CONFIGS},
        ),
    )


def _config_change(a: ConfigEntry | None, b: ConfigEntry | None) -> ConfigChange:
    is_equal = a is not None and b is not None and a.digest == b.digest
    return ConfigChange(a.rows if a else None, b.rows if b else None, is_equal)


def _stages(a: Origins, b: Origins) -> Iterator[StageChange]:
    for name in {**b, **a}:
        old, new = a.get(name), b.get(name)
        if _differs(old, new):
            # What collects the posts has their files in its digest.
            causes = (Cause.SOURCE,) if name == "collect" else _stage_causes(old, new)
            yield StageChange(name, causes, old, new)


def _differs(a: StageOrigin | None, b: StageOrigin | None) -> bool:
    return a is None or b is None or a.digest != b.digest


def _stage_causes(a: StageOrigin | None, b: StageOrigin | None) -> tuple[Cause, ...]:
    if a is None or b is None:
        return ()
    known = a.prompt is not None and b.prompt is not None
    model = (Cause.MODEL,) if a.engine != b.engine else ()
    prompt = (Cause.PROMPT,) if known and a.prompt != b.prompt else ()
    no_prompt = a.prompt is None and b.prompt is None and a.engine is None
    return (*model, *prompt) or ((Cause.CODE_OR_OPTIONS,) if known or no_prompt else (Cause.STAGE,))


# Chinese characters and Japanese syllables: scripts that put no space between words.
UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
LONGEST_PROMPT = 1_000_000
LONGEST_START = 1000  # in which two words are looked for
TOKEN = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}_])\w)+")


def drift(a: Mapping[str, int], b: Mapping[str, int]) -> Drift:
    """The total variation distance of two counts, null where one is empty."""
    size_a, size_b = sum(a.values()), sum(b.values())
    if not (size_a and size_b):
        return Drift(None, size_a, size_b)
    counts = [(name, a.get(name, 0), b.get(name, 0)) for name in {**a, **b}]
    moved = [Mover(name, old, new, new / size_b - old / size_a) for name, old, new in counts]
    moved.sort(key=lambda mover: (-abs(mover.change), mover.name))
    distance = sum(abs(mover.change) for mover in moved) / 2
    return Drift(distance, size_a, size_b, tuple(mover for mover in moved if mover.change))


def first_bigram(prompt: str) -> str | None:
    """The first two words of a prompt, in lower case."""
    found = TOKEN.finditer(prompt[:LONGEST_START])
    words = [match[0].casefold() for match, _ in zip(found, range(2), strict=False)]
    return " ".join(words) if len(words) == 2 else None


@dataclass(frozen=True, slots=True)
class SampleView:
    """A sample as a comparison needs it: a digest of each column, and what is counted."""

    columns: Mapping[str, bytes]
    sources: bytes
    provenance: str | None
    sample_digest: str | None
    bigram: str | None
    task: str | None
    keywords: tuple[str, ...]
    configs: list[str] = field(default_factory=list)


def _samples(release: Release) -> Iterator[tuple[str, Row]]:
    """The samples of a release with their configs, without the bytes of their images."""
    for config in SAMPLE_CONFIGS:
        ids: set[Any] = set()
        for path in files_of(release, config):

            def columns(schema: pa.Schema, path: Path = path) -> list[str]:
                check_released(path, schema, SAMPLES, needed=["id"])  # older ones lack some
                return without_images(schema)

            for row in read_rows(path, columns):
                check_ids(path, [row["id"]], ids)
                if len(row.get("prompt") or "") > LONGEST_PROMPT:
                    raise ReleaseError(
                        f"{str(path)!r}: the prompt of sample {row['id']!r} has "
                        f"{len(row['prompt']):,} characters, expected at most {LONGEST_PROMPT:,}: "
                        "it is no release of echo-hf"
                    )
                yield config, row


def _views(release: Release, silent: Collection[str]) -> dict[str, SampleView]:
    """The samples of a release; of those that are dehydrated in one, without posted content."""
    views: dict[str, SampleView] = {}
    for config, row in _samples(release):
        if row["id"] not in views:
            seen = _without_content(row) if row["id"] in silent else row
            said = seen.get("community_feedback") or []
            # Counts of a post grow by themselves.
            names = (name for name in seen if name not in ("provenance", "engagement"))
            views[row["id"]] = SampleView(
                columns={name: _digest(seen[name]) for name in names},
                sources=_digest(sorted(set(_sources(seen)))),
                provenance=seen.get("provenance"),
                sample_digest=seen.get("sample_digest"),
                bigram=first_bigram(seen.get("prompt") or ""),
                task=seen.get("task"),
                keywords=tuple(one["keyword"] for one in said if one.get("keyword")),
            )
        views[row["id"]].configs.append(config)
    return views


def _without_content(row: Row) -> Row:
    try:
        bare = dehydrated({**dict.fromkeys(SAMPLES.columns), **row})
    except SpanError:  # nobody knows what it quotes
        return row
    bare["picture_sources"] = [{**one, "signature": None} for one in bare["picture_sources"] or []]
    return {name: value for name, value in bare.items() if name in row}


def _sources(row: Row) -> Iterator[str]:
    said = [one.get("post_url") for one in row.get("community_feedback") or []]
    yield from filter(None, [*(row.get("post_urls") or []), *said])
    if row.get("dehydrated"):
        yield from (one["sha256"] for one in row.get("picture_sources") or [])
    for column in SAMPLES.images:
        value = row.get(column)
        for image in value if isinstance(value, list) else [value]:
            if image:
                yield json.dumps(image, sort_keys=True)


def _digest(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _changed(
    name: str, a: SampleView, b: SampleView, before: Origins, now: Origins
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
    found = set() if a.sources == b.sources else {Cause.SOURCE}
    old, new = _made_by(a.provenance, before), _made_by(b.provenance, now)
    for stage in {**old, **new}:
        if _differs(old.get(stage), new.get(stage)):
            found.update(_stage_causes(old.get(stage), new.get(stage)) or {Cause.STAGE})
    causes = tuple(cause for cause in Cause if cause in found) or (Cause.SOURCE,)
    return ChangedSample(name, columns, causes if columns else (Cause.SELECTION,), left, joined)


def _made_by(provenance: str | None, stages: Origins) -> dict[str, StageOrigin]:
    """The stages that made a sample, with their prompts where the release knows them."""
    parsed = None
    with suppress(ValueError):
        parsed = json.loads(provenance or "{}")
    made: dict[str, StageOrigin] = {}
    for name, said in parsed.items() if isinstance(parsed, dict) else ():
        if isinstance(said, dict) and "digest" in said:
            digest, engine, stage = said["digest"], said.get("engine"), stages.get(name)
            made[name] = StageOrigin.model_construct(
                digest=str(digest),
                engine=engine if isinstance(engine, dict) else None,
                # A row that an earlier run made may have had other instructions than the stage now.
                prompt=stage.prompt if stage and stage.digest == digest else None,
            )
    return made


def _counts(release: Release, views: Iterable[SampleView]) -> list[Mapping[str, int]]:
    measured = release.stats["measured"].get(ALL)
    every = list(views)
    return [
        measured["languages"] if measured else {},
        Counter(view.bigram for view in every if view.bigram),
        Counter(view.task for view in every if view.task),
        Counter(keyword for view in every for keyword in view.keywords),
    ]


def _shared(a: Mapping[str, SampleView], b: Mapping[str, SampleView], config: str) -> SharedSamples:
    old, new = (
        {
            (name, view.sample_digest)
            for name, view in views.items()
            if config in view.configs and view.sample_digest is not None
        }
        for views in (a, b)
    )
    return SharedSamples(len(old & new), len(old - new), len(new - old))
