"""Sections of the page: who is in which tier, who beats whom, what people say."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from echo_hf.images.store import ImageStore
from echo_hf.report.agreement_section import agreement, stars
from echo_hf.report.board_sections import board, tiers_of, widest
from echo_hf.report.metric_sections import coverage_table, metric_card, metrics, scale_of
from echo_hf.report.report import figures, write_report
from echo_hf.report.results import AgreementFile, Metric, Results
from echo_hf.report.run_data import Output, ReportSample
from echo_hf.scores.agreement import agreement as compared
from tests.report.run_data_for_tests import SYSTEMS, image, ratings_of, results, run_data

SAMPLES = [
    ReportSample(id=f"s{at:02}", split="text_to_image", prompt=f"boat {at}") for at in range(24)
]


def _words(page: object) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", str(page))).split())


def _ratings(better: float) -> dict[str, list[object]]:
    return {
        one.id: ratings_of({"anole_two": [5 + better + at % 3], "bravo": [5 + (at + 1) % 3]})
        for at, one in enumerate(SAMPLES)
    }


@pytest.mark.parametrize(
    ("better", "tiers"),
    [
        (1, [["anole_two"], ["bravo"]]),  # 8 wins and 16 ties: p = 2 / 2 ** 8
        (0, [["bravo", "anole_two"]]),  # 8 wins and 16 losses: p = 0.15 by the sign test
    ],
)
def test_systems_that_do_not_differ_share_a_tier(
    tmp_path: Path, better: float, tiers: list[list[str]]
) -> None:
    """Rows of a tier are one group of the table, the best tier first."""
    data = run_data(tmp_path, SAMPLES, ratings=_ratings(better))
    rates, found = data.results.rates("text_to_image"), data.results.details["text_to_image"]
    assert rates is not None
    assert found.win_rate is not None
    assert tiers_of(rates, found.win_rate) == tiers
    assert str(board(data)).split("</table>")[0].count("<tbody>") == len(tiers)


def test_too_few_samples_have_no_tiers(tmp_path: Path) -> None:
    """Where nothing says how far others may differ, no tier is named, and the reason is."""
    data = run_data(tmp_path, SAMPLES[:3], ratings=_ratings(4))
    said = _words(board(data))
    assert "All systems: few_samples, fewer than 10 samples" in said
    assert "anole_two 0.00 0.25 0.50" not in said


def test_each_pair_adds_up(tmp_path: Path) -> None:
    """The row's share and the column's are in the table, with how many comparisons they are of."""
    page = unescape(str(board(run_data(tmp_path, SAMPLES, ratings=_ratings(4)))))
    assert "anole_two wins 1.00 of 24 comparisons with bravo" in page
    assert "bravo wins 0.00 of 24 comparisons with anole_two" in page


def test_a_split_without_ratings_says_so(tmp_path: Path) -> None:
    """Outputs alone make no board."""
    assert "No judge has rated" in _words(board(run_data(tmp_path, SAMPLES)))


def test_the_widest_samples_come_first(tmp_path: Path) -> None:
    """Examples are the samples whose ratings lie furthest apart; equal ones in their order."""
    ratings = {
        "s00": ratings_of({"anole_two": [5], "bravo": [5]}),
        "s01": ratings_of({"anole_two": [9], "bravo": [5]}),
        "s02": ratings_of({"anole_two": [1], "bravo": [10]}),
        "s03": ratings_of({"anole_two": [3], "bravo": [7]}),
    }
    data = run_data(tmp_path, SAMPLES, ratings=ratings)
    assert [one.id for one in widest(data, "text_to_image")] == ["s02", "s01", "s03"]


def _metric(system: str, values: list[float | None], **more: object) -> Metric:
    result = {"value": 3.0, "per_sample": values, "n": len(values)}
    return Metric.model_validate(
        {
            "metric": "color_shift",
            "system": system,
            "samples": [str(at) for at in range(20)],
            "result": result,
            **more,
        }
    )


def test_few_numbers_are_dots(tmp_path: Path) -> None:
    """From 12 numbers on there is a curve; fewer are shown one by one; null is none."""
    few = str(metric_card("color_shift", [_metric("a", [1.0, 2.0, None, 6.0])]))
    many = str(metric_card("color_shift", [_metric("a", [float(at) for at in range(12)])]))
    assert (few.count('class="faint"'), few.count('class="violin"')) == (3, 0)
    assert (many.count('class="faint"'), many.count('class="violin"')) == (0, 1)


def test_all_systems_share_an_axis() -> None:
    """The axis of a metric holds every number of every system."""
    scale = scale_of([_metric("a", [1.0, 2.0]), _metric("b", [17.0, None])])
    assert (scale.low, scale.high) == (0.0, 20.0)


def test_what_was_not_measured_says_why() -> None:
    """A metric that no system has is a sentence, not an empty table."""
    rows = [_metric(name, [], result=None, missing="needs ratings") for name in SYSTEMS]
    assert _words(metric_card("text_rendering", rows)).endswith("Not measured: needs ratings")


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        (["mira"], "Judged in part by judges that failed their audit: mira (blank)."),
        (["mira", "otto"], "Judged only by judges that failed their audit: mira (blank); otto"),
        ([], None),
    ],
)
def test_judges_of_text_that_failed_are_named_beside_their_figures(
    tmp_path: Path, failed: list[str], said: str | None
) -> None:
    """In the page and in print; who did not rate text is not named."""
    result = {"value": 0.5, "per_sample": [0.5], "per_judge": {"mira": 0.4, "otto": 0.6}}
    found = _metric("bravo", [], metric="text_rendering", result=result)
    given = results(SAMPLES, {}, text_to_image=[found.model_dump()])
    failures = dict.fromkeys([*failed, "nils"], ("blank",))
    data = run_data(tmp_path, SAMPLES, results=given, failures=failures)
    page, print_ = _words(metrics(data)), _words(figures(data)["text_rendering_text_to_image"])
    assert (said in page) if said else ("audit" not in page)
    named = ", ".join(f"{judge} (failed its audit: blank)" for judge in failed)
    assert (f"judged by {named}" in print_) if named else ("audit" not in print_)


def test_printed_win_rates_name_judges_that_failed(tmp_path: Path) -> None:
    """As the page does."""
    data = run_data(tmp_path, SAMPLES, ratings=_ratings(4), failures={"mira": ("blank",)})
    said = _words(figures(data)["win_rate_text_to_image"])
    assert "judged by mira (failed its audit: blank)" in said
    assert "Judged only by judges that failed their audit: mira (blank)" in _words(board(data))


def test_ratings_by_another_rubric_do_not_count_in_win_rates(tmp_path: Path) -> None:
    """They have figures of their own, and are not said to count nowhere."""
    found = results(SAMPLES, {name: tuple(some) for name, some in _ratings(4).items()})
    written = found.model_dump(mode="json")
    rates = written["details"]["text_to_image"]["win_rate"]["corrected"]
    rates["ignored"] = {"other_rubric": 40}
    data = run_data(tmp_path, SAMPLES, results=Results.model_validate(written))
    said = "40 ratings do not count in win rates: other_rubric, a rating by another rubric"
    assert said in _words(board(data))
    assert "text_rendering has figures of its own" in _words(board(data))


def test_reasons_are_counted() -> None:
    """Samples without a number are counted by reason, whose meaning is said."""
    said = _words(metric_card("color_shift", [_metric("a", [1.0], counts={"blank_output": 2})]))
    assert "a: 2 blank_output" in said
    assert "blank_output: the output is of one color" in said


def test_coverage_counts_every_task(tmp_path: Path) -> None:
    """Images, refusals and what was not tried add up to the samples."""
    outputs = {("s00", "anole_two"): Output("0" * 64, "ok")}
    outputs |= {(one.id, "bravo"): Output(None, "refused") for one in SAMPLES[:6]}
    said = _words(coverage_table(run_data(tmp_path, SAMPLES, outputs)))
    assert "anole_two 1 (4 %) 0 23" in said
    assert "bravo 0 (0 %) 6 18" in said


def _agreement() -> AgreementFile:
    ranks = [
        {"sample_id": str(at), "rater": rater, "system": system, "rank": rank}
        for at in range(12)
        for rater in ("ada", "ben")
        for system, rank in {"x": 1, "y": 2, "z": 3}.items()
    ]
    rated = {"x": 9, "y": 4, "z": 5}
    ratings = [
        {"sample_id": str(at), "judge": "mira", "system": system, "rating": rating}
        for at in range(12)
        for system, rating in rated.items()
    ]
    found = compared(ranks, ratings, n_boot=50, n_resamples=200)
    return AgreementFile.model_validate_json(json.dumps({"merged": found.as_json()}))


def test_people_and_judges(tmp_path: Path) -> None:
    """Two people who agree, and a judge that swaps the last two of three: tau-b is 1/3."""
    said = _words(agreement(run_data(tmp_path, SAMPLES, agreement=_agreement())))
    assert "2 people ranked 12 samples: 24 rankings" in said
    assert "x 1.00" in said
    assert re.search(r"mira 0\.33\S* 0\.33\S* 0\.33", said)
    assert "mira reaches 33 % of that." in said


def test_each_two_are_compared_once(tmp_path: Path) -> None:
    """Two people with each other, and a judge with both and their consensus: four cells."""
    page = str(agreement(run_data(tmp_path, SAMPLES, agreement=_agreement())))
    assert len(re.findall(r'title="[^"]+: p [^"]+, \d+ samples"', page)) == 4


def test_people_s_verdict_names_judges_that_failed(tmp_path: Path) -> None:
    """The flag stands in the judge's row, and where its share of people's agreement is told."""
    failed = {"mira": ("blank",)}
    page = agreement(run_data(tmp_path, SAMPLES, agreement=_agreement(), failures=failed))
    assert _words(page).count("mira failed its audit: blank") == 2


@pytest.mark.parametrize(("p", "said"), [(0.0005, "***"), (0.01, "**"), (0.05, ""), (None, "")])
def test_stars(p: float | None, said: str) -> None:
    """Three below 0.001, two below 0.05, as in the paper's figure."""
    assert stars(p) == said


def test_mean_colors_of_edits_alone(tmp_path: Path) -> None:
    """Only samples with inputs count in the mean colors; each image counts alike."""
    images = ImageStore(tmp_path / "pictures")
    red, blue = images.put(image((200, 0, 0))), images.put(image((0, 0, 100), (400, 200)))
    samples = [
        ReportSample(id="e", split="image_to_image", prompt="x", inputs=(red,)),
        ReportSample(id="f", split="image_to_image", prompt="y", inputs=(red,)),
        ReportSample(id="t", split="text_to_image", prompt="z"),
    ]
    outputs = {
        ("e", "bravo"): Output(blue, "ok"),
        ("f", "bravo"): Output(red, "ok"),
        ("t", "anole_two"): Output(blue, "ok"),
    }
    written = write_report(run_data(tmp_path, samples, outputs), tmp_path / "report")
    said = _words(written.path.read_text("utf-8").split("<script")[0])
    assert "Inputs mean 200, 0, 0 · 2 images" in said
    assert "bravo mean 100, 0, 50 · 2 images" in said
    assert "anole_two mean" not in said
