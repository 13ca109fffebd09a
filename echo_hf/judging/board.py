"""The figures of `results.json` and `agreement.json` in a terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import MORE, plain_table, say, show_table
from echo_hf._infra.text import counted, in_place, percent, plain, rounded, rounded_interval
from echo_hf.config.checks import IMPORTED, AnsweredBy
from echo_hf.metrics import BETTER, HIGHER, LOWER
from echo_hf.reasons import IgnoredRating, LeftOut, Unscored

if TYPE_CHECKING:
    from echo_hf.judging.score import RunAgreement
    from echo_hf.scores.agreement import Agreement

FAILED_AUDIT = "failed_audit"  # in definitions: the judges that failed honeypots
LONGEST, LONGEST_LINE = 40, 1000
NOTHING = "-"
ALPHA = 0.05
NAMES = {
    "dunn": "Dunn's test",
    "siegel_castellan": "Siegel and Castellan's test",
    "bonferroni": "p (Bonferroni)",
    "holm": "p (Holm)",
}
MEANINGS = {
    str(reason): reason.meaning for kind in (LeftOut, IgnoredRating, Unscored) for reason in kind
}
PAIRWISE = {
    "consistent": "same winner in both orders",
    "follows_position": "the place decides",
    "agreement": "agrees with its ratings",
}
FITS_FROM = {"run": "as was asked in this run", "release": "as the release says"}
PEOPLE = ("people alone", "judges alone")
Part = Mapping[str, Any]  # of the file, which `score` has written
Named = Mapping[str, AnsweredBy]


def judge_names(
    judges: Iterable[str], failed: Mapping[str, Sequence[str]], models: Named | None = None
) -> Iterator[str]:
    """The names of judges, each with where it is from and the honeypots that it failed on."""
    for judge in judges:
        model = (models or {}).get(judge, AnsweredBy())
        said = [model.status] if model.status == IMPORTED else []
        said += [f"in place of {plain(model.in_place_of, LONGEST)}"] if model.in_place_of else []
        said += [f"failed its audit: {', '.join(failed[judge])}"] if failed.get(judge) else []
        yield plain(judge, LONGEST) + (f" ({'; '.join(said)})" if said else "")


def show_board(console: Console, path: Path) -> None:
    """Shows the win rates of both splits, then the metrics, and what went wrong."""
    found = json.loads(path.read_bytes())
    show_left_out(console, found["left_out"].items())
    notes, splits = _show_win_rates(console, found), _with_samples(found)
    lacks = dict[str, list[str]]()
    for name, split in splits.items():
        if why := _without_rates(split, found):
            lacks.setdefault(why, []).append(name)
            continue
        for one in split["win_rate"].get("uneven_coverage", ()):  # files of before have none
            beside = f"{percent(one['coverage'])} beside {percent(one['of_neighbor'])}"
            said = f"{name}: {plain(one['system'])} rests on {beside} of {plain(one['neighbor'])}"
            say(console, said, "yellow")
    for why, names in lacks.items():
        place = "" if len(names) == len(splits) else f"{' and '.join(names)}: "
        is_wrong = any(splits[name]["win_rate"] for name in names)
        say(console, f"{place}{why}", "yellow" if is_wrong else "")
    if lacks:
        console.print()
    known, without = _measured(splits)
    boards = (split["win_rate"] for split in splits.values() if split["win_rate"])
    named = {judge for rated in boards for judge in rated[found["protocol"]]["per_judge"]}
    _show_metrics_of_splits(console, known, _models(found)[0], named)
    if more := _more(notes, without):
        say(console, f"{more}: {MORE}, or the report", "dim")


def show_win_rates(console: Console, path: Path) -> str:
    """Shows the win rates of both splits; returns what else there is, in words."""
    found = json.loads(path.read_bytes())
    return _more(_show_win_rates(console, found), _measured(_with_samples(found))[1])


def _show_win_rates(console: Console, found: Part) -> int:
    """Shows the win rates of both splits; returns how many notes there are on them."""
    systems, by_judge = _models(found)
    rated = {
        name: split["win_rate"]
        for name, split in _with_samples(found).items()
        if not _without_rates(split, found)
    }
    boards = {name: rates[found["protocol"]] for name, rates in rated.items()}
    notes = sum(one["reason"] is None for one in found.get("trust", ()))  # files of before lack it
    if boards:
        judges = dict.fromkeys(judge for rates in boards.values() for judge in rates["per_judge"])
        names = ", ".join(judge_names(judges, found["failed_audit"], by_judge))
        title = f"win rate ({found['protocol']}), judged by {names}"
        whys = [
            f"{name}: no intervals: {why}"
            for name, rates in boards.items()
            for why in (() if any(rates["interval"].values()) else _meanings(rates))
        ]
        show_table(console, title, _win_rates_of_splits(boards, rated, systems), whys)
    for rates in boards.values():
        told = [] if not any(rates["interval"].values()) else [*_why_not(rates)]
        notes += len([*told, *voted_on(rates.get("definition", {}))])
    return notes


def _without_rates(split: Part, found: Part) -> str | None:
    """Why a split has no board, in a line; null where it has one, or no sample."""
    rated = split["win_rate"]
    if not rated:
        return "no win rates, since no judge has rated an output" if split["samples"] else None
    if set(rated[found["protocol"]]["reasons"].values()) == {Unscored.NOT_RATED}:
        said = "nothing was rated, since no answer holds a rating: `echo-hf judge` with --again"
        return f"{said}, once the judge is mended"
    return None


def _with_samples(found: Part) -> dict[str, Part]:
    return {name: split for name, split in found["details"].items() if split["samples"]}


def _more(notes: int, lacks: int) -> str:
    parts = [counted(notes, "note")] if notes else []
    return ", ".join([*parts, *([f"{counted(lacks, 'metric')} not measured"] if lacks else [])])


def _models(found: Part) -> tuple[Named, Named]:
    """Who answered for each system and each judge; files of before do not say it."""
    systems, judges = (
        {name: AnsweredBy.model_validate(one) for name, one in found.get(kind, {}).items()}
        for kind in ("systems", "judges")
    )
    return systems, judges


def _win_rates_of_splits(
    boards: Mapping[str, Part], rated: Mapping[str, Part], systems: Named
) -> Table:
    table = plain_table("system", *(head for name in boards for head in (name, "95 %", "tier")))
    highest = dict[str, float]()
    for rates in boards.values():
        for system, rate in rates["win_rate"].items():
            highest[system] = max(highest.get(system, -1.0), -1.0 if rate is None else rate)
    tiers = {
        name: {
            system: str(at)
            for at, tier in enumerate(rated[name]["tiers"]["tiers"], 1)
            for system in tier
        }
        for name, rates in boards.items()
        if any(rates["interval"].values())
    }
    for system in sorted(highest, key=lambda name: (-highest[name], name)):
        cells = list[str]()
        for name, rates in boards.items():
            cells += [rounded(rates["win_rate"].get(system))]
            cells += [rounded_interval(rates["interval"].get(system))]
            cells += [tiers.get(name, {}).get(system, NOTHING)]
        table.add_row(Text(_shown(system, systems), "bold"), *cells)
    return table


NOT_MEASURED: Part = {"result": None, "samples": (), "counts": {}}
Columns = dict[tuple[str, str], dict[str, Part]]  # by metric and split, then by system


def _measured(splits: Mapping[str, Part]) -> tuple[Columns, int]:
    """The metrics that have a value, and how many have none."""
    columns = Columns()
    for name, split in splits.items():
        for one in split["metrics"]:
            columns.setdefault((one["metric"], name), {})[one["system"]] = one
    known = {
        key: by_system
        for key, by_system in columns.items()
        if any((one["result"] or {}).get("value") is not None for one in by_system.values())
    }
    return known, len(columns) - len(known)


def _show_metrics_of_splits(
    console: Console, columns: Columns, systems: Named, named: Collection[str]
) -> None:
    """A column for each metric, with the number of samples where it is not all of them.

    Of judges that failed their audit, those are named that no board above has named.
    """
    several = Counter(metric for metric, _ in columns)
    heads = [
        f"{metric} {BETTER[metric]}{f' ({split})' if several[metric] > 1 else ''}"
        for metric, split in columns
    ]
    table = plain_table("system", *heads)
    failed, is_part = dict[str, Sequence[str]](), False
    for system in dict.fromkeys(name for by_system in columns.values() for name in by_system):
        cells = list[str]()
        for by_system in columns.values():
            one = by_system.get(system, NOT_MEASURED)
            result, (measured, there) = one["result"] or {}, _covered(one)
            failed |= result.get("definition", {}).get(FAILED_AUDIT, {})
            is_part |= measured < there
            part = f" ({measured} of {there})" if measured < there else ""
            cells.append(f"{rounded(result.get('value'))}{part}")
        table.add_row(Text(_shown(system, systems), "bold"), *cells)
    if columns:
        notes = ["(of how many samples, where not all)"] if is_part else []
        show_table(console, "what people complain about", table, notes)
    for judge in judge_names((judge for judge in failed if judge not in named), failed):
        say(console, judge, "yellow")


def _covered(one: Part) -> tuple[int, int]:
    """The samples that a metric's value rests on, and those that it might have."""
    return (one["result"] or {}).get("n", 0), len(one["samples"]) + one["counts"].get(
        "not_asked", 0
    )


def show_scores(console: Console, path: Path) -> None:
    found = json.loads(path.read_bytes())
    show_left_out(console, found["left_out"].items())
    systems, by_judge = _models(found)
    for name, split in found["details"].items():
        rated = split["win_rate"]
        if why := _without_rates(split, found):
            say(console, f"{name}: {why}\n", "yellow")
        elif rated:
            rates = rated[found["protocol"]]
            judges = ", ".join(judge_names(rates["per_judge"], found["failed_audit"], by_judge))
            title = f"{name}: win rate ({found['protocol']}), judged by {judges}"
            notes = [*voted_on(rates.get("definition", {})), *_why_not(rates)]
            less = rated.get("uneven_coverage", ())  # files of before have none
            uneven = {row["system"] for row in less}
            table = _win_rates(rates, rated["tiers"]["tiers"], uneven, systems)
            show_table(console, title, table, notes)
            if decided := rated.get("decisions"):
                show_table(console, f"{name}: {decided['said']}", _decisions(decided))
            if anchors := rated.get("anchors"):
                title = f"{name}: Bradley-Terry strengths, where anchors stay as they are"
                show_table(console, title, _strengths(rated["bradley_terry"], anchors, systems))
        if people := split.get("by_people"):  # files of before have none
            said = plain(people["said"], LONGEST_LINE)
            if result := people["result"]:
                title = f"{name}: win rate by people, estimated on all samples"
                table = _by_system(result["win_rate"], systems, _people(result))
                show_table(console, title, table, [said, *_why_not(result)])
            else:
                say(console, f"{name}: {said}\n", "yellow")
        if chosen := split["pairwise"]:
            say(console, f"{name}: two outputs side by side, in both orders", "bold")
            names = judge_names(chosen["judges"], found["failed_audit"], by_judge)
            for judge, one in zip(names, chosen["judges"].values(), strict=True):
                shares = ", ".join(f"{said} {_share(one[part])}" for part, said in PAIRWISE.items())
                say(console, f"{judge}: {one['pairs']:,} pairs, {shares}")

            console.print()
        if split["metrics"]:
            table = _metrics(split["metrics"], {} if split["win_rate"] else systems)
            show_table(console, f"{name}: what people complain about", table)
    if lines := found.get("trust"):  # files of before have none
        _say_trust(console, lines)
    if told := found.get("applicability"):  # files of before have none
        say(console, f"which metrics fit a sample: {FITS_FROM[told]}", "dim")
    say(console, f"{HIGHER} higher, {LOWER} lower is better", "dim")
    say(console, f"results: {path}")


def _say_trust(console: Console, lines: Sequence[Part]) -> None:
    """A line for each measure that has something to say; which have not, and why, in one more."""
    say(console, "how far to trust this", "bold")
    for measure, every in groupby(lines, key=itemgetter("measure")):
        said = [one for one in every if one["reason"] is None]
        if said:
            say(console, f"{measure}: {said[0]['meaning']}", "dim")
        for one in said:
            place = f"{plain(one['split'])}: " if one["split"] else ""
            say(console, f"  {place}{plain(one['said'], LONGEST_LINE)}")
    silent = dict[tuple[str, str], list[str]]()
    for one in lines:
        if one["reason"]:
            silent.setdefault((one["measure"], one["reason"]), []).append(plain(one["split"]))
    for (measure, reason), splits in silent.items():
        of = f" of {' and '.join(splits)}" if all(splits) else ""
        say(console, f"no {measure}{of}: {MEANINGS[reason]}", "dim")
    console.print()


def show_left_out(console: Console, counts: Iterable[tuple[str, Mapping[Any, int]]]) -> None:
    for name, by_reason in counts:
        for reason, count in by_reason.items():
            line = f"{count:,} rows of {name} do not count, {reason}: {MEANINGS[str(reason)]}"
            say(console, line, "yellow")


def _share(share: Part) -> str:
    if share["value"] is None:
        return f"- ({share['reason']})"
    if share["interval"] is None:
        return f"{share['value']:.2f}"
    return f"{share['value']:.2f} ({rounded_interval(share['interval'], 2)})"


def _shown(system: str, systems: Named) -> str:
    place = systems[system].in_place_of if system in systems else None
    return in_place(plain(system, LONGEST), place and plain(place, LONGEST))


def _by_system(values: Part, systems: Named, columns: Mapping[str, Mapping[str, str]]) -> Table:
    """A row for each system, the best first, and in it what each column says of it."""
    table = plain_table("system", *columns, left=("anchor",))
    # As `scores.win_rate.ranked` does, without what `echo_hf.scores` loads.
    for name, _ in sorted(values.items(), key=lambda one: (one[1] is None, -(one[1] or 0.0))):
        cells = (one.get(name, NOTHING) for one in columns.values())
        table.add_row(Text(_shown(name, systems), "bold"), *cells)
    return table


def _numbers(values: Part) -> dict[str, str]:
    return {name: rounded(value) for name, value in values.items()}


def _ends(intervals: Part) -> dict[str, str]:
    return {name: rounded_interval(ends) for name, ends in intervals.items()}


def _win_rates(
    rates: Part, tiers: Sequence[Sequence[str]], uneven: Collection[str], systems: Named
) -> Table:
    # Where nothing says how far others may differ, one tier for all would read as no difference.
    known = any(rates["interval"].values())
    columns = {
        "win rate": _numbers(rates["win_rate"]),
        "95 %": _ends(rates["interval"]),
        "tier": {name: str(at) for at, names in enumerate(tiers, 1) for name in names if known},
        "coverage": {
            name: f"uneven {percent(value)}" if name in uneven else percent(value)
            for name, value in rates["coverage"].items()
        },
    }
    return _by_system(rates["win_rate"], systems, columns)


def _people(found: Part) -> dict[str, dict[str, str]]:
    ends = {"95 %": _ends(found["interval"])}
    beside = {name: _numbers(found[name.replace(" ", "_")]) for name in PEOPLE}
    return {"corrected": _numbers(found["win_rate"]), **ends, **beside}


def _strengths(found: Part, anchors: Part, systems: Named) -> Table:
    said = dict.fromkeys(found["strength"], "joins")
    for name, one in anchors.items():
        said[name] = plain(f"{one['release']}, judged by {', '.join(one['judges'])}")
    columns = {
        "strength": _numbers(found["strength"]),
        "95 %": _ends(found["interval"]),
        "anchor": said,
    }
    return _by_system(found["strength"], systems, columns)


def voted_on(definition: Part) -> Iterator[str]:
    """What win rates rest on where a judge was spared samples."""
    if estimate := definition.get("estimate"):
        rho2, judges = rounded(estimate["rho2"], 2), ", ".join(map(plain, estimate["weights"]))
        yield (
            f"all judges voted on {definition['voted']:,} of {definition['samples']:,} samples; "
            f"their vote on all is estimated from {judges}, which explains {rho2} of its variance; "
            "pairs, and what each judge alone says, are counted on those"
        )
    elif every := definition.get("of_samples"):
        on = f"{definition['samples']:,} of {every:,} samples"
        yield f"win rates are of the {on} of which every rating was asked for"


def _meanings(rates: Part) -> Iterator[str]:
    """Why systems have no figure; each reason once where it is that of all."""
    reasons = set(rates["reasons"].values())
    if len(reasons) == 1 and len(rates["reasons"]) == len(rates["win_rate"]):
        yield MEANINGS[reasons.pop()]
    else:
        yield from _why_not(rates)


def _why_not(rates: Part) -> Iterator[str]:
    for reason in dict.fromkeys(rates["reasons"].values()):
        named = [plain(name, LONGEST) for name, why in rates["reasons"].items() if why == reason]
        every = len(named) == len(rates["win_rate"])
        yield f"{'all systems' if every else ', '.join(named)}: {reason}: {MEANINGS[reason]}"


def _decisions(found: Part) -> Table:
    """Each pair, the better one first, on all samples that both were rated on."""
    words = ("better", "worse")
    table = plain_table(*words, "wins", "+-", "samples", "decided", left=words)
    for is_decided, pairs in (("yes", found["decided"]), ("no", found["undecided"])):
        for one, other in pairs:
            ends = (rounded(found[name][one][other]) for name in ("matrix", "half_width"))
            names = Text(plain(one, LONGEST), "bold"), plain(other, LONGEST)
            table.add_row(*names, *ends, f"{found['pairs'][one][other]:,}", is_decided)
    return table


def _metrics(metrics: Sequence[Part], systems: Named) -> Table:
    table = Table("metric", box=None, pad_edge=False)
    for heading in ("value", "95 %", "samples"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("beside it")
    for metric, every in groupby(metrics, key=itemgetter("metric")):
        rows, title = list(every), Text(f"{metric} {BETTER[metric]}", "bold")
        missing = {one["missing"] for one in rows}
        if None not in missing and len(missing) == 1:  # no system could be measured
            table.add_row(title, *_cells(rows[0]))
            continue
        failed: dict[str, Sequence[str]] = {}
        for one in rows:
            failed |= one["result"]["definition"].get(FAILED_AUDIT, {}) if one["result"] else {}
        table.add_row(title, "", "", "", Text(", ".join(judge_names(failed, failed)), "yellow"))
        for one in rows:
            table.add_row(Text(f"  {_shown(one['system'], systems)}"), *_cells(one))
    return table


def _cells(one: Part) -> tuple[Text | str, ...]:
    result, counts = one["result"] or {}, one["counts"]
    tint = result.get("tint", {}).get("yellower", {}).get("value")
    beside = "" if tint is None else f"{abs(tint):.1f} {'yellower' if tint >= 0 else 'bluer'}"
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    said = "; ".join(filter(None, (one["missing"], beside, reasons)))
    covered = "{} of {}".format(*_covered(one))
    value, interval = rounded(result.get("value")), rounded_interval(result.get("interval"))
    return value, interval, covered, Text(said, "yellow" if one["missing"] else "")


def show_agreement(console: Console, agreement: RunAgreement) -> None:
    from echo_hf.scores.agreement import PROCEDURES
    from echo_hf.scores.rating_table import RUBRIC

    left_out = {name: dict(sorted(one.items())) for name, one in agreement.left_out.items()}
    show_left_out(console, ((name, left_out[name]) for name in sorted(left_out)))
    merged, how = agreement.merged, PROCEDURES[agreement.merged.protocol]
    counts, people, raters = merged.counts, merged.people, merged.people.mean_rank_by_rater
    refused = f", {counts.refused} times impossible" if counts.refused else ""
    incomplete = f", {counts.partial} of them incomplete" if counts.partial else ""
    said = "1 person" if len(raters) == 1 else f"{len(raters)} people"
    ranked = f"{counted(counts.samples, 'sample')}: {counted(counts.rankings, 'ranking')}"
    said = f"{said} ranked {ranked}"
    say(console, f"{said}{incomplete}{refused} ({merged.protocol})")
    table = plain_table("system", "consensus", "95 %", *raters)
    for system in people.consensus.ranking:  # over all samples
        mean = people.mean_rank[system]
        by_rater = (rounded(ranks[system].value, 2) for ranks in raters.values())
        ends = rounded_interval(mean.interval, 2)
        table.add_row(Text(plain(system), "bold"), rounded(mean.value, 2), ends, *by_rater)
    show_table(console, "mean rank by people, 1 is best", table)
    test, tests = people.friedman, people.tests[how.test]
    differ = sum(getattr(one, how.adjusted) < ALPHA for one in tests)
    if test.p_value is None:
        say(console, "Friedman's test: nothing to test, as no block is in an order")
    else:
        say(
            console,
            f"Friedman's test: chi-square {rounded(test.statistic, 1)}, "
            f"{counted(test.degrees, 'degree')} of freedom, p {_p_value(test.p_value)}, "
            f"{test.blocks} blocks",
        )
        say(
            console,
            f"{differ} of {counted(len(tests), 'pair')} {'differs' if differ == 1 else 'differ'}; "
            "Kendall's W within samples "
            f"{rounded(people.kendalls_w.value)}",
        )
    rated = merged.judges.with_consensus
    if not rated:
        said = f"no rating by the rubric {RUBRIC!r}: people are compared with each other alone"
        say(console, said, "yellow")
    show_table(console, "agreement with people, Kendall's tau-b", _taus(merged))
    for name in judge_names(sorted(agreement.failed.keys() & rated), agreement.failed):
        say(console, name, "yellow")
    say(console, f"agreement: {agreement.path}")


def _taus(agreement: Agreement) -> Table:
    """Agreement of each judge with the consensus and with each person, and of people with it."""
    judges, raters = agreement.judges, agreement.people.mean_rank_by_rater
    table = plain_table("", "consensus", "95 %", "p", "of people's", *raters)
    for judge, tau in judges.with_consensus.items():
        share = percent(judges.share_of_ceiling[judge].share)
        by_rater = (rounded(one.tau) for one in judges.with_raters[judge].values())
        cells = rounded(tau.tau), rounded_interval(tau.interval), _p_value(tau.p_value), share
        table.add_row(Text(plain(judge), "bold"), *cells, *by_rater)
    people = judges.people_with_others
    table.add_row(Text("people", "bold"), rounded(people.value), rounded_interval(people.interval))
    return table


def _p_value(value: float | None) -> str:
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
