"""Ratings of several releases joined, so that all systems ever rated stand on one scale."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import inf

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.text import clean, format_rounded, percent, pluralize
from echo_hf.config.checks import ModelIdentity
from echo_hf.scores.rating_table import PROVENANCE, RUBRIC
from echo_hf.scores.ruler import Change, Ruler, ruler
from echo_hf.tables import Row

MIN_SYSTEMS = 2
COLUMNS = ("sample_id", "sample_digest", "system", "judge", "repeat", "rating", "prompt_digest")


@dataclass(frozen=True)
class RatedRelease:
    """The ratings of a release's own samples, and of older samples that it carries.

    Attributes:
        name: The tag, or what the release calls itself.
        released: The day on which the model came out that its posts are about.
        ratings: Ratings of its own samples, with their split.
        carried: Ratings by its judges of samples of other releases, which `release` names.
        models: The models behind the names of `systems` and `judges`.
    """

    name: str
    released: datetime.date | None
    ratings: pa.Table | None
    carried: pa.Table | None = None
    models: Mapping[str, Mapping[str, ModelIdentity]] = field(default_factory=dict)

    def iterate_ratings(self, split: str) -> Iterator[Row]:
        """Yield a split's overall ratings; a sample that is its own and carried is its own."""
        own_ids = set[str]()
        seen = set[tuple[object, ...]]()
        for table in (self.ratings, self.carried):
            if table is None:
                continue
            wanted = (*COLUMNS, PROVENANCE, "release")
            columns = [name for name in wanted if name in table.column_names]
            chosen = (pc.field("rubric") == RUBRIC) & (pc.field("split") == split)
            for row in table.filter(chosen).select(columns).to_pylist():
                key = tuple(row[name] for name in COLUMNS[:5])
                if key not in seen:
                    seen.add(key)
                    carried_from = row.pop("release", None)
                    if table is self.ratings:
                        own_ids.add(row["sample_id"])
                        carried_from = None
                    is_own = row["sample_id"] in own_ids
                    yield {**row, "carried_from": None if is_own else carried_from}


def sort_by_age(releases: Iterable[RatedRelease]) -> list[RatedRelease]:
    """Sort releases by the day on which their models came out; of one day what is carried first.

    Others keep their order.
    """
    known = [*releases]
    carried = {
        name
        for release in known
        if release.carried is not None
        for name in release.carried["release"].unique().to_pylist()
    }
    return sorted(
        known,
        key=lambda release: (release.released or datetime.date.max, release.name not in carried),
    )


def join_ratings(releases: Sequence[RatedRelease], split: str) -> list[Row]:
    """Join the ratings of releases, oldest first, as rows for the ruler.

    A name stands for one thing: a system or judge that is another model by now, a judge with other
    instructions, and a sample with another prompt have the release in their name.
    """
    rows = {release.name: list(release.iterate_ratings(split)) for release in releases}
    names: dict[str, dict[tuple[str, str], str]] = {}
    for kind in ("system", "judge"):
        names[kind] = _name_by_identity(releases, rows, kind)
    newest_digest = dict[str, str | None]()
    for release in reversed(releases):
        for row in rows[release.name]:
            newest_digest.setdefault(row["sample_id"], row["sample_digest"])
    joined, seen = list[Row](), set[tuple[object, ...]]()
    for release in releases:
        # What is carried is older than what carries it, which is how the ruler sees their order.
        for row in sorted(rows[release.name], key=lambda row: row["carried_from"] is None):
            sample, digest = row["sample_id"], row["sample_digest"]
            if None not in (digest, known := newest_digest[sample]) and digest != known:
                sample = f"{sample} ({digest[:8]})"
            system = names["system"][release.name, row["system"]]
            judge = names["judge"][release.name, row["judge"]]
            # One system may be carried from two releases, which share a sample.
            if (key := (release.name, sample, system, judge, row["repeat"])) in seen:
                continue
            seen.add(key)
            joined.append(
                {
                    "sample_id": sample,
                    "system": system,
                    "judge": judge,
                    "rubric": RUBRIC,
                    "repeat": row["repeat"],
                    "rating": row["rating"],
                    PROVENANCE: row.get(PROVENANCE),
                    "release": release.name,
                    "carried_from": row["carried_from"],
                }
            )
    return joined


def _name_by_identity(
    releases: Sequence[RatedRelease], rows: Mapping[str, Sequence[Row]], kind: str
) -> dict[tuple[str, str], str]:
    """Return the name of each release's system or judge: the plain one is the newest's."""
    instructions = dict[tuple[str, str], set[str]]()
    for release in reversed(releases):
        for row in rows[release.name]:
            own = instructions.setdefault((release.name, row[kind]), set())
            if kind == "judge" and row["prompt_digest"]:
                own.add(row["prompt_digest"])
    # What a release carries as `NAME (TAG)` is NAME of TAG, and was found to be no other's NAME.
    origins = dict[tuple[str, str], tuple[str, str]]()
    apart = dict[tuple[str, str], list[tuple[str, str]]]()
    for carrier, name in instructions if kind == "system" else ():
        base, _, tag = name.removesuffix(")").rpartition(" (")
        if name == f"{base} ({tag})" and tag != carrier and (tag, base) in instructions:
            origins[carrier, name] = tag, base
            apart.setdefault((tag, base), []).append((carrier, base))
    known = dict[str, list[tuple[str, str | None, set[str]]]]()
    models = {release.name: release.models.get(f"{kind}s", {}) for release in releases}
    labels = dict[tuple[str, str], str]()
    for key in [key for key in instructions if key not in origins]:
        (tag, name), own = key, instructions[key]
        model = models[tag].get(name, ModelIdentity()).model
        identities = known.setdefault(name, [])
        others = {labels.get(other) for other in apart.get(key, ())}
        labels[key] = name if not identities else f"{name} ({tag})"
        for other_label, other_model, theirs in identities:
            is_same_model = None in (model, other_model) or model == other_model
            is_same_model = is_same_model and other_label not in others
            if is_same_model and not (own and theirs and own.isdisjoint(theirs)):
                labels[key] = other_label
                break
        else:
            identities.append((labels[key], model, own))
    for key in origins:
        origin = key
        while origin in origins:
            origin = origins[origin]
        labels[key] = labels[origin]
    return labels


def measure_splits(
    releases: Sequence[RatedRelease], splits: Sequence[str], at: str | None = None
) -> dict[str, Ruler]:
    """Put all systems of releases, oldest first, on one scale for each split with ratings."""
    rulers = dict[str, Ruler]()
    for split in splits:
        rows = join_ratings(releases, split)
        if len({row["system"] for row in rows}) >= MIN_SYSTEMS:
            rulers[split] = ruler(pa.Table.from_pylist(rows), at=at)
    return rulers


MAX_NAME = 40
LINKS = {"common": "common samples", "path": "a path of these", "bridges": "bridges"}


def rank_systems(scale: Ruler) -> list[str]:
    """Return the systems by strength, the best first; those without one come last."""
    return sorted(
        scale.strength, key=lambda name: inf if (value := scale.strength[name]) is None else -value
    )


def describe_ruler(scale: Ruler) -> list[str]:
    """Say in a sentence each what the scale rests on, how hard releases are, what judges did."""
    names = rank_systems(scale)
    pairs = [scale.difference(first, second) for first, second in combinations(names, 2)]
    counts = [
        f"{sum(pair.how == how for pair in pairs):,} by {text}"
        for how, text in LINKS.items()
        if any(pair.how == how for pair in pairs)
    ]
    if lacking := sum(pair.how is None for pair in pairs):
        counts.append(f"{lacking:,} not compared")
    releases, systems = pluralize(len(scale.releases), "release"), pluralize(len(names), "system")
    lines = [f"{systems} of {releases}, as {_name(scale.at)} judges them: {', '.join(counts)}"]
    linked = [name for name in scale.releases if scale.difficulty.get(name) is not None]
    for release in linked[1:]:
        if (change := scale.difficulty[release]) is not None and change.estimate:
            word, oldest = "harder" if change.estimate > 0 else "easier", _name(linked[0])
            points = _points(change, word == "harder")
            lines.append(
                f"{_name(release)} is {word} than {oldest} by {points}: the same systems, rated by "
                "the same judges"
            )
    for release, change in scale.judge_shift.items():
        word = "higher" if change.estimate > 0 else "lower"
        lines.append(
            f"today's judges rate the same outputs of {_name(release)} {word} than its own did, by "
            f"{_points(change, word == 'higher')}"
        )
    if scale.bend is not None and scale.bend.p is not None:
        bridges = ", ".join(map(_name, scale.bend.bridges))
        text = "did not keep their distances" if scale.bend.alarm else "no bend seen"
        lines.append(f"{bridges} link releases: {text} (p {format_rounded(scale.bend.p)})")
    for reason in dict.fromkeys(scale.refused.values()):
        systems = ", ".join(_name(name) for name, why in scale.refused.items() if why is reason)
        lines.append(f"{systems}: {reason.meaning}")
    return lines


def describe_lead(scale: Ruler) -> str | None:
    """Say how the best system does against the best of older releases, for a first sentence."""
    names = [name for name in rank_systems(scale) if scale.strength[name] is not None]
    older = [name for name in names if scale.first[name] != scale.first[names[0]]] if names else []
    if not older:
        return None
    best, other = names[0], older[0]
    since, other_since = _name(scale.first[best]), _name(scale.first[other])
    pair = scale.difference(best, other)
    if pair.estimate is None:
        return None
    ends = "" if pair.low is None else f" ({percent(pair.low)} to {percent(pair.high)})"
    basis = pluralize(pair.samples, "sample")
    return (
        f"{_name(best)}, of {since}, wins {percent(pair.estimate)}{ends} of the points from "
        f"{_name(other)}, of {other_since}: {LINKS[pair.how or 'path']}, {basis}"
    )


def _name(text: str) -> str:
    return clean(text, MAX_NAME)


def _points(change: Change, as_is: bool) -> str:
    sign = 1 if as_is else -1
    value = f"{sign * change.estimate:.2f} rating points"
    if change.interval is None:
        return value
    low, high = sorted(sign * end for end in change.interval)
    return f"{value} ({low:.2f} to {high:.2f})"
