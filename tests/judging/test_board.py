"""What scores say of comparisons: in results.json, on the board, and of which rows."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from echo_hf.judging.board import show_scores
from echo_hf.judging.score import Scores, score
from echo_hf.tables import COMPARISONS, OUTPUTS, RATINGS
from tests.judging.run_for_tests import digest_of, output, put, rating, root, run, stripes, write

WORDS = tuple(f"word{at:02}" for at in range(12))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run(tmp_path, {}, WORDS)
    made = {name: put(tmp_path, stripes((at, 1, 1))) for at, name in enumerate("ab")}
    write(
        tmp_path,
        OUTPUTS,
        [output(name, s, image=made[s[0]]) for name in WORDS for s in ("amber", "birch")],
    )
    rated = [
        rating(name, s, 9 if s == "amber" else 4) for name in WORDS for s in ("amber", "birch")
    ]
    write(tmp_path, RATINGS, rated)
    return tmp_path


def choice(
    folder: Path, name: str, order: str, winner: str | None, **values: Any
) -> dict[str, Any]:
    shown = {
        f"output_{side}_sha256": put(folder, stripes((at, 1, 1))) for at, side in enumerate("ab")
    }
    key = {"sample_id": name, "system_a": "amber", "system_b": "birch", "judge": "mira"}
    known = {**dict.fromkeys(COMPARISONS.columns), **key, **shown, "repeat": 0, "outcome": "ok"}
    digest = digest_of(name)
    return {**known, "order": order, "winner": winner, "sample_digest": digest, **values}


def scored(folder: Path) -> Scores:
    return score(folder / "evaluation.yaml", runs=folder / "runs", n_boot=200)


def test_a_judge_that_failed_its_audit_is_flagged_beside_its_choices(folder: Path) -> None:
    rows = [choice(folder, name, order, "a") for name in WORDS for order in ("ab", "ba")]
    write(folder, COMPARISONS, rows)
    (root(folder) / "audit.json").write_text('{"judges": {"mira": {"failed": ["renamed"]}}}')
    page = io.StringIO()
    show_scores(Console(width=300, file=page), scored(folder).path)
    assert "mira (failed its audit: renamed): 12 pairs" in page.getvalue()


def test_the_line_of_each_judge_is_what_was_counted(folder: Path) -> None:
    """By hand: nine pairs agree with the ratings; three follow the place, which is a tie."""
    winners = {name: ("a", "b" if at < 3 else "a") for at, name in enumerate(WORDS)}
    rows = [
        choice(folder, name, order, winner)
        for name, both in winners.items()
        for order, winner in zip(("ab", "ba"), both, strict=True)
    ]
    write(folder, COMPARISONS, rows)
    scores = scored(folder)
    details = json.loads(scores.path.read_text())["details"]["text_to_image"]["pairwise"]

    mira = details["judges"]["mira"]
    assert (mira["pairs"], mira["verdicts"]) == (12, 24)
    values = {name: mira[name]["value"] for name in ("consistent", "follows_position", "agreement")}
    assert values == {"consistent": 0.75, "follows_position": 0.25, "agreement": 0.75}
    assert mira["decided"]["value"] == 1
    low, high = mira["agreement"]["interval"]
    assert low < 0.75 < high
    page = io.StringIO()
    show_scores(Console(width=300, file=page), scores.path)
    assert f"mira: 12 pairs, same winner in both orders 0.75 ({low:.2f} to {high:.2f})" in (
        page.getvalue()
    )


def test_choices_between_other_images_do_not_count(folder: Path) -> None:
    rows = [
        choice(folder, "word00", "ab", "a"),
        choice(folder, "word01", "ab", "a", output_b_sha256="0" * 64),
        choice(folder, "word02", "ab", "a", sample_digest="0" * 64),
        choice(folder, "word03", "ab", "a", system_b="cedar"),
    ]
    write(folder, COMPARISONS, rows)
    scores = scored(folder)
    assert {str(reason): count for reason, count in scores.left_out["comparisons"].items()} == {
        "other_output": 1,
        "other_sample": 1,
        "no_output": 1,
    }
    (split,) = [one for one in scores.splits if one.pairwise is not None]
    assert split.pairwise is not None
    assert split.pairwise.judges["mira"].pairs == 1


def test_without_ratings_the_line_says_that_there_are_none(folder: Path) -> None:
    (root(folder) / "ratings.parquet").unlink()
    write(folder, COMPARISONS, [choice(folder, "word00", order, "a") for order in ("ab", "ba")])
    page = io.StringIO()
    show_scores(Console(width=300, file=page), scored(folder).path)
    assert "same winner in both orders 1.00, same place 0.00" in page.getvalue()
    assert "agrees with its ratings - (not_rated)" in page.getvalue()
