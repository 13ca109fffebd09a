"""Sections of the page: who is in which tier, what people say, and every word as text."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.checks import ModelIdentity
from echo_hf.images.store import ImageStore
from echo_hf.judging.results import SavedMetric, SavedReliability, SavedResults
from echo_hf.judging.ruler import RulerRelease, SavedRuler
from echo_hf.report import sections
from echo_hf.report.analysis.result import PREVIOUS
from echo_hf.report.markup import (
    REPLACEMENT,
    UNPRINTABLE,
    is_web,
    make_environment,
    make_printable,
    scale_logarithm,
)
from echo_hf.report.report import draw_figures, format_board, write_report
from echo_hf.report.run_data import AgreementFile, ReportSample, SavedOutput, SavedRating
from echo_hf.scores.agreement import agreement as compared
from echo_hf.scores.reliability import reliability
from echo_hf.scores.ruler import ruler
from echo_hf.scores.win_rate import BoardRow, rank_rows
from tests.report.run_data_for_tests import (
    FOUND,
    HOSTILE_SYSTEMS,
    WORDS,
    Parsed,
    every_part,
    hostile_run,
    image,
    measured,
    ratings_of,
    results,
    run_data,
    words,
)
from tests.report.run_data_for_tests import analysis as analyzed

HOSTILE = HOSTILE_SYSTEMS[1]
SAMPLES = [
    ReportSample(id=f"s{at:02}", split="text_to_image", prompt=f"boat {at}", task="edit")
    for at in range(24)
]


def _ratings(better: float) -> dict[str, list[SavedRating]]:
    return {
        one.id: ratings_of({"anole_two": [5 + better + at % 3], "bravo": [5 + (at + 1) % 3]})
        for at, one in enumerate(SAMPLES)
    }


def _board(folder: Path, found: dict[str, Any] | None = None, **values: Any) -> str:
    given = {"results": SavedResults.model_validate(found)} if found else {}
    return str(sections.build_board(run_data(folder, SAMPLES, **given, **values)))


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
    data = run_data(tmp_path, SAMPLES, ratings=_ratings(better))
    table = str(sections.build_board(data)).split("</table>")[0]
    groups = [re.findall(r"<bdi>(\w+)</bdi>", one) for one in table.split("<tbody>")[1:]]
    assert groups == tiers


def test_the_best_comes_first() -> None:
    values = {"a": 0.2, "b": None, "c": 0.7, "d": 0.7}
    rows = [BoardRow(name, value, value and (0.1, 0.9)) for name, value in values.items()]
    found = rank_rows(rows, [["c", "d"], ["a"]])
    expected = [("c", 1, 1), ("d", 1, 1), ("a", 3, 2), ("b", None, None)]
    assert [(row.system, row.rank, row.tier) for row in found] == expected
    # Without intervals there are no tiers.
    assert rank_rows([BoardRow("a", 0.5)], [["a"]])[0].tier is None


def test_what_the_board_says_of_pairs_and_of_what_it_lacks(tmp_path: Path) -> None:
    page = unescape(_board(tmp_path, ratings=_ratings(4)))
    assert "anole_two wins 1.00 of 24 comparisons with bravo" in page
    assert "bravo wins 0.00 of 24 comparisons with anole_two" in page
    few = words(sections.build_board(run_data(tmp_path, SAMPLES[:3], ratings=_ratings(4))))
    assert "All systems: few_samples, fewer than 10 samples" in few
    assert "anole_two 1.000 – – 100 %" in few
    assert "No judge has rated" in words(_board(tmp_path))
    # Ratings by another rubric have figures of their own, and are not said to count nowhere.
    found = results(SAMPLES, _ratings(4)).model_dump(mode="json")
    found["details"]["text_to_image"]["win_rate"]["corrected"]["ignored"] = {"other_rubric": 40}
    said = words(_board(tmp_path, found))
    assert "40 ratings do not count in win rates: other_rubric, a rating by another rubric" in said


SUBSTITUTE = ModelIdentity(
    model="anole-2", developer="Northlight", status="substitute", stands_for="Old <Anole>"
)


def test_a_substitute_is_named_beside_what_it_stands_in_for(tmp_path: Path) -> None:
    """On the board, among the metrics, and with its model at the end; a judge in the note."""
    known = {"systems": {"anole_two": SUBSTITUTE}, "judges": {"mira": SUBSTITUTE}}
    card = {"metric": "color_shift", "system": "anole_two", "result": measured(), "samples": ["s"]}
    ratings = _ratings(1)
    found = results(SAMPLES, ratings, **known, text_to_image=[card])
    data = run_data(tmp_path, SAMPLES, ratings=ratings, results=found)
    assert "anole_two in place of Old <Anole>" in words(sections.build_board(data))
    assert "Judged by mira (in place of Old <Anole>)." in words(sections.build_board(data))
    assert "anole_two in place of Old <Anole>" in words(sections.build_metrics(data))
    row = "anole_two anole-2 Northlight substitute Old <Anole>"
    assert row in words(sections.build_provenance(data))
    assert "| anole\\_two, in place of Old \\<Anole\\> |" in format_board(data)


def test_how_far_to_trust_a_run(tmp_path: Path) -> None:
    """A card for each measure, in whole sentences; without them, as in older files, no section."""
    ratings = {
        name: [*some, *ratings_of({"anole_two": [3], "bravo": [4]}, "noor")]
        for name, some in _ratings(1).items()
    }
    data = run_data(tmp_path, SAMPLES, ratings=ratings)
    page = words(sections.build_trust(data))
    for title in ("Self-preference", "Without each judge", "Samples needed"):
        assert title in page
    for line in data.results.trust:
        assert f"{line.said}" in page
        assert f"{line.meaning[0].upper()}{line.meaning[1:]}." in page
    # Without mira anole_two loses everything; without noor it wins 8 and ties on 16 of 24.
    assert page.endswith("0.00 0.67")
    older = data.results.model_copy(update={"trust": ()})
    assert sections.build_trust(run_data(tmp_path, SAMPLES, ratings=ratings, results=older)) is None


def test_what_pictures_did_to_a_judge_and_whose_words_speak_to_it(tmp_path: Path) -> None:
    """A table for each kind of pictures beside the cards; a table of outputs below the board."""
    ratings = _ratings(1)
    seal = {"rated": 20, "change": 1.25, "interval": [0.75, 1.75], "raises": True}
    frame = {"rated": 8, "change": 0.125, "reason": "few_samples"}
    blur = {"rated": 20, "change": -2.0, "interval": [-3, -1], "not_seen": 5, "share": 0.25}
    kind = {"level": 0.95, "unit": "sample"}
    pictures = {
        "tricks": {**kind, "pictures": {"seal": seal, "<b>frame": frame}, "raised_by": ["seal"]},
        "faults": {**kind, "pictures": {"blur": blur}},
    }
    data = run_data(tmp_path, SAMPLES, ratings=ratings)
    written = data.results.model_dump(mode="json", by_alias=True)
    assert "judge_pictures" not in written
    written["judge_pictures"] = {"<i>mira": pictures}
    split = SAMPLES[0].split
    speech = {"system": "<u>bravo", "outputs": 24, "checked": 20, "samples": list("abcdefg")}
    written["details"][split]["speaks_to_judge"] = [speech]
    data = replace(data, results=SavedResults.model_validate(written))
    page = sections.build_trust(data)
    assert "What tricks in pictures do to ratings by <i>mira" in words(page)
    assert re.search(r"Seal 20 1.25 0.75 – 1.75 raises", words(page))
    assert re.search(r"Blur 20 \S2.00 .+ 25", words(page))
    board = sections.build_board(data)
    assert re.search(
        r"<u>bravo 7 20 of 24 a, b, c, d, e ?, and 2 more in results.json", words(board)
    )
    assert not {"i", "u"} & {tag for tag, _ in Parsed(f"{page}{board}").tags}


BY_PEOPLE: dict[str, Any] = {
    "win_rate": {"anole_two": 0.25, "bravo": 0.75, "<b>cara": None},
    "interval": {"anole_two": [0.125, 0.375], "bravo": [0.625, 0.875], "<b>cara": None},
    "judges_alone": {"anole_two": 0.875, "bravo": 0.125},
    "people_alone": {"anole_two": 0.5, "bravo": 0.5},
    "reasons": {"<b>cara": "not_rated"},
    "beta": {"mira": 0.5},
    "rho2": 0.25,
    "ranked": 12,
    "samples": 24,
    "standard_error": {},
    "effective_n": {},
    "definition": {},
}


def test_what_people_correct_stands_beside_what_they_and_the_judges_say(tmp_path: Path) -> None:
    """The best first, by the corrected rate; without a rate, a reason in place of a number."""
    found = results(SAMPLES, _ratings(4)).model_dump(mode="json")
    split = found["details"]["text_to_image"]
    split["by_people"] = {"said": "people <i>ranked</i> 12", "result": BY_PEOPLE}
    page = _board(tmp_path, found)
    said = words(page)
    assert "bravo 0.750 0.625 – 0.875 0.500 0.125 anole_two 0.250 0.125 – 0.375 0.500 0.875" in said
    assert "<b>cara – – – –" in said
    assert 'title="no judge rated any of its outputs"' in str(page)
    assert "People <i>ranked</i> 12." in said
    split["by_people"] = {"said": "no win rates by people: rank 3 more", "missing": "rank 3 more"}
    page = _board(tmp_path, found)
    assert "No win rates by people: rank 3 more." in words(page)
    assert "faint dots" not in words(page)


def test_the_widest_samples_come_first(tmp_path: Path) -> None:
    rated = {"s00": (5, 5), "s01": (9, 5), "s02": (1, 10), "s03": (3, 7)}
    ratings = {
        name: ratings_of({"anole_two": [one], "bravo": [other]})
        for name, (one, other) in rated.items()
    }
    data = run_data(tmp_path, SAMPLES, ratings=ratings)
    assert [one.id for one in sections.select_widest(data, "text_to_image")] == [
        "s02",
        "s01",
        "s03",
    ]
    # As a mean over judges, of overall ratings alone.
    two = [*ratings_of({"a": [9, 7], "b": [2]}), *ratings_of({"a": [0.5], "b": [None]}, "orin")]
    assert sections.spread(two) == (7 + 0) / 2
    assert sections.spread([replace(one, rubric="text_rendering") for one in two]) == 0.0
    scalars = [replace(one, judge="nova", value=1e6, is_scalar=True) for one in two]
    assert sections.spread([*two, *scalars]) == (7 + 0) / 2  # which no mean takes in


def test_an_output_without_an_image_is_a_card(tmp_path: Path) -> None:
    ratings = {"s00": ratings_of({"anole_two": [5], "bravo": [6]})}
    for output, said in (
        (None, "<b>not tried</b>"),
        (SavedOutput(None, "refused", "output, nsfw"), "<b>refused</b><span>output, nsfw</span>"),
        (SavedOutput(None, "ok"), "<b>no image</b>"),
        (SavedOutput("0" * 64, "ok"), "<b>cannot be shown</b>"),
    ):
        outputs = {("s00", "bravo"): SavedOutput(None, "ok")}
        outputs |= {("s00", "anole_two"): output} if output else {}
        shown = str(sections.build_examples(run_data(tmp_path, SAMPLES, outputs, ratings), {}))
        assert re.findall(r'<div class="missing">(.*?)</div>', shown)[0] == said


def _metric(system: str, values: list[float | None], **more: Any) -> SavedMetric:
    found = measured(per_sample=values, n=len(values), **more.pop("found", {}))
    known = {"metric": "color_shift", "system": system, "result": found}
    return SavedMetric.model_validate({**known, "samples": [str(at) for at in range(20)], **more})


def _card(folder: Path, *rows: SavedMetric, **values: Any) -> str:
    given = results(SAMPLES, {}, text_to_image=rows)
    return str(sections.build_metrics(run_data(folder, SAMPLES, results=given, **values)))


def test_few_numbers_are_dots_and_many_a_shape(tmp_path: Path) -> None:
    few = _metric("few", [1.0, 2.0], counts={"blank_output": 2})
    many = _metric("many", [float(at) for at in range(12)])
    missing = _metric("none", [], result=None, missing="no such weights")
    page = _card(tmp_path, few, many, missing)
    _, _, page = page.partition("<table")  # after what names the marks
    assert (page.count('class="faint"'), page.count('class="violin"')) == (2, 1)
    for said in (
        "0 5 10 15 distribution over samples, drawn",
        "few 3.000 – 2 of 20",
        "none no such weights – – 0",
        "few: 2 blank_output; blank_output: the output is of one color",
    ):
        assert said in words(page)
    # Where there is no number at all, the reason stands once.
    rows = [_metric(name, [], result=None, missing="needs packages") for name in ("a", "b")]
    page = _card(tmp_path, *rows)
    assert words(page).count("Not measured: needs packages") == 1
    assert "<table" not in page


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        ([], ""),
        (["mira"], "Judged in part by judges that failed their audit: mira (blank)"),
        (["mira", "orin"], "Judged only by judges that failed their audit: mira (blank); orin"),
    ],
)
def test_figures_of_judges_that_failed_are_flagged(
    tmp_path: Path, failed: list[str], said: str
) -> None:
    rated = {"sample_ids": [], "per_judge": {"mira": 0.5, "orin": 0.5}, "off_scale": 0}
    row = _metric("bravo", [0.5, 0.6], metric="text_rendering", found=rated)
    given = results(SAMPLES, _ratings(4), text_to_image=[row])
    failures = dict.fromkeys([*failed, "nils"], ("blank",))
    data = run_data(tmp_path, SAMPLES, results=given, ratings=_ratings(4), failures=failures)
    printed = {name: words(drawing) for name, drawing in draw_figures(data).items()}
    named = ", ".join(f"{judge} (failed its audit: blank)" for judge in failed)
    page, text = words(sections.build_metrics(data)), printed["text_rendering_text_to_image"]
    assert (said in page) if said else ("audit" not in page)
    assert (f"judged by {named}" in text) if named else ("audit" not in text)
    only = "Judged only by judges that failed their audit: mira (blank)"
    assert (only in words(sections.build_board(data))) == bool(failed)
    assert ("judged by mira (failed" in printed["win_rate_text_to_image"]) == bool(failed)


def test_coverage_counts_every_task(tmp_path: Path) -> None:
    outputs = {("s00", "anole_two"): SavedOutput("0" * 64, "ok")}
    outputs |= {(one.id, "bravo"): SavedOutput(None, "refused") for one in SAMPLES[:6]}
    said = words(sections.build_provenance(run_data(tmp_path, SAMPLES, outputs)))
    assert "anole_two 1 (4 %) 0 23" in said
    assert "bravo 0 (0 %) 6 18" in said


@pytest.fixture(scope="module")
def agreed() -> AgreementFile:
    ranks = [
        {"sample_id": str(at), "rater": rater, "system": system, "rank": rank}
        for at in range(12)
        for rater in ("ada", "ben")
        for system, rank in {"x": 1, "y": 2, "z": 3}.items()
    ]
    ratings = [
        {"sample_id": str(at), "judge": "mira", "system": system, "rating": rating}
        for at in range(12)
        for system, rating in {"x": 9, "y": 4, "z": 5}.items()
    ]
    found = compared(ranks, ratings, n_boot=50, n_resamples=200)
    return AgreementFile.model_validate_json(json.dumps({"merged": found.as_json()}))


def test_people_and_judges(tmp_path: Path, agreed: AgreementFile) -> None:
    """Tau-b of 1/3; each two are compared once; the flag stands where the judge is told of."""
    failed = {"mira": ("blank",)}
    page = str(
        sections.build_people(run_data(tmp_path, SAMPLES, agreement=agreed, failures=failed))
    )
    said = words(page)
    assert "2 people ranked 12 samples: 24 rankings" in said
    assert "x 1.00" in said
    assert re.search(r"mira failed its audit: blank 0\.33\S* 0\.33\S* 0\.33", said)
    assert "mira failed its audit: blank reaches 33 % of that." in said
    assert len(re.findall(r'title="[^"]+: p [^"]+, \d+ samples"', page)) == 4
    # As in the paper's figure.
    assert [sections.stars(p) for p in (0.0005, 0.01, 0.05, None)] == ["***", "**", "", ""]


def _analysis(folder: Path, **parts: Any) -> str:
    return str(sections.build_analysis(run_data(folder, SAMPLES[:1], analysis=analyzed(**parts))))


def test_a_missing_part_says_why(tmp_path: Path) -> None:
    """Each part stands alone: one without figures says what to do, and the others are there."""
    found = every_part("x")["activity"]
    days = [{**found["days"][0], "date": date} for date in ("2026-03-01", "2026-04-09")]
    page = _analysis(tmp_path, activity={**found, "days": days})
    in_a_section_of_its_own = "since"
    others = FOUND.keys() - {in_a_section_of_its_own, "activity"}
    assert words(page).count("Not analyzed: name a language model") == len(others)
    assert "posts a day from 2026-03-01 to 2026-04-09" in page
    assert sections.build_analysis(run_data(tmp_path, SAMPLES)) is None


def test_what_changed_since_the_release_before_follows_the_boards(tmp_path: Path) -> None:
    """New tasks, shares that moved, failures that came and went; of many rows the first ten."""
    moved = [
        {"name": f"{HOSTILE} came", "before": 0, "now": 4, "change": 0.25},
        {"name": "went", "before": 2, "now": 0, "change": -0.125},
        {"name": "stayed", "before": 3, "now": 3, "change": 0.01},
    ]
    shift = {"distance": 0.375, "before": 16, "now": 16, "moved": moved}
    many = [{**moved[1], "name": f"word {at}"} for at in range(14)]
    told = {"name": f"my-lab/{HOSTILE}", "target": "Old", "samples": 50, "shared": 30}
    silent = {**shift, "distance": None, "before": 0, "moved": []}
    since = {**told, "tasks": silent, "first_bigrams": {**shift, "moved": many}, "failures": shift}
    named = every_part(HOSTILE)["open_tasks"]
    group = {**named["groups"][0], "elsewhere": {PREVIOUS: 0}}
    new, known = {**group, "new_to": [PREVIOUS], "phrase": "a new one"}, {**group, "new_to": []}
    compared = [{"name": PREVIOUS, "prompts": 50, "phrased": 50, "untold": None}]
    named |= {"groups": [new, known], "compared": compared}
    data = run_data(tmp_path, SAMPLES, analysis=analyzed(since=since, open_tasks=named))
    found = sections.build_sections(data, {}, {})
    assert [*found][:2] == ["win-rates", "since"]
    page = str(found["since"])
    said = words(page)
    for shown in (
        "30 of 40 samples were there before, 10 are new; 20 of 50 are no longer there.",
        "It was about Old .",
        "a new one 3 50 %",
        "Not compared: 0 samples before, 16 now.",
        "word 9 2 0 −12.5 4 more.",
        "came 0 4 25.0",
        "Went What failed Before Now Change went 2 0 −12.5",
        "stayed 3 3 1.0",
        "Distance 0.38",
    ):
        assert shown in said
    assert "word 10" not in said
    assert HOSTILE not in page
    untold = {**named, "compared": [{**compared[0], "untold": "no phrase there"}]}
    data = run_data(tmp_path, SAMPLES, analysis=analyzed(since=since, open_tasks=untold))
    assert "Not told: no phrase there" in words(str(sections.build_since(data)))
    assert sections.build_since(run_data(tmp_path, SAMPLES, analysis=analyzed())) is None


TINT = "yellow tint"


def _estimate(value: float, room: float) -> dict[str, float]:
    return {"value": value, "low": value - room, "high": value + room}


def _stated() -> dict[str, Any]:
    """Every part, with the figures that the next test looks for."""
    parts = every_part(TINT)

    def several(some: list[Any], *changed: dict[str, Any]) -> list[Any]:
        return [{**some[0], **one} for one in changed]

    own = {"name": "benchmark", "ratio": None}
    parts["diversity"] = several(
        parts["diversity"],
        {**own, "expected": _estimate(690, 12)},
        {"expected": _estimate(300, 12), "ratio": _estimate(2.3, 0)},
    )
    parts["perplexity"] = several(
        parts["perplexity"],
        {**own, "token_level": _estimate(61, 3)},
        {"token_level": _estimate(73, 3), "ratio": _estimate(1.2, 0)},
    )
    tasks, named = parts["tasks"], parts["open_tasks"]
    tasks["counts"] = several(tasks["counts"], {"task": "edit", "samples": 30, "share": 0.75})
    seen = {"by_week": {"2026-03-02": 21, "2026-03-16": 9}, "phrases": {TINT: 20, "a comic": 10}}
    before = {"elsewhere": {TINT: 0, PREVIOUS: 10}}
    common = {**seen, **before, "samples": 30, "share": 0.75, "different": 2}
    rare = {**before, "phrases": {"x": 1}, "by_week": {}, "different": 1}
    named["groups"] = several(named["groups"], common, *[rare] * 25)
    told = {"prompts": 9, "phrased": 8, "untold": None}
    last = {"name": PREVIOUS, "prompts": 40, "phrased": 40, "untold": None}
    named["compared"] = several(named["compared"], told, {"name": f"{TINT} 2"}, last)
    named["phrased"] = 40
    held = parts["measures"]
    (tells,) = held["groups"][0]["measures"]
    numbers = {"measure": "color_shift", "auc": 0.93, "low": 0.85, "high": 0.98, "verdict": "yes"}
    numbers |= {"threshold": 44.5, "j": 0.8, "complaint_threads": 18, "praise_threads": 22}
    check = {**tells, "measure": "yellow@1", "auc": 0.8, "low": 0.65, "high": 0.9}
    cells = [{**tells, **numbers}, check]
    group = {"complaint_threads": 18, "praise_threads": 22}
    held["groups"] = several(
        held["groups"], {**group, "measures": cells}, {"keyword": "six fingers", "measures": []}
    )
    kinds = [
        {"name": "color_shift", "title": "Color shift", "kind": "metric", "missing": None},
        {"name": "yellow@1", "title": "Yellow", "kind": "check", "missing": None},
        {"name": "x", "title": "Text", "kind": "metric", "missing": "it <b>fails</b>"},
    ]
    held["measures"] = several(held["measures"], *kinds)
    step = {"stage": "collect", "rows_in": 900, "kept": 820, "lost": {"repost": 80}}
    parts["funnel"] = several(parts["funnel"], {**step, "reads": "posts", "makes": "posts"})
    return parts


def test_figures_are_those_of_the_file(tmp_path: Path) -> None:
    page = _analysis(tmp_path, **_stated())
    said = words(page)
    for shown in (
        "benchmark 690 678 – 702 –",
        "yellow tint 300 288 – 312 2.30x",
        "yellow tint 73.0 70.0 – 76.0 1.20x",
        "Edit 30 (75 %) yellow tint",
        "yellow tint 30 (75 %) 25 % 2026-03-04 yellow tint",
        "26 tasks of 40 samples, named in free words",
        "6 rarer tasks more. Weeks: 2026-03-02 to 2026-03-16.",
        "Beside yellow tint : 8 of 9 prompts have a phrase.",
        "Not told beside yellow tint 2 : yellow tint.",
        "yellow tint 20, a comic 10",
        "Complaint Color shift Check yellow tint (18 threads) 0.93 0.85 – 0.98 yes 0.80 0.65 –",
        "yellow tint color_shift 0.93 0.85 – 0.98 44.500 0.80 18 and 22",
        "1 complaint counted and not measured, as fewer than 5 threads complain or praise",
        "the largest: six fingers , 3 threads with a complaint and 3 with praise.",
        "Not held against complaints: Text: it <b>fails</b>.",
        "collect 900 posts 820 posts repost 80",
    ):
        assert shown in said
    assert "without a phrase" not in said
    (source,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert base64.b64decode(source).decode() == TINT


def test_what_was_not_compared_is_said(tmp_path: Path) -> None:
    """Samples without a phrase, words that stand in for a model, a set that was not fetched."""
    found = analyzed(open_tasks=every_part("x")["open_tasks"])
    named = found.open_tasks.model_copy(update={"definition": {"instead_of": {"embedding": "<x>"}}})
    known = {"samples": 6, "open_tasks": named, "not_fetched": {"gone": "the Hub says <b>no</b>"}}
    found = found.model_copy(update=known)
    page = str(sections.build_analysis(run_data(tmp_path, SAMPLES[:1], analysis=found)))
    assert "3 samples without a phrase." in words(page)
    assert "Compared by words and letters, not by meaning: &lt;x&gt;." in page
    assert "Not fetched: gone: the Hub says &lt;b&gt;no&lt;/b&gt;" in page


@pytest.mark.parametrize("word", [WORDS[0], WORDS[2], WORDS[5]])
def test_words_of_posts_stay_words(tmp_path: Path, word: str) -> None:
    plain = re.findall(r"<(\w+)", _analysis(tmp_path, **every_part("tint")))
    harmful = re.findall(r"<(\w+)", _analysis(tmp_path, **every_part(word)))
    assert {"wbr", *harmful} == {"wbr", *plain}  # where a name may be broken


@given(st.text(st.characters(exclude_categories=())))
def test_text_stays_text(text: str) -> None:
    template = make_environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    parsed = Parsed(template.render(text=text))
    shown = UNPRINTABLE.sub(REPLACEMENT, text.replace("\r\n", "\n"))
    assert parsed.tags == [("p", {"title": shown})]
    assert parsed.words == shown == make_printable(text)
    shown.encode("utf-8")
    assert not {"\u202d", "\u202e", "\x00", "\x1b"} & set(shown)


NO_LINKS = [
    *(
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " https://example.org",
        "java\nscript:alert(1)",
    ),
    *("data:text/html,<script>1</script>", "//example.org/a", "ftp://example.org"),
    *("http:/example.org", "https://[broken", ""),
]


def test_only_the_web_is_linked() -> None:
    link = make_environment().get_template("parts.html.jinja").module.link  # type: ignore[attr-defined]
    for address in NO_LINKS:
        assert not is_web(address)
        assert [tag for tag, _ in Parsed(link(address, "x")).tags] == ["span"]
    ((tag, attributes),) = Parsed(link("https://example.org/a?b=1&c=2", "x")).tags
    assert (tag, attributes["href"]) == ("a", "https://example.org/a?b=1&c=2")
    assert set(str(attributes["rel"]).split()) == {"noreferrer", "noopener"}


def test_mean_colors_of_edits_alone(tmp_path: Path) -> None:
    images = ImageStore(tmp_path / "pictures")
    red, blue = images.put(image((200, 0, 0))), images.put(image((0, 0, 100), (400, 200)))
    samples = [
        ReportSample(id="e", split="image_to_image", prompt="x", inputs=(red,)),
        ReportSample(id="f", split="image_to_image", prompt="y", inputs=(red,)),
        ReportSample(id="t", split="text_to_image", prompt="z"),
    ]
    made = {("e", "bravo"): blue, ("f", "bravo"): red, ("t", "anole_two"): blue}
    outputs = {key: SavedOutput(digest, "ok") for key, digest in made.items()}
    written = write_report(run_data(tmp_path, samples, outputs), tmp_path / "report")
    said = words(written.path.read_text("utf-8"))
    assert "Inputs mean 200, 0, 0 · 2 images" in said
    assert "bravo mean 100, 0, 50 · 2 images" in said
    assert "anole_two mean" not in said


def test_hostile_words_make_no_element(tmp_path: Path) -> None:
    text = write_report(hostile_run(tmp_path), tmp_path / "report").path.read_text("utf-8")
    found = Parsed(text).tags
    assert not {"iframe", "object", "base"} & {tag for tag, _ in found}
    assert [tag for tag, _ in found].count("script") == 2
    assert not [name for _, kept in found for name in kept if name.startswith("on")]


def test_templates_hold_no_script_and_no_style() -> None:
    folder = Path(str(make_environment().get_template("page.html.jinja").filename)).parent
    for path in folder.iterdir():
        text = path.read_text("utf-8")
        assert not re.search(r"\s(on\w+|style|srcdoc)=", text), path.name
        assert not re.search(r"=\s*\{\{", text), path.name  # every attribute has its quotes
        safe = [one for one in re.findall(r"[^{}|]*\|\s*safe", text) if one.strip()]
        assert all('"<wbr>"' in one for one in safe), path.name


def test_systems_of_all_releases_stand_on_one_scale(tmp_path: Path) -> None:
    """What bridges alone link is hollow; a name of anybody's is text."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "sample_id": f"{release}{number}",
            "system": system,
            "judge": "jay",
            "rating": float(rng.integers(1, 9)) + gain,
            "release": release,
        }
        for release, systems in (
            ("old", {"gone": 0, "b1": 1, "b2": 2, "b3": 3}),
            ("new", {HOSTILE: 4, "b1": 1, "b2": 2, "b3": 3}),
        )
        for number in range(40)
        for system, gain in systems.items()
    ]
    scale = ruler(rows)
    assert scale.how["gone"] == "bridges"
    releases = (RulerRelease(name="old"), RulerRelease(name="new"))
    saved = SavedRuler(releases=releases, splits={"text_to_image": scale})
    read_back = SavedRuler.model_validate_json(saved.model_dump_json())
    data = run_data(tmp_path, SAMPLES, ruler=read_back)
    page = str(sections.build_sections(data, {}, {})["through-time"])
    assert page.count('class="hollow"') == 1 + 2  # in the legend, the chart and the table
    assert page.count('r="5"') == len(scale.strength)
    order = sorted(scale.strength, key=lambda name: -scale.strength[name])
    said = words(page)
    plain = [name for name in order if name != HOSTILE]
    places = [page.index(f"<bdi>{name}</bdi>") for name in plain]
    assert places == sorted(places)
    assert "5 systems of 2 releases, as new judges them" in said
    assert "no bend seen" in said or "did not keep their distances" in said
    assert HOSTILE not in page
    assert sections.build_through_time(run_data(tmp_path, SAMPLES)) is None


def test_success_by_tries_and_by_dollars(tmp_path: Path) -> None:
    """A line and a place for each system, in its color; a name of anybody's is text."""
    systems = {HOSTILE: 4, "bravo": 1, "free": 2}
    keys = [(one.id, name, draw) for one in SAMPLES for name in systems for draw in range(4)]
    rows = [
        {"sample_id": sample, "system": name, "draw": draw, "judge": "jay"}
        | {"rating": 9.0 if draw < systems[name] - (sample == "s00") else 2.0}
        for sample, name, draw in keys
    ]
    outputs = [
        {"sample_id": sample, "system": name, "draw": draw, "outcome": "ok"}
        | {"cost_usd": None if name == "free" else 0.25}
        for sample, name, draw in keys
    ]
    found = reliability(rows, outputs)
    saved = SavedReliability(result=found).model_dump(mode="json")
    drawn = results(SAMPLES, _ratings(1)).model_dump(mode="json", by_alias=True)
    drawn["details"]["text_to_image"]["reliability"] = saved
    data = run_data(tmp_path, SAMPLES, results=SavedResults.model_validate(drawn))
    page = str(sections.build_sections(data, {}, {})["reliability"])
    curves, prices = page.split("<h4>")[1:]
    assert (curves.count("<polyline"), prices.count('r="5"')) == (3, 2)  # nobody priced the free
    said = words(page)
    assert "bravo 24 % " in said.replace("\u2013", "-")
    assert "100 %" in said
    assert HOSTILE not in page
    assert "<script" not in page
    assert "free missing, or without an interval" in said
    drawn["details"]["text_to_image"]["reliability"] = {"missing": "no <b>rule</b>"}
    data = run_data(tmp_path, SAMPLES, results=SavedResults.model_validate(drawn))
    assert "Not known: no &lt;b&gt;rule" in str(sections.build_reliability(data))
    assert sections.build_reliability(run_data(tmp_path, SAMPLES)) is None


def test_an_axis_of_logarithms_holds_all_numbers_between_round_ones() -> None:
    for values in ([0.66, 1.42], [0.007], [0.001, 40.0], [3.0, 3.1]):
        scale, ticks = scale_logarithm(values)
        numbers = [float(label.replace(",", "")) for _, label in ticks]
        assert numbers[0] <= min(values) <= max(values) <= numbers[-1]
        assert 2 <= len(ticks) <= 8
        assert (ticks[0][0], ticks[-1][0]) == (0, 1)
        for at, label in ticks:
            value = float(label.replace(",", ""))
            assert scale.share(np.log10(value)) == pytest.approx(at)
