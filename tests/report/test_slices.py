"""The section of slices and demand: its tables, its switch in a browser, and words of anybody."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echo_hf.config.evaluation import SliceOptions
from echo_hf.judging.results import SavedResults, SavedSlices
from echo_hf.judging.slices import SampleKinds, score_slices
from echo_hf.report.report import write_report
from echo_hf.report.run_data import ReportSample, RunData, SavedRating
from echo_hf.report.slices import build_slices
from echo_hf.scores.rating_table import read_ratings
from tests.apps.browser import Seen, chrome
from tests.report.run_data_for_tests import SYSTEMS, WORDS, results, run_data, words

__all__ = ["chrome"]
HOSTILE = WORDS[2]
KINDS = (HOSTILE, "logo", "edit", "poster", "sign")
SPLIT = "text_to_image"


@pytest.fixture
def sliced(tmp_path: Path) -> tuple[RunData, SavedSlices]:
    """A run with five kinds of twelve samples and three of a sixth, and demand for a seventh."""
    rng, ratings = np.random.default_rng(0), dict[str, list[SavedRating]]()
    kinds = {f"s{at:02}": KINDS[at % 5] if at < 60 else "rare" for at in range(63)}
    for name in kinds:
        ratings[name] = [
            SavedRating(system, "mira", "overall", 0, float(rng.integers(1, 10)), "", "ok")
            for system in SYSTEMS
        ]
    rows = [
        {"sample_id": name, "system": one.system, "judge": one.judge, "rating": one.value}
        for name, some in ratings.items()
        for one in some
    ]
    day = datetime.date(2026, 3, 1)
    read = SampleKinds(
        {"task_family": {name: (kind,) for name, kind in kinds.items()}},
        dict.fromkeys(kinds, day),
        kinds,
        {HOSTILE: 60, "logo": 10, "unseen": 30},
    )
    options = SliceOptions(by=("task_family",), since=day, demand="all")
    saved = score_slices(options, read_ratings(rows), read, "corrected", 100)
    samples = [ReportSample(id=name, split=SPLIT, prompt="draw", task=None) for name in kinds]
    drawn = results(samples, ratings).model_dump(mode="json", by_alias=True)
    drawn["details"][SPLIT]["slices"] = saved.model_dump(mode="json")
    known = {"results": SavedResults.model_validate(drawn), "ratings": ratings}
    return run_data(tmp_path, samples, **known), saved


def test_each_slice_has_its_rates_and_what_does_not_count_is_said(
    sliced: tuple[RunData, SavedSlices],
) -> None:
    data, saved = sliced
    page = str(build_slices(data))
    assert HOSTILE not in page
    text = words(page)
    rates = saved.by["task_family"].slices["logo"]
    for system in SYSTEMS:
        assert f"{rates.shrunk[system]:.2f}" in text
        assert f"{rates.win_rate[system]:.3f} as counted" in page
        low, high = rates.shrunk_interval[system] or (0, 0)
        assert f"{low:.3f} – {high:.3f}" in text
    assert "no rate of rare (3): each needs 10 rated samples" in text
    assert (
        "30 % of what people ask for is not in these rates: no sample was rated of unseen" in text
    )
    demand = saved.demand
    assert demand is not None
    assert f"{demand.result.effective_n['bravo']:.1f}" in text
    assert build_slices(run_data(data.images.root.parent, [])) is None


def test_a_column_whose_slices_are_all_small_is_a_sentence(
    sliced: tuple[RunData, SavedSlices],
) -> None:
    data, saved = sliced
    small = {"rare": saved.by["task_family"].slices["rare"]}
    by = {"task_family": replace(saved.by["task_family"], slices=small)}
    (split,) = data.splits
    details = data.results.details[split].model_copy(
        update={"slices": saved.model_copy(update={"by": by})}
    )
    results = data.results.model_copy(update={"details": {split: details}})
    text = words(build_slices(replace(data, results=results)))
    assert "Win rate by task family" in words(build_slices(data))
    assert "Win rate by task family" not in text
    assert "By task_family: no rate of rare (3)" in text


@pytest.mark.extras
@pytest.mark.browser
def test_a_switch_shows_one_way_of_counting_at_a_time(
    chrome: Any, sliced: tuple[RunData, SavedSlices], tmp_path: Path
) -> None:
    """Without a script: by the mouse, and by the keys."""
    data, saved = sliced
    written = write_report(data, tmp_path / "report")
    context, seen = chrome.new_context(java_script_enabled=False), Seen()
    seen.watch(context)
    page = context.new_page()
    page.goto(written.path.resolve().as_uri())
    page.locator("#slices-title").click()
    once, asked = (page.locator("#slices .switch > div").nth(at) for at in range(2))
    assert (once.is_visible(), asked.is_visible()) == (True, False)
    page.get_by_role("radio", name="As people ask").click()
    assert (once.is_visible(), asked.is_visible()) == (False, True)
    assert saved.demand is not None
    assert f"{saved.demand.result.win_rate['bravo']:.3f}" in asked.inner_text()
    page.keyboard.press("ArrowLeft")
    assert (once.is_visible(), asked.is_visible()) == (True, False)
    assert seen.problems == []
