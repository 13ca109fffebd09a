"""What is said of how far to trust a run: by hand for a small one, and never an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from scipy.stats import norm

from echo_hf import scores
from echo_hf._infra.bootstrap import Unscored
from echo_hf.config.checks import ModelIdentity
from echo_hf.errors import RunError
from echo_hf.judging.score import score
from echo_hf.judging.trust import MEANINGS, Trust, collect_trust_lines, find_uneven_coverage
from echo_hf.scores.rating_table import read_ratings
from echo_hf.systems.run_tables import Models
from echo_hf.tables import OUTPUTS, RATINGS
from tests.judging.run_for_tests import digest_of, output, page_of, rating, run, stripes, write
from tests.scores.ratings_for_tests import Cube, cubes, rows_of

GIVEN = stripes((1, 2, 3), (4, 5, 6))
EDITS, WORDS = [f"edit{at:02}" for at in range(12)], [f"word{at:02}" for at in range(12)]
PIP = {"name": "ash", "adapter": "files", "developer": "Pip", "note": "By hand."}
PIP |= {"status": "substitute", "stands_for": "Old Ash", "model": "ash-2"}
QUILL = {"name": "birch", "adapter": "files", "developer": "Quill", "status": "current"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Jay is for ash and kite for birch; lark decides, for ash on 8 of 12 words and 9 of 12 edits.

    Jay is of ash's developer, kite of birch's; nobody knows who made lark.
    """
    config = run(tmp_path, {name: [GIVEN] for name in EDITS}, WORDS)
    known = yaml.safe_load(config.read_text("utf-8"))
    makers = {"jay": "Pip", "kite": "Quill"}
    judges = [
        {"name": name, "developer": maker, "status": "current", "engine": {"kind": "vllm"}}
        for name, maker in makers.items()
    ]
    judges[0]["engine"] = {"kind": "vllm", "model": "jay-vl"}
    config.write_text(yaml.safe_dump({**known, "systems": [PIP, QUILL], "judges": judges}))
    rows = []
    for names, won in ((WORDS, 8), (EDITS, 9)):
        inputs = [GIVEN] if names is EDITS else []
        for at, name in enumerate(names):
            lark = (7, 6) if at < won else (6, 7)
            for judge, pair in {"jay": (9, 3), "kite": (4, 5), "lark": lark}.items():
                for system, value in zip(("ash", "birch"), pair, strict=True):
                    digest = digest_of(name, inputs)
                    rows.append(rating(name, system, value, judge=judge, sample_digest=digest))
    write(tmp_path, RATINGS, rows)
    return tmp_path


def results_of(folder: Path, **options: Any) -> dict[str, Any]:
    done = score(folder / "evaluation.yaml", runs=folder / "runs", **{"n_boot": 0, **options})
    return dict(json.loads(done.path.read_text("utf-8")))


def test_each_measure_is_a_line_with_its_meaning(folder: Path) -> None:
    """Counted by hand: of words ash wins 8 of 12, and without jay a third; of edits 9 of 12."""
    every = results_of(folder)["trust"]
    said = {(one["measure"], one["split"]): one["said"] for one in every}
    assert [one["measure"] for one in every] == sorted(
        (one["measure"] for one in every), key=list(MEANINGS).index
    )
    assert all(one["meaning"] == MEANINGS[one["measure"]] for one in every)

    # Jay gives ash all points, kite none and lark two thirds: 1 less the mean of 0 and 2/3.
    words = {measure: text for (measure, split), text in said.items() if split == "text_to_image"}
    preference = "jay +0.667 for ash; kite +0.833 for birch; developer unknown of lark"
    assert words["self_preference"] == preference
    # Without jay, kite and lark are at odds on 8 words and for birch on 4: ash has 4 of 12 points.
    assert words["leave_one_judge_out"] == "without jay: ash and birch change places"
    # Differences of +1 on 8 words and -1 on 4 have the mean 1/3 and this variance.
    variance = (12 - 12 / 9) / 11
    needed = (norm.isf(0.025) + norm.isf(0.2)) ** 2 * variance * 9
    assert words["samples_needed"] == f"{int(needed) + 1} for ash and birch; there are 12"
    # Of two systems the win rate alone decides, and how far one leads is the board itself.
    assert {"bradley_terry", "gap"}.isdisjoint(words)


def test_of_two_unknown_developers_nobody_says_that_they_are_one(folder: Path) -> None:
    path = folder / "evaluation.yaml"
    known = yaml.safe_load(path.read_text("utf-8"))
    for one in (known["systems"][0], known["judges"][0]):
        del one["developer"]
    path.write_text(yaml.safe_dump(known), "utf-8")
    said = {(one["measure"], one["split"]): one["said"] for one in results_of(folder)["trust"]}
    told = said["self_preference", "text_to_image"]
    assert "jay" not in told.partition(";")[0]
    assert told.endswith("developer unknown of jay, lark, ash")


@pytest.mark.parametrize(
    ("won", "of_cedar", "lead", "beside"),
    [
        # Shares of points: (9/12 + 1) / 2, (3/12 + 1) / 2; of edits (8/12 + 1) / 2, (4/12 + 1) / 2.
        (9, 1, "ash is 40 % ahead of birch", "25 % in image_to_image beside 40 % in text_to_image"),
        # Birch ties with cedar, and loses all to ash: 1 and 1/4.
        (12, 4, "more than twice: 1.000 of ash beside 0.250 of birch", None),
    ],
)
def test_how_far_the_best_of_three_is_ahead(
    folder: Path, won: int, of_cedar: int, lead: str, beside: str | None
) -> None:
    rows = []
    for names, wins in ((WORDS, won), (EDITS, 8)):
        for at, name in enumerate(names):
            digest = digest_of(name, [GIVEN] if names is EDITS else [])
            third = of_cedar if names is WORDS else 1
            for system, value in {"ash": 9 if at < wins else 3, "birch": 4, "cedar": third}.items():
                rows.append(rating(name, system, value, sample_digest=digest))
    write(folder, RATINGS, rows)
    told = {
        one["split"]: one["said"] for one in results_of(folder)["trust"] if one["measure"] == "gap"
    }
    assert told["text_to_image"] == lead
    assert told.get(None) == beside


def test_the_file_holds_the_figures_and_who_answered(folder: Path) -> None:
    found = results_of(folder)
    names = ("model", "developer", "status", "stands_for")
    told = {"ash": ("ash-2", "Pip", "substitute", "Old Ash")}
    told |= {"birch": (None, "Quill", "current", None)}
    assert found["systems"] == {
        name: dict(zip(names, said, strict=True)) for name, said in told.items()
    }
    assert found["judges"]["jay"]["model"] == "jay-vl"
    assert found["judges"]["lark"] == dict.fromkeys(ModelIdentity.model_fields)
    rates = found["details"]["text_to_image"]["win_rate"]
    assert rates["self_preference"]["judges"]["jay"]["preference"] == pytest.approx(2 / 3)
    assert rates["leave_one_judge_out"]["without"]["jay"]["ash"] == pytest.approx(1 / 3)
    assert rates["gap"]["gap"] == pytest.approx(1)
    assert {"samples_needed", "bradley_terry"} <= rates.keys()


def test_the_terminal_says_it_once_a_measure(folder: Path) -> None:
    results_of(folder)
    page = page_of(folder)
    assert "ash, in place of Old Ash" in page
    for measure, meaning in MEANINGS.items():
        told = measure in ("self_preference", "leave_one_judge_out", "samples_needed")
        assert " ".join(page.split()).count(meaning) == told
    assert "judge_drift" not in page
    assert "  text_to_image: without jay: ash and birch change places" in page


def test_a_lone_judge_or_system_has_reasons(folder: Path) -> None:
    write(folder, RATINGS, [rating(name, "ash", 5) for name in WORDS])
    every = results_of(folder)["trust"]
    reasons = {one["measure"]: one["reason"] for one in every}
    assert reasons == {
        "self_preference": "no_own_system",
        "leave_one_judge_out": "one_judge",
        "samples_needed": "one_system",
    }
    assert all(Unscored(one["reason"]).meaning in one["said"] for one in every)
    page = " ".join(page_of(folder).split())
    assert f"no leave_one_judge_out of text_to_image: {Unscored.ONE_JUDGE.meaning}" in page


@given(cubes())
def test_whatever_was_rated_each_measure_says_one_thing(cube: Cube) -> None:
    table = read_ratings(rows_of(cube))
    makers = {name: ModelIdentity(developer=name[:1]) for name in (*table.systems, "jay")}
    coverage = scores.win_rate(table, n_boot=0).coverage
    trust = Trust.from_ratings(table, "corrected", Models(makers, makers), 20, coverage)
    found = collect_trust_lines({"text_to_image": trust}, {}, {})
    silent = {"pairwise", "judge_drift", "hostile_pictures", "contamination", "dated_contamination"}
    silent.add("certificate")
    silent |= set() if trust.uneven_coverage else {"coverage"}
    rates = scores.win_rate(table, n_boot=0).win_rate
    if sum(rate is not None for rate in rates.values()) < 3:  # where there are two, it says nothing
        silent |= {"bradley_terry", "gap"}
    assert [one.measure for one in found] == [name for name in MEANINGS if name not in silent]
    assert all(one.said and "None" not in one.said for one in found)


@pytest.mark.parametrize(
    ("coverage", "uneven"),
    [
        ([0.98, 0.94, 0.99], []),
        ([0.98, 0.62, 0.99], [("birch", "ash"), ("birch", "cedar")]),
        ([0.5, 1.0, 0.97], [("ash", "birch")]),
        ([1.0, None, 0.02], [("birch", "ash")]),
    ],
)
def test_a_rate_that_rests_on_less_than_its_neighbors_is_marked(
    coverage: list[float | None], uneven: list[tuple[str, str]]
) -> None:
    """By more than 5 points of the comparisons."""
    board = ("ash", "birch", "cedar")
    found = find_uneven_coverage(board, dict(zip(board, coverage, strict=True)))
    assert [(one.system, one.neighbor) for one in found] == uneven


def test_the_mark_is_shown_beside_the_coverage(folder: Path) -> None:
    rows = [rating(name, system, 5) for name in WORDS for system in ("ash", "cedar")]
    write(folder, RATINGS, [*rows, *(rating(name, "birch", 4) for name in WORDS[:6])])
    lines = [one["said"] for one in results_of(folder)["trust"] if one["measure"] == "coverage"]
    assert len(lines) == 1
    assert lines[0].startswith("birch ")
    assert "uneven" in page_of(folder)


def provenance(model: str, status: str = "current", **more: Any) -> str:
    known = {"model": model, "status": status, "developer": None, "stands_for": None}
    return json.dumps({"judge": {"answered_by": {**known, **more}, "digest": "x"}})


def test_rows_say_who_answered_whatever_the_config_says_now(folder: Path) -> None:
    """Of those that say nothing the config does; words may hold what ends an object."""
    told = provenance('a "} b', "substitute", stands_for="Old \\ Ash")
    rows = [output(name, "ash", provenance=told) for name in WORDS]
    rows += [output(name, "birch", provenance=None) for name in WORDS]
    write(folder, OUTPUTS, rows)
    found = results_of(folder)["systems"]
    assert (found["ash"]["model"], found["ash"]["stands_for"]) == ('a "} b', "Old \\ Ash")
    assert found["birch"]["developer"] == "Quill"


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (provenance("m-2"), r"'ash' names two models.*m-1 \(current\) and m-2 \(current\)"),
        (provenance("m-1", "substitute"), r"m-1 \(current\) and m-1 \(substitute\)"),
        ('{"answered_by": {"model": 3}}', "provenance of system 'ash'.*make its rows again"),
    ],
)
def test_two_models_of_one_name_are_no_row(folder: Path, second: str, said: str) -> None:
    one, other = (output(name, "ash", provenance=provenance("m-1")) for name in WORDS[:2])
    write(folder, OUTPUTS, [one, {**other, "provenance": second}])
    with pytest.raises(RunError, match=said) as raised:
        results_of(folder)
    assert "\n" not in str(raised.value)
