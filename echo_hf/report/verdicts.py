"""The page of verdicts: two systems side by side, and what judges and people said of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations
from statistics import fmean
from typing import Any, Literal

import pyarrow as pa

from echo_hf.config.rubrics import OVERALL
from echo_hf.report.markup import count, render, titled, write_data
from echo_hf.scores.rating_table import Unrated
from echo_hf.systems.checks import Check

PAGE, SCRIPT = "verdicts.html", "verdicts.js"
MAX_CHOICE_CHARACTERS = 20_000_000  # more would take a browser seconds to open
LIST_CHARACTERS = 300  # of a prompt, by which samples are searched before they are shown


@dataclass(frozen=True)
class SavedChoice:
    """A judge's choice between two outputs, one of which was shown first."""

    system_a: str
    system_b: str
    judge: str
    repeat: int
    order: Literal["ab", "ba"]
    winner: Literal["a", "b", "tie"] | None
    explanation: str | None
    outcome: str | None


# Of the first and the second system of a pair: how many people prefer it, and how many neither.
Tally = tuple[int, int, int]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Verdicts:
    """Choices of judges, and how many people prefer which system, by sample."""

    choices: Mapping[str, tuple[SavedChoice, ...]] = field(default_factory=dict)
    people: Mapping[str, Mapping[Pair, Tally]] = field(default_factory=dict)


def read_judgements(comparisons: pa.Table | None, human: pa.Table | None) -> Verdicts:
    """Read choices of judges, and count people's ranks by pair, so that nobody's own is shown."""
    choices: dict[str, list[SavedChoice]] = {}
    names = [each.name for each in fields(SavedChoice)]
    for row in comparisons.to_pylist() if comparisons is not None else ():
        if row["outcome"] != Unrated.NOT_NEEDED and not row.get("draw"):
            choice = SavedChoice(**{name: row[name] for name in names})
            choices.setdefault(row["sample_id"], []).append(choice)
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for row in human.to_pylist() if human is not None else ():
        score = row["score"] if row["rank"] is None else -row["rank"]
        if score is not None:
            by_rater = scores.setdefault(row["sample_id"], {})
            by_rater.setdefault(row["rater"], {})[row["system"]] = score
    people = {sample: _tally(by_rater.values()) for sample, by_rater in scores.items()}
    return Verdicts({sample: tuple(rows) for sample, rows in choices.items()}, people)


def _tally(scores_by_person: Iterable[Mapping[str, float]]) -> dict[Pair, Tally]:
    tallies = dict[Pair, list[int]]()
    for scores in scores_by_person:
        for first, second in combinations(sorted(scores), 2):
            difference = scores[first] - scores[second]
            place = 0 if difference > 0 else 1 if difference < 0 else 2
            tallies.setdefault((first, second), [0, 0, 0])[place] += 1
    return {pair: (counts[0], counts[1], counts[2]) for pair, counts in tallies.items()}


def render_verdicts(
    gallery: Mapping[str, Any],
    verdicts: Verdicts,
    checks: Iterable[Check],
    name: str,
    assets: Mapping[str, str],
    *,
    scalar_judges: Collection[str] = (),
    prefers_choices: bool = False,
) -> str:
    """Render the page; each sample's words stand in a block of their own, read when it is shown.

    Args:
        gallery: Systems, samples and images, as the data of the report has them.
        verdicts: Choices and ranks, by sample.
        checks: The checks that judges answered.
        name: The run's.
        assets: `style`, `script` and the `policy` that allows them.
        scalar_judges: Those whose numbers are on no scale, so that none are equal but the same.
        prefers_choices: Whether choices are the board, and so a judge's verdict where it has both.
    """
    samples, systems = gallery["samples"], gallery["systems"]
    rated = {row["judge"] for sample in samples for row in sample["ratings"]}
    chosen = {row.judge for rows in verdicts.choices.values() for row in rows}
    judges = sorted(rated | chosen)
    titles = {check.key: check.title for check in checks}
    words = sum(len(row.explanation or "") for rows in verdicts.choices.values() for row in rows)
    has_words = words <= MAX_CHOICE_CHARACTERS
    index = {
        "systems": systems,
        "judges": judges,
        "exact": [judge in scalar_judges for judge in judges],
        "prefersChoices": prefers_choices,
        "checks": titles,
        "names": _title_all(samples, "split"),
        "samples": [_index_sample(sample, systems, judges, verdicts, titles) for sample in samples],
    }
    blocks = (
        _describe_sample(sample, gallery["pictures"], verdicts, has_words=has_words)
        for sample in samples
    )
    return render(
        "verdicts.html.jinja",
        name=name,
        index=write_data(index),
        blocks=map(write_data, blocks),
        systems=systems,
        judges=judges,
        checks=titles,
        splits=index["names"],
        tasks=_title_all(samples, "task"),
        total=count(len(samples)),
        has_words=has_words,
        **assets,
    )


def _title_all(samples: Sequence[Mapping[str, Any]], key: str) -> dict[str, str]:
    return {name: titled(name) for name in sorted({row[key] for row in samples} - {None})}


def _index_sample(
    sample: Mapping[str, Any],
    systems: Sequence[str],
    judges: Sequence[str],
    verdicts: Verdicts,
    checks: Mapping[str, str],
) -> dict[str, Any]:
    """Describe a sample by the numbers that filters look at."""
    places = {system: number for number, system in enumerate(systems)}
    numbers = {judge: number for number, judge in enumerate(judges)}
    ratings: list[list[list[float]]] = [[[] for _ in systems] for _ in judges]
    failed = set[tuple[str, int]]()
    for row in sample["ratings"]:
        if row["value"] is None or row["system"] is None:
            continue
        if row["rubric"] == OVERALL:
            ratings[numbers[row["judge"]]][row["system"]].append(row["value"])
        elif row["rubric"] in checks and row["value"]:
            failed.add((row["rubric"], row["system"]))
    means = [[fmean(values) if values else None for values in row] for row in ratings]
    return {
        "id": sample["id"],
        "split": sample["split"],
        "task": sample["task"],
        "prompt": sample["prompt"][:LIST_CHARACTERS],
        "ratings": means,
        "choices": [*_pair_orders(verdicts.choices.get(sample["id"], ()), places, numbers)],
        "people": [
            [places[first], places[second], *tally]
            for (first, second), tally in verdicts.people.get(sample["id"], {}).items()
            if first in places and second in places
        ],
        "failed": sorted(failed),
    }


def _pair_orders(
    choices: Iterable[SavedChoice], places: Mapping[str, int], numbers: Mapping[str, int]
) -> Iterator[list[Any]]:
    """Yield judge, both systems, and the winner in each order, of each pair and repeat."""
    pairs: dict[tuple[int, int, int, int], dict[str, str | None]] = {}
    for row in choices:
        if row.system_a in places and row.system_b in places:
            key = (numbers[row.judge], places[row.system_a], places[row.system_b], row.repeat)
            pairs.setdefault(key, {})[row.order] = row.winner
    for (judge, first, second, _), winners in pairs.items():
        yield [judge, first, second, winners.get("ab"), winners.get("ba")]


def _describe_sample(
    sample: Mapping[str, Any], pictures: Sequence[Any], verdicts: Verdicts, *, has_words: bool
) -> dict[str, Any]:
    """Describe a sample by all that is shown of it."""

    def show(number: int | None) -> Any:
        return None if number is None else pictures[number]

    return {
        **{name: sample[name] for name in ("id", "prompt", "task", "urls")},
        "inputs": [show(number) for number in sample["inputs"]],
        "outputs": [row and {**row, "image": show(row["image"])} for row in sample["outputs"]],
        "ratings": sample["ratings"],
        "choices": [
            {**vars(row), "explanation": row.explanation if has_words else None}
            for row in verdicts.choices.get(sample["id"], ())
        ],
    }
