"""One scale for the systems of all releases: common samples first, systems as bridges else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.bootstrap import LEVEL, MIN_SAMPLES, MIN_SPREAD, Interval, Unscored, generator
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf.errors import ScoreError, unknown
from echo_hf.reasons import Reason
from echo_hf.scores.estimate import compute_t_quantile
from echo_hf.scores.non_inferiority import score_interval
from echo_hf.scores.rating_table import (
    OPTIONAL,
    REQUIRED,
    RUBRIC,
    SPLIT,
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
from echo_hf.scores.release_links import (
    DRAWN_POINT,
    Fit,
    LeastSquares,
    Verdicts,
    fit_components,
    refine,
    widest_links,
)
from echo_hf.scores.votes import JudgeVotes, by_rate, list_pairs
from echo_hf.scores.win_rate import warn_mixed_splits
from echo_hf.tables import RATINGS, Column, select_first_draws

RELEASE, ORIGIN = "release", "carried_from"
_TEXT = RATINGS.columns["system"].feature
RULER_ROWS = replace(
    RATINGS.add_columns(
        {
            RELEASE: Column(_TEXT, "the release that it was rated for"),
            ORIGIN: Column(_TEXT, "the release that the sample is carried from, else null"),
        }
    ),
    key=(*RATINGS.key, RELEASE),
)
MIN_RERATED = 20  # samples; with fewer, what a change of judges did is guessed
VERDICT_BRIDGES = 3
BEND_LEVEL = 0.05
Method = Literal["auto", "common", "bridges"]
Link = Literal["common", "path", "bridges"]


class Unlinked(Reason):
    """Why a system has no strength on the ruler, no interval, or no verdict."""

    UNCONNECTED = "unconnected", "no samples and no systems in common lead to it"
    OTHER_JUDGES = (
        "other_judges",
        "other judges rated it, and those that count rated fewer than 20 of its samples again",
    )
    ONE_BRIDGE = (
        "one_bridge",
        "a single system links it, and how far that one moved cannot be seen: no interval",
    )
    TWO_BRIDGES = "two_bridges", "two systems link it, too few for a verdict"


class Difference(NamedTuple):
    """How often a system is rated above another: a share from 0 to 1, ties half.

    Attributes:
        estimate: The share; 0.5 where they are as good as each other. Null where nothing links
            them.
        low: Lower end of the interval, null where there is none.
        high: Its upper end.
        samples: The common samples; along a chain of pairs, those of the link with the fewest.
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
        p: Probability of residuals as large if they all did; null with one bridge.
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
            `at`; 0 is the mean of the systems that were rated on its own samples. Null where
            `refused` says why.
        interval: Lower and upper end of it, null where there is none.
        differences: By system and other system what `difference` returns.
        how: What links a system to those of `at`: `common`, samples that both were rated on;
            `path`, a chain of such pairs on samples of one release; `bridges`, systems that were
            rated on samples of several releases. Null where nothing does.
        samples: On how many samples the judges of `at` compared it with another system.
        first: The oldest release on whose samples a system was rated for that release; else the
            oldest that rated it.
        releases: All releases, the oldest first.
        at: The release whose judges count.
        difficulty: By how many rating points the samples of a release are rated lower than those
            of the oldest one that is linked, which has 0: the same systems by the same judges.
            Null for a release that nothing links.
        judge_shift: By how many points the judges of `at` rate the same outputs of an earlier
            release higher than its own judges did, where these are others.
        bend: Whether bridges kept their distances; null where nothing rests on bridges.
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
        return {"strength": self.strength, **ends, "samples": self.samples, "reason": self.refused}

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

    def path(self, system: str, other: str) -> tuple[str, ...]:
        """Return the shortest chain of systems each two of which share samples.

        Args:
            system: The system that it begins with.
            other: The one that it ends with.

        Returns:
            Their names; none where no chain leads there.

        Raises:
            ScoreError: As for `difference`.
        """
        self.difference(system, other)
        chains: dict[str, tuple[str, ...]] = {system: (system,)}
        queue = [system]
        for name in queue:
            for neighbor, pair in self.differences[name].items():
                if pair.how == "common" and neighbor not in chains:
                    chains[neighbor] = (*chains[name], neighbor)
                    queue.append(neighbor)
        return chains.get(other, ())

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        differences = {
            name: {other: pair._asdict() for other, pair in row.items()}
            for name, row in self.differences.items()
        }
        changes = {
            field: {name: change and change._asdict() for name, change in vars(self)[field].items()}
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
    judges rated on the same samples do, also where one of them is long gone and only its outputs
    were kept. So `common` is the share of those samples that one wins, with the score interval for
    paired shares (Tango 1998). Strengths (Bradley-Terry, clustered by sample) are fitted to the
    samples of each release, and compare those that never met there but met the same others
    (`path`). Systems that were rated on samples of several releases link these by least squares
    (`bridges`), as if all kept their distances; how far the bridges do not widens the intervals
    and is tested (`bend`). One bridge gives no interval, two no verdict. Samples that other judges
    rated link a release once those of `at` rated 20 of them again; what the others said of the
    rest then sharpens its strengths.

    Args:
        ratings: Rows as for `win_rate`, of the rubric `overall`, with `release`, the oldest first,
            and `carried_from`: null for a release's own samples, else the release that a sample is
            taken from. Without that column a sample of several releases is the oldest one's own.
        at: The release whose judges count; the last when null. Of a pair that its own samples
            compare no other row counts; else its carried ones; else those of the newest release
            that all these judges rated.
        method: `common`: common samples and paths alone; `bridges`: strengths alone, also of
            systems with common samples; `auto`: whatever is nearest to common samples.
        confidence: Of the intervals, from 0.5 to 1.
        seed: Checked as everywhere, and without effect: nothing here is drawn by chance.

    Returns:
        Strengths, differences with what they rest on, how hard each release is, and what a change
        of judges did.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Ratings contradict each other, or a choice is none of those there are.

    Examples:
        >>> rows = {"sample_id": [f"{at:02}" for at in range(40)] * 2, "judge": ["j"] * 80}
        >>> rows |= {"system": ["new"] * 40 + ["retired"] * 40, "release": ["2026-05"] * 80}
        >>> rows |= {"rating": [6] * 20 + [5] * 10 + [4] * 10 + [5] * 40}
        >>> pair = ruler(rows).difference("new", "retired")
        >>> pair.estimate, round(pair.low, 3), round(pair.high, 3), pair.samples, pair.how
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
    chosen = at if at is not None else [*boards.rated][-1]
    return _Scale(boards, chosen, method, confidence).build()


class _Rated(NamedTuple):
    """The ratings of a release; `origins` are its samples by the release that they are of."""

    table: RatingTable
    systems: Integers  # positions among those of all releases, as `samples`
    samples: Integers
    origins: Mapping[str, Bools]


class _Boards(NamedTuple):
    releases: tuple[str, ...]
    systems: tuple[str, ...]
    samples: tuple[str, ...]
    rated: Mapping[str, _Rated]


def _read(ratings: Any) -> _Boards:
    rows = read_columns(ratings, RULER_ROWS, (*REQUIRED, RELEASE), (*OPTIONAL, ORIGIN))
    if not rows.num_rows:
        raise ScoreError("ratings: no rows: expected those of one or more releases")
    if "rubric" in rows.column_names:
        chosen = pc.equal(rows["rubric"], RUBRIC).fill_null(False)
        if not pc.any(chosen).as_py():
            kinds = map(str, rows["rubric"].unique().to_pylist())
            raise ScoreError(f"ratings: {unknown('rubric', RUBRIC, kinds)}")
        rows = rows.filter(chosen)
    rows = select_first_draws(rows)
    if SPLIT in rows.column_names:
        warn_mixed_splits(rows[SPLIT].unique().drop_null().to_pylist(), stacklevel=3)
    own, (samples, (sample,)) = rows[RELEASE], encode(rows["sample_id"])
    named = own.unique().to_pylist()
    if ORIGIN in rows.column_names:
        origin = pc.coalesce(rows[ORIGIN], own)
        rows = rows.drop_columns([ORIGIN])
    else:
        oldest = np.full(len(samples), len(named))
        np.minimum.at(oldest, sample, _number(rows, [RELEASE]))
        origin = pa.array(named, pa.string()).take(pa.array(oldest[sample]))
    rows = rows.append_column(ORIGIN, origin)
    output = ["sample_id", "system", "judge", *({"repeat"} & {*rows.column_names}), RELEASE]
    check_once(RULER_ROWS, rows, _number(rows, [*output, ORIGIN]))
    _, first, cell = np.unique(_number(rows, output), return_index=True, return_inverse=True)
    rating = np.nan_to_num(rows["rating"].to_numpy(), nan=np.inf)
    if len(differing := np.flatnonzero(rating != rating[first][cell])):
        key = format_key(rows.slice(int(differing[0]), 1).to_pylist()[0], RULER_ROWS.key)
        raise ScoreError(f"ratings: {key} is there twice: expected one rating, also where carried")
    is_first = np.zeros(len(rating), dtype=bool)
    is_first[first] = True
    pairs = zip(origin.to_pylist(), own.to_pylist(), strict=True)
    releases = dict.fromkeys(name for pair in dict.fromkeys(pairs) for name in pair)
    systems = encode(rows["system"])[0]
    places = [{name: at for at, name in enumerate(names)} for names in (systems, samples)]
    rated = {}
    for release in named:
        of_release = np.asarray(pc.equal(own, release))
        table = read_ratings(rows.filter(pa.array(of_release & is_first)).drop_columns([ORIGIN]))
        part = rows.filter(pa.array(of_release)).select([ORIGIN, "sample_id"])
        ids = {
            name: {*part.filter(pc.equal(part[ORIGIN], name))["sample_id"].to_pylist()}
            for name in part[ORIGIN].unique().to_pylist()
        }
        rated[release] = _Rated(
            table,
            np.array([places[0][name] for name in table.systems], dtype=np.int64),
            np.array([places[1][name] for name in table.samples], dtype=np.int64),
            {
                name: np.array([id_ in known for id_ in table.samples])
                for name, known in ids.items()
            },
        )
    return _Boards(tuple(releases), systems, samples, rated)


def _number(rows: pa.Table, columns: Sequence[str]) -> Integers:
    """Number the distinct rows of some columns."""
    numbers = np.zeros(rows.num_rows, dtype=np.int64)
    for name in columns:
        codes = rows[name].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        _, numbers = np.unique(numbers * (codes.max() + 1) + codes, return_inverse=True)
    return numbers


class _Panel(NamedTuple):
    """Verdicts and ratings in a release's rows, by the judges that count."""

    verdicts: Verdicts
    ratings: Floats  # [system, sample], means over the judges where all of them rated
    rated: _Rated


@dataclass(frozen=True)
class _Group:
    """Strengths on samples of one release."""

    origin: str
    fit: Fit
    verdicts: Verdicts
    whole: Verdicts | None  # of all samples of the release by its own judges
    is_linked: bool  # whether it may link its systems to other groups


class _Place(NamedTuple):
    """How strengths place a system in the home group: by weights of all cells."""

    weights: Floats
    how: Link
    group: int | None  # the one that holds it and all systems of the home group


class _Scale:
    """The groups of samples, the systems in each, and what they say of each other.

    A cell is the strength of a system in a group; the home group are the own samples of `at`.
    """

    def __init__(self, boards: _Boards, at: str, method: Method, confidence: float) -> None:
        self.boards, self.at, self.method, self.confidence = boards, at, method, confidence
        self.judges = boards.rated[at].table.judges
        order = [at, *(name for name in reversed([*boards.rated]) if name != at)]
        self.panels = {
            name: _Panel(_vote(rated, self.judges), _average(rated, self.judges), rated)
            for name in order
            if {*self.judges} <= {*(rated := boards.rated[name]).table.judges}
        }
        groups = [group for origin in boards.releases for group in self._fit_groups(origin)]
        here, none = boards.rated[at].systems, np.zeros(0, dtype=np.int64)
        groups.sort(
            key=lambda group: (
                group.origin == at,
                len(np.intersect1d(group.fit.systems, here)),
                group.fit.size,
            ),
            reverse=True,
        )
        self.groups = groups
        self.home = groups[0].fit.systems if groups else none
        keys = [
            (at, int(system)) for at, group in enumerate(groups) for system in group.fit.systems
        ]
        self.cells = {key: cell for cell, key in enumerate(keys)}
        self.cell_groups, self.cell_systems = np.array(keys, dtype=np.int64).reshape(-1, 2).T
        self.values = np.concatenate([np.zeros(0), *(group.fit.strength for group in groups)])
        self.covariance = _covary([group.fit for group in groups], len(boards.samples))
        self.member = np.zeros((len(groups), len(boards.systems)), dtype=bool)
        self.member[self.cell_groups, self.cell_systems] = True
        self.is_linked = np.array([group.is_linked for group in groups], dtype=bool)
        shared = (self.member & self.is_linked[:, None]).astype(np.int64)
        self.bridge_counts = widest_links(shared @ shared.T)
        self.compared, self.won, self.lost = self._count_pairs()

    def _fit_groups(self, origin: str) -> Iterator[_Group]:
        """Fit strengths to the samples of a release by the judges that count."""
        parts = [
            panel.verdicts.on_samples(panel.rated.origins[origin])
            for panel in self.panels.values()
            if origin in panel.rated.origins
        ]
        verdicts, whole = _join(parts), None
        own = self.boards.rated.get(origin)
        if origin != self.at and own is not None and origin in own.origins:
            whole = _vote(own, own.table.judges).on_samples(own.origins[origin])
        has_other_judges = self._has_other_judges(origin)
        for fit in fit_components(verdicts):
            is_linked = fit.size >= (MIN_RERATED if has_other_judges else MIN_SAMPLES)
            pairs = verdicts.of_systems(fit.systems)
            if whole is not None and is_linked:
                fit = refine(fit, whole, len(self.boards.samples))
            yield _Group(origin, fit, pairs, whole, is_linked)

    def _count_pairs(self) -> tuple[Integers, Integers, Integers]:
        """Count samples, wins and losses of each pair: on own samples of `at`, else where any are.

        So what the ruler says of two systems that `at` compares is what the board of `at` says.
        """
        size = len(self.boards.systems)
        compared, won, lost = (np.zeros((size, size), dtype=np.int64) for _ in range(3))
        parts = [panel.verdicts for panel in self.panels.values()]
        if (own := self.panels[self.at].rated.origins.get(self.at)) is not None:
            parts.insert(0, self.panels[self.at].verdicts.on_samples(own))
        for values, first, second, _ in parts:
            wins, ties, losses = ((values == verdict).sum(axis=1) for verdict in (1, 0, -1))
            met = wins + ties + losses
            is_new = (met > 0) & (compared[first, second] == 0)
            row, column = first[is_new], second[is_new]
            compared[row, column] = compared[column, row] = met[is_new]
            won[row, column] = lost[column, row] = wins[is_new]
            won[column, row] = lost[row, column] = losses[is_new]
        return compared, won, lost

    @cached_property
    def links(self) -> LeastSquares:
        """The strengths of systems and a constant of each group, from groups that may link."""
        cells = np.flatnonzero(self.is_linked[self.cell_groups])
        design = self._design(self.cell_groups[cells], self.cell_systems[cells])
        counts = [group.fit.size for group in self.groups if group.is_linked]
        covariance = self.covariance[np.ix_(cells, cells)]
        return LeastSquares(self.values[cells], covariance, design, min(counts))

    def _design(self, groups: Integers, systems: Integers) -> Floats:
        sizes = len(self.boards.systems), len(self.groups)
        rows = np.hstack([np.eye(sizes[0])[systems], np.eye(sizes[1])[groups]])
        return np.delete(rows, sizes[0], axis=1)  # the home group has no constant

    def _place(self, system: int) -> _Place | None:
        """Place a system in the home group, by the nearest to common samples that there is."""
        weights = np.zeros(len(self.values))
        if self.member[:1, system].any():
            weights[self.cells[0, system]] = 1.0
            return _Place(weights, "common", 0)
        holding = self.member[:, system] & self.member[:, self.home].all(axis=1)
        if holding.any() and self.method != "bridges":
            held = map(int, np.flatnonzero(holding))
            group = max(held, key=lambda at: self.groups[at].fit.size)
            weights[self.cells[group, system]] = 1.0
            for other in self.home:
                weights[self.cells[group, int(other)]] -= 1 / len(self.home)
                weights[self.cells[0, int(other)]] += 1 / len(self.home)
            is_direct = self.compared[system, self.home].any()
            return _Place(weights, "common" if is_direct else "path", group)
        if self.method == "common" or not len(self.home) or not self.is_linked[0]:
            return None
        row = self._design(np.zeros(1, dtype=np.int64), np.array([system]))[0]
        chosen = self.links.find_weights(row)
        if chosen is None:
            return None
        weights[self.is_linked[self.cell_groups]] = chosen
        return _Place(weights, "bridges", None)

    def build(self) -> Ruler:
        """Compute everything that the ruler says."""
        names = self.boards.systems
        places = [self._place(system) for system in range(len(names))]
        zero = np.zeros(len(self.values))
        if len(self.home):
            zero[: len(self.home)] = 1 / len(self.home)
        strength = dict[str, float | None]()
        interval, refused = dict[str, Interval | None](), dict[str, Unlinked | Unscored]()
        for system, (name, place) in enumerate(zip(names, places, strict=True)):
            strength[name] = interval[name] = None
            if place is None:
                is_held = self.member[:, system] & ~self.is_linked
                is_rated = any(system in panel.rated.systems for panel in self.panels.values())
                refused[name] = Unlinked.UNCONNECTED
                if is_held.any() or not is_rated:
                    held = [self.groups[at] for at in np.flatnonzero(is_held)]
                    others = [group for group in held if self._has_other_judges(group.origin)]
                    is_few = held and not others
                    refused[name] = Unscored.FEW_SAMPLES if is_few else Unlinked.OTHER_JUDGES
                elif not self.compared[system].any():
                    refused[name] = Unscored.NOTHING_IN_COMMON
                continue
            weights = place.weights - zero
            estimate = strength[name] = float(weights @ self.values)
            half, reason = self._half_width(system, weights, place)
            if reason:
                refused[name] = reason
            if half is not None:
                interval[name] = estimate - half, estimate + half
        strength = by_rate(strength)
        position = {name: system for system, name in enumerate(names)}
        pairs = self._compare_pairs(places)
        return Ruler(
            strength,
            {name: interval[name] for name in strength},
            {
                name: {
                    other: pairs[position[name], position[other]]
                    for other in strength
                    if other != name
                }
                for name in strength
            },
            {name: place.how if (place := places[position[name]]) else None for name in strength},
            dict(zip(names, self._count_samples(), strict=True)),
            self._find_first(),
            self.boards.releases,
            self.at,
            self._measure_difficulty(),
            self._measure_judge_shift(),
            self._test_bend(pairs.values()),
            {name: refused[name] for name in strength if name in refused},
            {
                "measure": "ruler",
                "at": self.at,
                "method": self.method,
                "confidence": self.confidence,
                "judges": list(self.judges),
                "rubric": RUBRIC,
                "vote": "plurality",
                "common": "score of paired shares",
                "strengths": "Bradley-Terry, clustered by sample",
                "drawn_point": DRAWN_POINT,
                "bridges": "least squares over releases",
                "min_rerated": MIN_RERATED,
            },
        )

    def _half_width(
        self, system: int, weights: Floats, place: _Place
    ) -> tuple[float | None, Unlinked | Unscored | None]:
        """Return half of a strength's interval, and why there is none, or no verdict."""
        variance = float(weights @ self.covariance @ weights)
        if place.group is not None:
            count = self.groups[place.group].fit.size
            if count < MIN_SAMPLES:
                return None, Unscored.FEW_SAMPLES
            return float(compute_t_quantile(count - 1, self.confidence) * np.sqrt(variance)), None
        own = np.flatnonzero(self.member[:, system] & self.is_linked)
        bridges = int(self.bridge_counts[own, 0].max(initial=0))
        if bridges < 2:
            return None, Unlinked.ONE_BRIDGE
        if self.links.samples < MIN_SAMPLES:
            return None, Unscored.FEW_SAMPLES
        load = float(place.weights @ place.weights) + 1.0
        half = self.links.half_width(variance, load, self.confidence)
        return half, Unlinked.TWO_BRIDGES if bridges < VERDICT_BRIDGES else None

    def _count_bridges(self, system: int, other: int) -> int:
        """Return how many systems link two at the weakest place between their groups."""
        sides = (np.flatnonzero(self.member[:, at] & self.is_linked) for at in (system, other))
        return int(self.bridge_counts[np.ix_(*sides)].max(initial=0))

    def _compare_pairs(self, places: Sequence[_Place | None]) -> dict[tuple[int, int], Difference]:
        """Compare each two systems, in both orders."""
        chains, pairs = widest_links(self.compared), dict[tuple[int, int], Difference]()
        for system, other in zip(*map(np.ndarray.tolist, list_pairs(len(places))), strict=True):
            pair = self._count_shares(system, other)
            if pair is None:
                pair = self._compare_strengths(system, other, places)
                pair = pair._replace(samples=int(chains[system, other])) if pair.how else pair
            estimate, high, low = (
                None if end is None else 1 - end for end in (pair.estimate, pair.low, pair.high)
            )
            pairs[system, other] = pair
            pairs[other, system] = Difference(estimate, low, high, pair.samples, pair.how)
        return pairs

    def _count_shares(self, system: int, other: int) -> Difference | None:
        count = int(self.compared[system, other])
        if not count or self.method == "bridges":
            return None
        won, lost = int(self.won[system, other]), int(self.lost[system, other])
        low = high = None
        if count >= MIN_SAMPLES:
            ends = score_interval(won, lost, count, (1 + self.confidence) / 2)
            low, high = (0.5 + end for end in ends)
        return Difference(0.5 + (won - lost) / count / 2, low, high, count, "common")

    def _compare_strengths(
        self, system: int, other: int, places: Sequence[_Place | None]
    ) -> Difference:
        """Compare two systems that share no samples, in a group of both or by least squares."""
        groups = np.flatnonzero(self.member[:, system] & self.member[:, other])
        half: float | None = None
        how: Link = "path"
        if len(groups):
            group, weights = int(groups[0]), np.zeros(len(self.values))
            weights[self.cells[group, system]], weights[self.cells[group, other]] = 1.0, -1.0
            count = self.groups[group].fit.size
            if count >= MIN_SAMPLES:
                error = float(np.sqrt(weights @ self.covariance @ weights))
                half = float(compute_t_quantile(count - 1, self.confidence)) * error
        else:
            sides = [place for place in (places[system], places[other]) if place is not None]
            if len(sides) < 2 or self.method == "common":
                return Difference(None, None, None, 0, None)
            weights, how = sides[0].weights - sides[1].weights, "bridges"
            bridges = self._count_bridges(system, other)
            if bridges > 1 and self.links.samples >= MIN_SAMPLES:
                away = [side.weights for side in sides if side.group != 0]
                load = float(((away[0] - away[1] if len(away) > 1 else away[0]) ** 2).sum())
                variance = float(weights @ self.covariance @ weights)
                half = self.links.half_width(variance, load + len(away), self.confidence)
        gap = float(weights @ self.values)
        if half is None:
            return Difference(_to_share(gap), None, None, 0, how)
        return Difference(_to_share(gap), _to_share(gap - half), _to_share(gap + half), 0, how)

    def _count_samples(self) -> list[int]:
        """Count the samples on which each system was compared by the judges that count."""
        met = np.zeros((len(self.boards.systems), len(self.boards.samples)), dtype=bool)
        for panel in self.panels.values():
            values, first, second, samples = panel.verdicts
            for system in panel.rated.systems:
                pairs = values[(first == system) | (second == system)]
                met[system, samples] |= (~np.isnan(pairs)).any(axis=0)
        counts: list[int] = met.sum(axis=1).tolist()
        return counts

    def _find_first(self) -> dict[str, str]:
        first = dict[str, str]()
        for only_own in (True, False):
            for name, rated in self.boards.rated.items():
                own = rated.origins.get(name, np.zeros(len(rated.samples), dtype=bool))
                values = rated.table.ratings[..., own] if only_own else rated.table.ratings
                is_rated = np.array((~np.isnan(values)).any(axis=(0, 2)))
                for system, counts in zip(rated.table.systems, is_rated, strict=True):
                    if counts or not only_own:
                        first.setdefault(system, name)
        return first

    def _measure_difficulty(self) -> dict[str, Change | None]:
        """Measure by witnesses of the same release, or by bridges where these reach further."""
        changes = dict.fromkeys(self.boards.releases, None) | self._compare_ratings(False)
        if self.method != "common":
            linked = dict.fromkeys(self.boards.releases, None) | self._compare_ratings(True)
            is_wider = sum(map(bool, linked.values())) > sum(map(bool, changes.values()))
            if is_wider or self.method == "bridges":
                return linked
        return changes

    def _compare_ratings(self, use_bridges: bool) -> dict[str, Change]:
        """Compare mean ratings of the same systems on samples of several releases."""
        names, keys, means = self.boards.releases, list[tuple[Any, int]](), list[float]()
        rows, counts = list[Floats](), list[int]()
        for release, panel in self.panels.items():
            for origin, chosen in panel.rated.origins.items():
                if use_bridges and self._has_other_judges(origin) and chosen.sum() < MIN_RERATED:
                    continue
                for system, ratings in zip(panel.rated.systems, panel.ratings, strict=True):
                    is_rated = chosen & ~np.isnan(ratings)
                    if (count := int(is_rated.sum())) >= MIN_SAMPLES:
                        row = np.zeros(len(self.boards.samples))
                        deviations = ratings[is_rated] - ratings[is_rated].mean()
                        row[panel.rated.samples[is_rated]] = deviations / np.sqrt(
                            count * (count - 1)
                        )
                        key = int(system) if use_bridges else (release, int(system))
                        keys.append((key, names.index(origin)))
                        means.append(float(ratings[is_rated].mean()))
                        rows.append(row)
                        counts.append(count)
        present = sorted({origin for _, origin in keys})
        if len(present) < 2:
            return {}
        witnesses = {key: at for at, key in enumerate(dict.fromkeys(key for key, _ in keys))}
        design = np.zeros((len(keys), len(witnesses) + len(names)))
        for cell, (key, place) in enumerate(keys):
            design[cell, witnesses[key]], design[cell, len(witnesses) + place] = 1.0, -1.0
        influence = np.array(rows)
        links = LeastSquares(np.array(means), influence @ influence.T, design, min(counts))

        def weigh(number: int, other: int) -> Floats | None:
            contrast = np.zeros(design.shape[1])
            contrast[len(witnesses) + number] += 1.0
            contrast[len(witnesses) + other] -= 1.0
            return links.find_weights(contrast)

        last = names.index(self.at) if names.index(self.at) in present else present[-1]
        oldest = next(number for number in present if weigh(number, last) is not None)
        changes = dict[str, Change]()
        for number in present:
            weights = weigh(number, oldest)
            if weights is None or (oldest == last and len(present) > 1 and number == oldest):
                continue
            ends: Interval | None = None
            if number != oldest and (links.df or not use_bridges):
                load = float(weights @ weights) if use_bridges else 0.0
                variance = float(weights @ links.covariance @ weights)
                half = links.half_width(variance, load, self.confidence)
                ends = float(weights @ links.values) - half, float(weights @ links.values) + half
            changes[names[number]] = Change(float(weights @ links.values), ends)
        return changes

    def _measure_judge_shift(self) -> dict[str, Change]:
        """Compare ratings of the same outputs by the judges that count and by the earlier ones."""
        changes = dict[str, Change]()
        for origin, rated in self.boards.rated.items():
            panels = (panel for name, panel in self.panels.items() if name != origin)
            panel = next((panel for panel in panels if origin in panel.rated.origins), None)
            if panel is None or {*rated.table.judges} == {*self.judges}:
                continue
            names = rated.table.systems, rated.table.samples
            again = align_outputs(
                np.where(panel.rated.origins[origin], panel.ratings, np.nan),
                panel.rated.table.systems,
                panel.rated.table.samples,
                *names,
            )
            own = rated.origins.get(origin, np.zeros(len(rated.samples), dtype=bool))
            change = (again - _average(rated, rated.table.judges))[:, own]
            total = int((~np.isnan(change)).sum())
            if not total:
                continue
            mean = float(np.nansum(change) / total)
            sums = np.nansum(change - mean, axis=0) / total
            count = int((~np.isnan(change)).any(axis=0).sum())
            ends: Interval | None = None
            if count >= MIN_SAMPLES and np.ptp(change[~np.isnan(change)]) > MIN_SPREAD:
                error = np.sqrt((sums**2).sum() * count / (count - 1))
                half = float(compute_t_quantile(count - 1, self.confidence) * error)
                ends = mean - half, mean + half
            changes[origin] = Change(mean, ends)
        return changes

    def _test_bend(self, pairs: Iterable[Difference]) -> Bend | None:
        """Test on the bridges alone whether they keep their distances."""
        if all(pair.how != "bridges" for pair in pairs):
            return None
        is_bridge = self.member[self.is_linked].sum(axis=0) > 1
        names = tuple(np.array(self.boards.systems, dtype=object)[is_bridge])
        fits, groups = list[Fit](), list[int]()
        for at in np.flatnonzero(self.is_linked):
            group = self.groups[at]
            for fit in fit_components(group.verdicts.of_systems(np.flatnonzero(is_bridge))):
                whole = group.whole
                fits.append(fit if whole is None else refine(fit, whole, len(self.boards.samples)))
                groups.append(int(at))
        p = None
        if len(fits) > 1:
            cells = [(at, system) for at, fit in enumerate(fits) for system in fit.systems]
            at, system = np.array(cells).T
            design = np.hstack([np.eye(len(self.boards.systems))[system], np.eye(len(fits))[at]])
            values = np.concatenate([fit.strength for fit in fits])
            covariance = _covary(fits, len(self.boards.samples))
            count = min(fit.size for fit in fits)
            p = LeastSquares(values, covariance, design, count).bend_p()
        return Bend(p, p is not None and p < BEND_LEVEL, names)

    def _has_other_judges(self, release: str) -> bool:
        return release in self.boards.rated and release not in self.panels


def _vote(rated: _Rated, judges: Sequence[str]) -> Verdicts:
    table = rated.table.of_judges(np.isin(rated.table.judges, judges))
    verdicts = JudgeVotes(table, "corrected", "exclude", RUBRIC).pair_verdicts
    first, second = list_pairs(len(table.systems))
    return Verdicts(verdicts, rated.systems[first], rated.systems[second], rated.samples)


def _average(rated: _Rated, judges: Sequence[str]) -> Floats:
    """Average the ratings [system, sample] by the judges that rated most of the outputs.

    Numbers without a scale have no average, NaN where nobody gave others.
    """
    has_scale = ~np.isin(rated.table.judges, sorted(rated.table.scalar_judges))
    table = rated.table.ratings[np.isin(rated.table.judges, judges) & has_scale]
    if not len(table):
        return np.full(rated.table.ratings.shape[1:], np.nan)
    is_rated = ~np.isnan(table)
    covered = is_rated.sum(axis=(1, 2)) >= is_rated.any(axis=0).sum() / 2
    ratings: Floats = table[covered].mean(axis=0)
    return ratings


def _join(parts: Sequence[Verdicts]) -> Verdicts:
    """Join verdicts of several releases' rows; of a pair the first that have any count."""
    known, chosen = set[tuple[int, int]](), list[Verdicts]()
    for part in parts:
        is_new = ~np.isnan(part.values).all(axis=1)
        pairs = list(zip(part.first.tolist(), part.second.tolist(), strict=True))
        is_new &= np.array([pair not in known for pair in pairs], dtype=bool)
        chosen.append(part.select(is_new))
        known.update(pair for pair, counts in zip(pairs, is_new, strict=True) if counts)
    none = [np.zeros(0, dtype=np.int64)]
    first, second, samples = (
        np.concatenate([*none, *(getattr(part, side) for part in chosen)])
        for side in ("first", "second", "samples")
    )
    samples = np.unique(samples)
    values, row = np.full((len(first), len(samples)), np.nan), 0
    for part in chosen:
        rows = slice(row, row + len(part.first))
        values[rows, np.searchsorted(samples, part.samples)] = part.values
        row = rows.stop
    return Verdicts(values, first, second, samples)


def _covary(fits: Sequence[Fit], samples: int) -> Floats:
    """Return the covariance of all strengths; samples that several fits share tie them."""
    sizes = [len(fit.systems) for fit in fits]
    influence, row = np.zeros((sum(sizes), samples)), 0
    drawn = np.zeros((sum(sizes), sum(sizes)))
    for fit, size in zip(fits, sizes, strict=True):
        rows = slice(row, row + size)
        influence[rows, fit.samples] = fit.influence
        drawn[rows, rows] = fit.drawn @ fit.drawn.T
        row += size
    covariance: Floats = influence @ influence.T + drawn
    return covariance


def _to_share(gap: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(gap, -700, 700))))
