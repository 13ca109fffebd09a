"""The sections about win rates: the board, how sure it is, and telling samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from echo_hf.reasons import IgnoredRating, Unscored
from echo_hf.report.charts import UNIT, Scale, axis, bar, plot, point, round_scale, span
from echo_hf.report.markup import (
    NOTHING,
    Markup,
    count,
    element,
    interval,
    joined,
    number,
    plural,
    share,
)
from echo_hf.report.parts import (
    Column,
    Row,
    Said,
    breakable,
    collapsible,
    failed_note,
    heat_cell,
    judge_name,
    name_of,
    note,
    section,
    strip,
    table,
    titled,
)
from echo_hf.report.results import Failed, Metric, Pairwise, Rates, Split, WinRates
from echo_hf.report.run_data import ReportSample, RunData, spread
from echo_hf.report.thumbnails import Thumbnails
from echo_hf.scores.rating_table import RUBRIC


def robustness(rates: Rates, win_rates: WinRates) -> Markup:
    places = Scale(0.5, len(rates.win_rate) + 0.5, tuple(range(1, len(rates.win_rate) + 1)))
    columns = (
        Column("System", "name"),
        Column(axis(places), "plot", "best and worst place, drawn"),
        Column("Places"),
        Column(axis(UNIT), "plot", "bounds of the win rate, drawn", optional=True),
        Column("Bounds"),
    )
    rows = [_robust_row(system, win_rates, places) for system in rates.order]
    flips = win_rates.sensitivity.flips
    pairs = len(rates.win_rate) * (len(rates.win_rate) - 1) // 2
    return joined(
        table("How much hangs on the rule, and on what is missing", columns, [rows]),
        note(
            f"Places: best and worst over {plural(len(win_rates.sensitivity.boards), 'rule')} of "
            "voting, ties and averaging. ",
            f"Pairs that two rules put in opposite orders: {_named(flips)}. ",
            "Bounds: the win rate if all that is missing were lost, and if all were won; "
            f"{len(win_rates.bounds.certain)} of {pairs} pairs keep their order whatever is "
            "missing.",
        ),
    )


def _robust_row(system: str, found: WinRates, places: Scale) -> Row:
    ranks, ends = found.sensitivity.rank_range.get(system), found.bounds.bounds.get(system)
    said = NOTHING
    if ranks is not None:
        said = str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]} – {ranks[1]}"
    return (
        name_of(system),
        plot(_extent(places, ranks), scale=places),
        said,
        plot(_extent(UNIT, ends), scale=UNIT, at=0.5),
        interval(ends),
    )


def _extent(scale: Scale, ends: tuple[float, float] | None) -> Markup:
    if ends is None:
        return Markup()
    if ends[0] == ends[1]:
        return point(scale, ends[0], None)
    return span(scale, *ends, "extent")


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{one} and {other}" for one, other in pairs) or "none"


def side_by_side(pairwise: Pairwise, failures: Failed) -> Markup:
    """How steady judges are who see two outputs at once."""
    columns = [
        Column(head, "name" if not at else "number")
        for at, head in enumerate(
            ("Judge", "Pairs", "Same winner in both orders", "Same place", "As it rated")
        )
    ]
    rows = [
        [
            judge_name(judge, failures),
            str(one.pairs),
            *(number(part.value, 2) for part in (one.consistent, one.follows_position)),
            number(one.agreement.value, 2),
        ]
        for judge, one in pairwise.judges.items()
    ]
    return table("Two outputs side by side, in both orders", columns, [rows])


MEANINGS = {str(one): one.meaning for one in (*Unscored, *IgnoredRating)}
ABOUT = (
    "A win rate is the share of comparisons with the other systems that a system wins, from 0 to "
    "1; a tie is half a win. Systems of one tier do not differ by the test that is named below."
)


def board(data: RunData) -> Markup:
    return section("win-rates", "Win rates", [_split(data, one) for one in data.splits], lead=ABOUT)


def _split(data: RunData, name: str) -> Markup:
    split, rates = data.results.details[name], data.results.rates(name)
    heading = element("h3", titled(name))
    if rates is None or split.win_rate is None:
        return joined(heading, note("No judge has rated an output of this split."))
    return joined(
        heading,
        failed_note(list(rates.per_judge), data.failures),
        main_table(rates, split.win_rate),
        _notes(rates, split.win_rate),
        element(
            "div",
            element("div", pair_table(rates)),
            element("div", judge_table(rates, data)),
            class_="beside",
        ),
        collapsible("How sure is the order?", _how_sure(split, rates, data)),
    )


def _how_sure(split: Split, rates: Rates, data: RunData) -> Markup:
    asked = split.pairwise if split.pairwise and split.pairwise.judges else None
    return joined(
        robustness(rates, split.win_rate) if split.win_rate else None,
        side_by_side(asked, data.failures) if asked else None,
    )


def tiers_of(rates: Rates, win_rates: WinRates) -> list[list[str]]:
    every = list(rates.order)
    if not any(rates.interval.values()):
        return [every]
    tiers = [[system for system in tier if system in every] for tier in win_rates.tiers.tiers]
    named = {system for tier in tiers for system in tier}
    others = [system for system in every if system not in named]
    return [tier for tier in (*tiers, others) if tier]


def main_table(rates: Rates, win_rates: WinRates) -> Markup:
    known = any(rates.interval.values())
    columns = (
        Column("System", "name"),
        Column(axis(UNIT), "plot", "win rate, drawn from 0 to 1"),
        Column("Win rate"),
        Column("95 %", optional=True),
        Column("Tier"),
        Column("Coverage", optional=True),
    )
    groups = [
        [_system_row(system, rates, str(at) if known else NOTHING) for system in tier]
        for at, tier in enumerate(tiers_of(rates, win_rates), 1)
    ]
    return table("Win rate by system", columns, groups, "board")


def _system_row(system: str, rates: Rates, tier: str) -> Row:
    value, ends = rates.win_rate[system], rates.interval.get(system)
    return (
        name_of(system),
        plot(point(UNIT, value, ends), scale=UNIT, at=0.5),
        element("b", number(value)),
        interval(ends),
        tier if value is not None else NOTHING,
        share(rates.coverage.get(system)),
    )


def _notes(rates: Rates, found: WinRates) -> Markup:
    definition = rates.definition
    drawn = definition.get("interval")
    kind = drawn.get("kind") if isinstance(drawn, Mapping) else None
    said = [
        f"Protocol {definition.get('protocol')}: vote by {definition.get('vote')}, mean over "
        f"{definition.get('average')}, missing outputs: {definition.get('missing')}. "
        f"Interval: {kind or 'none'}. Tiers: {found.tiers.definition.get('test', 'not tested')}.",
        *_why_not(rates),
    ]
    return joined([note(one) for one in said])


def _why_not(rates: Rates) -> Iterator[str]:
    named: dict[str, list[str]] = {}
    for system, reason in rates.reasons.items():
        named.setdefault(reason, []).append(system)
    for reason, systems in named.items():
        who = "All systems" if len(systems) == len(rates.win_rate) else ", ".join(systems)
        yield f"{who}: {reason}, {MEANINGS.get(reason, 'no further meaning is known')}."
    for reason, ratings in rates.ignored.items():
        said = plural(ratings, "rating does", "ratings do")
        yield f"{said} not count in win rates: {reason}, {MEANINGS.get(reason, NOTHING)}."


def pair_table(rates: Rates) -> Markup:
    systems = rates.order
    columns = [Column("", "name", "System"), *(Column(breakable(one), "heat") for one in systems)]
    rows = [[name_of(one), *(_pair(one, other, rates) for other in systems)] for one in systems]
    return table("Each pair: share that the row wins from the column", columns, [rows], "heatmap")


def _pair(one: str, other: str, rates: Rates) -> Markup:
    if one == other:
        return element("td", class_="heat self")
    value = rates.matrix.get(one, {}).get(other)
    pairs = rates.pairs.get(one, {}).get(other, 0)
    title = f"{one} wins {number(value, 2)} of {plural(pairs, 'comparison')} with {other}"
    return heat_cell(value, value, number(value, 2), title)


def judge_table(rates: Rates, data: RunData) -> Markup:
    judges = list(rates.per_judge)
    heads = [Column(judge_name(judge, data.failures), "heat") for judge in judges]
    rows = [
        [name_of(system), *(_by_judge(system, judge, rates.per_judge) for judge in judges)]
        for system in rates.order
    ]
    caption = "Each judge alone: win rate"
    return table(caption, [Column("System", "name"), *heads], [rows], "heatmap")


def _by_judge(system: str, judge: str, rates: Mapping[str, Mapping[str, float | None]]) -> Markup:
    value = rates[judge].get(system)
    return heat_cell(value, value, number(value, 2), f"{system} by {judge}: {number(value)}")


SHOWN = 3
DRIFTS = ("face_identity", "structure_distance")


def highlights(data: RunData, thumbnails: Thumbnails) -> Markup | None:
    if not data.outputs:
        return None
    shown = [
        *(one for split in data.splits if (one := _highlights_split(data, split, thumbnails))),
        *(one for split in data.splits for one in _drifts(data, split, thumbnails)),
    ]
    lead = "The samples on which the ratings of the outputs lie furthest apart."
    return section("examples", "Examples", shown, lead=lead) if shown else None


def _highlights_split(data: RunData, split: str, thumbnails: Thumbnails) -> Markup | None:
    chosen = widest(data, split)
    if not chosen:
        return None
    said = {key: text for sample in chosen for key, text in _ratings(data, sample)}
    return joined(element("h3", titled(split)), _strips(data, chosen, thumbnails, said))


def widest(data: RunData, split: str, shown: int = SHOWN) -> list[ReportSample]:
    """The samples of a split whose ratings lie furthest apart."""
    apart = [
        (spread(data.ratings.get(sample.id, ()), RUBRIC), -at, sample)
        for at, sample in enumerate(data.of_split(split))
    ]
    best = sorted((one for one in apart if one[0] > 0), key=lambda one: one[:2], reverse=True)
    return [sample for _, _, sample in best[:shown]]


def _drifts(data: RunData, split: str, thumbnails: Thumbnails) -> Iterator[Markup]:
    """A metric's sample on which the systems differ most (figure B.2)."""
    for metric in DRIFTS:
        rows = [one for one in data.results.details[split].metrics if one.metric == metric]
        found = {(sample, one.system): value for one in rows for sample, value in _values(one)}
        chosen = _furthest(data, split, found)
        if chosen is not None:
            said = {key: number(value) for key, value in found.items()}
            title = element("h3", f"{titled(metric)}: the sample on which systems differ most")
            yield joined(title, _strips(data, [chosen], thumbnails, said))


def _furthest(
    data: RunData, split: str, found: dict[tuple[str, str], float]
) -> ReportSample | None:
    by_sample: dict[str, list[float]] = {}
    for (sample, _), value in found.items():
        by_sample.setdefault(sample, []).append(value)
    apart = {name: max(some) - min(some) for name, some in by_sample.items() if len(some) > 1}
    known = [sample for sample in data.of_split(split) if sample.id in apart]
    return max(known, key=lambda sample: apart[sample.id], default=None)


def _values(one: Metric) -> Iterator[tuple[str, float]]:
    numbers = one.result.per_sample if one.result else ()
    for sample, value in zip(one.samples, numbers, strict=False):
        if value is not None:
            yield sample, value


def _ratings(data: RunData, sample: ReportSample) -> Iterator[tuple[tuple[str, str], str]]:
    by_system: dict[str, list[float]] = {}
    for one in data.ratings.get(sample.id, ()):
        if one.rubric == RUBRIC and one.value is not None:
            by_system.setdefault(one.system, []).append(one.value)
    for system, values in by_system.items():
        yield (sample.id, system), f"rated {number(sum(values) / len(values), 1)}"


def _strips(
    data: RunData, samples: Sequence[ReportSample], thumbnails: Thumbnails, said: Said
) -> Markup:
    rows = [strip(one, data.systems, data.outputs, thumbnails, said) for one in samples]
    several = len(data.results.judges) > 1
    mean = (
        note("Rated: mean over judges and repeats, on the judges' own scales.") if several else None
    )
    return joined(rows, mean)


UNKNOWN = "unknown"


def tasks(data: RunData) -> Markup:
    cards = [element("div", _table(data, split), class_="card") for split in data.splits]
    return section("tasks", "Tasks", element("div", cards, class_="columns"))


def _table(data: RunData, split: str) -> Markup:
    counts = Counter(sample.task or UNKNOWN for sample in data.of_split(split))
    scale = round_scale(counts.values(), whole=True)
    columns = (
        Column("Task", "name"),
        Column(axis(scale), "plot", "samples, drawn"),
        Column("Samples"),
        Column("Share", optional=True),
    )
    rows = [
        [
            titled(task),
            plot(bar(scale, number), scale=scale),
            count(number),
            share(number / counts.total()),
        ]
        for task, number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    return table(f"{titled(split)}: samples by task", columns, [rows])
