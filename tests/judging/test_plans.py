"""Judges with a share: which samples they rate, and ways of judging held against each other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from echo_hf._infra.bootstrap import Unscored
from echo_hf.judging.judge import judge
from echo_hf.judging.rate import draw_share
from echo_hf.judging.score import score
from echo_hf.judging.session import JudgingPlan, JudgingResult
from echo_hf.systems.base import Task
from tests.judging.judges_for_tests import (
    SYSTEMS,
    ScriptedJudge,
    config_of,
    drawn,
    images_of,
    judge_of,
    rated,
    rows_of,
)
from tests.judging.run_for_tests import called

WORDS = tuple(f"w{at:02}" for at in range(60))
NAMES = ("all", "most", "some")
SHARES = {"all": 1.0, "most": 0.5, "some": 0.3}


def task_of(name: str, split: str = "text_to_image") -> Task:
    return Task(name, name, split, f"draw {name}", (), ())


@pytest.fixture
def engines() -> dict[str, ScriptedJudge]:
    """Three judges who differ, from the cheapest to the dearest."""
    found = {}
    for at, name in enumerate(NAMES):

        def says(asked: Any, at: int = at) -> str:
            return rated(1 + int(images_of(asked)[-1][at : at + 8], 16) % (3 + at))

        found[name] = ScriptedJudge(says, name, 1.0 + at, 4.0 + at).use(f"scripted_{name}")
    return found


@pytest.fixture
def folder(tmp_path: Path, engines: dict[str, ScriptedJudge]) -> Path:
    drawn(tmp_path, {}, WORDS)
    return tmp_path


def config(folder: Path, shares: dict[str, float], **more: Any) -> Path:
    judges = [judge_of(name, f"scripted_{name}", share=shares.get(name, 1.0)) for name in NAMES]
    return config_of(folder, judges, **more)


def judged(folder: Path, **options: Any) -> JudgingResult:
    return judge(folder / "evaluation.yaml", runs=folder / "runs", **options)


def samples(rows: Iterable[dict[str, Any]], who: str, outcome: str) -> set[str]:
    return {one["sample_id"] for one in rows if (one["judge"], one["outcome"]) == (who, outcome)}


def test_a_part_is_drawn_by_names_alone() -> None:
    """Of two shares the larger has all of the smaller; ten of each split, and what there is."""
    every = [task_of(f"{split}{at}", split) for split in "ab" for at in range(1000)]
    parts = [draw_share(every, share) for share in (1e-9, 0.1, 0.2, 0.9, 1.0)]
    assert all(one < other for one, other in pairwise(parts))
    assert Counter(name[0] for name in parts[0]) == {"a": 10, "b": 10}
    assert [len(part) for part in parts[1:]] == [200, 400, 1800, 2000]
    # Whoever comes first or in the middle: 200 of 1,000, within four standard deviations of 9.
    assert 164 < len(parts[2] & {one.sample_id for one in every[::2]}) < 236
    assert draw_share(every[::-1], 0.2) == parts[2]
    assert draw_share(every[:7], 0.2) == {one.sample_id for one in every[:7]}


def test_a_judge_with_a_share_is_asked_about_the_part(
    folder: Path, engines: dict[str, ScriptedJudge]
) -> None:
    config(folder, SHARES)
    planned = {one.judge: one.plan.calls for one in judged(folder, dry_run=True).plans}
    judged(folder)
    rows = rows_of(folder)
    asked = {name: samples(rows, name, "ok") for name in NAMES}
    assert [len(asked[name]) for name in NAMES] == [60, 30, 18]
    assert asked["some"] < asked["most"]
    for name in NAMES:
        assert len(engines[name].asked) == len(SYSTEMS) * len(asked[name]) == planned[name]
        spared = [one for one in rows if (one["judge"], one["outcome"]) == (name, "not_needed")]
        assert {one["rating"] for one in spared} <= {None}
        assert {one["sample_id"] for one in spared} == {*WORDS} - asked[name]
    assert len(rows) == 3 * 60 * len(SYSTEMS)

    # A larger share asks what is new, and a smaller one nothing.
    for shares, calls in (({"some": 0.5, "most": 0.5}, True), ({"some": 0.2, "most": 0.2}, False)):
        config(folder, shares)
        before = len(engines["some"].asked)
        judged(folder)
        assert (len(engines["some"].asked) > before) == calls
    some = samples(rows_of(folder), "some", "ok")
    assert some == samples(rows_of(folder), "most", "ok")
    assert some <= asked["some"]


def test_a_board_says_what_it_rests_on(folder: Path) -> None:
    path = config(folder, SHARES)
    judged(folder)
    done = called(folder, "score", "-v")
    assert done.exit_code == 0, done.output
    found = score(path, runs=folder / "runs").splits[1].win_rates
    assert found is not None
    part = len(samples(rows_of(folder), "some", "ok"))
    assert (found.rates.definition["samples"], found.rates.definition["voted"]) == (60, part)
    said = f"all judges voted on {part} of 60 samples; their vote on all is estimated from all,"
    assert said in done.output
    assert found.trust.leave_one_judge_out.win_rate == found.rates.win_rate
    assert found.trust.samples_needed.definition["samples"] == 60
    owned = found.trust.self_preference.judges["all"]
    assert (owned.preference, owned.reason) == (None, Unscored.NO_OWN_SYSTEM)
    page = called(folder, "report")
    assert page.exit_code == 0, page.output
    html = (folder / "runs" / "evaluation" / "report" / "index.html").read_text("utf-8")
    assert f"Here all judges voted on {part} of 60 samples" in html
    asked = sum(row["outcome"] != "not_needed" for row in rows_of(folder))
    assert f"<dt>Ratings</dt><dd>{asked}</dd>" in html


def of_ways(done: JudgingResult) -> dict[str, JudgingPlan]:
    return {one.name: one for one in done.ways}


def test_before_anybody_rated_ways_are_held_against_each_other_by_priors(folder: Path) -> None:
    """The cheapest is proposed for all; of two systems a share is the outcome of one pair."""
    config(folder, {})
    done = judged(folder, dry_run=True)
    found = of_ways(done)
    every, part, until = found.values()
    assert list(found)[1] == "all on all, the others on 20 %"
    voted = len(draw_share(map(task_of, WORDS), 0.2))
    assert every.calls == (3 * 60 * 2,) * 3
    assert part.calls == (120 + 2 * 2 * voted,) * 3
    assert until.calls == pytest.approx((0.51 * 360, 0.56 * 360, 0.61 * 360))
    assert until.half_width == {"text_to_image": None}
    wide = t.ppf(0.975, 59) * 0.375 / np.sqrt(60)
    assert every.half_width["text_to_image"] == pytest.approx(wide)
    error = 0.375 * np.sqrt(1 / 60 + (1 / voted - 1 / 60) / 1.75)
    expected = t.ppf(0.975, voted - 1) * error
    assert part.half_width["text_to_image"] == pytest.approx(expected)
    assert every.expected.usd is not None
    total = sum(one.expected.cost_usd or 0 for one in done.plans)
    assert every.expected.cost_usd == pytest.approx(total)
    assert until.expected.cost_usd == pytest.approx(0.56 * total)


def test_where_there_is_no_choice_none_is_shown(folder: Path) -> None:
    config(folder, {}, protocol="published")
    assert judged(folder, dry_run=True).ways == ()
    config(folder, {"some": 0.5})
    assert judged(folder, dry_run=True, judges=["some"]).ways == ()
    config(folder, {})
    alone = judged(folder, dry_run=True, judges=["some"]).ways
    assert [one.name for one in alone] == [
        "all judges on all samples",
        "all judges, --until decided",
    ]
    judged(folder)
    assert judged(folder, dry_run=True).ways == ()


def test_the_command_shows_ways_and_writes_them_as_json(folder: Path) -> None:
    config(folder, {})
    shown = called(folder, "judge", "--dry-run")
    assert shown.exit_code == 0, shown.output
    for words in (
        "± text_to_image",
        "all on all, the others on 20 %",
        "184 to 220",
        "0.097",
        "51 to 61 %",
    ):
        assert words in shown.output
    found = json.loads(called(folder, "judge", "--dry-run", "--json").stdout)["ways"]
    assert [sorted(one) for one in found] == [["calls", "expected", "half_width", "name"]] * 3
