"""The sections of the page: what each template is given, and which sections a run has."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from markupsafe import Markup

from echo_hf.judging.board import ALPHA, NAMES, judge_names, voted_on
from echo_hf.metrics import BETTER, HIGHER
from echo_hf.reasons import MetricReason
from echo_hf.report.analysis.result import BEFORE
from echo_hf.report.markup import (
    count,
    environment,
    highest,
    number,
    plural,
    rendered,
    round_scale,
    titled,
)
from echo_hf.report.run_data import (
    ByPeople,
    MeanColors,
    Metric,
    Rating,
    ReportSample,
    RunData,
    Split,
    Thumbnails,
    judges_of,
)
from echo_hf.scores.agreement import PROCEDURES, Agreement
from echo_hf.scores.ranks import TauB
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.votes import best_first
from echo_hf.scores.win_rate import BoardRow, WinRate, rank_rows

MOST_ROWS = 20
MOST_MOVED = 10
SHOWN = 3
DRIFTS = ("face_identity", "structure_distance")
INPUTS = ""  # in the place of a system's name
MEANINGS = {str(one): one.meaning for one in MetricReason}
Colors = Mapping[tuple[str, str], MeanColors]


def sections(data: RunData, thumbnails: Thumbnails, colors_of: Colors) -> dict[str, Markup]:
    """The sections that there is something to show in, in the order of the page."""
    every = {
        "win-rates": board(data),
        "since": since(data),
        "trust": trust(data),
        "metrics": metrics(data),
        "colors": colors(data, colors_of, thumbnails),
        "examples": highlights(data, thumbnails),
        "people": agreement(data),
        "tasks": tasks(data),
        "analysis": analysis(data),
        "gallery": gallery(data),
        "paper": rendered("paper.html.jinja", data=data) if data.unlike_paper else None,
        "provenance": provenance(data),
    }
    return {name: body for name, body in every.items() if body}


def since(data: RunData) -> Markup | None:
    """What changed in what people ask since the release before, where there is one."""
    found = data.analysis.since.found if data.analysis else None
    if found is None:
        return None
    named = data.analysis.open_tasks.found if data.analysis else None
    return rendered(
        "since.html.jinja",
        found=found,
        analysis=data.analysis,
        target=data.target.name if data.target else None,
        compared=[one for one in named.compared if one.name == BEFORE] if named else [],
        new=[one for one in named.groups if BEFORE in one.new_to] if named else [],
        most_rows=MOST_MOVED,
    )


def board(data: RunData) -> Markup:
    splits = []
    for name in data.splits:
        found, rates = data.results.details[name], data.results.rates(name)
        rows = data.results.board(name)
        given = {"name": name, "found": found, "rates": rates, "rows": rows}
        if rates is not None:
            judges = ", ".join(judge_names(rates.per_judge, {}, data.results.judge_models))
            decided = found.win_rate.decisions if found.win_rate else None
            voted = (f"Here {said}." for said in voted_on(rates.definition))
            notes = [f"Judged by {judges}.", _how(rates, found), *voted, *_why_not(rates)]
            given |= {
                "notes": [*notes, f"{decided.summary.capitalize()}."] if decided else notes,
                "pairs": decided or rates,
                "corrected": by_people(data, found.by_people),
                "tiers": [list(tier) for _, tier in groupby(rows, key=attrgetter("tier"))],
                "heads": _heads("breakable", (row.system for row in rows)),
                "judges": _heads("judge", rates.per_judge, data.failures),
            }
        splits.append(given)
    return rendered("board.html.jinja", splits=splits, failures=data.failures)


def by_people(data: RunData, found: ByPeople | None) -> tuple[BoardRow, ...]:
    if found is None or (result := found.result) is None:
        return ()
    models, why = data.results.system_models, result.reasons
    return rank_rows(
        BoardRow(
            system,
            value,
            result.interval.get(system),
            missing=why[system].meaning if system in why else None,
            in_place_of=models[system].in_place_of if system in models else None,
        )
        for system, value in result.win_rate.items()
    )


def _heads(macro: str, names: Iterable[str], *given: Any, kind: str = "heat") -> list[Any]:
    """The heads of a table's columns: names as a macro writes them."""
    parts: Any = environment().get_template("parts.html.jinja").module
    return [(getattr(parts, macro)(name, *given), kind) for name in names]


def _how(rates: WinRate, found: Split) -> str:
    definition = rates.definition
    drawn = definition.get("interval")
    kind = drawn.get("kind") if isinstance(drawn, Mapping) else None
    test = found.win_rate.tiers.definition.get("test") if found.win_rate else None
    return (
        f"Protocol {definition.get('protocol')}: vote by {definition.get('vote')}, mean over "
        f"{definition.get('average')}, missing outputs: {definition.get('missing')}. "
        f"Interval: {kind or 'none'}. Tiers: {test or 'not tested'}."
    )


def _why_not(rates: WinRate) -> Iterator[str]:
    for reason in dict.fromkeys(rates.reasons.values()):
        systems = [system for system, why in rates.reasons.items() if why is reason]
        who = "All systems" if len(systems) == len(rates.win_rate) else ", ".join(systems)
        yield f"{who}: {reason}, {reason.meaning}."
    for why, ratings in rates.ignored.items():
        said = plural(ratings, "rating does", "ratings do")
        yield f"{said} not count in win rates: {why}, {why.meaning}."


def trust(data: RunData) -> Markup | None:
    """What says how far the boards hold: a card for each measure, a table for each split."""
    splits = []
    for name in data.splits:
        found, rows = data.results.details[name].win_rate, data.results.board(name)
        if found and found.bradley_terry and found.leave_one_judge_out and len(rows) > 1:
            without = found.leave_one_judge_out.without
            judges = without if len(without) > 1 else {}
            strengths = found.bradley_terry.strength
            if judges or any(one is not None for one in strengths.values()):
                heads = _heads("breakable", (f"without {judge}" for judge in judges))
                known = {"found": found, "ranked": best_first(strengths), "heads": heads}
                splits.append(known | {"name": name, "rows": rows, "without": judges})
    lines = groupby(data.results.trust, attrgetter("measure"))
    cards = [(measure, list(every)) for measure, every in lines]
    return rendered("trust.html.jinja", cards=cards, splits=splits) if cards else None


def metrics(data: RunData) -> Markup | None:
    splits = {
        name: [
            metric_card(data, metric, list(rows))
            for metric, rows in groupby(data.results.details[name].metrics, attrgetter("metric"))
        ]
        for name in data.splits
    }
    splits = {name: cards for name, cards in splits.items() if cards}
    models = data.results.system_models
    known = {"splits": splits, "failures": data.failures, "models": models}
    return rendered("metrics.html.jinja", **known) if splits else None


def metric_card(data: RunData, metric: str, rows: Sequence[Metric]) -> dict[str, Any]:
    missing = {one.missing for one in rows}
    values = [value for one in rows for value in one.values]
    for result in (one.result for one in rows if one.result):
        values += [*([] if result.value is None else [result.value]), *(result.interval or ())]
    said = [
        f"{one.system}: " + ", ".join(f"{number} {reason}" for reason, number in one.counts.items())
        for one in rows
        if one.counts
    ]
    reasons = sorted({reason for one in rows for reason in one.counts if reason in MEANINGS})
    order = [*data.systems, *(one.system for one in rows)]
    return {
        "metric": metric,
        "better": "higher" if BETTER.get(metric, HIGHER) == HIGHER else "lower",
        "missing": missing.pop() if len(missing) == 1 else None,
        "judges": judges_of(rows),
        "rows": sorted(rows, key=lambda one: order.index(one.system)),
        "scale": round_scale(values),
        "said": [*said, *(f"{reason}: {MEANINGS[reason]}" for reason in reasons)] if said else [],
    }


def colors(data: RunData, found: Colors, thumbnails: Thumbnails) -> Markup | None:
    """The mean colors of the outputs to images (figure B.1)."""
    splits = []
    for split in data.splits:
        names = [name for name in (INPUTS, *data.systems) if (split, name) in found]
        if INPUTS not in names:
            continue
        inputs = (digest for sample in data.of_split(split) for digest in sample.inputs)
        shown = {name: found[split, name] for name in names}
        splits.append(
            {
                "name": split,
                "colors": shown,
                "top": max(highest(one.shares.tolist()) for one in shown.values()),
                "image": next((thumbnails[one] for one in inputs if one in thumbnails), None),
            }
        )
    return rendered("colors.html.jinja", splits=splits) if splits else None


def highlights(data: RunData, thumbnails: Thumbnails) -> Markup | None:
    """Samples that tell systems apart: by their ratings, and by a metric (figure B.2)."""
    groups = []
    for split in data.splits:
        chosen = widest(data, split)
        if chosen:
            said = {key: text for sample in chosen for key, text in _rated(data, sample)}
            groups.append({"title": titled(split), "samples": chosen, "said": said})
    groups += [one for split in data.splits for one in _drifts(data, split)]
    if not groups or not data.outputs:
        return None
    return rendered("examples.html.jinja", groups=groups, data=data, thumbnails=thumbnails)


def widest(data: RunData, split: str, shown: int = SHOWN) -> list[ReportSample]:
    """The samples of a split whose ratings lie furthest apart, equal ones in their order."""
    apart = [(spread(data.ratings.get(one.id, ())), one) for one in data.of_split(split)]
    ranked = sorted((one for one in apart if one[0] > 0), key=lambda one: -one[0])
    return [sample for _, sample in ranked[:shown]]


def _grouped(ratings: Sequence[Rating], by: str) -> dict[str, list[float]]:
    """The overall ratings of a sample's outputs, by `judge` or `system`."""
    found: dict[str, list[float]] = {}
    for one in ratings:
        if one.rubric == RUBRIC and one.value is not None:
            found.setdefault(getattr(one, by), []).append(one.value)
    return found


def spread(ratings: Sequence[Rating]) -> float:
    """How far the ratings of a sample's outputs lie apart, as a mean over judges."""
    ranges = [max(some) - min(some) for some in _grouped(ratings, "judge").values()]
    return sum(ranges) / len(ranges) if ranges else 0.0


def _rated(data: RunData, sample: ReportSample) -> Iterator[tuple[tuple[str, str], str]]:
    for system, values in _grouped(data.ratings.get(sample.id, ()), "system").items():
        yield (sample.id, system), f"rated {number(sum(values) / len(values), 1)}"


def _drifts(data: RunData, split: str) -> Iterator[dict[str, Any]]:
    """For some metrics, the sample on which the systems differ most."""
    for metric in DRIFTS:
        found = {
            (sample, one.system): value
            for one in data.results.details[split].metrics
            if one.metric == metric and one.result
            for sample, value in zip(one.samples, one.result.per_sample, strict=False)
            if value is not None
        }
        by_sample: dict[str, list[float]] = {}
        for (sample, _), value in found.items():
            by_sample.setdefault(sample, []).append(value)
        apart = {name: max(some) - min(some) for name, some in by_sample.items() if len(some) > 1}
        known = [sample for sample in data.of_split(split) if sample.id in apart]
        if known:
            yield {
                "title": f"{titled(metric)}: the sample on which systems differ most",
                "samples": [max(known, key=lambda sample: apart[sample.id])],
                "said": {key: number(value) for key, value in found.items()},
            }


def agreement(data: RunData) -> Markup | None:
    """What people say of the systems, and how far judges agree with them (appendix C)."""
    if data.agreement is None:
        return None
    found = data.agreement.merged
    procedure, (compared, taus) = PROCEDURES[found.protocol], _taus(found)
    tests = found.people.tests.get(procedure.test, ())
    return rendered(
        "people.html.jinja",
        found=found,
        failures=data.failures,
        procedure=procedure,
        names=NAMES,
        tests=tests,
        differing=[one for one in tests if getattr(one, procedure.adjusted) < ALPHA],
        taus=taus,
        compared=compared,
        tau_heads=_heads("breakable", compared),
        rater_heads=_heads("name_of", found.people.mean_rank_by_rater, kind="number optional"),
        pearson=[
            (judge, other, one)
            for judge, row in found.judges.pearson.items()
            for other, one in row.items()
        ],
        stars=stars,
    )


def _taus(found: Agreement) -> tuple[list[str], list[tuple[str, list[TauB | None]]]]:
    """Tau-b of judges and people, each with each once (figure C.2); null where there is none."""
    judges, raters = found.judges, list(found.people.mean_rank_by_rater)
    known = {(judge, "consensus"): tau for judge, tau in judges.with_consensus.items()}
    for taus in (judges.with_raters, judges.among_raters, judges.among_judges):
        for one, row in taus.items():
            known |= {(one, other): tau for other, tau in row.items()}
            if taus is not judges.with_raters:
                known |= {(other, one): tau for other, tau in row.items()}
    names = ["consensus", *raters, *judges.with_consensus]
    # A person and a judge may have one name: each keeps a row.
    compared, rows = names[:-1], []
    for at, name in enumerate(names):
        if at and (name in judges.with_consensus or len(raters) > 1):
            pairs = (
                (name, other) if before < at else None for before, other in enumerate(compared)
            )
            rows.append((name, [known.get(pair) if pair else None for pair in pairs]))
    return (compared if rows else []), rows


def stars(p: float | None) -> str:
    """How the paper marks what is significant."""
    if p is None or p >= ALPHA:
        return ""
    return "***" if p < 0.001 else "**"


def tasks(data: RunData) -> Markup:
    splits = {}
    for split in data.splits:
        counts = Counter(sample.task or "unknown" for sample in data.of_split(split))
        splits[split] = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
    return rendered("tasks.html.jinja", splits=splits)


def analysis(data: RunData) -> Markup | None:
    """What people ask and say, beside other prompt sets."""
    found = data.analysis
    if found is None:
        return None
    groups: dict[str, list[tuple[float, float]]] = {}
    for point in found.embedding_map.found.points if found.embedding_map.found else ():
        groups.setdefault(point.prompt_set, []).append((point.x, point.y))
    rates = {}
    every = found.tasks.found.rates if found.tasks.found else ()
    for split in dict.fromkeys(one.split for one in every):
        rows = [one for one in every if one.split == split]
        systems = sorted({system for one in rows for system in one.rates})
        rates[split] = {"rows": rows, "systems": systems, "heads": _heads("breakable", systems)}
    named = found.open_tasks.found
    known = sorted({week for one in named.groups for week in one.by_week} if named else ())
    since = range(0, (known[-1] - known[0]).days + 1, 7) if known else ()
    weeks = [known[0] + datetime.timedelta(days=days) for days in since]
    return rendered(
        "analysis.html.jinja",
        found=found,
        weeks=weeks,
        trend=lambda group: [group.by_week.get(week, 0) for week in weeks],
        groups=dict(reversed(groups.items())),  # the benchmark on top
        task_rates=rates,
        most_rows=MOST_ROWS,
    )


def gallery(data: RunData) -> Markup:
    splits = Counter(sample.split for sample in data.samples)
    tasks = Counter(sample.task for sample in data.samples if sample.task)
    given = {
        kind: [(name, f"{titled(name)} ({number})") for name, number in counts.most_common()]
        for kind, counts in (("splits", splits), ("tasks", tasks))
    }
    return rendered("gallery.html.jinja", systems=[(one, one) for one in data.systems], **given)


def provenance(data: RunData) -> Markup:
    """What became of every task, and what each figure is made of."""
    ended = Counter((system, one.outcome) for (_, system), one in data.outputs.items())
    outcomes = sorted({outcome for _, outcome in ended}, key=lambda one: (one != "ok", one))
    rated = Counter(
        (one.judge, one.value is not None) for some in data.ratings.values() for one in some
    )
    definitions: dict[str, list[str]] = {}
    for row in data.results.results:
        said = f"{titled(row.split)}, {titled(row.metric)}, {row.system}"
        definitions.setdefault(_json(row.definition), []).append(said)
    return rendered(
        "provenance.html.jinja",
        data=data,
        ended=ended,
        outcomes=outcomes,
        heads=[(one, "number optional") for one in [*outcomes, "not tried"] if one != "ok"],
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
        settings=_json(data.settings),
        benchmark=_json(data.results.benchmark.model_dump()),
    )


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
