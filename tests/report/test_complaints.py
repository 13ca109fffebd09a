"""The section of what people complain about: questions, their proof, and rates of systems."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from echo_hf.builder.build import build
from echo_hf.builder.checks import check_complaints
from echo_hf.judging.judge import judge
from echo_hf.judging.results import SavedResults
from echo_hf.judging.score import score
from echo_hf.report.export import export
from echo_hf.report.report import report
from echo_hf.report.run_data import Thumbnail, read_run_data
from echo_hf.report.sections import build_complaints
from echo_hf.systems.evaluation_run import EvaluationRun
from tests.complaints_corpus import QUESTIONS, DrawnEyes, write_config, write_outputs, write_posts


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    DrawnEyes().use()
    folder = tmp_path_factory.mktemp("complaints")
    threads = {"colour cast": 30, "extra fingers": 30, "misspelt text": 4, "": 30}
    config = write_config(folder, [write_posts(folder, threads)])
    build(config)
    check_complaints(config)
    write_outputs(config)
    judge(config)
    score(config)
    return config


def read_sections(page: Path) -> dict[str, str]:
    text = page.read_text("utf-8").partition("<main")[2]
    return dict(re.findall(r'<div id="([a-z-]+)">(.*?)</section>', text, re.S))


def test_each_check_has_its_question_images_proof_and_rates(config: Path) -> None:
    section = read_sections(report(config).path)["complaints"]
    kept, fell = section.split("</article>")[:2]
    assert QUESTIONS["colour cast"][0] in kept
    assert QUESTIONS["extra fingers"][0] in fell
    for card in (kept, fell):
        for caption in ("complained about", "praised"):
            assert card.count(f"<figcaption>{caption}</figcaption>") == 2
    for system in ("amber", "birch"):
        assert f"<bdi>{system}</bdi>" in kept
        assert f"<bdi>{system}</bdi>" not in fell
    assert "77 of 100" in kept
    assert "J is below 0.3" in fell
    # What a question on the third failure would take: 22 threads less the 4 that there are.
    row = re.search(r"misspelt text</bdi></th>(.*?)</tr>", section)
    assert row is not None
    assert re.findall(r">(\d+)<", row[1]) == ["4", "18", "0"]


def test_a_check_is_no_metric_of_the_page_as_well(config: Path) -> None:
    sections = read_sections(report(config).path)
    assert "Colour cast" not in sections.get("metrics", "")


def test_flagged_samples_are_no_examples(config: Path) -> None:
    data = read_run_data(EvaluationRun.from_config(config))
    thumbnails = {digest: Thumbnail(digest, 1, 1) for digest in data.digests}
    check = next(check for check in data.checks if check.status == "kept")
    shown = str(build_complaints(replace(data, checks=(check,)), thumbnails))
    posted = {image: sample.id for sample in data.samples for image in sample.posted}
    first = {posted[digest] for digest in re.findall(r'src="([0-9a-f]{64})"', shown)}
    assert len(first) == 4
    flagged = tuple(
        replace(sample, flags=("personal_data",)) if sample.id in first else sample
        for sample in data.samples
    )
    again = str(build_complaints(replace(data, checks=(check,), samples=flagged), thumbnails))
    others = {posted[digest] for digest in re.findall(r'src="([0-9a-f]{64})"', again)}
    assert len(others) == 4
    assert not first & others


def test_tidy_rows_hold_each_certificate_and_rate(config: Path, tmp_path: Path) -> None:
    results = SavedResults.read(config.parent / "runs/lumen/results.json")
    made = export(config, tmp_path / "made", to="csv")
    assert {"checks.csv", "failure_rates.csv"} < set(made.files)
    with (made.path / "checks.csv").open(encoding="utf-8", newline="") as file:
        checks = {row["check"]: row for row in csv.DictReader(file, strict=True)}
    for check in results.checks:
        row, (proof,) = checks[check.check], check.certificates
        words = (check.title, check.question, check.status, check.reason or "", proof.judge)
        names = ("title", "question", "status", "reason", "judge")
        assert tuple(row[name] for name in names) == words
        assert (float(row["j"]), float(row["low"])) == (proof.j, proof.low)
        assert row["complaint_threads"] == str(proof.complaint_threads)
    with (made.path / "failure_rates.csv").open(encoding="utf-8", newline="") as file:
        rates = {(row["split"], row["system"]): row for row in csv.DictReader(file, strict=True)}
    expected = [(name, rate) for name, split in results.details.items() for rate in split.checks]
    assert len(rates) == len(expected) > 0
    for name, rate in expected:
        row = rates[name, rate.system]
        assert (row["check"], row["method"]) == (rate.check, rate.method)
        assert (float(row["value"]), float(row["raw"])) == (rate.value, rate.raw)


def test_what_a_model_wrote_is_text_on_the_page(config: Path) -> None:
    path = config.parent / "runs/lumen/checks/colour_cast.md"
    text = path.read_text("utf-8")
    path.write_text(text.replace("title: Colour cast", "title: 'Cast &amp; x'"), "utf-8")
    check_complaints(config)
    score(config)
    section = read_sections(report(config).path)["complaints"]
    assert "<bdi>Cast &amp;amp; x</bdi>" in section
