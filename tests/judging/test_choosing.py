"""Judges that choose until each pair is decided, or a budget is spent: what is asked and kept."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.base import Request
from echo_hf.errors import ConfigError, JudgeError
from echo_hf.judging.choosing import judge_pairs_for_board
from echo_hf.judging.session import JudgingResult
from tests.judging.judges_for_tests import (
    ScriptedJudge,
    config_of,
    images_of,
    judge_of,
    prompt_of,
    rows_of,
)
from tests.judging.run_for_tests import called, put, root, stripes
from tests.judging.test_scalars import ScalarEngine
from tests.judging.test_stopping import SAMPLES, drawn


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    drawn(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path, made: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def choose(folder: Path) -> Any:
    """Amber wins; of birch and cedar the first shown does, so that nothing tells them apart."""
    shown = {
        put(folder, stripes((at, number, 7))): number
        for at in range(len(SAMPLES))
        for number in range(3)
    }

    def says(asked: Request) -> str:
        _, second = (shown[digest] for digest in images_of(asked))
        return "[[second]]" if second == 0 else "[[first]]"

    return says


def until(folder: Path, **options: Any) -> JudgingResult:
    options = {"until_decided": True, **options}
    return judge_pairs_for_board(folder / "evaluation.yaml", runs=folder / "runs", **options)


def count_outcomes(folder: Path) -> Counter[tuple[str, str, str]]:
    rows = rows_of(folder, "comparisons")
    return Counter((row["system_a"], row["system_b"], row["outcome"]) for row in rows)


def test_a_pair_is_asked_about_no_more_when_it_is_decided(folder: Path) -> None:
    """Amber wins 20 in both orders: p is 1.41 exp(-10) of 3 pairs, after 10 it is 1.2 exp(-3.3)."""
    engine = ScriptedJudge(choose(folder)).use()
    done = until(folder)
    assert len(engine.asked) == 2 * (20 + 20 + 90)
    assert count_outcomes(folder) == {
        ("amber", "birch", "ok"): 40,
        ("amber", "birch", "not_needed"): 140,
        ("amber", "cedar", "ok"): 40,
        ("amber", "cedar", "not_needed"): 140,
        ("birch", "cedar", "ok"): 180,
    }
    decided = done.decisions["text_to_image"]
    assert decided.decided == (("amber", "birch"), ("amber", "cedar"))
    assert decided.undecided == (("birch", "cedar"),)
    assert (decided.not_needed, decided.ratings) == (280, 540)
    assert sum(plan.plan.calls for plan in done.saved) == 280


def test_samples_come_in_a_drawn_order_and_both_orders_of_a_pair_together(folder: Path) -> None:
    engine = ScriptedJudge(choose(folder)).use()
    until(folder)
    order = list(dict.fromkeys(map(prompt_of, engine.asked)))
    assert sorted(order) == [f"draw {name}" for name in SAMPLES]
    assert order[:10] != sorted(order)[:10]
    for first, second in zip(engine.asked[::2], engine.asked[1::2], strict=True):
        assert images_of(first) == images_of(second)[::-1]


def test_a_run_that_a_budget_ended_goes_on_to_the_same_decisions(folder: Path) -> None:
    """Three rounds of 60 choices at $0.25 cost $45: the budget ends within the first."""
    whole = folder / "whole"
    shutil.copytree(folder, whole, ignore=lambda *_: ["whole"])
    engine = ScriptedJudge(choose(folder)).use()
    once = until(whole)
    asked = len(engine.asked)
    engine.asked.clear()
    part = until(folder, budget_usd=9.0)
    assert part.spent
    assert 36 <= len(engine.asked) <= 40
    assert "not_needed" not in {outcome for *_, outcome in count_outcomes(folder)}
    pairs = Counter(tuple(key[:2]) for key in count_outcomes(folder).elements())
    assert max(pairs.values()) - min(pairs.values()) <= 2  # both orders on one sample
    rest = until(folder)
    assert len(engine.asked) == asked
    assert rest.decisions == once.decisions
    first, second = (sorted(map(str, rows_of(place, "comparisons"))) for place in (whole, folder))
    assert first == second


def test_a_budget_goes_to_undecided_pairs_where_the_board_is_of_pairs(folder: Path) -> None:
    engine = ScriptedJudge(choose(folder)).use()
    options: Any = {"until_decided": False, "budget_usd": 1000.0}
    until(folder, **options)
    assert "not_needed" not in {outcome for *_, outcome in count_outcomes(folder)}
    config_of(folder, board="pairwise")
    until(folder, **options)
    assert len(engine.asked) < 540
    # What the even tenth has asked already stays.
    assert 100 < count_outcomes(folder)["amber", "birch", "not_needed"] < 140


def test_without_a_budget_pairs_are_asked_evenly(folder: Path) -> None:
    config_of(folder, [judge_of(pairwise={"share": 1})], board="pairwise")
    engine = ScriptedJudge(choose(folder)).use()
    until(folder, until_decided=False)
    assert len(engine.asked) == 540
    assert {outcome for *_, outcome in count_outcomes(folder)} == {"ok"}


def test_all_judges_choose_before_a_batch_decides(folder: Path) -> None:
    """The second judge contradicts the first, so that nothing is decided."""
    config_of(folder, [judge_of(), judge_of("nils", "scripted_judge_two")])
    says = choose(folder)
    opposite = {"[[first]]": "[[second]]", "[[second]]": "[[first]]"}
    engine = ScriptedJudge(says).use()
    other = ScriptedJudge(lambda asked: opposite[says(asked)], model="two").use(
        "scripted_judge_two"
    )
    done = until(folder)
    assert (len(engine.asked), len(other.asked)) == (540, 540)
    assert done.decisions["text_to_image"].decided == ()


def test_a_judge_that_only_compares_chooses_and_one_that_only_rates_is_left_out(
    folder: Path,
) -> None:
    engine = ScriptedJudge(choose(folder)).use()
    scalar = judge_of("nova", "scripted_scalars", form="scalar")
    ScalarEngine(lambda _: "0.5").use()
    config_of(folder, [judge_of(form="choice"), scalar])
    done = until(folder)
    assert len(engine.asked) == 2 * (20 + 20 + 90)
    assert {row["judge"] for row in rows_of(folder, "comparisons")} == {"mira"}
    assert len(done.decisions["text_to_image"].decided) == 2


def test_a_dry_run_says_the_most_and_asks_nothing(folder: Path) -> None:
    engine = ScriptedJudge(choose(folder)).use()
    planned = until(folder, dry_run=True)
    assert [plan.plan.calls for plan in planned.plans] == [540]
    assert engine.asked == []
    assert not (root(folder) / "comparisons.parquet").exists()


def test_a_system_alone_and_a_batch_of_none_are_refused(folder: Path) -> None:
    ScriptedJudge(choose(folder)).use()
    with pytest.raises(JudgeError, match="batch is 0"):
        until(folder, batch=0)
    drawn(folder, systems=("amber",))
    with pytest.raises(JudgeError, match=r"no two systems .* run `echo-hf generate` for another"):
        until(folder)
    config_of(folder, board="pairwise")
    with pytest.raises(JudgeError, match="no two systems") as refused:
        until(folder, until_decided=False, budget_usd=1000.0)
    assert "--until" not in str(refused.value)


def test_the_verb_takes_the_options_of_until_and_says_what_is_decided(folder: Path) -> None:
    ScriptedJudge(choose(folder)).use()
    done = called(folder, "judge", "--pairwise", "--until", "decided", "--batch", "45")
    assert done.exit_code == 0, done.output
    assert "2 of 3 pairs decided" in done.output
    refused = called(folder, "judge", "--pairwise", "--alpha", "0.1")
    assert isinstance(refused.exception, ConfigError)
