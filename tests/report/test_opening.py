"""The sentences that a report opens with: each figure in them is in the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from echo_hf.hub.run_tables import Uncertified
from echo_hf.judging.complaints import MissingThreads
from echo_hf.judging.results import SavedChoices, SavedFailureRate
from echo_hf.report.opening import build_opening, write_sentences
from echo_hf.report.run_data import ReportSample, RunData, UncheckedGroup
from echo_hf.scores.choices import ChoiceStrengths
from echo_hf.scores.sequential import Decisions
from echo_hf.systems.checks import Check, CheckStatus
from tests.report.run_data_for_tests import (
    MARK,
    SYSTEMS,
    Parsed,
    analysis,
    hostile_run,
    ratings_of,
    run_data,
)

SPLIT = "text_to_image"


def make_run(folder: Path, wins: int, of: int = 40, **values: Any) -> RunData:
    """Make a run in which the first system wins some samples, and loses the others."""
    samples = [ReportSample(id=f"s{at}", split=SPLIT, prompt="a boat") for at in range(of)]
    ratings = {
        sample.id: ratings_of(
            dict(zip(SYSTEMS, ([7], [5]) if at < wins else ([5], [7]), strict=True))
        )
        for at, sample in enumerate(samples)
    }
    return run_data(folder, samples, ratings=ratings, **values)


def read(data: RunData) -> list[str]:
    return [sentence.text for sentence in write_sentences(data)]


def test_a_lead_is_sure_where_the_tiers_say_so(tmp_path: Path) -> None:
    leaders, complaints, since = read(make_run(tmp_path, wins=36))
    assert leaders.startswith("anole_two is ahead in text to image (win rate 0.90, 0.")
    assert leaders.endswith(") and surely so, told apart from every other system.")
    assert "no rate says what anole_two fails at" in complaints
    assert "nothing says what changed" in since


def test_a_lead_within_a_tier_names_who_shares_it(tmp_path: Path) -> None:
    leaders, *_ = read(make_run(tmp_path, wins=22))
    assert leaders.endswith(") but not surely, as no test tells it apart from bravo.")


def test_a_lead_on_few_samples_gives_the_reason(tmp_path: Path) -> None:
    leaders, *_ = read(make_run(tmp_path, wins=3, of=4))
    assert "(win rate 0.75, no interval) but not surely: fewer than 10 samples" in leaders


def test_a_run_without_ratings_has_no_leader(tmp_path: Path) -> None:
    sentences = read(run_data(tmp_path, [ReportSample(id="s", split=SPLIT, prompt="a boat")]))
    assert sentences[0] == "No judge has rated an output yet, so nobody leads."
    assert "what a system fails at" in sentences[1]


@pytest.mark.parametrize(("judge", "is_named"), [("mira", True), ("other", False)])
def test_an_audit_counts_against_the_boards_judges_alone(
    tmp_path: Path, judge: str, is_named: bool
) -> None:
    leaders, *_ = read(make_run(tmp_path, wins=36, failures={judge: ("blank",)}))
    assert leaders.endswith("; every judge failed its audit.") == is_named


def test_a_board_without_certificates_is_named_as_such(tmp_path: Path) -> None:
    data = make_run(tmp_path, wins=36)
    flagged = {"pointwise": {"mira": Uncertified.NO_CERTIFICATE}}
    results = data.results.model_copy(update={"uncertified": flagged})
    leaders, *_ = read(replace(data, results=results))
    assert leaders.endswith("; no judge has a certificate that holds here.")
    assert "certificate" not in read(data)[0]


def test_a_board_from_choices_leads_with_strengths(tmp_path: Path) -> None:
    """Also where win rates by ratings would name another leader."""
    data = make_run(tmp_path, wins=4)
    assert "bravo is ahead" in read(data)[0]
    strengths = ChoiceStrengths(
        strength={"bravo": -0.5, "anole_two": 0.5},
        interval={"bravo": (-0.8, -0.2), "anole_two": (0.2, 0.8)},
        difference={},
        position=None,
        position_interval=None,
        tie=None,
        choices=80,
        samples=40,
        reasons={},
        definition={"judges": ["mira"]},
    )
    decided = (("anole_two", "bravo"),)
    choices = SavedChoices.model_construct(
        is_board=True,
        said="all pairs are decided",
        strengths=strengths,
        decisions=Decisions({}, {}, {}, decided, (), 0, 80, {}),
        tiers=(("anole_two",), ("bravo",)),
        by_people=None,
        missing=None,
    )
    split = data.results.details[SPLIT].model_copy(update={"choices": choices})
    chosen = replace(data, results=data.results.model_copy(update={"details": {SPLIT: split}}))
    leaders, *_ = read(chosen)
    assert leaders == (
        "anole_two is ahead in text to image (strength 0.50, 0.20 to 0.80) and surely so, told "
        "apart from every other system."
    )
    page = Parsed(str(build_opening(chosen)))
    board = page.words.partition("strength by choices between two")[2]
    assert board.index("anole_two") < board.index("bravo")


def make_check(name: str, status: CheckStatus = "kept") -> Check:
    words = {"title": name.capitalize(), "question": f"Is there a {name}?"}
    words |= {"counts_as_yes": f"A {name} is there.", "instructions": f"Look for a {name}."}
    return Check.model_validate({"name": name, "version": 1, "status": status, **words})


def test_the_complaint_that_most_outputs_of_the_leader_have(tmp_path: Path) -> None:
    """Rates of other systems, of checks that fell and without a value do not count."""
    data = make_run(tmp_path, wins=36)
    rates = [
        ("cast@1", "anole_two", 0.25),
        ("blur@1", "anole_two", 0.125),
        ("seam@1", "anole_two", None),
        ("halo@1", "anole_two", 0.75),
        ("blur@1", "bravo", 0.875),
    ]
    saved = tuple(
        SavedFailureRate(check=check, system=system, value=value, interval=(0.1, 0.4))
        for check, system, value in rates
    )
    split = data.results.details[SPLIT].model_copy(update={"checks": saved})
    results = data.results.model_copy(update={"details": {SPLIT: split}})
    checks = (*map(make_check, ("cast", "blur", "seam")), make_check("halo", "fell"))
    assert read(replace(data, results=results, checks=checks))[1] == (
        "Of what people complain about, anole_two fails most at “Cast”: 25 % (10 % to 40 %) of its "
        "outputs in text to image."
    )


def test_a_complaint_without_a_question_is_named_with_its_threads(tmp_path: Path) -> None:
    group = UncheckedGroup("misspelt text", 4, MissingThreads(18, 0))
    text = read(make_run(tmp_path, wins=36, unchecked=(group,)))[1]
    assert text.startswith("People complain most about “misspelt text” (4 threads), and no proven")


def test_what_is_new_since_the_release_before(tmp_path: Path) -> None:
    shift = {"distance": 0.2, "before": 50, "now": 40, "moved": []}
    moved = [{"name": "insert_object", "before": 5, "now": 12, "change": 0.2}]
    since = {
        "name": "lumen-2026-01",
        "target": "Lumen Image",
        "samples": 50,
        "shared": 30,
        "tasks": {**shift, "moved": moved},
        "first_bigrams": shift,
        "failures": shift,
    }
    *_, text = read(make_run(tmp_path, wins=36, analysis=analysis(since=since)))
    assert text == (
        "Since lumen-2026-01, 10 of 40 samples are new; insert object moved most, from 10 % to "
        "30 % of the tasks."
    )


def test_names_of_others_are_text(tmp_path: Path) -> None:
    page = Parsed(str(build_opening(hostile_run(tmp_path))))
    names = {name for _, attributes in page.tags for name in attributes}
    assert not any(name.startswith("on") for name in names)
    assert not {"script", "img", "iframe"} & {tag for tag, _ in page.tags}
    assert MARK in page.words
