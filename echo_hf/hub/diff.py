"""Two releases compared: samples, what made the difference, drift, and whether scores compare."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from echo_hf.hub.comparability import Comparability, comparability
from echo_hf.hub.configs import CONFIGS
from echo_hf.hub.diff_causes import Cause, StageChange, causes_of, changed_columns, stage_changes
from echo_hf.hub.diff_rows import SampleView, dehydrated_ids, sample_views
from echo_hf.hub.drift import Drift, drift
from echo_hf.hub.manifest import Manifest
from echo_hf.hub.measured import ALL
from echo_hf.hub.references import release_at
from echo_hf.hub.release import Release

Views = Mapping[str, SampleView]
DRIFTS = ("languages", "first bigrams", "tasks", "failure keywords")


@dataclass(frozen=True)
class ChangedSample:
    """A sample that both releases have, and that differs.

    Attributes:
        id: The sample.
        columns: The columns whose values differ.
        causes: What made the difference.
        left: Configs of the first release that it is in no more.
        joined: Configs of the second release that it was not in.
    """

    id: str
    columns: tuple[str, ...]
    causes: tuple[Cause, ...]
    left: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConfigChange:
    """Rows of one config in two releases, null where a release has no such config.

    Attributes:
        a: Rows in the first.
        b: Rows in the second.
        equal: Whether both hold the same rows.
    """

    a: int | None
    b: int | None
    equal: bool


@dataclass(frozen=True)
class ReleaseDiff:
    """Two releases compared.

    Attributes:
        a: Name of the first.
        b: Name of the second.
        targets: Names of their targets.
        added: Ids of samples that only the second has.
        removed: Ids of samples that only the first has.
        changed: Samples that both have and that differ.
        equal: How many samples are equal in both.
        remade: How many of the equal ones were made anew: only their `provenance` differs.
        configs: Rows of each config.
        stages: Stages that differ.
        drift: Drift of languages, first bigrams, tasks and failure keywords, by name.
        scores: Whether scores may be compared.
    """

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

    def text(self) -> str:
        """The whole comparison as indented JSON."""
        return json.dumps(self.as_json(), indent=1, ensure_ascii=False) + "\n"


def diff(a: Path | str, b: Path | str) -> ReleaseDiff:
    """Compares two releases, without reading a picture.

    Args:
        a: The first release, such as the one that was published last.
        b: The second.

    Returns:
        What differs.

    Raises:
        ReleaseError: One of them is no release, or cannot be read.
    """
    return compare(release_at(a), release_at(b))


def compare(a: Release, b: Release) -> ReleaseDiff:
    """Compares two opened releases, without reading a picture.

    Args:
        a: The first.
        b: The second.

    Returns:
        What differs.

    Raises:
        ReleaseError: One of them cannot be read.
    """
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
