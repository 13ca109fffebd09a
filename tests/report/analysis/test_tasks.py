"""Tasks, by kind and in free words: by hand, against scipy and brute force, a drawn corpus."""

from __future__ import annotations

import datetime
import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from echo_hf.config.evaluation import AnalysisOptions, EmbeddingOptions, Reference
from echo_hf.config.sections import Target
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.report.analysis import tasks as module
from echo_hf.report.analysis.analyze import analyze
from echo_hf.report.analysis.feedback import PostTimes
from echo_hf.report.analysis.prompts import prompt_set, read_reference
from echo_hf.report.analysis.result import PREVIOUS, TaskPhraseAnalysis
from echo_hf.report.analysis.tasks import (
    ComparedPhrases,
    PhraseSpace,
    choose_space,
    compute_task_rates,
    count_tasks,
    group_phrases,
    group_task_phrases,
    read_reference_tasks,
)
from echo_hf.scores.win_rate import win_rate
from echo_hf.tables import RATINGS
from tests.report.analysis.test_feedback import sample
from tests.report.analysis.test_models import REASON, located
from tests.systems import runs_for_tests as releases

COMIC, ATLAS, CAKE = (
    ("turn a receipt into a comic", "turn a receipt into a comic strip"),
    ("draw a room as a map of an atlas", "draw a room as an atlas map"),
    ("show a building as a cake", "show a building as a sliced cake"),
)
PHRASES = ("restore an old photo", *COMIC, *ATLAS, *CAKE)
TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
WORDS = ("draw", "turn", "photo", "cat", "map", "poster", "old", "room")
MADE_UP = st.lists(st.sampled_from(WORDS), min_size=2, max_size=4).map(" ".join)
DATA = Path(__file__).parents[2] / "data"
MONDAY = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)


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
    found = count_tasks(samples, references).found
    by_task = {one.task: one for one in found.counts}
    assert (by_task["edit"].samples, by_task["edit"].share) == (2, 0.5)
    assert by_task["edit"].in_references == {"edits": 9, "words": 0, "unclear": 0, "none": 0}
    assert by_task["edit"].absent_from == ("words",)
    assert by_task["composition"].absent_from == ("edits", "words")
    assert by_task["unknown"].absent_from == ()


def test_sets_are_what_their_authors_made_them_for(test_data: Path) -> None:
    folder = test_data / "prompts"
    edits = {"path": folder / "magicbrush_imagenhub/instructions.tsv", "column": "text"}
    references = [
        Reference(name="GenEval", path=folder / "geneval/generation_prompts.txt"),
        Reference(name="MagicBrush", inputs=1, **edits),
    ]
    sets, options = map(read_reference, references), AnalysisOptions(references=references)
    (geneval, _), (edited, _) = read_reference_tasks([*sets], options, TARGET, RunFolder(folder))
    assert set(geneval) == {"text_to_image", "unknown"}
    assert geneval["text_to_image"] > 0.9 * geneval.total()
    known = edited.total() - edited["unknown"]
    assert edited["edit"] > 0.97 * known > 0.97 * 0.5 * edited.total()


def test_an_engine_is_asked_once_about_each_prompt(tmp_path: Path) -> None:
    prompts = ["make the dog a cat", "put a hat on the man", "turn this photo into a painting"]
    one, known = prompt_set("edits", prompts), [Reference(name="edits", path="x", inputs=1)]
    asked = AnalysisOptions(references=known, task_engine={"kind": "rules"})
    ((counts, phrases),) = read_reference_tasks([one], asked, TARGET, RunFolder(tmp_path))
    assert counts == Counter(edit=2, style_transfer=1)
    assert phrases == [None] * 3
    plain = AnalysisOptions(references=known)
    assert read_reference_tasks([one], plain, TARGET, RunFolder(tmp_path)) == [(counts, ())]


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
    found = {one.task: one for one in compute_task_rates("text_to_image", ratings, None, task_of)}
    values = {task: one.rates["a"].value for task, one in found.items()}
    assert values == {"composition": 0.5, "edit": 1.0, "unknown": 0.5}
    sizes = {task: one.samples for task, one in found.items()}
    assert sizes == {"composition": 2, "edit": 2, "unknown": 1}
    assert all(one.few for one in found.values())
    assert found["edit"].rates["a"].low is None
    assert str(found["edit"].rates["a"].reason) == "few_samples"


def test_rates_of_a_task_are_of_samples_that_no_judge_was_spared() -> None:
    ratings = _ratings({f"s{at}": (at % 7, at % 3) for at in range(40)}).to_pylist()
    spared = {"judge": "nora", "outcome": "not_needed", "rating": None}
    rows = ratings + [row | spared for row in ratings if row["sample_id"] < "s2"]
    (found,) = compute_task_rates(
        "text_to_image", pa.Table.from_pylist(rows, RATINGS.schema), None, {}
    )
    asked = [row for row in ratings if row["sample_id"] >= "s2"]
    whole = win_rate(asked)
    assert {name: one.value for name, one in found.rates.items()} == whole.win_rate
    assert {name: (one.low, one.high) for name, one in found.rates.items()} == whole.interval
    assert (found.few, found.samples) == (False, len(asked) / 2)


def needs_sklearn(test: Any) -> Any:
    missing = pytest.mark.skipif(find_spec("sklearn") is None, reason=REASON)
    return pytest.mark.extras(missing(test))


def _samples(phrases: Iterable[str | None]) -> list[dict[str, Any]]:
    return [
        {"task_phrase": phrase, "post_urls": [f"https://example.org/{at}"]}
        for at, phrase in enumerate(phrases)
    ]


def _found(phrases: Iterable[str | None], *compared: ComparedPhrases) -> TaskPhraseAnalysis:
    part = group_task_phrases(_samples(phrases), PostTimes(), compared)
    assert part.found is not None, part.detail
    return part.found


def _on_a_plane(angles: Mapping[str, float]) -> PhraseSpace:
    """Phrases at angles in degrees: distances are known without any model."""

    def embed(phrases: Sequence[str]) -> Any:
        at = np.radians([angles[one] for one in phrases])
        return np.stack([np.cos(at), np.sin(at)], axis=1)

    return PhraseSpace(embed, 0.5, 0.25, {})  # 60 degrees, and 41.4


def test_without_phrases_nothing_is_told() -> None:
    """As of a release that was built by rules, or before there were phrases."""
    assert str(group_task_phrases(_samples([None]), PostTimes()).reason) == "no_phrases"
    if find_spec("sklearn") is None:
        part = group_task_phrases(_samples(PHRASES), PostTimes())
        assert str(part.reason) == "missing_extra"
        assert "echo-hf[analysis]" in str(part.detail)


@needs_sklearn
@given(st.lists(MADE_UP, min_size=2, max_size=25, unique=True))
@settings(max_examples=30, deadline=None)
def test_groups_are_those_of_scipy(phrases: list[str]) -> None:
    """Phrases of a group all lie together, and no two groups could be one."""
    space = choose_space(phrases, None)
    groups = [frozenset(one) for one in group_phrases(dict.fromkeys(phrases, 1), space)]
    assert sorted(phrase for one in groups for phrase in one) == sorted(phrases)

    ordered = sorted(phrases)
    vectors = space.embed(ordered).toarray()
    between = pdist(vectors, "cosine")
    pairs = zip(combinations(ordered, 2), between, strict=True)
    apart = {frozenset(pair): distance for pair, distance in pairs}
    assert all(apart[frozenset(pair)] <= 0.7 for one in groups for pair in combinations(one, 2))
    for one, other in combinations(groups, 2):
        assert max(apart[frozenset((a, b))] for a in one for b in other) > 0.7
    if len(set(between.round(9))) == len(between):  # without ties there is one answer
        labels = fcluster(linkage(between, "complete"), 0.7, "distance")
        assert set(groups) == {frozenset(np.array(ordered)[labels == one]) for one in set(labels)}


@needs_sklearn
@given(st.dictionaries(st.integers(-25, 25), st.integers(1, 5), min_size=1, max_size=9))
@settings(deadline=None)
def test_a_group_is_named_by_its_most_central_phrase(angles: dict[int, int]) -> None:
    """By brute force over all phrases of all samples; of equal ones the first by its text."""
    place = {f"draw {angle + 25:02d}": float(angle) for angle in angles}
    counts = dict(zip(place, angles.values(), strict=True))
    (group,) = group_phrases(counts, _on_a_plane(place))

    def apart(phrase: str) -> float:
        turns = ((place[phrase] - place[one], count) for one, count in counts.items())
        return round(sum(count * (1 - np.cos(np.radians(turn))) for turn, count in turns), 6)

    assert next(iter(group)) == min(sorted(place), key=apart)
    assert group == counts


@needs_sklearn
@given(st.permutations([*PHRASES, *PHRASES[:4], None]))
@settings(max_examples=15, deadline=None)
def test_the_order_of_samples_counts_for_nothing(phrases: list[str | None]) -> None:
    assert _found(phrases) == _found([*PHRASES, *PHRASES[:4], None])


@needs_sklearn
def test_rarer_phrases_join_the_nearest_or_stand_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: 0 and 90 degrees are linked first; 100 is within 41 degrees of one, 200 of none."""
    monkeypatch.setattr(module, "MAX_LINKED", 2)
    angles = {"draw a": 0.0, "draw b": 90.0, "draw c": 100.0, "draw d": 200.0}
    counts = {"draw a": 9, "draw b": 8, "draw c": 1, "draw d": 1}
    groups = group_phrases(counts, _on_a_plane(angles))
    assert sorted(map(sorted, groups)) == [["draw a"], ["draw b", "draw c"], ["draw d"]]


@needs_sklearn
def test_a_task_is_new_where_no_phrase_is_near() -> None:
    """A set without phrases says nothing; sets change no group."""
    found = _found(
        PHRASES,
        ComparedPhrases("near", 3, ["turn receipts into a comic", "restore old photos", None]),
        ComparedPhrases("far", 2, ["paint a horse on the moon"] * 2),
        ComparedPhrases("silent", 9, [None] * 9),
        ComparedPhrases("untold", 9, (), "rules know no phrases"),
    )
    new = {one.phrase: (one.new_to, one.elsewhere) for one in found.groups}
    none = {"near": 0, "far": 0}
    assert new == {
        COMIC[0]: (("far",), {"near": 1, "far": 0}),
        ATLAS[0]: (("near", "far"), none),
        CAKE[0]: (("near", "far"), none),
        "restore an old photo": (("far",), {"near": 1, "far": 0}),
    }
    assert [(one.name, one.prompts, one.phrased, one.untold) for one in found.compared] == [
        ("near", 3, 2, None),
        ("far", 2, 2, None),
        ("silent", 9, 0, "none of its prompts has a phrase"),
        ("untold", 9, 0, "rules know no phrases"),
    ]
    assert [one.phrases for one in _found(PHRASES).groups] == [one.phrases for one in found.groups]


@needs_sklearn
def test_weeks_are_those_of_the_posts() -> None:
    """By hand: Sunday night belongs to the week before; a post without a time to none."""
    days = [0, 6.99, 7, 21, None]
    times = {
        f"https://example.org/{at}": MONDAY + datetime.timedelta(days=day)
        for at, day in enumerate(days)
        if day is not None
    }
    part = group_task_phrases(_samples([COMIC[0]] * 5), PostTimes(times))
    (group,) = part.found.groups
    weeks = {f"{week}": count for week, count in group.by_week.items()}
    assert weeks == {"2026-03-02": 2, "2026-03-09": 1, "2026-03-23": 1}
    assert (str(group.first_seen), part.found.undated, group.samples) == ("2026-03-02", 1, 5)


@needs_sklearn
@pytest.mark.parametrize("place", ["no/such-model", None])
def test_without_a_model_words_are_compared(place: str | None) -> None:
    options = EmbeddingOptions(model=place, device="cpu") if place else None
    part = group_task_phrases(_samples(PHRASES), PostTimes(), (), options)
    assert part.found == _found(PHRASES)
    said = part.definition["instead_of"]["embedding"]
    assert (place or "analysis.embedding") in said


@needs_sklearn
@pytest.mark.parametrize(
    ("place", "homogeneous", "complete", "found_again", "called_new"),
    [("all_minilm_l6_v2", 0.97, 0.96, 0.93, 0.56), (None, 0.97, 0.89, 0.82, 0.37)],
)
def test_how_well_tasks_are_told_apart(
    place: str | None,
    homogeneous: float,
    complete: float,
    found_again: float,
    called_new: float,
    tmp_path: Path,
) -> None:
    """158 invented phrases for 54 tasks, a line each: the figures of the documentation.

    Half of the phrases of a task are looked for beside its other half, and all of them beside those
    of all other tasks.
    """
    from sklearn.metrics import completeness_score, homogeneity_score

    options = None
    if place:
        with zipfile.ZipFile(located(place) / "model.zip") as packed:
            packed.extractall(tmp_path)
        options = EmbeddingOptions(model=str(tmp_path), device="cpu")
    lines = (DATA / "task_phrases.txt").read_text("utf-8").splitlines()
    tasks = [line.split("|") for line in lines]
    task_of = {phrase: at for at, task in enumerate(tasks) for phrase in task}
    space = choose_space(sorted(task_of), options)
    assert ("model" in space.definition) == bool(place)

    groups = group_phrases(dict.fromkeys(task_of, 1), space)
    label_of = {phrase: at for at, group in enumerate(groups) for phrase in group}
    labels = list(task_of.values()), [label_of[phrase] for phrase in task_of]
    assert homogeneity_score(*labels) == pytest.approx(homogeneous, abs=0.01)
    assert completeness_score(*labels) == pytest.approx(complete, abs=0.01)

    vectors = space.embed(list(task_of))
    dense = vectors if isinstance(vectors, np.ndarray) else vectors.toarray()
    apart = squareform(pdist(dense, "cosine"))
    again, new = [], []
    for at, task in enumerate(tasks):
        own = np.flatnonzero(np.array(labels[0]) == at)
        half, rest = np.split(own, [(len(task) + 1) // 2])
        new.append(np.delete(apart[own], own, axis=1).min() > space.near_distance)
        again += [apart[np.ix_(half, rest)].min() <= space.near_distance] if len(rest) else []
    assert np.mean(again) == pytest.approx(found_again, abs=0.01)
    assert np.mean(new) == pytest.approx(called_new, abs=0.01)


def _released(folder: Path, phrases: Sequence[str]) -> Path:
    rows = [
        releases.sample(
            f"s{at}",
            task_phrase=phrase,
            post_urls=[f"https://board.example/{at}"],
            timestamp=MONDAY + datetime.timedelta(weeks=at // 3),
        )
        for at, phrase in enumerate(phrases)
    ]
    return releases.written(folder, rows)


@needs_sklearn
def test_tasks_outside_the_seven_surface(tmp_path: Path) -> None:
    """By hand: two samples of each, and which of them a reference and the release before lack."""
    old = _released(tmp_path / "old", [*COMIC, "restore an old photo"])
    now = _released(tmp_path / "now", [*COMIC, *ATLAS, *CAKE, "restore an old photo"])
    (tmp_path / "cakes.txt").write_text("the town hall as a cake\n", "utf-8")
    told = {"kind": "task", "task": "edit", "feedback": [], "task_phrase": CAKE[1]}
    line = {"stage": "feedback", "row": "0", "answer": told}
    (tmp_path / "references.jsonl").write_text(json.dumps(line), "utf-8")

    def found(**analysis: Any) -> TaskPhraseAnalysis:
        references = [{"name": "cakes", "path": str(tmp_path / "cakes.txt")}]
        given = {"draws": 10, "references": references, **analysis}
        config = releases.evaluation(now).model_copy(
            update={"analysis": AnalysisOptions.model_validate(given)}
        )
        part = analyze(config, runs=tmp_path / "runs").analysis.open_tasks
        assert part.found is not None, part.detail
        return part.found

    engine = {"kind": "recorded", "path": str(tmp_path / "references.jsonl")}
    both = found(before=str(old), task_engine=engine)
    rows = {one.phrase: (one.samples, one.new_to, str(one.first_seen)) for one in both.groups}
    assert rows == {
        COMIC[0]: (2, ("cakes",), "2026-03-02"),
        ATLAS[0]: (2, ("cakes", PREVIOUS), "2026-03-02"),
        CAKE[0]: (2, (PREVIOUS,), "2026-03-09"),
        "restore an old photo": (1, ("cakes",), "2026-03-16"),
    }
    by_phrase = {one.phrase: both.share_before(one) for one in both.groups}
    assert by_phrase[COMIC[0]] == pytest.approx(2 / 3)
    assert by_phrase[ATLAS[0]] == 0
    (alone,) = found().compared
    assert (alone.name, alone.phrased) == ("cakes", 0)
    assert "analysis.task_engine" in alone.untold
