"""Certificates of judges: what they are measured on, and which boards they stand for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset

from echo_hf.collect.takedown import TOMBSTONES_FILE, add_tombstones, hash_url
from echo_hf.engines.base import Completion, Request
from echo_hf.errors import ConfigError, EchoError, RunError
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import write_release
from echo_hf.hub.run_tables import Uncertified
from echo_hf.images.store import ImageStore
from echo_hf.judging.certificates import CertificateFile, read_certificates
from echo_hf.judging.certify import Certification, certify_judges
from echo_hf.judging.judge import judge
from echo_hf.judging.results import SavedResults
from echo_hf.judging.score import score
from echo_hf.scores.rating_table import IgnoredRating
from echo_hf.tables import HUMAN, OUTPUTS, SAMPLES
from tests.judging.judges_for_tests import (
    SYSTEMS,
    ScriptedJudge,
    config_of,
    drawn,
    images_of,
    judge_of,
    rated,
)
from tests.judging.run_for_tests import TARGET, called, output, root, sample, stripes, write

Row = dict[str, Any]
RANKED = tuple(f"ranked{number:02}" for number in range(30))
WORDS = tuple(f"word{number:02}" for number in range(12))
CALLS = 2 * len(RANKED) + 20  # every output once, and 20 a second time


def rank(name: str, better: str, rater: str = "ada") -> list[Row]:
    empty = dict.fromkeys(HUMAN.columns)
    return [
        {**empty, "sample_id": name, "rater": rater, "system": system, "rank": place}
        for place, system in enumerate(sorted(SYSTEMS, key=lambda name: name != better), 1)
    ]


@pytest.fixture
def ranked_release(tmp_path: Path) -> Path:
    """A release of which people prefer `amber`, in which `birch` drew darker images."""
    images = ImageStore(tmp_path / "set_images")
    outputs, human = list[Row](), list[Row]()
    for number, name in enumerate(RANKED):
        for place, system in enumerate(SYSTEMS):
            image = images.put(stripes((200 - 150 * place, number, 5)))
            outputs.append({**output(name, system, image=image), "draw": 0})
        human += [*rank(name, "amber"), *rank(name, "amber" if number % 3 else "birch", "ben")]
    tables = {
        "image_to_image": SAMPLES,
        "text_to_image": SAMPLES,
        "outputs": OUTPUTS,
        "human": HUMAN,
    }
    rows = {
        "image_to_image": [],
        "text_to_image": [sample(name, []) for name in RANKED],
        "outputs": outputs,
        "human": human,
    }
    configs = {
        name: Dataset(pa.Table.from_pylist(rows[name], table.features.arrow_schema))
        for name, table in tables.items()
    }
    write_release(tmp_path / "ranked", configs, images, ReleaseFacts("ranked", TARGET))
    return tmp_path / "ranked"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    drawn(tmp_path, words=WORDS)
    config_of(tmp_path, [judge_of(pairwise={"share": 1.0})])
    return tmp_path


def certify(folder: Path, place: Path | str, **options: Any) -> Certification:
    return certify_judges(folder / "evaluation.yaml", place, **options)


def see_brightness(folder: Path) -> dict[str, int]:
    """The digests of the set's images, with the rating of a judge that prefers bright ones."""
    images = ImageStore(folder / "set_images")
    ratings = {}
    for number in range(len(RANKED)):
        for place in range(len(SYSTEMS)):
            ratings[images.put(stripes((200 - 150 * place, number, 5)))] = 9 - 5 * place
    return ratings


def prefer_bright(folder: Path, *, sign: int = 1) -> ScriptedJudge:
    ratings = see_brightness(folder)

    def answer(request: Request) -> str:
        known = [ratings.get(digest, 5) for digest in images_of(request)]
        if len(known) == 2:
            is_first = sign * known[0] > sign * known[1]
            return f"I compared both. [[{'first' if is_first else 'second'}]]"
        return rated(known[0] if sign > 0 else 10 - known[0])

    return ScriptedJudge(answer).use()


def read_results(folder: Path) -> SavedResults:
    return SavedResults.read(score(folder / "evaluation.yaml", n_boot=10).path)


def test_a_judge_that_decides_as_people_do_is_certified_so(
    folder: Path, ranked_release: Path
) -> None:
    """People disagree on a third of the samples, which are ties of theirs."""
    scripted = prefer_bright(folder)
    certificate = certify(folder, ranked_release).certificates["mira"]
    for way in ("pointwise", "pairwise"):
        figures = certificate.accuracy[way]
        assert figures.without_ties.value == 1
        assert figures.with_ties.value == pytest.approx(20 / 30)
    assert (certificate.set.name, certificate.set.samples) == ("ranked", len(RANKED))
    assert certificate.people is not None
    assert certificate.people.with_ties.value == pytest.approx(20 / 30)
    assert certificate.follows_position is not None
    assert certificate.follows_position.value == 0
    assert certificate.repeats is not None
    assert (certificate.repeats.outputs, certificate.repeats.equal) == (20, 1)
    assert certificate.usd_per_1000 == {"pointwise": 250, "pairwise": 250}
    assert len(scripted.asked) == CALLS + 2 * len(RANKED)
    assert read_certificates(root(folder)) == {"mira": certificate}


def test_a_judge_against_people_is_certified_so(folder: Path, ranked_release: Path) -> None:
    prefer_bright(folder, sign=-1)
    certificate = certify(folder, ranked_release).certificates["mira"]
    assert certificate.accuracy["pointwise"].without_ties.value == 0
    assert certificate.accuracy["pointwise"].tau.value == -1


def test_a_second_certification_asks_nothing(folder: Path, ranked_release: Path) -> None:
    scripted = prefer_bright(folder)
    first = certify(folder, ranked_release).certificates["mira"]
    asked = len(scripted.asked)
    again = certify(folder, ranked_release).certificates["mira"]
    assert len(scripted.asked) == asked
    assert again == first  # the seconds that it took are those of the first time


def test_a_certificate_is_of_the_day_on_which_it_was_asked(
    folder: Path, ranked_release: Path
) -> None:
    scripted = prefer_bright(folder)
    first = certify(folder, ranked_release).certificates["mira"]
    old = first.model_copy(update={"day": "2026-01-02"})
    file = CertificateFile(judges={"mira": old})
    (root(folder) / "certificates.json").write_text(file.model_dump_json())
    assert certify(folder, ranked_release).certificates["mira"].day == "2026-01-02"
    asked = len(scripted.asked)
    again = certify(folder, ranked_release, again=True).certificates["mira"]
    assert len(scripted.asked) == 2 * asked
    assert again.day == first.day
    assert certify(folder, ranked_release).certificates["mira"] == again


def test_choices_have_a_certificate_of_their_own(folder: Path, ranked_release: Path) -> None:
    """A judge whose ratings are those of people, and whose choices are the opposite."""
    ratings = see_brightness(folder)

    def answer(request: Request) -> str:
        known = [ratings.get(digest, 5) for digest in images_of(request)]
        if len(known) == 2:
            return f"[[{'second' if known[0] > known[1] else 'first'}]]"
        return rated(known[0])

    ScriptedJudge(answer).use()
    certificate = certify(folder, ranked_release).certificates["mira"]
    accuracies = {way: certificate.build_facts(way).accuracy for way in certificate.accuracy}
    assert accuracies == {"pointwise": 1.0, "pairwise": 0.0}


def test_samples_of_forgotten_posts_are_shown_to_nobody(folder: Path, ranked_release: Path) -> None:
    scripted = prefer_bright(folder)
    forgotten = hash_url(f"https://example.org/{RANKED[0]}")
    add_tombstones(root(folder) / TOMBSTONES_FILE, [forgotten])
    certificate = certify(folder, ranked_release).certificates["mira"]
    assert certificate.set.samples == len(RANKED) - 1
    assert scripted.asked


def test_what_a_judge_did_not_answer_is_counted(folder: Path, ranked_release: Path) -> None:
    ratings = see_brightness(folder)

    def answer(request: Request) -> Completion | str:
        known = [ratings.get(digest, 5) for digest in images_of(request)]
        if len(known) == 1 and known[0] == 4 and not int(images_of(request)[0][:2], 16) % 4:
            return Completion(None, finish_reason="refusal")
        return "[[tie]]" if len(known) == 2 else rated(known[0])

    ScriptedJudge(answer).use()
    certificate = certify(folder, ranked_release).certificates["mira"]
    share = certificate.answered["pointwise"]
    assert 0.5 < share < 1
    assert (
        f"{100 * (1 - share):.0f} % without an answer"
        in certificate.build_facts("pointwise").summary
    )


def test_a_plan_asks_and_writes_nothing(folder: Path, ranked_release: Path) -> None:
    scripted = prefer_bright(folder)
    planned = certify(folder, ranked_release, dry_run=True)
    assert sum(plan.plan.calls for plan in planned.judging.plans) == 2 * len(RANKED) * 2 + 40
    assert not scripted.asked
    assert not planned.path.exists()


def test_a_spent_budget_leaves_the_earlier_certificate(folder: Path, ranked_release: Path) -> None:
    prefer_bright(folder)
    first = certify(folder, ranked_release, samples=24).certificates["mira"]
    done = certify(folder, ranked_release, budget_usd=1.0)
    assert done.judging.spent
    assert not done.certificates
    assert read_certificates(root(folder)) == {"mira": first}


def board(folder: Path) -> dict[str, Any]:
    judge(folder / "evaluation.yaml")
    return dict(read_results(folder).uncertified)


def test_a_board_names_a_judge_without_a_certificate(folder: Path, ranked_release: Path) -> None:
    prefer_bright(folder)
    assert board(folder) == {"pointwise": {"mira": Uncertified.NO_CERTIFICATE}}
    certify(folder, ranked_release)
    results = read_results(folder)
    assert results.uncertified == {"pointwise": {}}
    assert results.certificates["mira"].set.name == "ranked"
    (line,) = (line for line in results.trust if line.measure == "certificate")
    assert "mira, by ratings, decides as people do on 100 %" in line.said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "two"}, Uncertified.OTHER_MODEL),
        ({"server": "elsewhere.example"}, Uncertified.OTHER_PROVIDER),
        ({"decimals": True}, Uncertified.OTHER_PROMPT),
        ({"temperature": 0.7}, Uncertified.OTHER_OPTIONS),
    ],
)
def test_a_board_by_another_judge_than_the_certified_is_flagged(
    change: Row, reason: Uncertified, folder: Path, ranked_release: Path, monkeypatch: Any
) -> None:
    scripted = prefer_bright(folder)
    certify(folder, ranked_release)
    signature = {**scripted.signature(), **change}
    options = {"decimals": signature.pop("decimals")} if "decimals" in change else {}
    monkeypatch.setattr(ScriptedJudge, "signature", lambda _: signature)
    config_of(folder, [judge_of(pairwise={"share": 1.0}, **options)])
    assert board(folder) == {"pointwise": {"mira": reason}}


def test_the_worth_of_judges_travels_in_the_definition_of_figures(
    folder: Path, ranked_release: Path
) -> None:
    prefer_bright(folder)
    board(folder)
    certify(folder, ranked_release)
    (facts,) = {
        json.dumps(row.definition["certificates"], sort_keys=True)
        for row in read_results(folder).results
        if row.metric == "win_rate" and isinstance(row.definition, dict)
    }
    assert json.loads(facts)["mira"] | {"day": ""} == {
        "set": "ranked",
        "day": "",
        "samples": 30,
        "accuracy": 1.0,
        "people": pytest.approx(2 / 3),
    }


def ranks_file(folder: Path, names: Iterable[str] = WORDS) -> Path:
    path = folder / "ranks.jsonl"
    lines = [
        {"sample_id": name, "rater": "ada", "system": system, "rank": place}
        for name in names
        for place, system in enumerate(SYSTEMS, 1)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def always_alike(request: Request) -> str:
    return rated(7) if len(images_of(request)) == 1 else "No difference. [[tie]]"


def test_a_file_of_ranks_is_of_the_runs_own_outputs(folder: Path) -> None:
    ScriptedJudge(always_alike).use()
    done = certify(folder, ranks_file(folder, [*WORDS, "elsewhere"]))
    certificate = done.certificates["mira"]
    assert certificate.set.name == "ranks.jsonl"
    assert certificate.accuracy["pointwise"].pairs == len(WORDS)
    assert certificate.accuracy["pointwise"].ties.value == 1  # 7 for all
    assert certificate.people is None
    assert done.judging.left_out == {IgnoredRating.NO_OUTPUT: len(SYSTEMS)}


def test_people_who_decide_on_nothing_certify_nobody(folder: Path) -> None:
    """Nor do they take the place of an earlier certificate."""
    ScriptedJudge(always_alike).use()
    first = certify(folder, ranks_file(folder)).certificates
    ranks = pa.Table.from_pylist([{**row, "rank": 1} for name in WORDS for row in rank(name, "")])
    write(folder, HUMAN, ranks.to_pylist())
    done = certify(folder, folder / "evaluation.yaml")
    assert (done.certificates, done.refused) == ({}, ("mira",))
    assert read_certificates(root(folder)) == first


def test_a_run_in_which_people_ranked_is_a_set(folder: Path) -> None:
    ScriptedJudge(always_alike).use()
    write(folder, HUMAN, [row for name in WORDS for row in rank(name, "birch")])
    certificate = certify(folder, folder / "evaluation.yaml").certificates["mira"]
    assert certificate.set.samples == len(WORDS)


@pytest.mark.parametrize(
    ("place", "names", "problem"),
    [
        ("benchmark", WORDS, "people ranked nothing in 'lumen'"),
        ("ranks.jsonl", ["elsewhere"], "of 0 samples in 'ranks.jsonl' .* expected 10 or more"),
        ("ranks.jsonl", WORDS[:9], "of 9 samples in 'ranks.jsonl' .* expected 10 or more"),
        ("ranks2.jsonl", WORDS, "ranks2.jsonl' does not exist: expected a release"),
        ("lab/ranks.jsonl", WORDS, "does not exist"),
        ("fifo", WORDS, "fifo' is no regular file"),
    ],
)
def test_what_too_few_ranked_is_refused(
    place: str, names: list[str], problem: str, folder: Path
) -> None:
    scripted = ScriptedJudge().use()
    ranks_file(folder, names)
    os.mkfifo(folder / "fifo")
    with pytest.raises(RunError, match=problem):
        certify(folder, folder / place)
    assert not scripted.asked


def test_a_bad_row_of_a_file_is_named_as_agree_does(folder: Path) -> None:
    path = ranks_file(folder)
    path.write_text(path.read_text() + '{"sample_id": "word00", "rater": "ada", "rank": 1.5}\n')
    with pytest.raises(EchoError, match="row 25"):
        certify(folder, path)


def test_a_judge_without_the_rubric_of_boards_is_refused(
    folder: Path, ranked_release: Path
) -> None:
    config_of(folder, [judge_of(rubrics=["text_rendering"])])
    with pytest.raises(ConfigError, match="judge 'mira' does not rate by 'overall'"):
        certify(folder, ranked_release)


def test_a_judge_that_only_compares_is_certified_by_its_choices(
    folder: Path, ranked_release: Path
) -> None:
    scripted = prefer_bright(folder)
    config_of(folder, [judge_of(pairwise={"share": 1.0}, form="choice")])
    certificate = certify(folder, ranked_release).certificates["mira"]
    assert certificate.accuracy.keys() == {"pairwise"}
    assert certificate.repeats is None
    assert len(scripted.asked) == 2 * len(RANKED)


def test_the_command_shows_judges_beside_people(folder: Path, ranked_release: Path) -> None:
    prefer_bright(folder)
    page = called(folder, "audit", "--certify", ranked_release).output
    assert "agreement with 2 people on 30 samples of 2 systems, ranked" in page
    assert "people, with each other" in page


def test_options_of_the_other_audit_are_refused(folder: Path, ranked_release: Path) -> None:
    for options in (["--certify", ranked_release, "--pictures", "none"], ["--format", "jsonl"]):
        error = called(folder, "audit", *options).exception
        assert isinstance(error, ConfigError)
        assert "--certify" in str(error)


def test_a_damaged_file_of_certificates_is_one_line(folder: Path) -> None:
    (root(folder) / "certificates.json").write_text('{"judges": {"mira": {}}}')
    with pytest.raises(RunError, match="move it away, and certify the judges again"):
        read_certificates(root(folder))
