"""The section of what people complain about: questions, their proof, and rates of systems."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from echo_hf.builder.build import build
from echo_hf.builder.checks import check_complaints
from echo_hf.judging.judge import judge
from echo_hf.judging.score import score
from echo_hf.report.report import report
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
    parts = re.findall(r'<section id="([a-z-]+)".*?</section>', page.read_text("utf-8"), re.S)
    text = page.read_text("utf-8")
    return {
        name: text[text.index(f'<section id="{name}"') :].partition("</section>")[0]
        for name in parts
    }


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


def test_what_a_model_wrote_is_text_on_the_page(config: Path) -> None:
    path = config.parent / "runs/lumen/checks/colour_cast.md"
    text = path.read_text("utf-8")
    path.write_text(text.replace("title: Colour cast", "title: 'Cast &amp; x'"), "utf-8")
    check_complaints(config)
    score(config)
    section = read_sections(report(config).path)["complaints"]
    assert "<bdi>Cast &amp;amp; x</bdi>" in section
