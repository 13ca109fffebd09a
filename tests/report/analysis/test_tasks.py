"""Tasks of samples and of reference sets, and win rates by task."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa

from echo_hf.config.checks import EngineChoice
from echo_hf.config.evaluation import Reference
from echo_hf.config.sections import Target
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.report.analysis.prompts import prompt_set, read_reference
from echo_hf.report.analysis.tasks import asked_tasks, reference_tasks, task_rates, tasks
from echo_hf.scores.win_rate import win_rate
from echo_hf.tables import RATINGS
from tests.report.analysis.test_feedback import sample


def test_tasks_are_counted_and_those_that_references_lack_named() -> None:
    samples = [
        sample("a", task="edit"),
        sample("b", task="edit", kind="probe"),
        sample("c", task="composition"),
        sample("d", task=None, kind=None),
    ]
    references = {
        "edits": Counter(edit=9),
        "words": Counter(text_to_image=3),
        "unclear": Counter(text_to_image=2, unknown=1),
        "none": Counter(),
    }
    found = tasks(samples, references).found
    assert found is not None
    by_task = {one.task: one for one in found.counts}
    assert (by_task["edit"].samples, by_task["edit"].share) == (2, 0.5)
    assert by_task["edit"].in_references == {"edits": 9, "words": 0, "unclear": 0, "none": 0}
    assert by_task["edit"].absent_from == ("words",)
    assert by_task["composition"].absent_from == ("edits", "words")
    assert by_task["unknown"].absent_from == ()
    assert found.kinds == {"probe": 1, "task": 2, "unknown": 1}


def test_sets_are_what_their_authors_made_them_for(test_data: Path) -> None:
    folder = test_data / "prompts"
    edits = {"path": folder / "magicbrush_imagenhub/instructions.tsv", "column": "text"}
    references = [
        Reference(name="GenEval", path=folder / "geneval/generation_prompts.txt"),
        Reference(name="MagicBrush", inputs=1, **edits),
    ]
    sets = [read_reference(one) for one in references]
    told = reference_tasks(sets, [one.inputs for one in references])
    geneval, magicbrush = (counts for counts, _ in told)
    assert set(geneval) == {"text_to_image", "unknown"}
    assert geneval["text_to_image"] > 0.9 * geneval.total()
    known = magicbrush.total() - magicbrush["unknown"]
    assert known > 0.5 * magicbrush.total()
    assert magicbrush["edit"] > 0.97 * known


def test_an_engine_is_asked_once_about_each_prompt(tmp_path: Path) -> None:
    prompts = ["make the dog a cat", "put a hat on the man", "turn this photo into a painting"]
    one = prompt_set("edits", prompts)
    target = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
    folder = RunFolder(tmp_path)
    ((counts, phrases),) = asked_tasks([one], [1], EngineChoice(kind="rules"), target, folder)
    assert counts == Counter(edit=2, style_transfer=1)
    assert phrases == [None] * 3
    assert reference_tasks([one], [1]) == [(counts, ())]


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
    sizes = {task: one.samples for task, one in found.items()}
    assert sizes == {"composition": 2, "edit": 2, "unknown": 1}
    assert all(one.few for one in found.values())
    assert found["edit"].rates["a"].low is None
    assert str(found["edit"].rates["a"].reason) == "few_samples"
    assert found["edit"].coverage == {"a": 1.0, "b": 1.0}


def test_rates_of_a_task_are_of_samples_that_no_judge_was_spared() -> None:
    ratings = _ratings({f"s{at}": (at % 7, at % 3) for at in range(40)}).to_pylist()
    spared = {"judge": "nora", "outcome": "not_needed", "rating": None}
    rows = ratings + [row | spared for row in ratings if row["sample_id"] < "s2"]
    (found,) = task_rates("text_to_image", pa.Table.from_pylist(rows, RATINGS.schema), None, {})
    asked = [row for row in ratings if row["sample_id"] >= "s2"]
    assert {name: one.value for name, one in found.rates.items()} == win_rate(asked).win_rate
    assert found.samples == len(asked) / 2


def test_one_task_alone_has_the_rates_of_all() -> None:
    ratings = _ratings({f"s{at}": (at % 7, at % 3) for at in range(40)})
    (found,) = task_rates("image_to_image", ratings, None, {f"s{at}": "edit" for at in range(40)})
    whole = win_rate(ratings)
    assert {name: one.value for name, one in found.rates.items()} == whole.win_rate
    assert {name: (one.low, one.high) for name, one in found.rates.items()} == whole.interval
    assert not found.few
