"""Judges who choose between two outputs: which pairs, in which order, and what is written."""

from __future__ import annotations

import hashlib
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.evaluation import JudgeConfig
from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.errors import ConfigError
from echo_hf.judging.compare import build_pairs
from echo_hf.judging.judge import judge_pairs
from echo_hf.judging.rate import OutputsToRate
from echo_hf.judging.session import JudgingResult
from echo_hf.systems.base import Task
from echo_hf.tables import COMPARISONS, OUTPUTS
from tests.judging import judges_for_tests as scripted
from tests.judging.judges_for_tests import ScriptedJudge, config_of, images_of, judge_of
from tests.judging.run_for_tests import called, digest_of, output, put, root, stripes, write

ALL: dict[str, Any] = {"pairwise": {"share": 1}}


@pytest.fixture
def folder(folder: Path) -> Path:
    config_of(folder, [judge_of(**ALL)])
    return folder


def compared(folder: Path, **options: Any) -> JudgingResult:
    return judge_pairs(folder / "evaluation.yaml", runs=folder / "runs", **options)


def choices(folder: Path) -> list[dict[str, Any]]:
    return scripted.rows_of(folder, "comparisons")


def outputs_of(folder: Path) -> dict[tuple[str, str], str]:
    return {
        (row["sample_id"], row["system"]): row["image"]
        for row in scripted.rows_of(folder, "outputs")
    }


def prefers(digests: set[str]) -> ScriptedJudge:
    def says(asked: Request) -> str:
        first, second = (digest in digests for digest in images_of(asked)[-2:])
        word = "tie" if first == second else "first" if first else "second"
        return f"I looked at both. [[{word}]]"

    return ScriptedJudge(says)


def test_each_pair_is_shown_in_both_orders_and_the_winner_is_a_system(folder: Path) -> None:
    made = outputs_of(folder)
    engine = prefers({made[name, "birch"] for name in scripted.SAMPLES}).use()
    done = compared(folder)

    rows = choices(folder)
    asked = {(row["sample_id"], row["order"]) for row in rows}
    assert asked == {(name, order) for name in scripted.SAMPLES for order in ("ab", "ba")}
    assert len(rows) == 10 == len(engine.asked)
    for row in rows:
        name = row["sample_id"]
        assert (row["system_a"], row["system_b"]) == scripted.SYSTEMS
        assert (row["winner"], row["outcome"], row["judge"]) == ("b", "ok", "mira")
        shown = [row["output_a_sha256"], row["output_b_sha256"]]
        assert shown == [made[name, system] for system in scripted.SYSTEMS]
        assert row["sample_digest"] == digest_of(name, scripted.EDITS.get(name, ()))
        assert (row["cost_usd"], row["usage"]["prompt_tokens"]) == (0.25, 100)
        told = engine.asked[0].messages[0].parts[0].text
        assert row["prompt_digest"] == hashlib.sha256(told.encode()).hexdigest()
        made_by = json.loads(row["provenance"])["judge"]
        assert made_by["engine"] == {"kind": "scripted_judge", "model": "one"}
        assert (made_by["mode"], made_by["shown"]) == ("text", {"as": "model_budget"})
    assert done.cost_usd == pytest.approx(2.5)
    assert done.path == root(folder) / "comparisons.parquet"
    assert not (root(folder) / "ratings.parquet").exists()


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("Both are fine.", "no_choice"),
        ("[[first]], no, [[second]]", "two_choices"),
        (scripted.rated(7), "no_choice"),
        (Completion(None, "I will not.", "refusal", Usage(5, 1)), "refused"),
    ],
)
def test_no_verdict_is_null_with_a_reason(
    folder: Path, said: Completion | str, outcome: str
) -> None:
    ScriptedJudge(lambda _: said).use()
    done = compared(folder, limit=1, keep_going=True)
    assert {(row["winner"], row["outcome"]) for row in choices(folder)} == {(None, outcome)}
    assert done.answered[0].outcomes == {outcome: 4}


def test_structured_judges_choose_by_a_word(folder: Path) -> None:
    config_of(folder, [judge_of(mode="structured", **ALL)])
    engine = ScriptedJudge(lambda _: '{"explanation": "Sharper.", "choice": "first"}').use()
    compared(folder)
    assert engine.asked[0].answer is not None
    assert list(engine.asked[0].answer.model_fields) == ["explanation", "choice"]
    found = {(row["order"], row["winner"], row["explanation"]) for row in choices(folder)}
    assert found == {("ab", "a", "Sharper."), ("ba", "b", "Sharper.")}


def tasks(count: int) -> tuple[Task, ...]:
    return tuple(Task(f"s{at}", "d", "text_to_image", "draw") for at in range(count))


def pairs_drawn(share: float, seed: int = 0) -> set[tuple[str, str, str]]:
    systems = ("ash", "birch", "cedar", "dogwood")
    every = {
        task.sample_id: [{"system": name, "draw": 0, "image": name} for name in systems]
        for task in tasks(300)
    }
    judge = JudgeConfig(**judge_of(pairwise={"share": share, "seed": seed}))
    rows = build_pairs(judge, OutputsToRate(every, tasks(300), {}))
    keys = list(zip(rows["sample_id"], rows["system_a"], rows["system_b"], strict=True))
    assert sorted(keys) == sorted(2 * sorted(set(keys)))
    return set(keys)


def test_a_pair_is_of_two_systems_and_of_equal_draws() -> None:
    drawn = {"ash": 3, "birch": 2}
    rows = [
        {"system": name, "draw": draw, "image": f"{name}{draw}"}
        for name, count in drawn.items()
        for draw in range(count)
    ]
    judge = JudgeConfig(**judge_of(pairwise={"share": 1}))
    pairs = build_pairs(judge, OutputsToRate({"s0": rows}, tasks(1), {})).to_list()
    found = {(row["draw"], row["output_a"], row["output_b"], row["order"]) for row in pairs}
    assert found == {
        (draw, f"ash{draw}", f"birch{draw}", order) for draw in (0, 1) for order in ("ab", "ba")
    }
    assert len(pairs) == 4


def test_the_share_is_drawn_by_the_digest_of_seed_sample_and_pair() -> None:
    """A tenth of 1,800 pairs within four standard errors, nested, and another one by seed."""
    everything = pairs_drawn(1)
    assert len(everything) == 300 * len(list(combinations(range(4), 2)))
    few, more = pairs_drawn(0.1), pairs_drawn(0.5)
    assert few < more < everything
    assert abs(len(few) - 180) < 4 * (1800 * 0.1 * 0.9) ** 0.5
    by_hand = {
        pair
        for pair in everything
        if int(hashlib.sha256("\x1f".join(("7", *pair)).encode()).hexdigest()[:16], 16) / 16**16
        < 0.1
    }
    assert pairs_drawn(0.1, seed=7) == by_hand != few


def test_nothing_is_asked_twice_and_repeats_are_further_questions(folder: Path) -> None:
    config_of(folder, [judge_of(repeats=2, **ALL)])
    engine = ScriptedJudge(lambda asked: ("[[first]]", "[[tie]]")[asked.repeat]).use()
    compared(folder)
    table = (root(folder) / "comparisons.parquet").read_bytes()
    compared(folder)
    assert len(engine.asked) == 20
    assert (root(folder) / "comparisons.parquet").read_bytes() == table
    found = {(row["repeat"], row["order"], row["winner"]) for row in choices(folder)}
    assert found == {(0, "ab", "a"), (0, "ba", "b"), (1, "ab", "tie"), (1, "ba", "tie")}


def test_rows_of_others_stay_and_lost_images_are_told(folder: Path) -> None:
    key = {"sample_id": "boat", "system_a": "amber", "system_b": "birch", "repeat": 0}
    visitor = {**dict.fromkeys(COMPARISONS.columns), **key, "judge": "visitor"}
    write(folder, COMPARISONS, [visitor | {"order": "ab", "winner": "a"}])
    image = put(folder, stripes((1, 2, 3)))
    rows = [output("boat", "amber", image=image), output("boat", "birch", image="ab" * 32)]
    write(folder, OUTPUTS, rows)
    engine = ScriptedJudge(lambda _: "[[first]]").use()
    compared(folder)
    found = {(row["judge"], row["order"], row["winner"], row["outcome"]) for row in choices(folder)}
    own = {("mira", order, None, "unshowable") for order in ("ab", "ba")}
    assert found == {*own, ("visitor", "ab", "a", None)}
    assert engine.asked == []


def test_the_verb_compares_and_refuses_rubrics(folder: Path) -> None:
    ScriptedJudge(lambda _: "[[second]]").use()
    done = called(folder, "judge", "--pairwise")
    assert done.exit_code == 0
    assert "pairwise" in done.output
    assert len(choices(folder)) == 10
    refused = called(folder, "judge", "--pairwise", "--rubric", "overall")
    assert isinstance(refused.exception, ConfigError)
