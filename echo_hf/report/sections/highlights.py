"""A few telling samples: where judges see the systems furthest apart, and where inputs drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from echo_hf.report.markup import Markup, element, joined
from echo_hf.report.numbers import number
from echo_hf.report.parts import note, section, titled
from echo_hf.report.results_file import Metric
from echo_hf.report.run_data import RunData, spread
from echo_hf.report.samples import Sample
from echo_hf.report.strips import Said, strip
from echo_hf.report.thumbnails import Thumbnails
from echo_hf.scores.rating_table import RUBRIC

SHOWN = 3
DRIFTS = ("face_identity", "structure_distance")


def highlights(data: RunData, thumbnails: Thumbnails) -> Markup | None:
    """Telling samples of each split and metric.

    Args:
        data: The run.
        thumbnails: Small copies of the pictures.

    Returns:
        The section; null where there is no output.
    """
    if not data.outputs:
        return None
    shown = [
        *(one for split in data.splits if (one := _split(data, split, thumbnails))),
        *(one for split in data.splits for one in _drifts(data, split, thumbnails)),
    ]
    lead = "The samples on which the ratings of the outputs lie furthest apart."
    return section("examples", "Examples", shown, lead=lead) if shown else None


def _split(data: RunData, split: str, thumbnails: Thumbnails) -> Markup | None:
    chosen = widest(data, split)
    if not chosen:
        return None
    said = {key: text for sample in chosen for key, text in _ratings(data, sample)}
    return joined(element("h3", titled(split)), _strips(data, chosen, thumbnails, said))


def widest(data: RunData, split: str, shown: int = SHOWN) -> list[Sample]:
    """The samples of a split whose ratings lie furthest apart.

    Args:
        data: The run.
        split: The split.
        shown: At most how many.

    Returns:
        The samples, the widest first; of equal ones the first of the benchmark.
    """
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


def _furthest(data: RunData, split: str, found: dict[tuple[str, str], float]) -> Sample | None:
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


def _ratings(data: RunData, sample: Sample) -> Iterator[tuple[tuple[str, str], str]]:
    by_system: dict[str, list[float]] = {}
    for one in data.ratings.get(sample.id, ()):
        if one.rubric == RUBRIC and one.value is not None:
            by_system.setdefault(one.system, []).append(one.value)
    for system, values in by_system.items():
        yield (sample.id, system), f"rated {number(sum(values) / len(values), 1)}"


def _strips(data: RunData, samples: Sequence[Sample], thumbnails: Thumbnails, said: Said) -> Markup:
    rows = [strip(one, data.systems, data.outputs, thumbnails, said) for one in samples]
    several = len(data.results.judges) > 1
    mean = (
        note("Rated: mean over judges and repeats, on the judges' own scales.") if several else None
    )
    return joined(rows, mean)
