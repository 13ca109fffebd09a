"""The scored releases of a repository's tags, and what they say together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import comb, sqrt
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from huggingface_hub import HfApi

from echo_hf._infra.bootstrap import LEVEL, Interval
from echo_hf.config.checks import ANSWERED_BY
from echo_hf.errors import EchoError
from echo_hf.hub.diff import Comparability, SharedSamples
from echo_hf.hub.facts import BENCHMARK_CONFIGS, SAMPLE_CONFIGS
from echo_hf.hub.load import load_benchmark, load_manifest
from echo_hf.hub.remote import Remote
from echo_hf.hub.run_tables import definition_of, models_in
from echo_hf.scores import samples_needed
from echo_hf.scores.board import METRIC
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.votes import Protocol

NO_RESULTS = "this release holds no results: score a run, build it again and publish it"
SEEN = ["id", "sample_digest", "post_urls"]
Figure = Mapping[str, Any]
Seen = frozenset[tuple[str, str | None]]


@dataclass(frozen=True)
class ScoredRelease:
    """A tag: whose benchmark it is, its figures, its samples by split; of all samples the post."""

    tag: str
    commit: str
    target: str | None = None
    figures: tuple[Figure, ...] = ()
    ratings: pa.Table | None = field(default=None, compare=False)
    samples: Mapping[str, Seen] = field(default_factory=dict)
    problem: str | None = None
    benchmark: str | None = None
    posts: Mapping[str, str | None] = field(default_factory=dict, compare=False)

    def rows(self, split: str, protocol: str) -> dict[str, list[Figure]]:
        found: dict[str, list[Figure]] = {}
        for each in self.figures:
            if (each["split"], each["protocol"]) == (split, protocol):
                found.setdefault(str(each["metric"]), []).append(each)
        return found

    @cached_property
    def rated(self) -> frozenset[tuple[str, str]]:
        """Each split with the systems that have a win rate on it."""
        return frozenset(
            (str(each["split"]), str(each["system"]))
            for each in self.figures
            if each["metric"] == METRIC and each["value"] is not None
        )

    def ratings_of(self, split: str, judge: str | None = None) -> pa.Table | None:
        """The ratings of a split's samples as they are now, of one judge or of all."""
        if self.ratings is None:
            return None
        names = ("sample_id", "sample_digest", "judge")
        columns = zip(*(self.ratings[name].to_pylist() for name in names), strict=True)
        seen = self.samples.get(split, frozenset())
        wanted = [(name, digest) in seen and judge in (None, by) for name, digest, by in columns]
        return self.ratings.filter(pa.array(wanted, pa.bool_()))


def read_scored(
    repo_id: str, *, known: Sequence[ScoredRelease] = (), api: HfApi | None = None
) -> tuple[ScoredRelease, ...]:
    """The releases of a repository's tags, the last first; of known ones nothing is read again."""
    remote = Remote(api or HfApi(), repo_id)
    held = {(each.tag, each.commit): each for each in known}
    tags = sorted(remote.existing().tags.items(), key=lambda one: _order(one[0]), reverse=True)
    return tuple(held.get(tagged) or _read(remote, *tagged) for tagged in tags)


def _order(tag: str) -> list[str | int]:
    """Puts NAME.10 after NAME.9."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", tag)]


def _read(remote: Remote, tag: str, commit: str) -> ScoredRelease:
    def table(config: str) -> pa.Table:
        found = load_benchmark(remote.repo_id, config, revision=commit, api=remote.api)
        return found.with_format("arrow")[:]

    try:
        manifest = load_manifest(remote.repo_id, revision=commit, api=remote.api)
        configs, rows = manifest.configs, dict[str, list[dict[str, Any]]]()
        for name in filter(configs.__contains__, SAMPLE_CONFIGS):
            # Three columns of its files, of which no other bytes are fetched.
            read = (remote.columns(commit, file.path, SEEN) for file in configs[name].files)
            rows[name] = [row for some in read for row in some.to_pylist()]
        every = (row for some in rows.values() for row in some)
        found = ScoredRelease(
            tag,
            commit,
            manifest.target.name,
            samples={
                split: frozenset(
                    (str(row.get("id")), row.get("sample_digest")) for row in rows.get(split, ())
                )
                for split in BENCHMARK_CONFIGS
            },
            problem=None if "results" in configs else NO_RESULTS,
            benchmark=manifest.name,
            posts={
                str(row.get("id")): next(iter(row.get("post_urls") or ()), None) for row in every
            },
        )
        if found.problem:
            return found
        figures = [
            {**row, "definition": definition_of(row)} for row in table("results").to_pylist()
        ]
        ratings = table("ratings") if "ratings" in configs else None
    except EchoError as error:
        return ScoredRelease(tag, commit, problem=str(error))
    return replace(found, figures=tuple(figures), ratings=ratings)


COMPARABLE = "comparable: "
OTHERS = "not comparable: a win rate depends on who takes part, and systems or judges differ"


def verdict(a: ScoredRelease, b: ScoredRelease, split: str, protocol: Protocol) -> str:
    """Whether the boards of two releases may be read beside each other."""
    one, other = a.samples.get(split, frozenset()), b.samples.get(split, frozenset())
    shared = SharedSamples(len(one & other), len(one - other), len(other - one))
    said = Comparability(True, {split: shared}).verdict(split)
    if not said.startswith(COMPARABLE):
        return said
    # Systems and definition of the win rates, but for what judges failed on.
    aside = dict.fromkeys(("failed_audit", ANSWERED_BY))
    boards = [release.rows(split, protocol).get(METRIC, ()) for release in (a, b)]
    settings = [
        sorted(
            json.dumps({**each["definition"], **aside, "system": each["system"]}, sort_keys=True)
            for each in board
        )
        for board in boards
    ]
    if settings[0] != settings[1]:
        return OTHERS
    for kind in ("systems", "judges"):
        for name, (here, there) in _changed_models(a, b, split, protocol, kind).items():
            return f"not comparable: {name!r} is {here} in {a.tag} and {there} in {b.tag}"
    return said


def _changed_models(
    a: ScoredRelease, b: ScoredRelease, split: str, protocol: str, kind: str
) -> dict[str, list[str]]:
    """Names that another model answers to, or the same in another state."""
    boards = [release.rows(split, protocol).get(METRIC) for release in (a, b)]
    told = [models_in(board[0]["definition"] if board else {}, kind) for board in boards]
    found = {
        name: [f"{one[name].model} ({one[name].status})" for one in told]
        for name in sorted(told[0].keys() & told[1].keys())
    }
    return {name: two for name, two in found.items() if two[0] != two[1]}


def unrated(releases: Sequence[ScoredRelease], release: ScoredRelease, split: str) -> list[str]:
    """Systems that another tag has rated on this split, and this one has not."""
    held = {str(one["system"]) for one in release.figures if one["split"] == split}
    rated = {system for one in releases for on, system in one.rated if on == split}
    return sorted(rated - held)


@dataclass(frozen=True)
class Decay:
    """What became of a tag's benchmark samples in the newest tag of the same benchmark.

    Attributes:
        newest: That tag.
        samples: How many samples there are.
        otherwise: Of those that are not in it, how many are of posts that samples of it name.
        gone: How many are of posts that no sample of it names: found gone and forgotten, or read
            otherwise. No release names what was forgotten, so that this is the most there are, as
            far as its builder has asked.
    """

    newest: str
    samples: int
    otherwise: int
    gone: int

    @property
    def share(self) -> float | None:
        return self.gone / self.samples if self.samples else None


def decay(releases: Sequence[ScoredRelease], release: ScoredRelease) -> Decay | None:
    """Null for the newest tag of a benchmark, and for a release that could not be read."""
    newest = next((one for one in releases if one.benchmark == release.benchmark), release)
    if newest is release or release.benchmark is None:
        return None
    ids = {name for seen in release.samples.values() for name, _ in seen}
    lost = ids - newest.posts.keys()
    there = {post for post in newest.posts.values() if post}
    otherwise = sum(release.posts.get(name) in there for name in lost)
    return Decay(newest.tag, len(ids), otherwise, len(lost) - otherwise)


class Lead(NamedTuple):
    """By how much the win rate of one system is above that of another."""

    value: float
    interval: Interval | None

    @property
    def is_sure(self) -> bool:
        return self.interval is not None and self.interval[0] * self.interval[1] > 0


@dataclass(frozen=True)
class Reordered:
    """Two systems, of which the first is ahead on one tag, and the second on the other."""

    systems: tuple[str, str]
    leads: tuple[Lead, Lead]  # of the first

    @property
    def is_sure(self) -> bool:
        return all(lead.is_sure for lead in self.leads)


@dataclass(frozen=True)
class Orders:
    """In which pairs the orders of two tags differ, and how that was found, or why it was not."""

    reordered: tuple[Reordered, ...]
    how: str
    compared: bool = True


FROM_RATINGS = (
    "computed from the ratings of the systems ({systems}) and judges ({judges}) that both tags "
    "have; intervals of a lead are paired by sample, at 95 % over all {pairs} pairs together"
)
FROM_FIGURES = "from the published figures: a lead is sure where two intervals do not overlap"
NOTHING_SHARED = "orders not compared: no two systems, or no judge, are in both tags"
NOT_BOTH = "orders not compared: without ratings, both tags need the same systems and judges"


def orders(a: ScoredRelease, b: ScoredRelease, split: str, protocol: Protocol) -> Orders:
    """Which two systems have changed places from one tag to the other.

    A change is sure where the lead is sure on either tag, each by its own samples.
    """
    tables = [each for one in (a, b) if (each := one.ratings_of(split)) is not None]
    if len(tables) < 2:
        boards = [one.rows(split, protocol).get(METRIC, []) for one in (a, b)]
        kinds = ("systems", "judges")
        moved = any(_changed_models(a, b, split, protocol, kind) for kind in kinds)
        if moved or _took_part(boards[0]) != _took_part(boards[1]):
            return Orders((), NOT_BOTH, False)
        return Orders(_reordered(*map(_published_leads, boards)), FROM_FIGURES)
    usable = [
        table.filter((pc.field("rubric") == RUBRIC) & pc.field("rating").is_valid())
        for table in tables
    ]
    both: dict[str, list[str]] = {}
    for kind in ("system", "judge"):
        held = [set(table[kind].to_pylist()) for table in usable]
        other = _changed_models(a, b, split, protocol, f"{kind}s")
        both[kind] = sorted((held[0] & held[1]) - other.keys())
    if len(both["system"]) < 2 or not both["judge"]:
        return Orders((), NOTHING_SHARED, False)
    for kind, names in both.items():
        usable = [table.filter(pc.field(kind).isin(names)) for table in usable]
    try:
        leads = [_leads(table, protocol) for table in usable]
    except EchoError as error:
        return Orders((), f"orders not compared: {error}", False)
    told = {f"{kind}s": ", ".join(names) for kind, names in both.items()}
    pairs = comb(len(both["system"]), 2)
    return Orders(_reordered(*leads), FROM_RATINGS.format(pairs=pairs, **told))


def _took_part(board: Sequence[Figure]) -> tuple[list[str], Any]:
    judges = board[0]["definition"].get("judges") if board else None
    return sorted(str(each["system"]) for each in board), judges


Leads = Mapping[tuple[str, str], Lead]


def _leads(ratings: pa.Table, protocol: Protocol) -> Leads:
    from scipy.special import stdtrit  # it takes longer to import than all of this

    found = samples_needed(ratings, protocol=protocol)
    samples, pairs = found.definition["samples"], list(combinations(found.pairs, 2))
    leads = {}
    for one, other in pairs:
        apart = found.pairs[one][other]
        if apart.difference is None:
            continue
        ends = None
        if apart.deviation is not None:
            tail = (1 - LEVEL) / 2 / len(pairs)
            half = -stdtrit(samples - 1, tail) * apart.deviation / sqrt(samples)
            ends = apart.difference - half, apart.difference + half
        leads[one, other] = Lead(apart.difference, ends)
    return leads


def _published_leads(board: Sequence[Figure]) -> Leads:
    leads = {}
    valued = [each for each in board if each["value"] is not None]
    for one, other in combinations(sorted(valued, key=lambda each: str(each["system"])), 2):
        ends = one["low"], one["high"], other["low"], other["high"]
        known = None if None in ends else (ends[0] - ends[3], ends[1] - ends[2])
        lead = Lead(one["value"] - other["value"], known)
        leads[str(one["system"]), str(other["system"])] = lead
    return leads


def _reordered(a: Leads, b: Leads) -> tuple[Reordered, ...]:
    """The pairs that stand in another order, the sure ones first."""
    found = []
    for pair in sorted(a.keys() & b.keys()):
        leads = a[pair], b[pair]
        if leads[0].value * leads[1].value < 0:
            if leads[0].value < 0:
                pair, leads = pair[::-1], (_turned(leads[0]), _turned(leads[1]))
            found.append(Reordered(pair, leads))
    return tuple(sorted(found, key=lambda one: not one.is_sure))


def _turned(lead: Lead) -> Lead:
    ends = lead.interval
    return Lead(-lead.value, None if ends is None else (-ends[1], -ends[0]))
