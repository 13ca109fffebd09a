"""The page of verdicts: two systems side by side, and what judges and people said of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import fmean
from typing import Any, Literal

import pyarrow as pa

from echo_hf.config.rubrics import OVERALL
from echo_hf.report.markup import count, render, titled, write_data
from echo_hf.scores.rating_table import Unrated
from echo_hf.systems.checks import Check

PAGE, SCRIPT = "verdicts.html", "verdicts.js"
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


@dataclass(frozen=True)
class Verdicts:
    """Choices and people's ranks, by sample; who ranked has a number."""

    choices: Mapping[str, tuple[SavedChoice, ...]] = field(default_factory=dict)
    ranks: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)


def read_verdicts(comparisons: pa.Table | None, human: pa.Table | None) -> Verdicts:
    """Read choices of judges and ranks of people; a score counts as a rank from the best down."""
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
    numbers: dict[str, str] = {}
    ranks = {
        sample: {
            numbers.setdefault(rater, f"person {len(numbers) + 1}"): {
                system: 1.0 + sum(other > score for other in own.values())
                for system, score in own.items()
            }
            for rater, own in by_rater.items()
        }
        for sample, by_rater in scores.items()
    }
    return Verdicts({sample: tuple(rows) for sample, rows in choices.items()}, ranks)


def render_verdicts(
    gallery: Mapping[str, Any],
    verdicts: Verdicts,
    checks: Iterable[Check],
    name: str,
    assets: Mapping[str, str],
) -> str:
    """Render the page; each sample's words stand in a block of their own, read when it is shown.

    Args:
        gallery: Systems, samples and images, as the data of the report has them.
        verdicts: Choices and ranks, by sample.
        checks: The checks that judges answered.
        name: The run's.
        assets: `style`, `script` and the `policy` that allows them.
    """
    samples, systems = gallery["samples"], gallery["systems"]
    rated = {row["judge"] for sample in samples for row in sample["ratings"]}
    chosen = {row.judge for rows in verdicts.choices.values() for row in rows}
    judges = sorted(rated | chosen)
    titles = {check.key: check.title for check in checks}
    index = {
        "systems": systems,
        "judges": judges,
        "checks": titles,
        "names": _title_all(samples, "split"),
        "samples": [_index_sample(sample, systems, judges, verdicts, titles) for sample in samples],
    }
    blocks = (_describe_sample(sample, gallery["pictures"], verdicts) for sample in samples)
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
    ranks = list(verdicts.ranks.get(sample["id"], {}).values())
    return {
        "id": sample["id"],
        "split": sample["split"],
        "task": sample["task"],
        "prompt": sample["prompt"][:LIST_CHARACTERS],
        "ratings": means,
        "choices": [*_pair_orders(verdicts.choices.get(sample["id"], ()), places, numbers)],
        "people": [_list_ranks(ranks, system) for system in systems],
        "failed": sorted(failed),
    }


def _list_ranks(ranks: Sequence[Mapping[str, float]], system: str) -> list[float | None]:
    return [own.get(system) for own in ranks]


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
    sample: Mapping[str, Any], pictures: Sequence[Any], verdicts: Verdicts
) -> dict[str, Any]:
    """Describe a sample by all that is shown of it."""

    def show(number: int | None) -> Any:
        return None if number is None else pictures[number]

    return {
        **{name: sample[name] for name in ("id", "prompt", "task", "urls")},
        "inputs": [show(number) for number in sample["inputs"]],
        "outputs": [row and {**row, "image": show(row["image"])} for row in sample["outputs"]],
        "ratings": sample["ratings"],
        "choices": [vars(row) for row in verdicts.choices.get(sample["id"], ())],
        "ranks": verdicts.ranks.get(sample["id"], {}),
    }
