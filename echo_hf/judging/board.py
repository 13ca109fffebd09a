"""Print the figures of `results.json` and `agreement.json` in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.bootstrap import Unscored
from echo_hf._infra.console import SEE_MORE, make_table, say, show_table
from echo_hf._infra.text import (
    clean,
    format_interval,
    format_rounded,
    name_stand_in,
    percent,
    pluralize,
)
from echo_hf.config.checks import IMPORTED, ModelIdentity
from echo_hf.hub.facts import LeftOut
from echo_hf.metrics.base import ARROWS, get_better
from echo_hf.scores.rating_table import IgnoredRating

if TYPE_CHECKING:
    from echo_hf.hub.run_tables import Anchor
    from echo_hf.judging.results import (
        SavedChoices,
        SavedFailureRate,
        SavedMetric,
        SavedResults,
        SavedSplit,
        SavedTrustLine,
    )
    from echo_hf.judging.score import RunAgreement
    from echo_hf.scores.agreement import Agreement
    from echo_hf.scores.bradley_terry import BradleyTerry
    from echo_hf.scores.human_corrected import HumanCorrected
    from echo_hf.scores.pairwise_agreement import Share, Way
    from echo_hf.scores.sequential import Decisions
    from echo_hf.scores.slices import SliceRate
    from echo_hf.scores.win_rate import WinRate

FAILED_AUDIT = "failed_audit"  # key of a definition: the judges that failed honeypots
MAX_NAME, MAX_LINE = 40, 1000
CHECKS_IN_TABLE = 3
SLICES_IN_TABLE = 12
EMPTY_CELL = "-"
SIGNIFICANCE_LEVEL = 0.05
TEST_NAMES = {
    "dunn": "Dunn's test",
    "siegel_castellan": "Siegel and Castellan's test",
    "bonferroni": "p (Bonferroni)",
    "holm": "p (Holm)",
}
MEANINGS = {
    str(reason): reason.meaning for kind in (LeftOut, IgnoredRating, Unscored) for reason in kind
}
PAIRWISE_LABELS = {
    "consistent": "same winner in both orders",
    "follows_position": "the place decides",
    "agreement": "agrees with its ratings",
}
APPLICABILITY_SOURCES = {"run": "as was asked in this run", "release": "as the release says"}
FigurePart = Mapping[str, Any]  # a part of the file that `score` writes
ModelsByName = Mapping[str, ModelIdentity]


def judge_names(
    judges: Iterable[str], failed: Mapping[str, Sequence[str]], models: ModelsByName | None = None
) -> Iterator[str]:
    """Yield the names of judges, each with its origin and the honeypots that it failed."""
    for judge in judges:
        model = (models or {}).get(judge, ModelIdentity())
        notes = [model.status] if model.status == IMPORTED else []
        if model.in_place_of:
            notes.append(f"in place of {clean(model.in_place_of, MAX_NAME)}")
        if failed.get(judge):
            notes.append(f"failed its audit: {', '.join(failed[judge])}")
        yield clean(judge, MAX_NAME) + (f" ({'; '.join(notes)})" if notes else "")


def show_board(console: Console, path: Path) -> None:
    """Print the win rates of both splits, the metrics, and warnings."""
    from echo_hf.hub.ruler import describe_lead
    from echo_hf.judging.ruler import read_ruler

    results = _read_results(path)
    show_left_out(console, results.left_out.items())
    notes, splits = _show_win_rates(console, results), _select_splits(results)
    splits_by_reason = dict[str, list[str]]()
    for name, split in splits.items():
        if split.choices and split.choices.is_board:
            continue
        if reason := _describe_missing_rates(split, results.rates(name)):
            splits_by_reason.setdefault(reason, []).append(name)
            continue
        for row in split.win_rate.uneven_coverage if split.win_rate else ():
            system, neighbor = clean(row.system), clean(row.neighbor)
            own, other = percent(row.coverage), percent(row.of_neighbor)
            text = f"{name}: {system} rests on {own} beside {other} of {neighbor}"
            say(console, text, "yellow")
    for reason, names in splits_by_reason.items():
        prefix = "" if len(names) == len(splits) else f"{' and '.join(names)}: "
        is_wrong = any(splits[name].win_rate for name in names)
        say(console, f"{prefix}{reason}", "yellow" if is_wrong else "")
    if splits_by_reason:
        console.print()
    columns, unmeasured = _read_metrics(splits)
    shown_judges = {
        judge for name in splits if (rates := results.rates(name)) for judge in rates.per_judge
    }
    _show_metrics(console, columns, results.system_models, shown_judges)
    _show_reliability(console, results, splits)
    for name, split in splits.items():
        _show_speech(console, name, split)
        show_failure_rates(console, results, split, tables=1)
        _show_sealed(console, name, results, split)
        _show_slices(console, name, results, split, details=False)
    scales = read_ruler(path.parent)
    for name, scale in scales.splits.items() if scales else ():
        if lead := describe_lead(scale):
            say(console, f"{name}, through time: {lead}")
    if remaining := _list_rest(notes, unmeasured):
        say(console, f"{remaining}: {SEE_MORE}, or the report", "dim")


def show_win_rates(console: Console, path: Path) -> str:
    """Print the win rates of both splits; return in words what else there is to see."""
    results = _read_results(path)
    return _list_rest(_show_win_rates(console, results), _read_metrics(_select_splits(results))[1])


def _show_win_rates(console: Console, results: SavedResults) -> int:
    """Print the win rates of both splits; return the number of notes about them."""
    chosen = {
        name: split.choices
        for name, split in _select_splits(results).items()
        if split.choices and split.choices.is_board
    }
    boards = {
        name: rates
        for name, split in _select_splits(results).items()
        if name not in chosen
        and (rates := results.rates(name))
        and not _describe_missing_rates(split, rates)
    }
    notes = sum(line.reason is None for line in results.trust)
    if chosen:
        _show_choices(console, results, chosen)
    if boards:
        judges = dict.fromkeys(judge for rates in boards.values() for judge in rates.per_judge)
        names = ", ".join(judge_names(judges, results.failed_audit, results.judge_models))
        title = f"win rate ({results.protocol}), judged by {names}"
        title += _list_uncertified(results, judges, "pointwise")
        reasons = [
            f"{name}: no intervals: {reason}"
            for name, rates in boards.items()
            for reason in (() if any(rates.interval.values()) else _describe_reasons(rates))
        ]
        show_table(console, title, _board_table(boards, results), reasons)
    for rates in boards.values():
        remarks = [] if not any(rates.interval.values()) else [*_list_reasons(rates)]
        notes += len([*remarks, *describe_votes(rates.definition)])
    return notes


def _list_uncertified(results: SavedResults, judges: Collection[str], way: Way) -> str:
    """Return which judges nobody has held against people, for the end of a title."""
    uncertified = results.uncertified.get(way, {})
    names = [clean(judge, MAX_NAME) for judge in judges if judge in uncertified]
    if not names:
        return ""
    return "; not certified" + (f": {', '.join(names)}" if len(names) < len(judges) else "")


def _describe_uncertified(results: SavedResults, judges: Iterable[str]) -> Iterator[str]:
    for judge in judges:
        if reason := results.uncertified.get("pointwise", {}).get(judge):
            yield f"{clean(judge, MAX_NAME)} is not certified: {reason.meaning}"


def _show_choices(
    console: Console, results: SavedResults, chosen: Mapping[str, SavedChoices]
) -> None:
    """Print strengths by choices with win rates by ratings, and which is nearer to people."""
    # Beside another split there is room for less; -v has all of each.
    is_alone = len(chosen) == 1
    has_people = is_alone and any(choices.by_people for choices in chosen.values())
    own_heads = ("95 %", "tier", *(("by people",) if has_people else ()))
    own_heads += ("by ratings",) if is_alone else ()
    table = make_table("system", *(head for name in chosen for head in (name, *own_heads)))
    rates = {name: results.rates(name) for name in chosen}
    for system in dict.fromkeys(name for choices in chosen.values() for name in choices.order):
        cells = list[str]()
        for name, choices in chosen.items():
            rate, people = rates[name], choices.by_people
            cells += [
                format_rounded(choices.strengths.strength.get(system), 2),
                format_interval(choices.strengths.interval.get(system), 2),
                str(choices.tier_by_system.get(system, EMPTY_CELL)),
            ]
            if has_people:
                cells.append(format_rounded(people.strength.get(system) if people else None, 2))
            if is_alone:
                cells.append(format_rounded(rate.win_rate.get(system) if rate else None))
        table.add_row(Text(_format_system(system, results.system_models), "bold"), *cells)
    judges = dict.fromkeys(
        str(judge)
        for choices in chosen.values()
        for judge in choices.strengths.definition.get("judges", ())
    )
    names = ", ".join(judge_names(judges, results.failed_audit, results.judge_models))
    title = f"strength by choices between two outputs, judged by {names}"
    title += _list_uncertified(results, judges, "pairwise")
    notes = [f"{name}: {clean(choices.said, MAX_LINE)}" for name, choices in chosen.items()]
    notes += [
        f"{name}: no strengths by people: {clean(choices.missing, MAX_LINE)}"
        for name, choices in chosen.items()
        if choices.missing
    ]
    notes += [
        f"{line.split}: nearer to people: {clean(line.said, MAX_LINE)}"
        for line in results.trust
        if line.measure == "pairwise" and line.split in chosen and line.reason is None
    ]
    show_table(console, title, table, notes)


def _read_results(path: Path) -> SavedResults:
    from echo_hf.judging.results import SavedResults

    return SavedResults.read(path)


def _describe_missing_rates(split: SavedSplit, rates: WinRate | None) -> str | None:
    """Explain in a line why a split has no board; null where it has one, or no sample."""
    if rates is None:
        return "no win rates, since no judge has rated an output" if split.samples else None
    if set(rates.reasons.values()) == {Unscored.NOT_RATED}:
        message = "nothing was rated, since no answer holds a rating: `echo-hf judge` with --again"
        return f"{message}, once the judge is mended"
    return None


def _select_splits(results: SavedResults) -> dict[str, SavedSplit]:
    return {name: split for name, split in results.details.items() if split.samples}


def _list_rest(notes: int, unmeasured: int) -> str:
    parts = [pluralize(notes, "note")] if notes else []
    if unmeasured:
        parts.append(f"{pluralize(unmeasured, 'metric')} not measured")
    return ", ".join(parts)


def _board_table(boards: Mapping[str, WinRate], results: SavedResults) -> Table:
    table = make_table("system", *(head for name in boards for head in (name, "95 %", "tier")))
    highest = dict[str, float]()
    for rates in boards.values():
        for system, rate in rates.win_rate.items():
            highest[system] = max(highest.get(system, -1.0), -1.0 if rate is None else rate)
    tiers = {
        name: {row.system: str(row.tier) for row in results.board(name)}
        for name, rates in boards.items()
        if any(rates.interval.values())
    }
    for system in sorted(highest, key=lambda name: (-highest[name], name)):
        cells = list[str]()
        for name, rates in boards.items():
            cells += [format_rounded(rates.win_rate.get(system))]
            cells += [format_interval(rates.interval.get(system))]
            cells += [tiers.get(name, {}).get(system, EMPTY_CELL)]
        table.add_row(Text(_format_system(system, results.system_models), "bold"), *cells)
    return table


BoardColumns = dict[tuple[str, str], dict[str, "SavedMetric"]]  # by metric and split, then system


def _read_metrics(splits: Mapping[str, SavedSplit]) -> tuple[BoardColumns, int]:
    """Return the metrics that have a value, and the number of those that have none."""
    columns = BoardColumns()
    for name, split in splits.items():
        for figure in split.metrics:
            if any(figure.metric == rate.check for rate in split.checks):
                continue  # its corrected rates are a table of their own
            columns.setdefault((figure.metric, name), {})[figure.system] = figure
    measured = {
        key: by_system
        for key, by_system in columns.items()
        if any(row.result and row.result.value is not None for row in by_system.values())
    }
    return measured, len(columns) - len(measured)


def _show_metrics(
    console: Console, columns: BoardColumns, systems: ModelsByName, shown_judges: Collection[str]
) -> None:
    """Print a column for each metric, with the number of samples where it is not all of them.

    Of judges that failed their audit, those are named that no board above has named.
    """
    splits_per_metric = Counter(metric for metric, _ in columns)
    heads = [
        f"{_head_metric(metric, by_system.values())}"
        f"{f' ({split})' if splits_per_metric[metric] > 1 else ''}"
        for (metric, split), by_system in columns.items()
    ]
    table = make_table("system", *heads)
    failed, is_part = dict[str, Sequence[str]](), False
    for system in dict.fromkeys(name for by_system in columns.values() for name in by_system):
        cells = list[str]()
        for by_system in columns.values():
            figure = by_system.get(system)
            result = figure.result if figure else None
            measured, total = figure.measured if figure else (0, 0)
            failed |= result.definition.get(FAILED_AUDIT, {}) if result else {}
            is_part |= measured < total
            part = f" ({measured} of {total})" if measured < total else ""
            cells.append(f"{format_rounded(result.value if result else None)}{part}")
        table.add_row(Text(_format_system(system, systems), "bold"), *cells)
    if columns:
        notes = ["(of how many samples, where not all)"] if is_part else []
        show_table(console, "what people complain about", table, notes)
    for judge in judge_names((judge for judge in failed if judge not in shown_judges), failed):
        say(console, judge, "yellow")


def show_failure_rates(
    console: Console, results: SavedResults, split: SavedSplit, tables: int | None = None
) -> None:
    """Print how often systems fail by each check, a few in a table, and why a rate is missing."""
    titles = {check.check: clean(check.title, MAX_NAME) for check in results.checks}
    columns: dict[str, dict[str, SavedFailureRate]] = {}
    for rate in split.checks:
        columns.setdefault(rate.check, {})[rate.system] = rate
    systems, keys = dict.fromkeys(rate.system for rate in split.checks), list(columns)
    starts = range(0, len(keys), CHECKS_IN_TABLE)[:tables]
    for start in starts:
        shown = keys[start : start + CHECKS_IN_TABLE]
        heads = [head for key in shown for head in (titles.get(key, key), "95 %")]
        table, notes = make_table("system", *heads), list[str]()
        for system in systems:
            cells = list[str]()
            for measured in (columns[key].get(system) for key in shown):
                ends = (measured and measured.interval) or ()
                cells += [percent(measured.value if measured else None)]
                cells += [" to ".join(map(percent, ends)) or EMPTY_CELL]
            table.add_row(Text(_format_system(system, results.system_models), "bold"), *cells)
        for key in shown:
            reasons = dict.fromkeys(rate.reason for rate in columns[key].values() if rate.reason)
            notes += [f"{titles.get(key, key)}: {clean(reason, MAX_LINE)}" for reason in reasons]
        more = len(keys) - CHECKS_IN_TABLE * len(starts)
        notes += [f"{pluralize(more, 'more check')}: {SEE_MORE}"] if more > 0 else []
        show_table(console, "how often they fail, by questions from complaints", table, notes)


def _show_reliability(
    console: Console, results: SavedResults, splits: Mapping[str, SavedSplit]
) -> None:
    """Print how often systems succeed, where they drew several outputs, and what that costs."""
    by_split = {
        name: split.reliability.result
        for name, split in splits.items()
        if split.reliability and split.reliability.result
    }
    heads, cells = list[str](), dict[str, list[str]]()
    highest = dict[str, float]()
    for figures in by_split.values():
        for system, (value, *_) in figures.success.items():
            highest[system] = max(highest.get(system, -1.0), -1.0 if value is None else value)
    for name, figures in by_split.items():
        last = figures.definition["k"] or 1
        # Beside another split there is room for less; tries are 1 / the share.
        beside = {"tries": figures.tries} if len(by_split) == 1 else {}
        beside = {**beside, "dollars": figures.dollars}
        heads += [name, f"in {last}", *beside]
        for system in sorted(highest, key=lambda name: (-highest[name], name)):
            share = figures.success.get(system)
            ends = [f"{100 * end:.0f}" for end in (share and share.interval) or ()]
            solved = figures.pass_at.get(system, {}).get(last)
            each = (by_system.get(system) for by_system in beside.values())
            values = [estimate.value if estimate else None for estimate in each]
            cells.setdefault(system, []).extend(
                [
                    percent(share and share.value) + (f" ({'-'.join(ends)})" if ends else ""),
                    percent(solved and solved.value),
                    *(EMPTY_CELL if value is None else f"{value:.3g}" for value in values),
                ]
            )
    if by_split:
        from echo_hf.scores.reliability import describe_success

        table = make_table("system", *heads)
        for system, row in cells.items():
            table.add_row(Text(_format_system(system, results.system_models), "bold"), *row)
        rule = describe_success(next(iter(by_split.values())).definition)
        show_table(console, f"share of outputs with {rule}, and dollars for one", table)
    for name, split in splits.items():
        if split.reliability and (missing := split.reliability.missing):
            say(console, f"{name}: not known how often systems succeed: {missing}", "yellow")


def _show_speech(console: Console, name: str, split: SavedSplit) -> None:
    """Print whose outputs have words that speak to the judge, in a line."""
    from echo_hf.judging.speaks_to_judge import describe_speech

    if split.speaks_to_judge and (line := describe_speech(split.speaks_to_judge)):
        say(console, clean(f"{name}: {line}", MAX_LINE), "yellow")


def _show_sealed(console: Console, name: str, results: SavedResults, split: SavedSplit) -> None:
    """Print the board on public, sealed and all samples, and whether systems were trained on it."""
    public = results.rates(name)
    if split.sealed and public:
        table = make_table("system", "public", "sealed", "95 %", "both")
        for system, rate in public.win_rate.items():
            sealed, both = (
                board.win_rate.get(system) for board in (split.sealed.sealed, split.sealed.both)
            )
            ends = format_interval(split.sealed.sealed.interval.get(system))
            cells = (format_rounded(rate), format_rounded(sealed), ends, format_rounded(both))
            table.add_row(_format_system(system, results.system_models), *cells)
        title = f"{name}: {split.samples:,} public and {split.sealed.samples:,} sealed samples"
        show_table(console, title, table)
    for kind, tested in (
        ("sealed samples", split.sealed and split.sealed.contamination),
        ("dates of training", split.dated),
    ):
        if tested:
            style = "yellow" if tested.alarm else "dim"
            say(console, f"{name}, by {kind}: {tested.summary}", style)


def _show_slices(
    console: Console, name: str, results: SavedResults, split: SavedSplit, *, details: bool
) -> None:
    """Print the boards since a day, by what people ask for, and by slice."""
    from echo_hf.judging.slices import describe_slices, list_rated

    saved, rates, systems = split.slices, results.rates(name), results.system_models
    if saved is None or rates is None:
        return
    plain = (saved.board or rates).win_rate
    if saved.board:
        columns = {
            "all": _numbers(rates.win_rate),
            f"since {saved.since}": _numbers(saved.board.win_rate),
            "95 %": _ends(saved.board.interval),
        }
        title = f"{name}: win rate on {pluralize(saved.samples, 'sample')} since {saved.since}"
        show_table(console, title, _system_table(saved.board.win_rate, systems, columns))
    if saved.demand:
        weighted = saved.demand.result
        columns = {
            "each sample once": _numbers(plain),
            "as people ask": _numbers(weighted.win_rate),
            "95 %": _ends(weighted.interval),
            "effective n": {key: f"{value:.1f}" for key, value in weighted.effective_n.items()},
        }
        title = f"{name}: win rate as people ask, by {pluralize(saved.demand.asked, 'request')}"
        show_table(console, title, _system_table(weighted.win_rate, systems, columns))
    order = sorted(plain, key=lambda system: (plain[system] is None, -(plain[system] or 0.0)))
    make_slices = _make_interval_table if details else _make_slice_table
    for column, sliced in saved.by.items():
        rows = list_rated(column, sliced)
        shown = rows[: None if details else SLICES_IN_TABLE]
        more = len(rows) - len(shown)
        notes = [f"{pluralize(more, 'more slice')}: {SEE_MORE}"] if more else []
        if rows:
            title = f"{name}: win rate by {clean(column, MAX_NAME)}"
            show_table(console, title, make_slices(column, shown, order, systems), notes)
    for sentence in describe_slices(saved):
        say(console, clean(f"{name}: {sentence}", MAX_LINE), "dim")
    console.print()


def _make_slice_table(
    column: str, rows: Iterable[tuple[str, SliceRate]], order: Sequence[str], systems: ModelsByName
) -> Table:
    """Build a table with a row for each slice, and a column for each system, the best first."""
    table = make_table(column, "samples", *(_format_system(system, systems) for system in order))
    for value, row in rows:
        cells = (format_rounded(row.best.get(system)) for system in order)
        table.add_row(Text(clean(value, MAX_NAME), "bold"), f"{row.samples:,}", *cells)
    return table


def _make_interval_table(
    column: str, rows: Iterable[tuple[str, SliceRate]], order: Sequence[str], systems: ModelsByName
) -> Table:
    """Build a table with a row for each slice and system, with intervals."""
    heads = ("system", "samples", "win rate", "95 %", "shrunken", "95 %")
    table = make_table(column, *heads, left=["system"])
    for value, row in rows:
        for system in order:
            table.add_row(
                Text(clean(value, MAX_NAME), "bold"),
                _format_system(system, systems),
                f"{row.samples:,}",
                format_rounded(row.win_rate.get(system)),
                format_interval(row.interval.get(system)),
                format_rounded(row.shrunk.get(system)),
                format_interval(row.shrunk_interval.get(system)),
            )
    return table


def _head_metric(metric: str, figures: Iterable[SavedMetric]) -> str:
    """Return the name of a metric, with an arrow to what is better."""
    definitions = (figure.result.definition for figure in figures if figure.result)
    return f"{metric} {ARROWS[get_better(metric, definitions)]}"


def show_scores(console: Console, path: Path) -> None:
    results = _read_results(path)
    show_left_out(console, results.left_out.items())
    systems, failed = results.system_models, results.failed_audit
    for name, split in results.details.items():
        rated, rates = split.win_rate, results.rates(name)
        if choices := split.choices:
            _show_choices(console, results, {name: choices})
            title = f"{name}: {choices.decisions.summary}"
            show_table(console, title, _decision_table(choices.decisions))
        if reason := _describe_missing_rates(split, rates):
            say(console, f"{name}: {reason}\n", "yellow")
        elif rated and rates:
            judges = ", ".join(judge_names(rates.per_judge, failed, results.judge_models))
            title = f"{name}: win rate ({results.protocol}), judged by {judges}"
            notes = [*describe_votes(rates.definition), *_list_reasons(rates)]
            notes += _describe_uncertified(results, rates.per_judge)
            uneven = {row.system for row in rated.uneven_coverage}
            table = _split_table(rates, rated.tiers.tiers, uneven, systems)
            show_table(console, title, table, notes)
            if decisions := rated.decisions:
                show_table(console, f"{name}: {decisions.summary}", _decision_table(decisions))
            if rated.anchors and rated.bradley_terry:
                title = f"{name}: Bradley-Terry strengths, where anchors stay as they are"
                table = _strength_table(rated.bradley_terry, rated.anchors, systems)
                show_table(console, title, table)
        if people := split.by_people:
            summary = clean(people.said, MAX_LINE)
            if result := people.result:
                title = f"{name}: win rate by people, estimated on all samples"
                columns = {
                    "corrected": _numbers(result.win_rate),
                    "95 %": _ends(result.interval),
                    "people alone": _numbers(result.people_alone),
                    "judges alone": _numbers(result.judges_alone),
                }
                table = _system_table(result.win_rate, systems, columns)
                show_table(console, title, table, [summary, *_list_reasons(result)])
            else:
                say(console, f"{name}: {summary}\n", "yellow")
        if pairwise := split.pairwise:
            say(console, f"{name}: two outputs side by side, in both orders", "bold")
            names = judge_names(pairwise.judges, failed, results.judge_models)
            for judge, row in zip(names, pairwise.judges.values(), strict=True):
                labels = PAIRWISE_LABELS.items()
                shares = [f"{label} {_share(getattr(row, key))}" for key, label in labels]
                say(console, f"{judge}: {row.pairs:,} pairs, {', '.join(shares)}")
            console.print()
        if split.metrics:
            table = _metric_table(split.metrics, {} if split.win_rate else systems)
            show_table(console, f"{name}: what people complain about", table)
        _show_speech(console, name, split)
        show_failure_rates(console, results, split)
        _show_reliability(console, results, {name: split})
        if split.reliability and split.reliability.result:
            from echo_hf.judging.reliability import describe_reliability

            for line in describe_reliability(split.reliability.result):
                say(console, clean(line, MAX_LINE))
            console.print()
        _show_slices(console, name, results, split, details=True)
    if results.trust:
        _print_trust_lines(console, results.trust)
    if source := results.applicability:
        say(console, f"which metrics fit a sample: {APPLICABILITY_SOURCES[source]}", "dim")
    say(console, f"{ARROWS['higher']} higher, {ARROWS['lower']} lower is better", "dim")
    say(console, f"results: {path}")


def _print_trust_lines(console: Console, lines: Sequence[SavedTrustLine]) -> None:
    """Print a line for each measure with a finding, and one for each without, with the reason."""
    say(console, "how far to trust this", "bold")
    for measure, measure_lines in groupby(lines, key=attrgetter("measure")):
        stated = [line for line in measure_lines if line.reason is None]
        if stated:
            say(console, f"{measure}: {stated[0].meaning}", "dim")
        for line in stated:
            prefix = f"{clean(line.split)}: " if line.split else ""
            say(console, f"  {prefix}{clean(line.said, MAX_LINE)}")
    silent = dict[tuple[str, str], list[str]]()
    for line in lines:
        if line.reason:
            splits = silent.setdefault((line.measure, line.reason), [])
            splits.append(clean(line.split or ""))
    for (measure, reason), splits in silent.items():
        suffix = f" of {' and '.join(splits)}" if all(splits) else ""
        say(console, f"no {measure}{suffix}: {MEANINGS[reason]}", "dim")
    console.print()


def show_left_out(console: Console, counts: Iterable[tuple[str, Mapping[Any, int]]]) -> None:
    for name, by_reason in counts:
        for reason, count in by_reason.items():
            line = f"{count:,} rows of {name} do not count, {reason}: {MEANINGS[str(reason)]}"
            say(console, line, "yellow")


def _share(share: Share) -> str:
    if share.value is None:
        return f"- ({share.reason})"
    interval = f" ({format_interval(share.interval, 2)})" if share.interval else ""
    return f"{share.value:.2f}{interval}"


def _format_system(system: str, systems: ModelsByName) -> str:
    place = systems[system].in_place_of if system in systems else None
    return name_stand_in(clean(system, MAX_NAME), place and clean(place, MAX_NAME))


def _system_table(
    values: FigurePart, systems: ModelsByName, columns: Mapping[str, Mapping[str, str]]
) -> Table:
    """Build a table with a row for each system, the best first, and the given columns."""
    table = make_table("system", *columns, left=("anchor",))
    # The order of `scores.win_rate.rank_rows`, without importing NumPy and SciPy for it.
    for name, _ in sorted(values.items(), key=lambda pair: (pair[1] is None, -(pair[1] or 0.0))):
        cells = (column.get(name, EMPTY_CELL) for column in columns.values())
        table.add_row(Text(_format_system(name, systems), "bold"), *cells)
    return table


def _numbers(values: FigurePart) -> dict[str, str]:
    return {name: format_rounded(value) for name, value in values.items()}


def _ends(intervals: FigurePart) -> dict[str, str]:
    return {name: format_interval(interval) for name, interval in intervals.items()}


def _split_table(
    rates: WinRate, tiers: Sequence[Sequence[str]], uneven: Collection[str], systems: ModelsByName
) -> Table:
    # Without intervals, one tier for all would read as if there were no difference.
    if not any(rates.interval.values()):
        tiers = ()
    coverage = {name: percent(value) for name, value in rates.coverage.items()}
    columns = {
        "win rate": _numbers(rates.win_rate),
        "95 %": _ends(rates.interval),
        "tier": {name: str(tier) for tier, names in enumerate(tiers, 1) for name in names},
        "coverage": {
            name: f"uneven {share}" if name in uneven else share for name, share in coverage.items()
        },
    }
    return _system_table(rates.win_rate, systems, columns)


def _strength_table(
    strengths: BradleyTerry, anchors: Mapping[str, Anchor], systems: ModelsByName
) -> Table:
    anchor_texts = dict.fromkeys(strengths.strength, "joins")
    anchor_texts |= {name: clean(anchor.description) for name, anchor in anchors.items()}
    columns = {
        "strength": _numbers(strengths.strength),
        "95 %": _ends(strengths.interval),
        "anchor": anchor_texts,
    }
    return _system_table(strengths.strength, systems, columns)


def describe_votes(definition: FigurePart) -> Iterator[str]:
    """Yield what win rates rest on where a judge rated only a part of the samples."""
    if estimate := definition.get("estimate"):
        rho2 = format_rounded(estimate["rho2"], 2)
        judges = ", ".join(map(clean, estimate["weights"]))
        yield (
            f"all judges voted on {definition['voted']:,} of {definition['samples']:,} samples; "
            f"their vote on all is estimated from {judges}, which explains {rho2} of its variance; "
            "pairs, and what each judge alone says, are counted on those"
        )
    elif total := definition.get("of_samples"):
        share_text = f"{definition['samples']:,} of {total:,} samples"
        yield f"win rates are of the {share_text} of which every rating was asked for"


def _describe_reasons(rates: WinRate) -> Iterator[str]:
    """Yield why systems have no figure; a reason that holds for all stands alone."""
    reasons = set(rates.reasons.values())
    if len(reasons) == 1 and len(rates.reasons) == len(rates.win_rate):
        yield MEANINGS[reasons.pop()]
    else:
        yield from _list_reasons(rates)


def _list_reasons(rates: WinRate | HumanCorrected) -> Iterator[str]:
    systems_by_reason = dict[str, list[str]]()
    for name, reason in rates.reasons.items():
        systems_by_reason.setdefault(reason, []).append(clean(name, MAX_NAME))
    for reason_text, names in systems_by_reason.items():
        is_all = len(names) == len(rates.win_rate)
        listed = "all systems" if is_all else ", ".join(names)
        yield f"{listed}: {reason_text}: {MEANINGS[reason_text]}"


def _decision_table(decisions: Decisions) -> Table:
    """Build a table of pairs, the better system first, over all samples that both were rated on."""
    headings = ("better", "worse")
    table = make_table(*headings, "wins", "+-", "samples", "decided", left=headings)
    for is_decided, pairs in (("yes", decisions.decided), ("no", decisions.undecided)):
        for better, worse in pairs:
            names = Text(clean(better, MAX_NAME), "bold"), clean(worse, MAX_NAME)
            wins = format_rounded(decisions.matrix[better][worse])
            width = format_rounded(decisions.half_width[better][worse])
            samples = f"{decisions.pairs[better][worse]:,}"
            table.add_row(*names, wins, width, samples, is_decided)
    return table


def _metric_table(metrics: Sequence[SavedMetric], systems: ModelsByName) -> Table:
    table = Table("metric", box=None, pad_edge=False)
    for heading in ("value", "95 %", "samples"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("beside it")
    for metric, metric_rows in groupby(metrics, key=attrgetter("metric")):
        rows = list(metric_rows)
        title = Text(_head_metric(metric, rows), "bold")
        missing = {row.missing for row in rows}
        if None not in missing and len(missing) == 1:  # no system could be measured
            table.add_row(title, *_cells(rows[0]))
            continue
        failed: dict[str, Sequence[str]] = {}
        for row in rows:
            failed |= row.result.definition.get(FAILED_AUDIT, {}) if row.result else {}
        table.add_row(title, "", "", "", Text(", ".join(judge_names(failed, failed)), "yellow"))
        for row in rows:
            table.add_row(Text(f"  {_format_system(row.system, systems)}"), *_cells(row))
    return table


def _cells(figure: SavedMetric) -> tuple[Text | str, ...]:
    result = figure.result
    tint = getattr(result, "tint", {}).get("yellower", {}).get("value")
    tint_text = "" if tint is None else f"{abs(tint):.1f} {'yellower' if tint >= 0 else 'bluer'}"
    reasons = ", ".join(f"{count} {reason}" for reason, count in figure.counts.items())
    remarks = "; ".join(filter(None, (figure.missing, tint_text, reasons)))
    value = format_rounded(result.value if result else None)
    interval = format_interval(result.interval if result else None)
    covered = "{} of {}".format(*figure.measured)
    return value, interval, covered, Text(remarks, "yellow" if figure.missing else "")


def show_agreement(console: Console, agreement: RunAgreement) -> None:
    from echo_hf.scores.agreement import PROCEDURES
    from echo_hf.scores.rating_table import RUBRIC

    left_out = [(name, dict(sorted(lost.items()))) for name, lost in agreement.left_out.items()]
    show_left_out(console, sorted(left_out, key=itemgetter(0)))
    merged, procedure = agreement.merged, PROCEDURES[agreement.merged.protocol]
    counts, people, raters = merged.counts, merged.people, merged.people.mean_rank_by_rater
    refused = f", {counts.refused} times impossible" if counts.refused else ""
    incomplete = f", {counts.partial} of them incomplete" if counts.partial else ""
    persons = "1 person" if len(raters) == 1 else f"{len(raters)} people"
    ranked = f"{pluralize(counts.samples, 'sample')}: {pluralize(counts.rankings, 'ranking')}"
    say(console, f"{persons} ranked {ranked}{incomplete}{refused} ({merged.protocol})")
    table = make_table("system", "consensus", "95 %", *raters)
    for system in people.consensus.ranking:  # over all samples
        mean = people.mean_rank[system]
        by_rater = (format_rounded(ranks[system].value, 2) for ranks in raters.values())
        cells = format_rounded(mean.value, 2), format_interval(mean.interval, 2)
        table.add_row(Text(clean(system), "bold"), *cells, *by_rater)
    show_table(console, "mean rank by people, 1 is best", table)
    test, tests = people.friedman, people.tests[procedure.test]
    differ = sum(getattr(pair_test, procedure.adjusted) < SIGNIFICANCE_LEVEL for pair_test in tests)
    if test.p_value is None:
        say(console, "Friedman's test: nothing to test, as no block is in an order")
    else:
        say(
            console,
            f"Friedman's test: chi-square {format_rounded(test.statistic, 1)}, "
            f"{pluralize(test.degrees, 'degree')} of freedom, p {_p_value(test.p_value)}, "
            f"{test.blocks} blocks",
        )
        verb, w = "differs" if differ == 1 else "differ", format_rounded(people.kendalls_w.value)
        pairs = f"{differ} of {pluralize(len(tests), 'pair')} {verb}"
        say(console, f"{pairs}; Kendall's W within samples {w}")
    rated = merged.judges.with_consensus
    if not rated:
        message = f"no rating by the rubric {RUBRIC!r}: people are compared with each other alone"
        say(console, message, "yellow")
    show_table(console, "agreement with people, Kendall's tau-b", _tau_table(merged))
    for name in judge_names(sorted(agreement.failed.keys() & rated), agreement.failed):
        say(console, name, "yellow")
    say(console, f"agreement: {agreement.path}")


def _tau_table(agreement: Agreement) -> Table:
    """Build a table of how far each judge, and people, agree with the consensus and each person."""
    judges, raters = agreement.judges, agreement.people.mean_rank_by_rater
    table = make_table("", "consensus", "95 %", "p", "of people's", *raters)
    for judge, tau in judges.with_consensus.items():
        share = percent(judges.share_of_ceiling[judge].share)
        by_rater = (format_rounded(pair.tau) for pair in judges.with_raters[judge].values())
        cells = format_rounded(tau.tau), format_interval(tau.interval), _p_value(tau.p_value), share
        table.add_row(Text(clean(judge), "bold"), *cells, *by_rater)
    people = judges.people_with_others
    mean, interval = format_rounded(people.value), format_interval(people.interval)
    table.add_row(Text("people", "bold"), mean, interval)
    return table


def _p_value(value: float | None) -> str:
    if value is None:
        return EMPTY_CELL
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
