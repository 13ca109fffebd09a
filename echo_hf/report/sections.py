"""Build the sections of the page: the variables of each template, and which sections a run has."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

from markupsafe import Markup

from echo_hf.hub.check_changes import CHECK_MEANINGS
from echo_hf.hub.ruler import LINKS, describe_lead, describe_ruler, rank_systems
from echo_hf.judging.board import SIGNIFICANCE_LEVEL, TEST_NAMES, describe_votes, judge_names
from echo_hf.judging.failure_rates import CAVEAT
from echo_hf.judging.reliability import describe_reliability
from echo_hf.judging.results import SavedHumanCorrected, SavedMetric, SavedSplit, collect_judges
from echo_hf.judging.trust import WAY_NAMES
from echo_hf.judging.validity import FEWEST_THREADS
from echo_hf.metrics.base import find_metric, get_better
from echo_hf.metrics.result import MetricReason
from echo_hf.report.analysis.result import PREVIOUS
from echo_hf.report.markup import (
    count,
    find_highest,
    make_environment,
    number,
    plural,
    render,
    round_scale,
    scale_logarithm,
    titled,
)
from echo_hf.report.run_data import MeanColors, ReportSample, RunData, SavedRating, Thumbnails
from echo_hf.report.slices import build_slices
from echo_hf.scores.agreement import PROCEDURES, Agreement
from echo_hf.scores.ranks import TauB
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.reliability import Reliability, describe_success
from echo_hf.scores.ruler import Ruler
from echo_hf.scores.votes import best_first
from echo_hf.scores.win_rate import BoardRow, WinRate, rank_rows
from echo_hf.systems.checks import ACTIVE, Check

MAX_ROWS = 20
MAX_MOVED = 10
MAX_SAMPLES = 3
MAX_UNCHECKED, MAX_EXAMPLES = 10, 2
SHOWN_FIRST = ("kept", "proposed", "fell", "retired", "withdrawn", "replaced")
INPUTS_KEY = ""  # stands for a system's name
MEANINGS = {str(reason): reason.meaning for reason in MetricReason}
COLORS = 8  # of the style sheet
LABEL_STEP = 0.06  # share of a chart's height that a number takes
Colors = Mapping[tuple[str, str], MeanColors]


def build_sections(data: RunData, thumbnails: Thumbnails, colors_of: Colors) -> dict[str, Markup]:
    """Build the sections that have something to show, in the order of the page."""
    choices = build_choices(data)
    comes_first = any(
        found.is_board for name in data.splits if (found := data.results.details[name].choices)
    )
    bodies = {
        **({"choices": choices} if comes_first else {}),
        "win-rates": build_board(data),
        "choices": choices,
        "slices": build_slices(data),
        "reliability": build_reliability(data),
        "since": build_since(data),
        "through-time": build_through_time(data),
        "trust": build_trust(data),
        "complaints": build_complaints(data, thumbnails),
        "metrics": build_metrics(data),
        "colors": build_colors(data, colors_of, thumbnails),
        "examples": build_examples(data, thumbnails),
        "people": build_people(data),
        "tasks": build_tasks(data),
        "analysis": build_analysis(data),
        "gallery": build_gallery(data),
        "paper": render("paper.html.jinja", data=data) if data.unlike_paper else None,
        "provenance": build_provenance(data),
    }
    return {name: body for name, body in bodies.items() if body}


def build_since(data: RunData) -> Markup | None:
    """Show the changes in what people ask since the previous release, if there is one."""
    since = data.analysis.since.found if data.analysis else None
    if since is None:
        return None
    tasks = data.analysis.open_tasks.found if data.analysis else None
    return render(
        "since.html.jinja",
        found=since,
        analysis=data.analysis,
        target=data.target.name if data.target else None,
        compared=[other for other in tasks.compared if other.name == PREVIOUS] if tasks else [],
        new=[group for group in tasks.groups if PREVIOUS in group.new_to] if tasks else [],
        most_rows=MAX_MOVED,
    )


def build_through_time(data: RunData) -> Markup | None:
    """Show all systems that were ever rated on one scale, by the release that rated them first."""
    days = {each.name: each.released for each in data.ruler.releases} if data.ruler else {}
    splits = [
        _describe_scale(split, scale, days)
        for split, scale in (data.ruler.splits if data.ruler else {}).items()
        if any(strength is not None for strength in scale.strength.values())
    ]
    if data.ruler is None or not splits:
        return None
    at = next(iter(data.ruler.splits.values())).at
    return render("through_time.html.jinja", splits=splits, at=at)


def _describe_scale(
    split: str, scale: Ruler, days: Mapping[str, datetime.date | None]
) -> dict[str, Any]:
    rows, by_release = [], dict[str, list[dict[str, Any]]]()
    for place, system in enumerate(rank_systems(scale), 1):
        how, value = scale.how.get(system), scale.strength[system]
        row = {
            "system": system,
            "place": place,
            "value": value,
            "interval": scale.interval.get(system),
            "first": scale.first[system],
            "hollow": how == "bridges",
            "basis": LINKS[how] if how else "nothing",
            "reason": scale.refused.get(system),
        }
        rows.append(row)
        if value is not None:
            by_release.setdefault(scale.first[system], []).append(row)
    columns = [by_release.get(name, []) for name in scale.releases]
    points = [
        {**row, "across": (column + (at + 0.5) / len(group)) / len(columns)}
        for column, group in enumerate(columns)
        for at, row in enumerate(group)
    ]
    ends = [end for point in points for end in (point["value"], *(point["interval"] or ()))]
    return {
        "name": split,
        "rows": rows,
        "points": points,
        "releases": [(name, days.get(name)) for name in scale.releases],
        "scale": round_scale(ends),
        "label": f"{titled(split)}: strength by the release that rated a system first",
        "lead": describe_lead(scale),
        "sentences": describe_ruler(scale),
    }


def build_board(data: RunData) -> Markup:
    splits = []
    for name in data.splits:
        details, rates = data.results.details[name], data.results.rates(name)
        rows = data.results.board(name)
        values = {"name": name, "found": details, "rates": rates, "rows": rows}
        if rates is not None:
            judges = ", ".join(judge_names(rates.per_judge, {}, data.results.judge_models))
            decisions = details.win_rate.decisions if details.win_rate else None
            notes = [f"Judged by {judges}.", _describe(rates, details)]
            notes += [f"Here {sentence}." for sentence in describe_votes(rates.definition)]
            notes += _list_reasons(rates)
            if decisions:
                notes.append(f"{decisions.summary.capitalize()}.")
            values |= {
                "notes": notes,
                "pairs": decisions or rates,
                "corrected": build_people_rows(data, details.by_people),
                "tiers": [list(tier) for _, tier in groupby(rows, key=attrgetter("tier"))],
                "heads": _heads("breakable", (row.system for row in rows)),
                "judges": _heads("judge", rates.per_judge, data.failures),
            }
        splits.append(values)
    flags = {
        "failures": data.failures,
        "uncertified": data.results.uncertified.get("pointwise", {}),
    }
    return render("board.html.jinja", splits=splits, **flags)


def build_choices(data: RunData) -> Markup | None:
    """Show strengths, tiers and decided pairs by choices between two outputs."""
    splits = []
    for name in data.splits:
        if (found := data.results.details[name].choices) is None:
            continue
        strengths, rates = found.strengths, data.results.rates(name)
        rows = data.results.choice_board(name)
        ends = [end for row in rows for end in (row.value, *(row.interval or ()))]
        judges = list(map(str, strengths.definition.get("judges", ())))
        names = ", ".join(judge_names(judges, {}, data.results.judge_models))
        nearer = [
            line.said
            for line in data.results.trust
            if (line.measure, line.split) == ("pairwise", name) and line.reason is None
        ]
        people = found.by_people
        sentences = [f"Chosen by {names}: {found.said}."]
        sentences += [f"Nearer to people here: {sentence}." for sentence in nearer]
        sentences += [f"No strengths by people: {found.missing}."] if found.missing else []
        if people and people.weight is not None:
            sentences.append(
                f"By people: their ranks on {plural(people.ranked, 'sample')}, and judges on "
                f"{people.samples:,} with a weight of {people.weight:.2f}."
            )
        splits.append(
            {
                "name": name,
                "found": found,
                "judges": judges,
                "rates": rates.win_rate if rates else {},
                "scale": round_scale(end for end in ends if end is not None),
                "sentences": sentences,
                "tiers": [list(tier) for _, tier in groupby(rows, key=attrgetter("tier"))],
            }
        )
    flags = {"failures": data.failures, "uncertified": data.results.uncertified.get("pairwise", {})}
    return render("choices.html.jinja", splits=splits, **flags) if splits else None


def build_reliability(data: RunData) -> Markup | None:
    """Show how often systems succeed and at what price, where they drew several outputs."""
    splits = []
    for name in data.splits:
        if (saved := data.results.details[name].reliability) is None:
            continue
        found = saved.result
        values = {"name": name, "found": found, "missing": saved.missing}
        splits.append({**values, **(_describe_tries(found) if found else {})})
    models = data.results.system_models
    return render("reliability.html.jinja", splits=splits, models=models) if splits else None


def _describe_tries(figures: Reliability) -> dict[str, Any]:
    last = figures.definition["k"] or 1
    order = best_first({system: share.value for system, share in figures.success.items()})
    rows: list[dict[str, Any]] = [
        {
            "system": system,
            "place": place,
            "color": place % COLORS,
            "success": figures.success[system],
            "points": sorted((k, each.value) for k, each in figures.pass_at[system].items()),
        }
        for place, system in enumerate(order, 1)
    ]
    curves = [row for row in rows if row["points"]]
    height = 1.0 + 2 * LABEL_STEP
    for curve in sorted(curves, key=lambda row: row["points"][-1][1], reverse=True):
        # Of lines that end at one place the numbers stand below each other.
        curve["height"] = height = min(curve["points"][-1][1], height - LABEL_STEP)
    ends = [
        end
        for each in figures.dollars.values()
        if each.value
        for end in each.interval or (each.value,)
    ]
    scale, ticks = scale_logarithm(ends)
    prices = [
        {
            **row,
            "across": scale.share(math.log10(dollars.value)),
            "ends": [scale.share(math.log10(end)) for end in dollars.interval or ()],
        }
        for row in rows
        if (dollars := figures.dollars[row["system"]]).value
    ]
    return {
        "rule": describe_success(figures.definition),
        "last": last,
        "rows": rows,
        "curves": curves,
        "prices": prices,
        "ticks": ticks,
        "sentences": describe_reliability(figures),
        "choices": [
            (system, figures.best_of[system][last], figures.worst_of[system][last])
            for system in order
            if last in figures.best_of[system] and last in figures.worst_of[system]
        ],
    }


def build_people_rows(data: RunData, people: SavedHumanCorrected | None) -> tuple[BoardRow, ...]:
    if people is None or (result := people.result) is None:
        return ()
    models, reasons = data.results.system_models, result.reasons
    return rank_rows(
        BoardRow(
            system,
            value,
            result.interval.get(system),
            missing=reasons[system].meaning if system in reasons else None,
            in_place_of=models[system].in_place_of if system in models else None,
        )
        for system, value in result.win_rate.items()
    )


def _heads(macro: str, names: Iterable[str], *arguments: Any, kind: str = "heat") -> list[Any]:
    """Return the heads of a table's columns, with names rendered by a macro."""
    parts: Any = make_environment().get_template("parts.html.jinja").module
    return [(getattr(parts, macro)(name, *arguments), kind) for name in names]


def _describe(rates: WinRate, details: SavedSplit) -> str:
    definition = rates.definition
    interval = definition.get("interval")
    kind = interval.get("kind") if isinstance(interval, Mapping) else None
    test = details.win_rate.tiers.definition.get("test") if details.win_rate else None
    return (
        f"Protocol {definition.get('protocol')}: vote by {definition.get('vote')}, mean over "
        f"{definition.get('average')}, missing outputs: {definition.get('missing')}. "
        f"Interval: {kind or 'none'}. Tiers: {test or 'not tested'}."
    )


def _list_reasons(rates: WinRate) -> Iterator[str]:
    for reason in dict.fromkeys(rates.reasons.values()):
        systems = [system for system, why in rates.reasons.items() if why is reason]
        names = "All systems" if len(systems) == len(rates.win_rate) else ", ".join(systems)
        yield f"{names}: {reason}, {reason.meaning}."
    for why, ratings in rates.ignored.items():
        text = plural(ratings, "rating does", "ratings do")
        yield f"{text} not count in win rates: {why}, {why.meaning}."


def build_trust(data: RunData) -> Markup | None:
    """Show how far to trust the boards: a card for each measure, a table for each split."""
    splits = []
    for name in data.splits:
        rates, rows = data.results.details[name].win_rate, data.results.board(name)
        if rates and rates.bradley_terry and rates.leave_one_judge_out and len(rows) > 1:
            without = rates.leave_one_judge_out.without
            judges = without if len(without) > 1 else {}
            strengths = rates.bradley_terry.strength
            if judges or any(strength is not None for strength in strengths.values()):
                heads = _heads("breakable", (f"without {judge}" for judge in judges))
                values = {"found": rates, "ranked": best_first(strengths), "heads": heads}
                splits.append(values | {"name": name, "rows": rows, "without": judges})
    lines = groupby(data.results.trust, attrgetter("measure"))
    cards = [(measure, list(group)) for measure, group in lines]
    judged = {"certificates": data.results.certificates, "ways": WAY_NAMES}
    judged |= {"pictures": data.results.judge_pictures}
    return render("trust.html.jinja", cards=cards, splits=splits, **judged) if cards else None


def build_complaints(data: RunData, thumbnails: Thumbnails) -> Markup | None:
    """Show what people complain about: each check with its proof, examples and rates."""
    if not (data.checks or data.unchecked):
        return None
    samples = {sample.id: sample for sample in data.samples if not sample.flags}
    cards = [
        {
            "check": check,
            "reason": CHECK_MEANINGS.get(check.reason or "", check.reason),
            "examples": _find_examples(check, samples, thumbnails)
            if check.status in ACTIVE
            else [],
            "splits": _list_rates(data, check.key),
        }
        for check in sorted(data.checks, key=lambda check: SHOWN_FIRST.index(check.status))
    ]
    shown = data.unchecked[:MAX_UNCHECKED]
    return render(
        "complaints.html.jinja",
        cards=cards,
        unchecked=shown,
        more=len(data.unchecked) - len(shown),
        caveat=CAVEAT,
        models=data.results.system_models,
    )


def _find_examples(
    check: Check, samples: Mapping[str, ReportSample], thumbnails: Thumbnails
) -> list[tuple[str, Any]]:
    """Find two images that people complained about and two that they praised, kept for proof."""
    examples = []
    for label in ("complaint", "praise"):
        names = [
            each.sample_id
            for each in check.evidence
            if each.part == "proof" and each.label == label
        ]
        posted = (image for name in names if name in samples for image in samples[name].posted[:1])
        images = (thumbnails[image] for image in posted if image in thumbnails)
        examples += [(label, image) for image in islice(images, MAX_EXAMPLES)]
    return examples


def _list_rates(data: RunData, check: str) -> list[dict[str, Any]]:
    """List the rates by a check for each split, with the axis of their plots."""
    splits = []
    for name in data.splits:
        rates = [rate for rate in data.results.details[name].checks if rate.check == check]
        if rates:
            rates.sort(key=lambda rate: (rate.value is None, rate.value, rate.system))
            numbers = [number for rate in rates for number in (rate.value, *(rate.interval or ()))]
            known = [number for number in numbers if number is not None]
            reasons = dict.fromkeys(rate.reason for rate in rates if rate.reason)
            values = {"name": name, "rates": rates, "scale": round_scale([0.0, *known])}
            splits.append({**values, "reasons": list(reasons)})
    return splits


def build_metrics(data: RunData) -> Markup | None:
    checked = {check.key for check in data.checks}  # which have a section of their own
    splits = {
        name: [
            build_metric_card(data, metric, list(rows))
            for metric, rows in groupby(data.results.details[name].metrics, attrgetter("metric"))
            if metric not in checked
        ]
        for name in data.splits
    }
    splits = {name: cards for name, cards in splits.items() if cards}
    models = data.results.system_models
    values = {"splits": splits, "failures": data.failures, "models": models}
    return render("metrics.html.jinja", **values) if splits else None


def build_metric_card(data: RunData, metric: str, rows: Sequence[SavedMetric]) -> dict[str, Any]:
    missing = {row.missing for row in rows}
    values = [value for row in rows for value in row.values]
    for result in (row.result for row in rows if row.result):
        values += [*([] if result.value is None else [result.value]), *(result.interval or ())]
    lines = [
        f"{row.system}: " + ", ".join(f"{number} {reason}" for reason, number in row.counts.items())
        for row in rows
        if row.counts
    ]
    reasons = sorted({reason for row in rows for reason in row.counts if reason in MEANINGS})
    order = [*data.systems, *(row.system for row in rows)]
    definitions = [row.result.definition for row in rows if row.result]
    titles = (definition.get("title") for definition in definitions)  # of rubrics
    return {
        "metric": metric,
        "title": next(filter(None, titles), titled(metric)),
        "better": get_better(metric, definitions),
        "missing": missing.pop() if len(missing) == 1 else None,
        "judges": collect_judges(rows),
        "rows": sorted(rows, key=lambda row: order.index(row.system)),
        "scale": round_scale(values),
        "said": [*lines, *(f"{reason}: {MEANINGS[reason]}" for reason in reasons)] if lines else [],
    }


def build_colors(data: RunData, mean_colors: Colors, thumbnails: Thumbnails) -> Markup | None:
    """Show the mean colors of the outputs to images (figure B.1)."""
    splits = []
    for split in data.splits:
        names = [name for name in (INPUTS_KEY, *data.systems) if (split, name) in mean_colors]
        if INPUTS_KEY not in names:
            continue
        inputs = (digest for sample in data.select_split(split) for digest in sample.inputs)
        images = (thumbnails[digest] for digest in inputs if digest in thumbnails)
        split_colors = {name: mean_colors[split, name] for name in names}
        tops = (find_highest(colors.shares.tolist()) for colors in split_colors.values())
        values = {"name": split, "colors": split_colors, "top": max(tops)}
        splits.append({**values, "image": next(images, None)})
    return render("colors.html.jinja", splits=splits) if splits else None


def build_examples(data: RunData, thumbnails: Thumbnails) -> Markup | None:
    """Show samples that tell systems apart, by their ratings and by metrics (figure B.2)."""
    groups = []
    for split in data.splits:
        chosen = select_widest(data, split)
        if chosen:
            captions = {key: text for sample in chosen for key, text in _captions(data, sample)}
            groups.append({"title": titled(split), "samples": chosen, "said": captions})
    groups += [group for split in data.splits for group in _find_drifts(data, split)]
    if not groups or not data.outputs:
        return None
    return render("examples.html.jinja", groups=groups, data=data, thumbnails=thumbnails)


def select_widest(data: RunData, split: str) -> list[ReportSample]:
    """Select the samples of a split whose ratings differ most; ties keep their order."""
    samples = list(data.select_split(split))
    gaps = {sample.id: spread(data.ratings.get(sample.id, ())) for sample in samples}
    differing = [sample for sample in samples if gaps[sample.id] > 0]
    return sorted(differing, key=lambda sample: -gaps[sample.id])[:MAX_SAMPLES]


def _group_ratings(ratings: Sequence[SavedRating], by: str) -> dict[str, list[float]]:
    """Group the overall ratings of a sample's outputs, on a scale, by `judge` or `system`."""
    values: dict[str, list[float]] = {}
    for rating in ratings:
        if rating.rubric == RUBRIC and rating.value is not None and not rating.is_scalar:
            values.setdefault(getattr(rating, by), []).append(rating.value)
    return values


def spread(ratings: Sequence[SavedRating]) -> float:
    """Return the mean over judges of the range of a sample's ratings."""
    ranges = [max(values) - min(values) for values in _group_ratings(ratings, "judge").values()]
    return sum(ranges) / len(ranges) if ranges else 0.0


def _captions(data: RunData, sample: ReportSample) -> Iterator[tuple[tuple[str, str], str]]:
    for system, values in _group_ratings(data.ratings.get(sample.id, ()), "system").items():
        yield (sample.id, system), f"rated {number(sum(values) / len(values), 1)}"


def _find_drifts(data: RunData, split: str) -> Iterator[dict[str, Any]]:
    """Yield for some metrics the sample on which systems differ most."""
    for metric in sorted({row.metric for row in data.results.details[split].metrics}):
        registered = find_metric(metric)
        if registered is not None and not registered.compares_samples:
            continue
        values = {
            (sample, row.system): value
            for row in data.results.details[split].metrics
            if row.metric == metric and row.result
            for sample, value in zip(row.samples, row.result.per_sample, strict=False)
            if value is not None
        }
        by_sample: dict[str, list[float]] = {}
        for (sample, _), value in values.items():
            by_sample.setdefault(sample, []).append(value)
        several = {name: numbers for name, numbers in by_sample.items() if len(numbers) > 1}
        gaps = {name: max(numbers) - min(numbers) for name, numbers in several.items()}
        samples = [sample for sample in data.select_split(split) if sample.id in gaps]
        if samples:
            yield {
                "title": f"{titled(metric)}: the sample on which systems differ most",
                "samples": [max(samples, key=lambda sample: gaps[sample.id])],
                "said": {key: number(value) for key, value in values.items()},
            }


def build_people(data: RunData) -> Markup | None:
    """Show people's ranks of systems, and how far judges agree with them (appendix C)."""
    if data.agreement is None:
        return None
    merged = data.agreement.merged
    procedure, (compared, taus) = PROCEDURES[merged.protocol], _list_taus(merged)
    tests = merged.people.tests.get(procedure.test, ())
    adjusted_p = attrgetter(procedure.adjusted)
    return render(
        "people.html.jinja",
        found=merged,
        failures=data.failures,
        procedure=procedure,
        names=TEST_NAMES,
        tests=tests,
        differing=[test for test in tests if adjusted_p(test) < SIGNIFICANCE_LEVEL],
        taus=taus,
        compared=compared,
        tau_heads=_heads("breakable", compared),
        rater_heads=_heads("name_of", merged.people.mean_rank_by_rater, kind="number optional"),
        pearson=[
            (judge, other, pearson)
            for judge, row in merged.judges.pearson.items()
            for other, pearson in row.items()
        ],
        stars=stars,
    )


def _list_taus(agreement: Agreement) -> tuple[list[str], list[tuple[str, list[TauB | None]]]]:
    """List Kendall's tau-b of each two judges and people once (figure C.2); null where missing."""
    judges, raters = agreement.judges, list(agreement.people.mean_rank_by_rater)
    by_pair = {(judge, "consensus"): tau for judge, tau in judges.with_consensus.items()}
    for taus in (judges.with_raters, judges.among_raters, judges.among_judges):
        for first, row in taus.items():
            by_pair |= {(first, other): tau for other, tau in row.items()}
            if taus is not judges.with_raters:
                by_pair |= {(other, first): tau for other, tau in row.items()}
    names = ["consensus", *raters, *judges.with_consensus]
    # A person and a judge may have the same name, and each needs a row.
    compared, rows = names[:-1], []
    for index, name in enumerate(names):
        if index and (name in judges.with_consensus or len(raters) > 1):
            # Only below the diagonal: the other half of the table would repeat it.
            cells = [by_pair.get((name, other)) for other in names[:index]]
            rows.append((name, cells + [None] * (len(compared) - index)))
    return (compared if rows else []), rows


def stars(p: float | None) -> str:
    """Mark significance as the paper does."""
    if p is None or p >= SIGNIFICANCE_LEVEL:
        return ""
    return "***" if p < 0.001 else "**"


def build_tasks(data: RunData) -> Markup:
    splits = {}
    for split in data.splits:
        counts = Counter(sample.task or "unknown" for sample in data.select_split(split))
        splits[split] = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
    return render("tasks.html.jinja", splits=splits)


def build_analysis(data: RunData) -> Markup | None:
    """Show what people ask and say, beside reference sets of prompts."""
    analysis = data.analysis
    if analysis is None:
        return None
    groups: dict[str, list[tuple[float, float]]] = {}
    for point in analysis.embedding_map.found.points if analysis.embedding_map.found else ():
        groups.setdefault(point.prompt_set, []).append((point.x, point.y))
    rates = {}
    task_rates = analysis.tasks.found.rates if analysis.tasks.found else ()
    for split in dict.fromkeys(row.split for row in task_rates):
        rows = [row for row in task_rates if row.split == split]
        systems = sorted({system for row in rows for system in row.rates})
        rates[split] = {"rows": rows, "systems": systems, "heads": _heads("breakable", systems)}
    tasks = analysis.open_tasks.found
    mondays = sorted({week for group in tasks.groups for week in group.by_week} if tasks else ())
    offsets = range(0, (mondays[-1] - mondays[0]).days + 1, 7) if mondays else ()
    weeks = [mondays[0] + datetime.timedelta(days=days) for days in offsets]
    return render(
        "analysis.html.jinja",
        found=analysis,
        weeks=weeks,
        trend=lambda group: [group.by_week.get(week, 0) for week in weeks],
        groups=dict(reversed(groups.items())),  # the benchmark on top
        task_rates=rates,
        fewest=FEWEST_THREADS,
        most_rows=MAX_ROWS,
    )


def build_gallery(data: RunData) -> Markup:
    splits = Counter(sample.split for sample in data.samples)
    tasks = Counter(sample.task for sample in data.samples if sample.task)
    options = {
        kind: [(name, f"{titled(name)} ({number})") for name, number in counts.most_common()]
        for kind, counts in (("splits", splits), ("tasks", tasks))
    }
    systems = [(system, system) for system in data.systems]
    return render("gallery.html.jinja", systems=systems, **options)


def build_provenance(data: RunData) -> Markup:
    """Show the outcome of every task, and the definition of each figure."""
    ended = Counter((system, output.outcome) for (_, system), output in data.outputs.items())
    outcomes = sorted({outcome for _, outcome in ended}, key=lambda name: (name != "ok", name))
    ratings = [rating for sample in data.ratings.values() for rating in sample]
    rated = Counter((rating.judge, rating.value is not None) for rating in ratings)
    definitions: dict[str, list[str]] = {}
    for row in data.results.results:
        figure = f"{titled(row.split)}, {titled(row.metric)}, {row.system}"
        definitions.setdefault(_format_json(row.definition), []).append(figure)
    return render(
        "provenance.html.jinja",
        data=data,
        ended=ended,
        outcomes=outcomes,
        heads=[
            (outcome, "number optional") for outcome in [*outcomes, "not tried"] if outcome != "ok"
        ],
        wanted=len(data.samples),
        untried={
            system: len(data.samples) - sum(ended[system, outcome] for outcome in outcomes)
            for system in data.systems
        },
        left_out=[
            f"{count(number)} rows of {name}: {reason}"
            for name, counts in sorted(data.results.left_out.items())
            for reason, number in sorted(counts.items())
        ],
        judges={
            judge: (rated[judge, True], rated[judge, False])
            for judge in sorted({judge for judge, _ in rated})
        },
        definitions=definitions,
        settings=_format_json(data.settings),
        benchmark=_format_json(data.results.benchmark.model_dump()),
    )


def _format_json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
