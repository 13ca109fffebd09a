"""Win rates by task."""

from __future__ import annotations

import pyarrow as pa

from echo_hf.report.analysis.tasks import task_rates
from echo_hf.scores.win_rate import win_rate
from echo_hf.tables import RATINGS


def _ratings(rated: dict[str, tuple[float | None, float | None]]) -> pa.Table:
    rows = [
        {"sample_id": name, "system": system, "judge": "mira", "rubric": "overall", "rating": value}
        for name, both in rated.items()
        for system, value in zip("ab", both, strict=True)
    ]
    return pa.Table.from_pylist(
        [{**dict.fromkeys(RATINGS.columns), "repeat": 0, **row} for row in rows], RATINGS.schema
    )


def test_rates_are_those_of_the_samples_of_a_task() -> None:
    """By hand: a wins both edits, and one of two compositions; few samples are flagged."""
    ratings = _ratings(
        {"e1": (9, 1), "e2": (8, 2), "c1": (9, 1), "c2": (1, 9), "x": (5, 5), "n": (None, None)}
    )
    task_of = {"e1": "edit", "e2": "edit", "c1": "composition", "c2": "composition", "n": "edit"}
    found = {one.task: one for one in task_rates("text_to_image", ratings, None, task_of)}
    values = {task: one.rates["a"].value for task, one in found.items()}
    assert values == {"composition": 0.5, "edit": 1.0, "unknown": 0.5}
    assert {task: one.samples for task, one in found.items()} == {
        "composition": 2,
        "edit": 2,
        "unknown": 1,
    }
    assert all(one.few for one in found.values())
    assert found["edit"].rates["a"].low is None
    assert str(found["edit"].rates["a"].reason) == "few_samples"
    assert found["edit"].coverage == {"a": 1.0, "b": 1.0}


def test_one_task_alone_has_the_rates_of_all() -> None:
    """Where every sample is an edit, its rates and intervals are the whole split's."""
    ratings = _ratings({f"s{at}": (at % 7, at % 3) for at in range(40)})
    (found,) = task_rates("image_to_image", ratings, None, {f"s{at}": "edit" for at in range(40)})
    whole = win_rate(ratings)
    assert {name: one.value for name, one in found.rates.items()} == whole.win_rate
    assert {name: (one.low, one.high) for name, one in found.rates.items()} == whole.interval
    assert not found.few
