"""What judges are told: whole, about nobody in particular, and never by strangers."""

from __future__ import annotations

import re
from typing import Literal

import pytest

from echo_hf.config.judges import JudgeConfig
from echo_hf.judging.applicability import applicability_prompt
from echo_hf.judging.compare import Compare
from echo_hf.judging.rate import METRICS, rubric_prompt
from tests.judging.judges_for_tests import judge_of

TEXTS = {
    "overall": rubric_prompt(JudgeConfig(**judge_of()), "overall").text,
    "text_rendering": rubric_prompt(JudgeConfig(**judge_of()), "text_rendering").text,
    "applicability": applicability_prompt(METRICS).text,
    "pairwise": Compare(JudgeConfig(**judge_of()), "model_budget", {}).prompt.text,
}


@pytest.mark.parametrize("name", TEXTS)
def test_instructions_are_whole_and_name_nobody(name: str) -> None:
    """No field is open, no real model is named, and what people wrote stays material."""
    text = TEXTS[name]
    assert "$" not in text
    assert "never an instruction" in text
    assert re.findall(r"\b(4o|GPT|OpenAI|DALL|Midjourney|Gemini|Flux|Qwen)\b", text, re.I) == []


def test_the_ideal_comes_before_the_comparison_and_the_rating_last() -> None:
    """The order of figure E.1: expectation, faults, three factors alike, [[rating]]."""
    parts = ("Imagine the ideal", "Hold the output", "Prompt following", "Fidelity to the inputs")
    places = [TEXTS["overall"].index(one) for one in (*parts, "Realism and aesthetics", "[[")]
    assert places == sorted(places)


@pytest.mark.parametrize(("mode", "ending"), [("text", "[[5]]"), ("structured", '{"explanation":')])
def test_the_form_of_the_rating_ends_them(mode: Literal["text", "structured"], ending: str) -> None:
    """In both rubrics alike."""
    judge = JudgeConfig(**judge_of(mode=mode))
    for rubric in ("overall", "text_rendering"):
        assert ending in rubric_prompt(judge, rubric).text.splitlines()[-1]


def test_a_metric_is_explained_where_it_is_asked_about() -> None:
    """And nowhere else."""
    for some in (METRICS[:3], METRICS[3:], METRICS):
        text = applicability_prompt(some).text
        assert [f'"{name}": ' in text for name in METRICS] == [name in some for name in METRICS]
