"""Judges that are asked until each pair of systems is decided: what is asked, kept and scored."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.errors import JudgeError, ScoreError, UnusableAnswersError
from echo_hf.judging.judge import judge
from echo_hf.judging.score import score
from echo_hf.judging.session import JudgingResult
from echo_hf.judging.stopping import judge_until_decided
from echo_hf.tables import OUTPUTS
from tests.judging.judges_for_tests import (
    ScriptedJudge,
    config_of,
    judge_of,
    prompt_of,
    rated,
    rows_of,
)
from tests.judging.run_for_tests import called, output, put, root, run, stripes, write
from tests.stages_for_tests import ROOT

SAMPLES = [f"s{at:03}" for at in range(90)]
# Amber is always the best; birch and cedar are the same, each ahead as often as the other.
SYSTEMS = ("amber", "birch", "cedar")
OTHER = "scripted_judge_two"
Whole = tuple[Path, ScriptedJudge, JudgingResult]


def drawn(folder: Path, systems: tuple[str, ...] = SYSTEMS, lacking: Any = ()) -> None:
    if not root(folder).exists():
        run(folder, {}, SAMPLES)
    config_of(folder)
    write(
        folder,
        OUTPUTS,
        [
            output(name, system, image=put(folder, stripes((at, number, 7))))
            for at, name in enumerate(SAMPLES)
            for number, system in enumerate(systems)
            if (name, system) not in lacking
        ],
    )


def says(asked: Request) -> str:
    """What each system's image is worth, told from its color."""
    return rated(value(int(prompt_of(asked)[-3:]), system_of(asked)))


def value(sample: int, system: int) -> int:
    return 9 if system == 0 else 4 + (sample % 2 == system % 2) + 2 * (system == 3)


def system_of(asked: Request) -> int:
    (image,) = (part for part in asked.messages[1].parts if hasattr(part, "sha256"))
    return int(Image.open(image.file).getpixel((0, 0))[1])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("until")
    drawn(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path, made: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def until(folder: Path, **options: Any) -> JudgingResult:
    options = {"batch": 10, **options}
    return judge_until_decided(folder / "evaluation.yaml", runs=folder / "runs", **options)


@pytest.fixture(scope="module")
def whole(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A run that was judged until it was decided."""
    folder = tmp_path_factory.mktemp("whole")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    engine = ScriptedJudge(says).use()
    return folder, engine, until(folder)


def outcomes(folder: Path) -> Counter[tuple[str, str]]:
    return Counter((row["system"], row["outcome"]) for row in rows_of(folder))


def test_a_system_is_asked_about_no_more_when_all_its_pairs_are_decided(whole: Whole) -> None:
    """Amber wins all of 20 samples: p is 1.41 exp(-10) of 3 pairs, after 10 it is 1.2 exp(-3.3)."""
    folder, engine, done = whole
    assert len(engine.asked) == 20 + 90 + 90
    assert outcomes(folder) == {
        ("amber", "ok"): 20,
        ("amber", "not_needed"): 70,
        ("birch", "ok"): 90,
        ("cedar", "ok"): 90,
    }
    skipped = [row for row in rows_of(folder) if row["outcome"] == "not_needed"]
    assert {row["rating"] for row in skipped} == {None}
    found = done.decisions["text_to_image"]
    assert found.decided == (("amber", "birch"), ("amber", "cedar"))
    assert found.undecided == (("birch", "cedar"),)
    assert (found.not_needed, found.ratings) == (70, 270)
    assert (found.definition["samples"], found.definition["of_samples"]) == (20, 90)
    assert sum(one.plan.calls for one in done.saved) == 70
    assert done.cost_usd == pytest.approx(0.25 * 200)


def test_samples_come_in_an_order_that_is_drawn_and_stays(whole: Whole) -> None:
    folder, engine, _ = whole
    order = list(dict.fromkeys(map(prompt_of, engine.asked)))
    assert sorted(order) == [f"draw {name}" for name in SAMPLES]
    assert order[:10] != sorted(order)[:10]
    known = len(engine.asked)
    first = (root(folder) / "ratings.parquet").read_bytes()
    engine.use()
    done = until(folder)
    assert (len(engine.asked), done.cost_usd) == (known, None)
    assert (root(folder) / "ratings.parquet").read_bytes() == first


def test_boards_compare_systems_on_the_samples_that_all_share(whole: Whole) -> None:
    folder, *_ = whole
    split = score(folder / "evaluation.yaml", runs=folder / "runs", n_boot=50).splits[-1]
    assert split.win_rates is not None
    rates, decided = split.win_rates.rates, split.win_rates.details.decisions
    shared = [row for row in rows_of(folder) if row["system"] == "amber" and row["rating"]]
    names = {row["sample_id"] for row in shared}
    wins = np.mean([value(int(name[1:]), 1) > value(int(name[1:]), 2) for name in names])
    assert len(names) == rates.definition["samples"] == 20
    assert rates.win_rate["birch"] == pytest.approx(wins / 2)
    assert set(rates.coverage.values()) == {1.0}
    assert decided.matrix["birch"]["cedar"] == pytest.approx(0.5)  # on all 90
    assert decided.pairs["birch"] == {"amber": 20, "cedar": 90}
    assert split.win_rates.tiers[0] == ("amber",)
    assert "sequence" in split.win_rates.details.tiers.definition["test"]
    shown = called(folder, "score", "-v")
    assert shown.exit_code == 0, shown.output
    every = "200 of 270 ratings, 2 of 3 pairs decided", "win rates are of the 20 of 90 samples"
    for said in every:
        assert said in " ".join(shown.output.split())
    page = called(folder, "report")
    assert page.exit_code == 0, page.output
    html = (root(folder) / "report" / "index.html").read_text("utf-8")
    assert all(said in html for said in every)
    assert "<dt>Ratings</dt><dd>200</dd>" in html
    assert "birch wins 0.50 of 90 comparisons with cedar" in html


def test_a_later_run_asks_what_was_not_needed(tmp_path: Path, whole: Whole) -> None:
    folder, engine = shutil.copytree(whole[0], tmp_path / "later"), ScriptedJudge(says).use()
    judge(folder / "evaluation.yaml", runs=folder / "runs")
    assert (len(engine.asked), {outcome for _, outcome in outcomes(folder)}) == (70, {"ok"})


def test_a_new_system_joins(tmp_path: Path, whole: Whole) -> None:
    folder, engine = shutil.copytree(whole[0], tmp_path / "joined"), ScriptedJudge(says).use()
    drawn(folder, (*SYSTEMS, "dogwood"))
    until(folder)
    counts = outcomes(folder)
    assert counts["dogwood", "ok"] == counts["amber", "ok"]
    assert counts["dogwood", "not_needed"] == 90 - counts["amber", "ok"] > 0
    assert len(engine.asked) == counts["dogwood", "ok"] + counts["amber", "ok"] - 20


def test_a_budget_ends_a_run_which_the_same_command_goes_on_with(folder: Path) -> None:
    engine = ScriptedJudge(says).use()
    done = until(folder, budget_usd=10.0)
    assert (len(engine.asked), done.spent) == (40, True)
    assert outcomes(folder) == {
        (name, "ok"): count for name, count in zip(SYSTEMS, (14, 13, 13), strict=True)
    }
    done = until(folder, budget_usd=20.0)
    assert (len(engine.asked), done.spent) == (120, True)
    assert outcomes(folder)["amber", "not_needed"] == 70
    done = until(folder, budget_usd=200.0)
    assert (len(engine.asked), done.spent) == (200, False)
    assert outcomes(folder)["amber", "not_needed"] == 70


def test_two_judges_decide_together_and_take_turns(folder: Path) -> None:
    """After a batch the judge whose model is in memory goes on: one change of model a batch."""
    loads: list[str] = []

    class Counting(ScriptedJudge):
        def stream(self, requests: Any) -> Any:
            if not loads or loads[-1] != self.model:
                loads.append(self.model)
            yield from super().stream(requests)

    Counting(says, "one").use()
    Counting(lambda _: rated(5), "two").use(OTHER)
    config_of(folder, [judge_of("ann"), judge_of("ben", OTHER)])
    done = until(folder)
    assert loads == ["one", "two"] * 5
    assert Counter(row["judge"] for row in rows_of(folder)) == {"ann": 270, "ben": 270}
    assert done.decisions["text_to_image"].decided == (("amber", "birch"), ("amber", "cedar"))


def test_a_judge_that_breaks_down_decides_nothing(folder: Path) -> None:
    engine = ScriptedJudge(says).use()
    broken = Completion(None, "no power", "error", Usage())
    ScriptedJudge(lambda _: broken, "two").use(OTHER)
    config_of(folder, [judge_of("ann"), judge_of("ben", OTHER)])
    with pytest.raises(UnusableAnswersError, match=r"ben overall from sample 1: .*'no power'"):
        until(folder, batch=60)
    assert len(engine.asked) == 180
    assert not (root(folder) / "ratings.parquet").exists()


def test_pairs_that_share_no_sample_keep_nobody_busy(folder: Path) -> None:
    """Birch has outputs for 30 samples alone: its pair with cedar is open, and has none left."""
    lacking = {(name, "birch") for name in SAMPLES[30:]}
    drawn(folder, lacking=lacking)
    engine = ScriptedJudge(says).use()
    until(folder)
    asked = Counter(map(system_of, engine.asked))
    assert asked[1] == 30
    assert asked[0] < 90


def test_a_limit_and_a_plan_hold_as_for_other_questions(folder: Path) -> None:
    engine = ScriptedJudge(says).use()
    (plan,) = until(folder, limit=15, dry_run=True).plans
    assert (plan.plan.calls, engine.asked) == (45, [])
    done = until(folder, limit=15)
    assert len(engine.asked) == 45
    assert done.decisions["text_to_image"].definition["samples"] == 15
    assert {row["sample_id"] for row in rows_of(folder)} == set(SAMPLES[:15])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"alpha": 1.0}, "alpha is 1.0: expected a probability between 0 and 1"),
        ({"family": "pairs"}, "unknown family 'pairs'; did you mean 'pair'"),
        ({"batch": 0}, "batch is 0: expected at least 1 sample"),
    ],
)
def test_what_cannot_be_decided_is_said_before_anybody_is_asked(
    folder: Path, asked: dict[str, Any], said: str
) -> None:
    engine = ScriptedJudge(says).use()
    with pytest.raises((JudgeError, ScoreError), match=said):
        until(folder, **asked)
    drawn(folder, ("amber",))
    with pytest.raises(JudgeError, match="no two systems have outputs for the same sample"):
        until(folder)
    config_of(folder, [judge_of(rubrics=["text_rendering"])])
    with pytest.raises(JudgeError, match="none of the judges rates by 'overall'"):
        until(folder)
    config_of(folder, [judge_of(), judge_of(name="dear", share=0.5)])
    for dry_run in (False, True):
        with pytest.raises(JudgeError, match="judge 'dear' rates a part of the samples"):
            until(folder, dry_run=dry_run)
    assert engine.asked == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--until", "decide"], "unknown value 'decide'; did you mean 'decided'"),
        (["--until", "decided", "--applicability"], "--until rates by overall"),
        (["--until", "decided", "--rubric", "text_rendering"], "--until rates by overall"),
        (["--alpha", "0.1"], "--alpha is of --until decided: add it, or leave it out"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    folder: Path, options: list[str], said: str
) -> None:
    ScriptedJudge(says).use()
    refused = called(folder, "judge", *options)
    assert said in f"{refused.output} {refused.exception}"


def test_the_command_tells_what_was_saved(whole: Whole) -> None:
    folder, *_ = whole
    ScriptedJudge(says).use()
    told = ("judge", "--until", "decided", "--batch", "10")
    dry = called(folder, *told, "--dry-run")
    assert "can only stop earlier" in dry.output
    done = called(folder, *told)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "not decided: birch and cedar" in said
    # 400 tokens of an answer at 8 dollars a million and 1,698 of a prompt at 2, 70 times.
    assert "saved: 70 calls, about $0.46" in said
    again = json.loads(called(folder, *told, "--json").stdout)
    assert again["decisions"]["text_to_image"]["undecided"] == [["birch", "cedar"]]
    assert again["saved"][0]["calls"] == 70


def test_a_killed_run_goes_on_to_the_same_decisions(folder: Path, whole: Whole) -> None:
    command = [sys.executable, "-m", "tests.judging.test_stopping", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(50):
            assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert not (root(folder) / "ratings.parquet").exists()
    engine = ScriptedJudge(says).use()
    until(folder)
    assert len(engine.asked) == 200 - 49
    assert rows_of(folder) == rows_of(whole[0])


def main(folder: Path) -> None:

    def halting(asked: Request) -> str:
        print(prompt_of(asked), flush=True)
        if len(engine.asked) == 50:
            time.sleep(60)
        return says(asked)

    engine = ScriptedJudge(halting).use()
    until(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
