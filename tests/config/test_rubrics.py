"""Rubrics: Markdown files with front matter, and what judges are told by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.config.evaluation import JudgeConfig
from echo_hf.config.rubrics import RUBRICS, Rubric, read_rubric
from echo_hf.errors import ConfigError
from echo_hf.judging.rate import adapt_rubric, fill_rubric_prompt
from echo_hf.systems.benchmark import load_evaluation

FINGERS = """---
name: fingers
title: Malformed hands
answer: yes_no
better: lower
question: Somebody's hands are to be seen.
---
Look at each hand. Has one of them too many fingers, or too few?
"""
JUDGE: dict[str, Any] = {"name": "mira", "engine": {"kind": "rules"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "fingers.md"
    path.write_text(FINGERS, "utf-8")
    return path


def config_of(folder: Path, **more: Any) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({"name": "lumen", "benchmark": "org/lumen@1", **more}))
    return path


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_evaluation(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_front_matter_and_instructions(file: Path) -> None:
    rubric = read_rubric(file)
    assert (rubric.name, rubric.label, rubric.answer) == ("fingers", "Malformed hands", "yes_no")
    assert (rubric.better, rubric.sees_inputs, rubric.scale) == ("lower", True, None)
    assert rubric.instructions == FINGERS.rpartition("---\n")[2].strip()


@pytest.mark.parametrize(("mode", "form"), [("text", "[[yes]]"), ("structured", '"answer"')])
def test_the_form_of_the_answer_comes_last_or_where_it_belongs(mode: str, form: str) -> None:
    judge = JudgeConfig(**JUDGE, mode=mode)
    told = {}
    for text in ("Look.", "Look.\n$form\nBe brief."):
        rubric = Rubric(name="fingers", answer="yes_no", instructions=text)
        told[text] = fill_rubric_prompt(judge, rubric).text
    last, inside = told.values()
    assert form in last.partition("Look.\n\n")[2]
    assert inside.startswith("Look.\n")
    assert form in inside.removesuffix("Be brief.")
    assert inside.endswith("\nBe brief.")


def test_a_judge_may_have_a_scale_of_its_own() -> None:
    rubric = Rubric(name="sharpness", scale=(0, 4), instructions="Look.")
    assert "from 0 (worst) to 4 (best)" in fill_rubric_prompt(JudgeConfig(**JUDGE), rubric).text
    own = JudgeConfig(**JUDGE, scale=(1, 7))
    assert "from 1 (worst) to 7 (best)" in fill_rubric_prompt(own, rubric).text


def test_those_of_echo_hf_have_the_form_in_their_text() -> None:
    assert {"overall", "reference", "text_rendering"} <= set(RUBRICS.list_names())
    for name in RUBRICS.list_names():
        rubric = RUBRICS.find(name)
        assert rubric.name == name
        assert "$form" in rubric.instructions


def test_a_config_names_files_and_keeps_their_content(file: Path) -> None:
    judge = {**JUDGE, "rubrics": ["overall", "fingers"]}
    config = load_evaluation(config_of(file.parent, judges=[judge], rubrics=["fingers.md"]))
    assert config.find_rubric("fingers") == read_rubric(file)
    again = config_of(file.parent, **config.model_dump(mode="json", exclude={"name", "benchmark"}))
    file.unlink()
    assert load_evaluation(again).rubrics == config.rubrics


def test_a_prompt_file_takes_the_same_front_matter(tmp_path: Path) -> None:
    own = tmp_path / "own.md"
    own.write_text("---\nscale: [0, 100]\nsees_inputs: false\n---\nBe strict.\n")
    judge = JudgeConfig(**JUDGE, prompt_file=own)
    rubric = adapt_rubric(judge, RUBRICS.find("overall"))
    assert (rubric.name, rubric.scale, rubric.sees_inputs) == ("overall", (0, 100), False)
    assert fill_rubric_prompt(judge, rubric).text.startswith("Be strict.\n\nWrite your")
    own.write_text("---\nscale: null\nanswer: yes_no\n---\nBe strict.\n")
    with pytest.raises(ConfigError, match=r"own.md' is of name 'overall' and answer 'yes_no'"):
        adapt_rubric(judge, RUBRICS.find("overall"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("---\nname", "name", "fingers.md: expected front matter, which begins with a line of ---"),
        ("answer: yes_no", "answer: perhaps", "answer is 'perhaps': input should be 'rating' or"),
        ("answer: yes_no", "answer: [", "front matter: "),
        ("better: lower", "beter: lower", "unknown key 'beter'; did you mean 'better'?"),
        ("better: lower", "scale: [1, 5]", "has answer yes_no and a scale: expected one of them"),
        ("better: lower", "splits: [image_to_image]", "has splits and question: expected one"),
        ("better: lower", "instructions: hello", "instructions: expected below the front matter"),
        ("name: fingers", "name: ../fingers", "name is '../fingers': expected a name of"),
        ("name: fingers", "name: overall", "the name 'overall' is taken"),
        ("name: fingers", "name: color_shift", "the name 'color_shift' is taken"),
        ("name: fingers", "name: rationale", "the name 'rationale' is taken"),
        (FINGERS.rpartition("---\n")[2], " ", "instructions is ' '"),
    ],
)
def test_a_mistake_is_one_line(file: Path, old: str, new: str, words: str) -> None:
    file.write_text(FINGERS.replace(old, new), "utf-8")
    assert words in refused(config_of(file.parent, rubrics=["fingers.md"]))


def test_no_other_rubric_is_asked_by(file: Path) -> None:
    judge = {**JUDGE, "rubrics": ["overall", "finger"]}
    message = refused(config_of(file.parent, judges=[judge], rubrics=["fingers.md"]))
    assert "judge 'mira': unknown rubric 'finger'; did you mean 'fingers'?" in message


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 500_000, None])
def test_only_a_file_of_text_is_read(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "fingers.md").write_bytes(content)
    message = refused(config_of(tmp_path, rubrics=["fingers.md"]))
    reason = "does not exist" if content is None else "cannot be used"
    assert f"fingers.md' {reason}: expected a text file" in message
