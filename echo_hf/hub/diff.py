"""Two releases compared: samples, what made the difference, drift, and whether scores compare."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from echo_hf.hub.diff_rows import (
    Comparability,
    Drift,
    SampleView,
    comparability,
    dehydrated_ids,
    drift,
    sample_views,
)
from echo_hf.hub.facts import ALL, CONFIGS
from echo_hf.hub.load import release_at
from echo_hf.hub.manifest import Manifest, StageOrigin
from echo_hf.hub.release import Release

COLLECT = "collect"
Origins = Mapping[str, StageOrigin]


class Cause(StrEnum):
    SOURCE = "source"
    MODEL = "model"
    PROMPT = "prompt"
    CODE = "code_or_options"
    STAGE = "stage"
    SELECTION = "selection"

    @property
    def meaning(self) -> str:
        return MEANINGS[self]


MEANINGS: Mapping[Cause, str] = {
    Cause.SOURCE: "the posts or images that it names are others, or nothing else is",
    Cause.MODEL: "a stage that made it has another engine, or the same with other settings",
    Cause.PROMPT: "a stage that made it has other instructions",
    Cause.CODE: "a stage that made it has other code, options or another shape of answers",
    Cause.STAGE: "a stage that made it is another, and the releases do not say in what",
    Cause.SELECTION: "it is equal, and in other configs",
}


@dataclass(frozen=True)
class StageChange:
    stage: str
    causes: tuple[Cause, ...]
    a: StageOrigin | None
    b: StageOrigin | None


def stage_changes(a: Origins, b: Origins) -> tuple[StageChange, ...]:
    pairs = {name: (a.get(name), b.get(name)) for name in {**b, **a}}
    return tuple(
        # What collects the posts has their files in its digest.
        StageChange(name, (Cause.SOURCE,) if name == COLLECT else _stage_causes(*pair), *pair)
        for name, pair in pairs.items()
        if _differs(*pair)
    )


def causes_of(a: SampleView, b: SampleView, before: Origins, now: Origins) -> tuple[Cause, ...]:
    if not changed_columns(a, b):
        return (Cause.SELECTION,)
    found = set() if a.sources == b.sources else {Cause.SOURCE}
    old, new = _made_by(a.provenance, before), _made_by(b.provenance, now)
    for stage in {**old, **new}:
        if _differs(old.get(stage), new.get(stage)):
            found.update(_stage_causes(old.get(stage), new.get(stage)) or {Cause.STAGE})
    return tuple(cause for cause in Cause if cause in found) or (Cause.SOURCE,)


def changed_columns(a: SampleView, b: SampleView) -> tuple[str, ...]:
    old, new = a.columns, b.columns
    return tuple(name for name in new if name in old and old[name] != new[name])


def _differs(a: StageOrigin | None, b: StageOrigin | None) -> bool:
    return a is None or b is None or a.digest != b.digest


def _stage_causes(a: StageOrigin | None, b: StageOrigin | None) -> tuple[Cause, ...]:
    if a is None or b is None:
        return ()
    model = (Cause.MODEL,) if a.engine != b.engine else ()
    known = a.prompt is not None and b.prompt is not None
    prompt = (Cause.PROMPT,) if known and a.prompt != b.prompt else ()
    if model or prompt:
        return (*model, *prompt)
    no_prompt = a.prompt is None and b.prompt is None and a.engine is None
    return (Cause.CODE,) if known or no_prompt else (Cause.STAGE,)


def _made_by(provenance: str | None, stages: Origins) -> dict[str, StageOrigin]:
    """The stages that made a sample, with their prompts where the release knows them."""
    made: dict[str, StageOrigin] = {}
    for name, said in _parsed(provenance).items():
        if isinstance(said, dict) and "digest" in said:
            made[name] = _origin(said, stages.get(name))
    return made


def _origin(said: Mapping[str, Any], stage: StageOrigin | None) -> StageOrigin:
    digest, engine = said.get("digest"), said.get("engine")
    # A row that an earlier run made may have had other instructions than the stage has now.
    known = stage.prompt if stage and stage.digest == digest else None
    plain = engine if isinstance(engine, dict) else None
    return StageOrigin.model_construct(digest=str(digest), engine=plain, prompt=known)


def _parsed(provenance: str | None) -> dict[str, Any]:
    try:
        found = json.loads(provenance or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


Views = Mapping[str, SampleView]
DRIFTS = ("languages", "first bigrams", "tasks", "failure keywords")


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
    """Two releases compared."""

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
        plain = asdict(self)
        plain["stages"] = [
            {
                "stage": change.stage,
                "causes": list(change.causes),
                "a": change.a and change.a.model_dump(mode="json"),
                "b": change.b and change.b.model_dump(mode="json"),
            }
            for change in self.stages
        ]
        plain["causes"] = {str(cause): count for cause, count in self.causes.items()}
        for config, found in plain["scores"]["configs"].items():
            found["verdict"] = self.scores.verdict(config)
        return plain


def diff(a: Path | str, b: Path | str) -> ReleaseDiff:
    """Compares two releases, without reading an image."""
    return compare(release_at(a), release_at(b))


def compare(a: Release, b: Release) -> ReleaseDiff:
    """Compares two opened releases, without reading an image."""
    silent = dehydrated_ids(a.path, _files(a)) | dehydrated_ids(b.path, _files(b))
    old, new = (sample_views(one.path, _files(one), silent) for one in (a, b))
    origins = a.manifest.provenance, b.manifest.provenance
    both = [name for name in new if name in old]
    changed = [_changed(name, old[name], new[name], *origins) for name in both]
    remade = [
        name
        for name, found in zip(both, changed, strict=True)
        if found is None and old[name].provenance != new[name].provenance
    ]
    return ReleaseDiff(
        a=a.manifest.name,
        b=b.manifest.name,
        targets=(a.manifest.target.name, b.manifest.target.name),
        added=tuple(sorted(set(new) - set(old))),
        removed=tuple(sorted(set(old) - set(new))),
        changed=tuple(found for found in changed if found),
        equal=changed.count(None),
        remade=len(remade),
        configs=_configs(a.manifest, b.manifest),
        stages=stage_changes(*origins),
        drift=dict(zip(DRIFTS, _drifts(a, b, old.values(), new.values()), strict=True)),
        scores=comparability(old, new, same_protocol=a.manifest.protocol == b.manifest.protocol),
    )


def _files(release: Release) -> dict[str, list[str]]:
    configs = release.manifest.configs.items()
    return {name: [file.path for file in entry.files] for name, entry in configs}


def _changed(
    name: str, a: SampleView, b: SampleView, before: Mapping[str, Any], now: Mapping[str, Any]
) -> ChangedSample | None:
    columns = changed_columns(a, b)
    left = tuple(config for config in a.configs if config not in b.configs)
    joined = tuple(config for config in b.configs if config not in a.configs)
    if not (columns or left or joined):
        return None
    return ChangedSample(name, columns, causes_of(a, b, before, now), left, joined)


def _configs(a: Manifest, b: Manifest) -> dict[str, ConfigChange]:
    held = {**b.configs, **a.configs}
    names = [*filter(held.__contains__, CONFIGS), *(name for name in held if name not in CONFIGS)]
    pairs = {name: (a.configs.get(name), b.configs.get(name)) for name in names}
    return {
        name: ConfigChange(
            old.rows if old else None,
            new.rows if new else None,
            bool(old and new and old.digest == new.digest),
        )
        for name, (old, new) in pairs.items()
    }


def _drifts(
    a: Release, b: Release, old: Iterable[SampleView], new: Iterable[SampleView]
) -> list[Drift]:
    counted = [(_languages(release), *_counts(views)) for release, views in ((a, old), (b, new))]
    return [drift(*pair) for pair in zip(*counted, strict=True)]


def _languages(release: Release) -> Mapping[str, int]:
    measured = release.stats["measured"].get(ALL)
    return measured["languages"] if measured else {}


def _counts(views: Iterable[SampleView]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    bigrams: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    keywords: Counter[str] = Counter()
    for view in views:
        bigrams.update(filter(None, [view.bigram]))
        tasks.update(filter(None, [view.task]))
        keywords.update(view.keywords)
    return bigrams, tasks, keywords
