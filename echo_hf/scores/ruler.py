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

from echo_hf._infra.bootstrap import LEVEL, MIN_SAMPLES, Interval, Unscored, generator
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
    check_once,
    encode,
    format_key,
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
BEND_LEVEL = 0.05
DRAWN_POINT = 0.5  # a pair's, so that strengths stay finite
MAX_ROUNDS, PRECISION = 100, 1e-10
Method = Literal["auto", "common", "bridges"]
Link = Literal["common", "path", "bridges"]


class Unlinked(Reason):
    """Why a system has no strength on the ruler, no interval, or no verdict."""

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


class Difference(NamedTuple):
    """How often a system is rated above another: a share from 0 to 1, ties half.

    Attributes:
        estimate: The share; 0.5 where they are as good as each other. Null where nothing links
            them.
        low: Lower end of the interval, null where there is none.
        high: Its upper end.
        samples: The common samples; else the fewer of those that either strength rests on.
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
    refused: Mapping[str, Unlinked | Unscored]
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
    names = rows[RELEASE].unique().to_pylist()
    if ORIGIN not in rows.column_names:
        position = pc.index_in(rows[RELEASE], pa.array(names)).to_numpy()
        _, (sample,) = encode(rows["sample_id"])
        oldest = np.full(sample.max() + 1, len(names))
        np.minimum.at(oldest, sample, position)
        rows = rows.append_column(ORIGIN, pa.array(names).take(pa.array(oldest[sample])))
    origin = pc.coalesce(rows[ORIGIN], rows[RELEASE])
    rows = rows.drop_columns([ORIGIN])
    # What has no rows of its own is older than what carries its samples.
    names = [name for name in origin.unique().to_pylist() if name not in names] + names
    cells = np.zeros(rows.num_rows, dtype=np.int64)
    for name in (key for key in TABLE.key if key in rows.column_names):
        values, (position,) = encode(rows[name].cast(pa.string()))
        cells = cells * len(values) + position
    origins, (position,) = encode(origin)
    check_once(TABLE, rows, cells * len(origins) + position)
    # A sample that is a release's own and carried too was rated once.
    _, first, same = np.unique(cells, return_index=True, return_inverse=True)
    rated = np.nan_to_num(rows["rating"].to_numpy(), nan=np.inf)
    if len(differs := np.flatnonzero(rated != rated[first][same])):
        key = format_key(rows.slice(int(differs[0]), 1).to_pylist()[0], TABLE.key)
        raise ScoreError(f"ratings: {key} has two ratings: expected one, also where it is carried")
    unique_rows, rated_releases = rows.take(pa.array(np.sort(first))), {}
    systems, samples = (
        tuple(sorted(rows[name].unique().to_pylist())) for name in ("system", "sample_id")
    )
    for name in rows[RELEASE].unique().to_pylist():
        chosen = unique_rows.filter(pc.equal(unique_rows[RELEASE], name)).drop_columns([RELEASE])
        table, here = read_ratings(chosen), pc.equal(rows[RELEASE], name)
        set_names, set_samples = origin.filter(here), rows["sample_id"].filter(here)
        sets = {
            part: np.isin(table.samples, set_samples.filter(pc.equal(set_names, part)).to_pylist())
            for part in set_names.unique().to_pylist()
        }
        places = np.searchsorted(systems, table.systems), np.searchsorted(samples, table.samples)
        rated_releases[name] = _Rated(table, *places, sets)
    return _Archive(tuple(names), systems, samples, rated_releases)


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

    def half_width(
        self, variance: Any, load: Any, confidence: float, *, side_by_side: bool = False
    ) -> Floats:
        """Return half intervals, NaN where nothing shows how large interactions are."""
        if self.samples < MIN_SAMPLES or not (self.freedom or side_by_side):
            return np.full(np.shape(variance), np.nan)
        sampled: Floats = compute_t_quantile(self.samples - 1, confidence) * np.sqrt(variance)
        if side_by_side:
            return sampled
        spread = np.sqrt(np.maximum(variance + load * self.interaction, 0))
        widest: Floats = np.maximum(sampled, compute_t_quantile(self.freedom, confidence) * spread)
        return widest

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


def _to_interval(value: Any, half: Any) -> Interval | None:
    return None if np.isnan(half) else (float(value - half), float(value + half))


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
    def links(self) -> list[set[str]]:
        """Releases of which one's systems were asked for the other's samples, and are newer."""
        return [
            {name, origin}
            for name in self.votes
            for origin in self.archive.rated[name].sets
            if {*self._list_rated(name, origin)} - {*self._list_rated(origin, origin)}
        ]

    def _select_pairs(self, sets: Collection[str] | None, release: str) -> list[_Votes]:
        """Select samples of some sets; a pair counts in that release, or the newest other one."""
        met, blocks = np.zeros((self.size[1],) * 2, dtype=bool), []
        for name in sorted(self.votes, key=release.__ne__):
            votes = self.votes[name]
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
        """Return the fit of a release's samples on the scale of these judges."""
        if release in self.votes or release not in self.archive.rated:
            blocks = self._select_pairs({release}, release)
            return lambda systems: _fit(blocks, systems, self.size)
        rated = self.archive.rated[release]
        voted = self._vote(release, rated.table.judges)
        again = [
            votes.select(mask & ~np.isnan(votes.verdicts).all(axis=0))
            for name, votes in self.votes.items()
            if (mask := self.archive.rated[name].sets.get(release)) is not None
        ]
        if not voted or release not in rated.sets or not again:
            return Unlinked.OTHER_JUDGES
        old = voted.select(rated.sets[release])
        rerated = max(again, key=lambda votes: len(votes.samples))
        new = rerated.select(np.isin(rerated.samples, old.samples))
        if len(new.samples) < MIN_RERATED:
            return Unlinked.OTHER_JUDGES
        part = old.select(np.isin(old.samples, new.samples))

        def fit(systems: Collection[int]) -> _Fit | None:
            both = {*systems}
            for votes in (new, old, part):
                fitted = _fit([votes], both, self.size)
                both &= {*fitted.systems.tolist()} if fitted else set()
            there, whole, same = (_fit([votes], both, self.size) for votes in (new, old, part))
            if not (there and whole and same):
                return None
            size = float((same.influence**2).sum()) or 1.0
            # How much the old judges tell of the new ones, the same for all systems.
            weight = float(np.clip((same.influence * there.influence).sum() / size, 0, 1))
            values = there.values + weight * (whole.values - same.values)
            change = weight * (whole.influence - same.influence)
            return there._replace(values=values, influence=there.influence + change)

        return fit

    def build(self) -> Ruler:
        """Compare all pairs and gather what there is to say."""
        names, total, releases = self.archive.systems, self.size[1], self.archive.releases
        wins, met = (np.zeros((total, total), dtype=int) for _ in range(2))
        for block in self._select_pairs({self.at} if self.method == "bridges" else None, self.at):
            first, second = block.pairs
            for sign, winner, loser in ((1, first, second), (-1, second, first)):
                wins[winner, loser] += (block.verdicts == sign).sum(axis=1)
                met[winner, loser] += (~np.isnan(block.verdicts)).sum(axis=1)
        sets = {self.at}
        if self.method != "bridges":
            sets = sets.union(*(link for link in self.links if self.at in link))
        blocks = self._select_pairs(sets, self.at)
        main = _fit(blocks, range(total), self.size)
        values, half, counts = np.full(total, np.nan), np.full(total, np.nan), np.zeros(total, int)
        halves, how, refused = (
            np.full((total, total), np.nan),
            dict[int, Link](),
            dict[int, Unlinked | Unscored](),
        )
        bend = None
        if main:
            own = self._list_rated(self.at, self.at)
            place, inside = main.systems, np.ix_(main.systems, main.systems)
            covariance = _cluster(main.influence, main.samples) + main.floor
            values[place], counts[place] = main.values, main.counts
            half[place] = self._scale_error(np.diag(covariance), main.counts)
            fewer = np.minimum(main.counts[:, None], main.counts)
            halves[inside] = self._scale_error(_compute_spread(covariance), fewer)
            for system in place.tolist():
                is_direct = system in own or met[system, own].any()
                how[system] = "common" if is_direct else "path"
                if math.isnan(half[system]):
                    refused[system] = Unscored.FEW_SAMPLES
            boards = self._list_boards(main, blocks, refused)
            if placed := _place(boards, self.at, self.confidence, range(total)):
                new = np.array([system not in how for system in placed.systems])
                place = placed.systems[new]
                values[place], half[place] = placed.values[new], placed.half[new]
                counts[place] = placed.counts[new]
                rows, columns = np.nonzero(new[:, None] | new)
                halves[placed.systems[rows], placed.systems[columns]] = placed.halves[rows, columns]
                bend = placed.bend._replace(
                    bridges=tuple(names[int(system)] for system in placed.bend.bridges)
                )
                for system, bridges, release in placed.routes:
                    if system not in how:
                        chained = release in self._list_chained()
                        how[system] = "path" if chained else "bridges"
                        refused.pop(system, None)
                        if reason := {1: Unlinked.ONE_BRIDGE, 2: Unlinked.TWO_BRIDGES}.get(bridges):
                            refused[system] = reason
        first_release = self._find_first()
        apart = Unlinked.NOT_COMMON if self.method == "common" else Unlinked.UNCONNECTED
        for system in range(total):
            if system not in how:
                is_rated = names[system] in first_release
                refused.setdefault(system, apart if is_rated else Unscored.NOT_RATED)

        def compare(system: int, other: int) -> Difference:
            if count := int(met[system, other]):
                won, lost = int(wins[system, other]), int(wins[other, system])
                ends: tuple[float | None, float | None] = (None, None)
                if count >= MIN_SAMPLES:
                    ends = _compute_share_interval(won, lost, count, self.confidence)
                return Difference(0.5 + (won - lost) / count / 2, *ends, count, "common")
            if system not in how or other not in how:
                return Difference(None, None, None, 0, None)
            middle, error = values[system] - values[other], halves[system, other]
            shares = 1 / (1 + np.exp(-np.array([middle, middle - error, middle + error])))
            middle_share, low, high = map(to_number, shares.tolist())
            link: Link = "bridges" if "bridges" in (how[system], how[other]) else "path"
            count = int(min(counts[system], counts[other]))
            return Difference(middle_share, low, high, count, link)

        place_of = {name: system for system, name in enumerate(names)}
        strength = by_rate(label(names, values))
        order = {name: place_of[name] for name in strength}
        return Ruler(
            strength=strength,
            interval={name: _to_interval(values[at], half[at]) for name, at in order.items()},
            differences={
                name: {other: compare(at, to) for other, to in order.items() if to != at}
                for name, at in order.items()
            },
            how={name: how.get(at) for name, at in order.items()},
            samples={name: int(counts[at]) for name, at in order.items()},
            first={name: first_release[name] for name in order if name in first_release},
            releases=releases,
            at=self.at,
            difficulty=_compute_difficulty(self.archive, self.at, self.confidence),
            judge_shift=self._compute_judge_shifts(),
            bend=bend,
            refused={name: refused[at] for name, at in order.items() if at in refused},
            definition={
                "measure": "ruler",
                "at": self.at,
                "judges": list(self.judges),
                "method": self.method,
                "vote": "plurality",
                "tie": 0.5,
                "confidence": self.confidence,
                "interval": {
                    "common": "score of paired shares (Tango 1998)",
                    "path": "Bradley-Terry by sample, or as bridges over several releases",
                    "bridges": "least squares with the interaction of system and release",
                },
                "common": sorted(sets, key=releases.index),
                "bend_level": BEND_LEVEL,
                "least_rerated": MIN_RERATED,
            },
        )

    def _scale_error(self, variance: Floats, counts: Integers) -> Floats:
        quantile = compute_t_quantile(np.maximum(counts - 1, 1), self.confidence)
        return np.where(counts < MIN_SAMPLES, np.nan, quantile * np.sqrt(variance))

    def _list_chained(self) -> set[str]:
        """Return the releases that newer systems link to `at`, step by step."""
        sets = {self.at}
        for _ in self.links:
            sets = sets.union(*(link for link in self.links if link & sets))
        return sets

    def _find_first(self) -> dict[str, str]:
        first: dict[str, str] = {}
        for release in self.archive.releases:
            for origin in self.archive.rated[release].sets if release in self.archive.rated else ():
                for system in self._list_rated(release, origin):
                    first.setdefault(self.archive.systems[system], release)
        return first

    def _list_boards(
        self, main: _Fit, blocks: list[_Votes], refused: dict[int, Unlinked | Unscored]
    ) -> dict[str, Board]:
        """Return the fits of releases with systems beyond the main fit, and say what has none."""
        boards: dict[str, Board] = {self.at: lambda systems: _fit(blocks, systems, self.size)}
        for release in self.archive.releases:
            if self.method == "common" and release not in self._list_chained():
                continue
            outside = {*self._list_rated(release, release).tolist()} - {*main.systems.tolist()}
            if release != self.at and outside:
                board = self._make_board(release)
                if isinstance(board, Unlinked):
                    refused.update(dict.fromkeys(outside, board))
                else:
                    boards[release] = board
        return boards

    def _compute_judge_shifts(self) -> dict[str, Change]:
        """Compare ratings of the same outputs by the judges of `at` and by a release's own."""
        shifts, here = dict[str, Change](), self.archive.rated[self.at]
        for release, there in self.archive.rated.items():
            if release not in here.sets or there.table.judges == self.judges:
                continue
            chosen, own = here.sets[release], there.sets.get(release, slice(0))
            names = (here.systems, here.samples[chosen], there.systems, there.samples)
            new = align_outputs(_average_judges(here.table)[:, chosen], *map(tuple, names))
            gaps = nan_mean((new - _average_judges(there.table))[:, own])
            if len(gaps := gaps[~np.isnan(gaps)]) > 1:
                error = self._scale_error(gaps.var(ddof=1) / len(gaps), np.array(len(gaps)))
                shifts[release] = Change(gaps.mean().item(), _to_interval(gaps.mean(), error))
        return shifts


def _compute_spread(covariance: Floats) -> Floats:
    """Return the variance of each difference."""
    variance = np.diag(covariance)
    return np.maximum(variance[:, None] + variance - 2 * covariance, 0)


class _Placed(NamedTuple):
    """Systems placed by others that several releases have.

    `routes` are each system's place, the bridges of its narrowest step, and its release.
    """

    systems: Integers
    values: Floats
    half: Floats
    halves: Floats
    counts: Integers
    routes: list[tuple[int, int, str]]
    bend: Bend


def _place(
    boards: Mapping[str, Board], at: str, confidence: float, everyone: Collection[int]
) -> _Placed | None:
    """Place systems of all releases by least squares."""
    fits = {name: fitted for name, board in boards.items() if (fitted := board(everyone))}
    members = {name: {*fitted.systems.tolist()} for name, fitted in fits.items()}
    # Each release by as many bridges as the narrowest step on the way to it has.
    reached = {at: len(members[at])}
    while waiting := fits.keys() - reached:
        widths = {
            name: max(min(reached[near], len(members[name] & members[near])) for near in reached)
            for name in sorted(waiting)
        }
        widest = max(widths, key=widths.__getitem__)
        if not widths[widest]:
            break
        reached[widest] = widths[widest]
    if len(reached) < 2:
        return None
    grid = _build_grid([(name, fits[name]) for name in reached])
    appearances = [system for name in reached for system in members[name]]
    bridges = sorted({system for system in appearances if appearances.count(system) > 1})
    routes = [
        max((reached[name], name) for name in reached if system in members[name])
        for system in grid.rows
    ]
    weights, loads, extra = grid.predict(at)
    covariance = weights @ grid.covariance @ weights.T
    half = grid.half_width(np.diag(covariance), (loads**2).sum(axis=1) + extra, confidence)
    load = ((loads[:, None] - loads) ** 2).sum(axis=2) + extra[:, None] + extra
    halves = grid.half_width(_compute_spread(covariance), load, confidence)
    single = np.array([count < 2 for count, _ in routes])
    half[single], halves[single[:, None] | single] = np.nan, np.nan
    counts: dict[int, int] = {}
    for name in reached:
        for system, count in zip(fits[name].systems.tolist(), fits[name].counts, strict=True):
            counts.setdefault(system, int(count))
    # On bridges alone: a field of others that moved would be taken for bridges that did.
    refits = [(name, fitted) for name in reached if (fitted := boards[name](bridges))]
    p_value = _build_grid(refits).test_interaction() if len(refits) > 1 else None
    return _Placed(
        np.array([*grid.rows], dtype=np.int64),
        weights @ grid.values,
        half,
        halves,
        np.array([counts[int(str(system))] for system in grid.rows]),
        [(int(str(system)), *route) for system, route in zip(grid.rows, routes, strict=True)],
        Bend(p_value, p_value is not None and p_value < BEND_LEVEL, tuple(map(str, bridges))),
    )


def _build_grid(fits: Sequence[tuple[str, _Fit]]) -> _Grid:
    parts = [
        fitted.influence * math.sqrt(fitted.samples / max(fitted.samples - 1, 1))
        for _, fitted in fits
    ]
    influence, start = np.hstack(parts), 0
    covariance = influence.T @ influence
    for _, fitted in fits:
        end = start + len(fitted.systems)
        covariance[start:end, start:end] += fitted.floor
        start = end
    return _Grid(
        [(system, name) for name, fitted in fits for system in fitted.systems.tolist()],
        np.concatenate([fitted.values for _, fitted in fits]),
        covariance,
        min(fitted.samples for _, fitted in fits),
    )


def _average_judges(table: RatingTable) -> Floats:
    """Return the mean rating [system, sample] by all judges who were asked about everything."""
    complete = table.complete if table.complete.judges else table
    averages: Floats = complete.ratings.mean(axis=0)
    return averages


def _compute_difficulty(archive: _Archive, at: str, confidence: float) -> dict[str, Change | None]:
    """Compare mean ratings of the same systems by the same judges on samples of two releases."""
    cells, columns, means, counts = [], list[Floats](), list[float](), list[int]()
    for release, rated in archive.rated.items():
        averages = _average_judges(rated.table)
        for origin, chosen in rated.sets.items():
            rows = np.where(chosen, averages, np.nan)
            for system, row in zip(rated.systems.tolist(), rows, strict=True):
                if (count := int((~np.isnan(row)).sum())) > 1:
                    column, mean = np.zeros(len(archive.samples)), float(np.nanmean(row))
                    column[rated.samples] = np.nan_to_num(row - mean) / math.sqrt(
                        count * (count - 1)
                    )
                    cells.append((release, rated.table.judges, system, origin))
                    columns.append(column)
                    means.append(mean)
                    counts.append(count)
    difficulty: dict[str, Change | None] = dict.fromkeys(archive.releases)
    most = 1
    # Side by side in the same release first; else the same system, rated in two of them.
    for side_by_side in (True, False):
        pairs = [((cell[0] if side_by_side else cell[1], cell[2]), cell[3]) for cell in cells]
        linked, size = {at}, 0
        while size < len(linked):
            size, witnesses = len(linked), {row for row, origin in pairs if origin in linked}
            linked |= {origin for row, origin in pairs if row in witnesses}
        if size <= most:
            continue
        most, difficulty = size, dict.fromkeys(archive.releases)
        order = [number for number, cell in enumerate(cells) if cell[3] in linked]
        order.sort(key=lambda number: archive.releases.index(cells[number][3]))
        influence = np.array([columns[number] for number in order]).T
        grid = _Grid(
            [pairs[number] for number in order],
            np.array([means[number] for number in order]),
            influence.T @ influence,
            min(counts[number] for number in order),
        )
        for name, number in grid.columns.items():
            # Samples that are rated lower are harder.
            effects = grid.solution[0][len(grid.rows) :]
            weights = effects[0] - effects[number]
            variance, load = weights @ grid.covariance @ weights, weights @ weights
            half = grid.half_width(variance, load, confidence, side_by_side=side_by_side)
            bounds = _to_interval(weights @ grid.values, half) if number else None
            difficulty[str(name)] = Change(float(weights @ grid.values), bounds)
    return difficulty
