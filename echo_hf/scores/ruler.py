"""One scale for the systems of all releases: common samples first, systems as bridges else."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.bootstrap import LEVEL, MIN_SAMPLES, Interval, generator
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf.errors import ScoreError, unknown
from echo_hf.reasons import Reason
from echo_hf.scores.estimate import compute_t_quantile, nan_mean
from echo_hf.scores.non_inferiority import score_interval
from echo_hf.scores.rating_table import (
    OPTIONAL,
    REQUIRED,
    RUBRIC,
    Bools,
    Floats,
    Integers,
    RatingTable,
    align_outputs,
    read_columns,
    read_ratings,
)
from echo_hf.scores.votes import (
    JudgeVotes,
    by_rate,
    count_points,
    label,
    list_pairs,
    sample_points,
    to_number,
)
from echo_hf.tables import RATINGS, Column

RELEASE, ORIGIN = "release", "carried_from"
TABLE = replace(
    RATINGS.add_columns(
        {
            RELEASE: Column(RATINGS.columns["system"].feature, "the release it was rated for"),
            ORIGIN: Column(RATINGS.columns["system"].feature, "the release of a carried sample"),
        }
    ),
    key=(*RATINGS.key, RELEASE),
)
MIN_RERATED = 20  # samples; with fewer the change of judges is guessed
VERDICT_BRIDGES = 3
BEND_LEVEL = 0.05
DRAWN_POINT = 0.5  # a pair's, so that strengths stay finite
MAX_ROUNDS, PRECISION = 100, 1e-10
Method = Literal["auto", "common", "bridges"]
Link = Literal["common", "path", "bridges"]


class Unlinked(Reason):
    """Why a system has no strength on the ruler, no interval, or no verdict."""

    NOT_RATED = "not_rated", "no judge rated it beside another system"
    NOT_COMMON = "not_common", "it shares no samples and judges with the newest systems"
    UNCONNECTED = "unconnected", "no chain of samples or systems leads to it"
    OTHER_JUDGES = (
        "other_judges",
        "other judges rated it, and fewer than 20 of its samples were rated again by these",
    )
    ONE_BRIDGE = (
        "one_bridge",
        "a single system links it: how far that one moved cannot be seen, so there is no interval",
    )
    TWO_BRIDGES = "two_bridges", "two systems link it, which is too few for a verdict"
    FEW_SAMPLES = "few_samples", "fewer than 10 samples say too little of how others may differ"


class Difference(NamedTuple):
    """How often a system is rated above another: a share from 0 to 1, ties half.

    Attributes:
        estimate: The share; 0.5 where they are as good as each other. Null where nothing links
            them.
        low: Lower end of the interval, null where there is none.
        high: Its upper end.
        samples: The common samples, or the fewest of any link of the chain.
        how: `common`, `path` or `bridges`; null where nothing links them.
    """

    estimate: float | None
    low: float | None
    high: float | None
    samples: int
    how: Link | None


class Change(NamedTuple):
    """A change in rating points.

    Attributes:
        estimate: The change.
        interval: Lower and upper end, null where there is none.
    """

    estimate: float
    interval: Interval | None


class Bend(NamedTuple):
    """The test whether bridges kept their distances from each other.

    Attributes:
        p: Probability of moves as large, if none moved; null with one bridge.
        alarm: Whether it is below 0.05. No alarm is no proof.
        bridges: The systems that link releases.
    """

    p: float | None
    alarm: bool
    bridges: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Ruler(SystemValuesPlot):
    """All systems ever rated, on one scale.

    Attributes:
        strength: Natural logarithm of each system's strength, the best first, by the judges of
            `at`; 0 is the mean of those that are not bridged. Null where `refused` says why.
        interval: Lower and upper end of it, null where there is none.
        differences: By system and opponent what `difference` returns.
        how: What links a system to `at`: `common`, samples that it and a system of `at` were both
            rated on; `path`, a chain of such pairs; `bridges`, systems that were rated in several
            releases. Null where nothing does.
        samples: On how many samples a system's strength rests.
        first: The release in which it was rated first.
        releases: All releases, the oldest first.
        at: The release whose judges count.
        difficulty: By how many rating points the samples of a release are rated lower than those
            of the oldest that is linked, which has 0; the same systems by the same judges. Null
            for a release that nothing links.
        judge_shift: By how many points the judges of `at` rate the same outputs of an earlier
            release higher than its own judges did, where these are others.
        bend: Whether bridges moved; null where none are needed.
        refused: Why a system has no strength, no interval, or an interval but no verdict.
        definition: Every parameter.
    """

    strength: Mapping[str, float | None]
    interval: Mapping[str, Interval | None]
    differences: Mapping[str, Mapping[str, Difference]]
    how: Mapping[str, Link | None]
    samples: Mapping[str, int]
    first: Mapping[str, str]
    releases: tuple[str, ...]
    at: str
    difficulty: Mapping[str, Change | None]
    judge_shift: Mapping[str, Change]
    bend: Bend | None
    refused: Mapping[str, Unlinked]
    definition: Mapping[str, Any]

    _label = "strength: natural logarithm, higher is better"
    _even = 0.0

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        ends = split_bounds(self.interval)
        return {"strength": self.strength, **ends, "reason": self.refused}

    def difference(self, system: str, other: str) -> Difference:
        """Compare two systems.

        Args:
            system: A system.
            other: Another one.

        Returns:
            The share of samples that the first wins from the other: counted where both were rated
            on common samples, else what their strengths let expect.

        Raises:
            ScoreError: A system is not there, or both are the same.
        """
        for name in (system, other):
            if name not in self.strength:
                raise ScoreError(unknown("system", name, self.strength))
        if system == other:
            raise ScoreError(f"system and other are both {system!r}: expected two systems")
        return self.differences[system][other]

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        differences = {
            name: {other: difference._asdict() for other, difference in row.items()}
            for name, row in self.differences.items()
        }
        changes = {
            field: {
                name: change and change._asdict() for name, change in getattr(self, field).items()
            }
            for field in ("difficulty", "judge_shift")
        }
        bend = self.bend and self.bend._asdict()
        return {**vars(self), "differences": differences, **changes, "bend": bend}


def ruler(
    ratings: Any,
    *,
    at: str | None = None,
    method: Method = "auto",
    confidence: float = LEVEL,
    seed: int = 0,
) -> Ruler:
    """Put the systems of several releases on one scale.

    Two boards do not compare: their samples differ, or their judges. Two systems that the same
    judges rated on the same samples do, also where one of them is long gone, and only its outputs
    were kept: `common`, the share of those samples that it wins, with Tango's score interval. The
    strengths of all are fitted to these pairs (Bradley-Terry, clustered by sample), and link those
    that share none, by a `path`. Where a release's samples were rated of no newer system,
    `bridges` are what is left: systems that were rated in both releases, whose mean places the
    others by least squares. That takes for granted that all keep their distances; how far bridges
    do not widens the interval and is tested (`bend`). One bridge gives no interval, two no verdict.
    After a change of judges a release is linked where these rated 20 of its samples again.

    Args:
        ratings: Rows as for `win_rate`, of the rubric `overall`, with `release`, the oldest first;
            and `carried_from`, null for a release's own samples, else the release that a sample is
            taken from. Without that column a sample of several releases is the oldest one's own.
        at: The release whose judges count; the last when null.
        method: `common`: common samples and paths alone; `bridges`: the own samples of each release
            alone; `auto`: bridges for what has no common samples.
        confidence: Of the intervals.
        seed: Accepted as everywhere; nothing here is drawn by chance.

    Returns:
        Strengths, differences with what they rest on, how hard each release is, and what a change
        of judges did.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Ratings contradict each other, or a choice is none of those there are.

    Examples:
        >>> old = {"sample_id": [f"{at:02}" for at in range(40)] * 2, "release": ["1"] * 80}
        >>> old |= {"system": ["retired"] * 40 + ["new"] * 40, "judge": ["j"] * 80}
        >>> line = ruler({**old, "rating": [5] * 40 + [6] * 20 + [5] * 10 + [4] * 10})
        >>> estimate, low, high, samples, how = line.difference("new", "retired")
        >>> estimate, round(low, 3), round(high, 3), samples, how
        (0.625, 0.491, 0.741, 40, 'common')
    """
    if method not in get_args(Method):
        raise ScoreError(unknown("method", method, get_args(Method)))
    if not 0.5 <= confidence < 1:
        raise ScoreError(f"confidence is {confidence!r}: expected 0.5 to 1, such as 0.95")
    generator(seed)
    boards = _read(ratings)
    if at is not None and at not in boards.rated:
        raise ScoreError(unknown("release", at, boards.rated))
    return _Gauge(boards, at or boards.releases[-1], method, confidence).build()


class _Rated(NamedTuple):
    """The ratings of one release; `sets` are its samples by the release that they are of."""

    table: RatingTable
    systems: Integers  # positions among all
    samples: Integers
    sets: Mapping[str, Bools]


class _Archive(NamedTuple):
    releases: tuple[str, ...]
    systems: tuple[str, ...]
    samples: tuple[str, ...]
    rated: Mapping[str, _Rated]


def _read(ratings: Any) -> _Archive:
    rows = read_columns(ratings, TABLE, (*REQUIRED, RELEASE), (*OPTIONAL, ORIGIN))
    if not rows.num_rows:
        raise ScoreError("ratings: no rows: expected those of one or more releases")
    if "rubric" in rows.column_names:
        rubrics = rows["rubric"].unique().to_pylist()
        if RUBRIC not in rubrics:
            raise ScoreError(f"ratings: {unknown('rubric', RUBRIC, rubrics)}")
        rows = rows.filter(pc.equal(rows["rubric"], RUBRIC))
    releases, names = rows[RELEASE].to_pylist(), rows[RELEASE].unique().to_pylist()
    if ORIGIN in rows.column_names:
        origins = pc.coalesce(rows[ORIGIN], rows[RELEASE]).to_pylist()
    else:
        position, oldest = {name: at for at, name in enumerate(names)}, dict[str, str]()
        samples = rows["sample_id"].to_pylist()
        for sample, name in zip(samples, releases, strict=True):
            oldest[sample] = min(oldest.get(sample, name), name, key=position.__getitem__)
        origins = [oldest[sample] for sample in samples]
    # What has no rows of its own is older than what carries its samples.
    names = [name for name in dict.fromkeys(origins) if name not in names] + names
    chosen: dict[tuple[str, str], list[int]] = {}
    for row, pair in enumerate(zip(releases, origins, strict=True)):
        chosen.setdefault(pair, []).append(row)
    rows = rows.drop_columns([name for name in (RELEASE, ORIGIN) if name in rows.column_names])
    tables = {pair: read_ratings(rows.take(pa.array(at))) for pair, at in chosen.items()}
    systems, samples = (
        tuple(sorted({name for table in tables.values() for name in getattr(table, field)}))
        for field in ("systems", "samples")
    )
    parts: dict[str, dict[str, RatingTable]] = {}
    for (name, origin), table in tables.items():
        parts.setdefault(name, {})[origin] = table
    rated = {name: _merge(name, by_set, systems, samples) for name, by_set in parts.items()}
    return _Archive(tuple(names), systems, samples, rated)


def _merge(
    release: str,
    parts: Mapping[str, RatingTable],
    all_systems: Sequence[str],
    all_samples: Sequence[str],
) -> _Rated:
    """Join a release's own and carried samples; one that is both has one rating of each output."""
    judges, systems, samples = (
        sorted({name for table in parts.values() for name in getattr(table, field)})
        for field in ("judges", "systems", "samples")
    )
    values = np.full((len(judges), len(systems), len(samples)), np.nan)
    skipped = np.zeros(values.shape, dtype=bool)
    for part in parts.values():
        by, names = np.isin(judges, part.judges), (part.systems, part.samples, systems, samples)
        aligned = np.full(values.shape, np.nan)
        aligned[by] = align_outputs(part.ratings, *names)
        differs = (np.abs(values - aligned) > 0).any(axis=0)
        if differs.any():
            system, sample = np.argwhere(differs)[0]
            raise ScoreError(
                f"ratings: release {release!r} has two ratings of system {systems[system]!r} on "
                f"sample {samples[sample]!r} by one judge: expected one, also where it is carried"
            )
        values = np.where(np.isnan(values), aligned, values)
        if part.not_asked is not None:
            skipped[by] |= align_outputs(part.not_asked.astype(float), *names) == 1
    skipped &= np.isnan(values)
    table = RatingTable(
        *map(tuple, (samples, systems, judges)),
        ratings=values,
        lost=None,
        ignored={},
        not_asked=skipped if skipped.any() else None,
    )
    places = (np.searchsorted(all_systems, systems), np.searchsorted(all_samples, samples))
    return _Rated(
        table, *places, {at: np.isin(samples, part.samples) for at, part in parts.items()}
    )


class _Votes(NamedTuple):
    """Verdicts [pair, sample] on samples of one release's rows."""

    verdicts: Floats
    systems: Integers
    samples: Integers

    def select(self, chosen: Bools) -> _Votes:
        return self._replace(verdicts=self.verdicts[:, chosen], samples=self.samples[chosen])

    @property
    def pairs(self) -> tuple[Integers, Integers]:
        first, second = list_pairs(len(self.systems))
        return self.systems[first], self.systems[second]


class _Fit(NamedTuple):
    """Strengths of systems with what each sample adds to their errors [sample, system]."""

    systems: Integers
    values: Floats
    influence: Floats
    floor: Floats  # covariance of the drawn points
    counts: Integers  # samples of each system
    samples: int


def _find_components(adjacency: Any) -> list[Integers]:
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(adjacency, directed=False)
    return [np.flatnonzero(labels == at) for at in range(count)]


def _fit(blocks: Iterable[_Votes], systems: Collection[int], size: tuple[int, int]) -> _Fit | None:
    """Fit strengths with mean 0 to the pairs of the systems, and of those that pairs link to most.

    The errors are those of whole samples; that of half a drawn point a pair keeps a system that
    always wins from having none.
    """
    blocks, (samples, total) = list(blocks), size
    won, met = np.zeros((total, total)), np.zeros((total, total))
    seen, chosen = np.zeros((samples, total), dtype=bool), np.isin(np.arange(total), [*systems])
    for number, block in enumerate(blocks):
        first, second = block.pairs
        verdicts = np.where((chosen[first] & chosen[second])[:, None], block.verdicts, np.nan)
        blocks[number] = block._replace(verdicts=verdicts)
        points, cells = (
            count_points(verdicts, len(block.systems)),
            np.ix_(block.systems, block.systems),
        )
        won[cells] += points.won
        met[cells] += points.compared
        counted = sample_points(verdicts, len(block.systems)).compared > 0
        seen[np.ix_(block.samples, block.systems)] |= counted.T
    members = max(_find_components(met > 0), key=len) if total else np.arange(0)
    if len(members) < 2:
        return None
    inside, count = np.ix_(members, members), len(members)
    drawn = (met[inside] > 0) * DRAWN_POINT
    won, met, strength = won[inside] + drawn / 2, met[inside] + drawn, np.zeros(count)
    for _ in range(MAX_ROUNDS):
        chance = 1 / (1 + np.exp(strength - strength[:, None]))
        weight = met * chance * (1 - chance)
        information = np.diag(weight.sum(axis=1)) - weight + 1 / count
        step = np.linalg.solve(information, (won - met * chance).sum(axis=1))
        strength = strength + np.clip(step, -1, 1)
        if np.abs(step).max() < PRECISION:
            break
    strength -= strength.mean()
    position = np.full(total, -1)
    position[members] = np.arange(count)
    scores = np.zeros((samples, count))
    for block in blocks:
        first, second = (position[at] for at in block.pairs)
        used = (first >= 0) & (second >= 0)
        first, second = first[used], second[used]
        expected = chance[first, second][:, None]
        surplus = np.nan_to_num((block.verdicts[used] + 1) / 2 - expected)
        sides = np.zeros((count, len(first)))
        sides[first, np.arange(len(first))], sides[second, np.arange(len(first))] = 1, -1
        scores[block.samples] += (sides @ surplus).T
    first, second = np.nonzero(np.triu(drawn))
    sides = np.zeros((len(first), count))
    sides[np.arange(len(first)), first], sides[np.arange(len(first)), second] = 1, -1
    halves = [sides * (side - chance[first, second])[:, None] for side in (0, 1)]
    inverse = np.linalg.inv(information)
    influence, extra = (
        part @ inverse - (part @ inverse).mean(axis=1, keepdims=True)
        for part in (scores, np.vstack(halves) * DRAWN_POINT / 2)
    )
    used = seen[:, members]
    counts, sampled = used.sum(axis=0), int(used.any(axis=1).sum())
    return _Fit(members, strength, influence, extra.T @ extra, counts, sampled)


def _cluster(influence: Floats, samples: int) -> Floats:
    """Return the covariance of what samples add to errors, as whole samples."""
    covariance: Floats = influence.T @ influence * samples / max(samples - 1, 1)
    return covariance


@dataclass(frozen=True)
class _Grid:
    """Cells explained as the sum of an effect of their row and one of their column."""

    cells: Sequence[tuple[Hashable, Hashable]]
    values: Floats
    covariance: Floats
    samples: int

    @cached_property
    def rows(self) -> dict[Hashable, int]:
        return {name: at for at, name in enumerate(dict.fromkeys(row for row, _ in self.cells))}

    @cached_property
    def columns(self) -> dict[Hashable, int]:
        return {name: at for at, name in enumerate(dict.fromkeys(name for _, name in self.cells))}

    def describe(self, row: Hashable, column: Hashable) -> Floats:
        effects = np.zeros(len(self.rows) + len(self.columns))
        effects[[self.rows[row], len(self.rows) + self.columns[column]]] = 1
        return effects

    @cached_property
    def solution(self) -> tuple[Floats, Floats]:
        """The weights of cells [effect, cell], and what the effects leave of cells."""
        design = np.array([self.describe(*cell) for cell in self.cells])
        inverse = np.linalg.pinv(design)
        return inverse, np.eye(len(design)) - design @ inverse

    @property
    def freedom(self) -> int:
        return round(float(np.trace(self.solution[1])))

    @property
    def interaction(self) -> float:
        """The variance of cells beyond that of their samples; below 0 by chance."""
        left = self.solution[1]
        noise = np.trace(left @ self.covariance)
        return (
            float(self.values @ left @ self.values - noise) / self.freedom if self.freedom else 0.0
        )

    def predict(self, column: Hashable) -> tuple[Floats, Floats, Floats]:
        """Return by row weights of cells for its value in a column, and loads of interactions.

        A row that has that cell needs no other, and the interaction of the cell is its own.
        """
        own = {cell: at for at, cell in enumerate(self.cells)}
        weights, loads = (np.zeros((len(self.rows), len(self.cells))) for _ in range(2))
        extra = np.zeros(len(self.rows))
        for row, at in self.rows.items():
            if (row, column) in own:
                weights[at, own[row, column]] = 1
            else:
                weights[at] = loads[at] = self.describe(row, column) @ self.solution[0]
                extra[at] = 1
        return weights, loads, extra

    def half_width(self, variance: Any, load: Any, confidence: float) -> Floats:
        """Return half intervals, NaN where nothing shows how large interactions are."""
        if not self.freedom or self.samples < MIN_SAMPLES:
            return np.full(np.shape(variance), np.nan)
        sampled, total = compute_t_quantile(np.array([self.samples - 1, self.freedom]), confidence)
        spread = np.sqrt(np.maximum(variance + load * self.interaction, 0))
        return np.maximum(sampled * np.sqrt(variance), total * spread)

    def test_interaction(self) -> float | None:
        """Return the p value of Hotelling's test that there is no interaction."""
        from scipy.special import fdtrc

        freedom, left = self.freedom, self.solution[1]
        others = self.samples - freedom
        if not freedom or others < 1:
            return None
        basis = np.linalg.svd(left)[0][:, :freedom]
        residual = basis.T @ self.values
        distance = residual @ np.linalg.solve(basis.T @ self.covariance @ basis, residual)
        return float(fdtrc(freedom, others, distance * others / (freedom * (self.samples - 1))))


@lru_cache(4096)
def _compute_share_interval(wins: int, losses: int, count: int, confidence: float) -> Interval:
    low, high = score_interval(wins, losses, count, (1 + confidence) / 2)
    return 0.5 + low, 0.5 + high


def _to_interval(value: float, half: float) -> Interval | None:
    return None if math.isnan(half) else (float(value - half), float(value + half))


Board = Callable[[Collection[int]], _Fit | None]


@dataclass(frozen=True)
class _Gauge:
    """The comparison of all systems by the judges of a release."""

    archive: _Archive
    at: str
    method: Method
    confidence: float

    @property
    def size(self) -> tuple[int, int]:
        return len(self.archive.samples), len(self.archive.systems)

    @cached_property
    def judges(self) -> tuple[str, ...]:
        return self.archive.rated[self.at].table.judges

    @cached_property
    def votes(self) -> dict[str, _Votes]:
        """The votes of these judges by release, that of `at` first, then from the newest."""
        newest_first = [self.at, *(name for name in self.archive.releases[::-1] if name != self.at)]
        voted = ((name, self._vote(name, self.judges)) for name in newest_first)
        return {name: votes for name, votes in voted if votes}

    def _vote(self, release: str, judges: Sequence[str]) -> _Votes | None:
        rated = self.archive.rated.get(release)
        if not rated or not {*judges} <= {*rated.table.judges}:
            return None
        table = rated.table.of_judges(np.isin(rated.table.judges, judges))
        verdicts = JudgeVotes(table, "corrected", "exclude", RUBRIC).pair_verdicts
        return _Votes(verdicts, rated.systems, rated.samples)

    def _list_rated(self, release: str, origin: str) -> Integers:
        """Return the systems that were rated on some samples of a release's rows."""
        if not (rated := self.archive.rated.get(release)) or origin not in rated.sets:
            return np.arange(0)
        is_rated = ~np.isnan(rated.table.ratings[..., rated.sets[origin]])
        return rated.systems[is_rated.any(axis=(0, 2))]

    @cached_property
    def linked_sets(self) -> set[str]:
        """The releases whose samples newer systems were asked for as well, and their own."""
        sets = {self.at}
        if self.method != "bridges":
            links = [
                {name, origin}
                for name in self.votes
                for origin in self.archive.rated[name].sets
                if {*self._list_rated(name, origin)} - {*self._list_rated(origin, origin)}
            ]
            for _ in links:
                sets |= set[str]().union(*(link for link in links if link & sets))
        return sets

    def _select_pairs(self, sets: Collection[str] | None) -> list[_Votes]:
        """Select samples of some sets; a pair counts in the first release that rated both."""
        met, blocks = np.zeros((self.size[1],) * 2, dtype=bool), []
        for name, votes in self.votes.items():
            if self.method == "bridges" and name != self.at:
                break
            masks = self.archive.rated[name].sets.items()
            chosen = [mask for origin, mask in masks if sets is None or origin in sets]
            block = votes.select(np.any([np.zeros(len(votes.samples), bool), *chosen], axis=0))
            first, second = block.pairs
            verdicts = np.where(met[first, second][:, None], np.nan, block.verdicts)
            is_met = ~np.isnan(verdicts).all(axis=1)
            met[first[is_met], second[is_met]] = met[second[is_met], first[is_met]] = True
            blocks.append(block._replace(verdicts=verdicts))
        return blocks

    def _make_board(self, release: str) -> Board | Unlinked:
        """Return the fit of a release's own samples, on the scale of these judges."""
        own = self.archive.rated[release].sets.get(release)
        if own is None:
            return Unlinked.UNCONNECTED
        if votes := self.votes.get(release):
            own_votes = votes.select(own)
            return lambda systems: _fit([own_votes], systems, self.size)
        old = self._vote(release, self.archive.rated[release].table.judges)
        old = old.select(own)
        again: list[_Votes] = []
        for name, votes in self.votes.items():
            if (mask := self.archive.rated[name].sets.get(release)) is not None:
                is_rated = mask & ~np.isnan(votes.verdicts).all(axis=0)
                again.append(votes.select(is_rated & np.isin(votes.samples, old.samples)))
        new = max(again, key=lambda votes: len(votes.samples), default=None)
        if new is None or len(new.samples) < MIN_RERATED:
            return Unlinked.OTHER_JUDGES
        part = old.select(np.isin(old.samples, new.samples))

        def fit(systems: Collection[int]) -> _Fit | None:
            both = {*systems}
            for votes in (new, old, part):
                fitted = _fit([votes], both, self.size)
                both &= {*fitted.systems} if fitted else set()
            rerated, whole, same = (_fit([votes], both, self.size) for votes in (new, old, part))
            if not (rerated and whole and same):
                return None
            size = float((same.influence**2).sum())
            # How much the old judges tell of the new ones, the same for all systems.
            weight = float(np.clip((same.influence * rerated.influence).sum() / (size or 1), 0, 1))
            values = rerated.values + weight * (whole.values - same.values)
            change = weight * (whole.influence - same.influence)
            return rerated._replace(values=values, influence=rerated.influence + change)

        return fit

    def build(self) -> Ruler:
        """Compare all pairs and gather what there is to say."""
        names, total = self.archive.systems, self.size[1]
        scale = _Scale.make_empty(total)
        wins, met = (np.zeros((total, total), dtype=int) for _ in range(2))
        for block in self._select_pairs({self.at} if self.method == "bridges" else None):
            first, second = block.pairs
            for sign, winner, loser in ((1, first, second), (-1, second, first)):
                wins[winner, loser] += (block.verdicts == sign).sum(axis=1)
                met[winner, loser] += (~np.isnan(block.verdicts)).sum(axis=1)
        blocks = self._select_pairs(self.linked_sets)
        main, bend = _fit(blocks, range(total), self.size), None
        if main:
            own = self._list_rated(self.at, self.at)
            scale.add_fit(main, _count_chain_samples(blocks, total), self.confidence)
            for system in main.systems.tolist():
                is_direct = system in own or met[system, own].any()
                scale.how[system] = "common" if is_direct else "path"
            if len(main.systems) < total and self.method != "common":
                bend = self._add_bridges(main, blocks, scale)
        apart = Unlinked.NOT_COMMON if self.method == "common" else Unlinked.UNCONNECTED
        beside = self._list_compared()
        for system in range(total):
            if system not in scale.how:
                scale.refused.setdefault(system, apart if system in beside else Unlinked.NOT_RATED)
            elif scale.how[system] != "bridges" and np.isnan(scale.half[system]):
                scale.refused[system] = Unlinked.FEW_SAMPLES
        bounds = map(_to_interval, scale.values, scale.half)
        interval = dict(zip(names, bounds, strict=True))
        strength, first = by_rate(label(names, scale.values)), dict[str, str]()
        for release, rated in self.archive.rated.items():
            for origin in rated.sets:
                for system in self._list_rated(release, origin):
                    earlier = first.setdefault(names[system], release)
                    first[names[system]] = min(earlier, release, key=self.archive.releases.index)
        place = {name: at for at, name in enumerate(names)}
        return Ruler(
            strength=strength,
            interval={name: interval[name] for name in strength},
            differences={
                name: {
                    other: scale.compare(place[name], place[other], wins, met, self.confidence)
                    for other in strength
                    if other != name
                }
                for name in strength
            },
            how={name: scale.how.get(place[name]) for name in strength},
            samples={name: int(scale.counts[place[name]]) for name in strength},
            first={name: first[name] for name in strength if name in first},
            releases=self.archive.releases,
            at=self.at,
            difficulty=_compute_difficulty(self.archive, self.at, self.confidence),
            judge_shift=self._compute_judge_shifts(),
            bend=bend,
            refused={
                name: scale.refused[place[name]]
                for name in strength
                if place[name] in scale.refused
            },
            definition={
                "measure": "ruler",
                "at": self.at,
                "judges": list(self.judges),
                "method": self.method,
                "vote": "plurality",
                "tie": 0.5,
                "confidence": self.confidence,
                "intervals": {
                    "common": "score of paired shares (Tango 1998)",
                    "path": "Bradley-Terry clustered by sample, Student's t",
                    "bridges": "least squares with the interaction of system and release",
                },
                "linked": sorted(self.linked_sets, key=self.archive.releases.index),
                "bend_level": BEND_LEVEL,
                "least_rerated": MIN_RERATED,
            },
        )

    def _list_compared(self) -> set[int]:
        """Return the systems that some judge rated beside another one."""
        compared: set[int] = set()
        for rated in self.archive.rated.values():
            is_rated = ~np.isnan(rated.table.ratings)
            beside = (is_rated & (is_rated.sum(axis=1, keepdims=True) > 1)).any(axis=(0, 2))
            compared |= {*rated.systems[beside].tolist()}
        return compared

    def _add_bridges(self, main: _Fit, blocks: list[_Votes], scale: _Scale) -> Bend | None:
        """Place the systems outside of the main fit by those that several releases rated."""
        fits, boards = {self.at: main}, dict[str, Board]()
        boards[self.at] = lambda systems: _fit(blocks, systems, self.size)
        for release in self.archive.rated:
            outside = {*self._list_rated(release, release).tolist()} - {*main.systems.tolist()}
            if release == self.at or not outside:
                continue
            board = self._make_board(release)
            if isinstance(board, Unlinked):
                scale.refused.update(dict.fromkeys(outside, board))
            elif fitted := board(range(self.size[1])):
                fits[release], boards[release] = fitted, board
        reached = _count_bridges(fits, self.at)
        grid = _build_grid({name: fits[name] for name in reached})
        columns = [fits[name].systems.tolist() for name in reached]
        bridges = {at for at in range(self.size[1]) if sum(at in column for column in columns) > 1}
        if not bridges:
            return None
        width = {
            at: max(reached[name] for name in reached if at in fits[name].systems)
            for at, _ in grid.cells
        }
        weights, loads, extra = grid.predict(self.at)
        systems = np.array([*grid.rows], dtype=np.int64)
        shown, covariance = weights @ grid.values, weights @ grid.covariance @ weights.T
        variance = np.diag(covariance)
        new = np.array([at not in scale.how for at in systems])
        single = np.array([width[at] < 2 for at in systems])
        half = grid.half_width(variance, (loads**2).sum(axis=1) + extra, self.confidence)
        between = np.maximum(variance[:, None] + variance - 2 * covariance, 0)
        load = ((loads[:, None] - loads) ** 2).sum(axis=2) + extra[:, None] + extra
        halves = grid.half_width(between, load, self.confidence)
        halves[single[:, None] | single] = np.nan
        scale.values[systems[new]] = shown[new]
        scale.half[systems[new]] = np.where(single, np.nan, half)[new]
        for fitted in fits.values():
            counts = scale.counts[fitted.systems]
            scale.counts[fitted.systems] = np.where(counts, counts, fitted.counts)
        rows, columns_of_pairs = np.nonzero(new[:, None] | new)
        cells = systems[rows], systems[columns_of_pairs]
        scale.estimates[cells] = (shown[:, None] - shown)[rows, columns_of_pairs]
        scale.halves[cells] = halves[rows, columns_of_pairs]
        scale.bases[cells] = np.minimum(scale.counts[cells[0]], scale.counts[cells[1]])
        for system in systems[new].tolist():
            scale.how[system] = "bridges"
            scale.refused.pop(system, None)
            if width[system] < VERDICT_BRIDGES:
                is_single = width[system] < 2
                scale.refused[system] = Unlinked.ONE_BRIDGE if is_single else Unlinked.TWO_BRIDGES
        # On bridges alone: a field of others that moved would be taken for bridges that did.
        refits = {name: fitted for name in reached if (fitted := boards[name](bridges))}
        p_value = _build_grid(refits).test_interaction() if len(refits) > 1 else None
        names = tuple(self.archive.systems[at] for at in sorted(bridges))
        return Bend(p_value, p_value is not None and p_value < BEND_LEVEL, names)

    def _compute_judge_shifts(self) -> dict[str, Change]:
        """Compare ratings of the same outputs by the judges of `at` and by a release's own."""
        shifts: dict[str, Change] = {}
        here = self.archive.rated[self.at]
        for release, there in self.archive.rated.items():
            if release == self.at or release not in here.sets or there.table.judges == self.judges:
                continue
            new = _average_judges(here.table)[:, here.sets[release]]
            names = here.systems, here.samples[here.sets[release]], there.systems, there.samples
            gaps = align_outputs(new, *(at.tolist() for at in names)) - _average_judges(there.table)
            gaps = nan_mean(gaps[:, there.sets.get(release, slice(0))])
            gaps = gaps[~np.isnan(gaps)]
            if len(gaps):
                half = math.nan
                if len(gaps) >= MIN_SAMPLES:
                    error = gaps.std(ddof=1) / math.sqrt(len(gaps))
                    half = float(compute_t_quantile(len(gaps) - 1, self.confidence) * error)
                shifts[release] = Change(float(gaps.mean()), _to_interval(gaps.mean(), half))
        return shifts


@dataclass(frozen=True)
class _Scale:
    """What is known so far of systems, and of each two of them, NaN where nothing is."""

    values: Floats
    half: Floats
    counts: Integers
    estimates: Floats
    halves: Floats
    bases: Integers
    how: dict[int, Link]
    refused: dict[int, Unlinked]

    @classmethod
    def make_empty(cls, total: int) -> _Scale:
        empty, pairs = np.full(total, np.nan), np.full((total, total), np.nan)
        counts = np.zeros(total, dtype=np.int64)
        bases = np.zeros((total, total), dtype=np.int64)
        return cls(empty, empty.copy(), counts, pairs, pairs.copy(), bases, {}, {})

    def add_fit(self, fitted: _Fit, bases: Integers, confidence: float) -> None:
        """Enter strengths and what they let expect of each pair."""
        systems, inside = fitted.systems, np.ix_(fitted.systems, fitted.systems)
        covariance = _cluster(fitted.influence, fitted.samples) + fitted.floor
        variance = np.diag(covariance)
        between = np.maximum(variance[:, None] + variance - 2 * covariance, 0)
        self.values[systems], self.counts[systems] = fitted.values, fitted.counts
        self.estimates[inside] = fitted.values[:, None] - fitted.values
        self.bases[inside] = bases[inside]
        for halves, place, spread, counts in (
            (self.half, systems, variance, fitted.counts),
            (self.halves, inside, between, bases[inside]),
        ):
            quantile = compute_t_quantile(np.maximum(counts - 1, 1), confidence)
            halves[place] = np.where(counts < MIN_SAMPLES, np.nan, quantile * np.sqrt(spread))

    def compare(
        self, system: int, other: int, wins: Integers, met: Integers, confidence: float
    ) -> Difference:
        """Return the share counted on common samples, or what the strengths let expect."""
        if count := int(met[system, other]):
            won, lost = int(wins[system, other]), int(wins[other, system])
            ends: tuple[float | None, float | None] = (None, None)
            if count >= MIN_SAMPLES:
                ends = _compute_share_interval(won, lost, count, confidence)
            return Difference(0.5 + (won - lost) / count / 2, *ends, count, "common")
        estimate, half = self.estimates[system, other], self.halves[system, other]
        if np.isnan(estimate):
            return Difference(None, None, None, 0, None)
        from scipy.special import expit

        middle, low, high = (
            to_number(float(expit(value))) for value in (estimate, estimate - half, estimate + half)
        )
        bridged = "bridges" in (self.how[system], self.how[other])
        return Difference(
            middle, low, high, int(self.bases[system, other]), "bridges" if bridged else "path"
        )


def _count_chain_samples(blocks: Iterable[_Votes], total: int) -> Integers:
    """Return for each two systems the fewest samples of a link of the shortest chain of pairs."""
    from scipy.sparse.csgraph import shortest_path

    met = np.zeros((total, total), dtype=np.int64)
    for block in blocks:
        first, second = block.pairs
        counts = (~np.isnan(block.verdicts)).sum(axis=1)
        np.add.at(met, (first, second), counts)
        np.add.at(met, (second, first), counts)
    lengths, before = shortest_path(met > 0, unweighted=True, return_predecessors=True)
    fewest = met.copy()
    for start, end in sorted(
        np.argwhere(np.isfinite(lengths) & (lengths > 1)).tolist(), key=lambda pair: lengths[*pair]
    ):
        middle = before[start, end]
        fewest[start, end] = min(fewest[start, middle], met[middle, end])
    return fewest


def _count_bridges(fits: Mapping[str, _Fit], at: str) -> dict[str, int]:
    """Return the releases that systems link to `at`, each by the fewest of any step."""
    systems = {name: {*fitted.systems.tolist()} for name, fitted in fits.items()}
    reached = {at: len(systems[at])}
    while len(reached) < len(fits):
        widths = {
            name: max(min(reached[other], len(systems[name] & systems[other])) for other in reached)
            for name in fits
            if name not in reached
        }
        widest = max(widths, key=widths.__getitem__)
        if not widths[widest]:
            break
        reached[widest] = widths[widest]
    return reached


def _build_grid(fits: Mapping[str, _Fit]) -> _Grid:
    scaled = (
        fitted.influence * math.sqrt(fitted.samples / max(fitted.samples - 1, 1))
        for fitted in fits.values()
    )
    influence, start = np.hstack([*scaled]), 0
    covariance = influence.T @ influence
    for fitted in fits.values():
        end = start + len(fitted.systems)
        covariance[start:end, start:end] += fitted.floor
        start = end
    return _Grid(
        [(system, name) for name, fitted in fits.items() for system in fitted.systems.tolist()],
        np.concatenate([fitted.values for fitted in fits.values()]),
        covariance,
        min(fitted.samples for fitted in fits.values()),
    )


def _average_judges(table: RatingTable) -> Floats:
    """Return the mean rating [system, sample] by all judges who were asked about everything."""
    complete = table.complete if table.complete.judges else table
    averages: Floats = complete.ratings.mean(axis=0)
    return averages


def _compute_difficulty(archive: _Archive, at: str, confidence: float) -> dict[str, Change | None]:
    """Compare mean ratings of the same systems by the same judges on samples of two releases."""
    cells: list[tuple[str, Hashable, int, str]] = []
    columns, means, fewest = [], list[float](), list[int]()
    for release, rated in archive.rated.items():
        averages = _average_judges(rated.table)
        for origin, chosen in rated.sets.items():
            for system, row in zip(
                rated.systems.tolist(), np.where(chosen, averages, np.nan), strict=True
            ):
                if (count := int((~np.isnan(row)).sum())) > 1:
                    deviations = np.zeros(len(archive.samples))
                    deviations[rated.samples] = np.nan_to_num(row - np.nanmean(row)) / count
                    deviations *= math.sqrt(count / (count - 1))
                    cells.append((release, rated.table.judges, system, origin))
                    columns.append(deviations)
                    means.append(float(np.nanmean(row)))
                    fewest.append(count)
    best: dict[str, Change | None] = dict.fromkeys(archive.releases)
    # Side by side in the same release first; else the same system, rated in two of them.
    for rows in (
        [(release, system) for release, _, system, _ in cells],
        [(judges, system) for _, judges, system, _ in cells],
    ):
        origins = [origin for *_, origin in cells]
        linked, grown = {at}, True
        while grown:
            witnesses = {row for row, origin in zip(rows, origins, strict=True) if origin in linked}
            wider = linked | {
                origin for row, origin in zip(rows, origins, strict=True) if row in witnesses
            }
            linked, grown = wider, wider != linked
        if len(linked) <= sum(change is not None for change in best.values()) or len(linked) < 2:
            continue
        order = sorted(
            (number for number, origin in enumerate(origins) if origin in linked),
            key=lambda number: archive.releases.index(origins[number]),
        )
        influence = np.array([columns[number] for number in order]).T
        grid = _Grid(
            [(rows[number], origins[number]) for number in order],
            np.array([means[number] for number in order]),
            influence.T @ influence,
            min(fewest[number] for number in order),
        )
        side_by_side = all(isinstance(row[0], str) for row in rows)
        best = dict.fromkeys(archive.releases)
        for origin, column in grid.columns.items():
            # Lower ratings are harder samples.
            weights = grid.solution[0][len(grid.rows)] - grid.solution[0][len(grid.rows) + column]
            variance = float(weights @ grid.covariance @ weights)
            if side_by_side:
                half = compute_t_quantile(max(grid.samples - 1, 1), confidence) * math.sqrt(
                    variance
                )
                half = half if grid.samples >= MIN_SAMPLES else math.nan
            else:
                half = grid.half_width(variance, weights @ weights, confidence)
            best[str(origin)] = Change(
                float(weights @ grid.values),
                _to_interval(weights @ grid.values, float(half)) if column else None,
            )
    return best
