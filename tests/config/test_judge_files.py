"""Judges as files: which messages and patterns of answers are read, and which are refused."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.config.evaluation import JudgeConfig
from echo_hf.config.judge_files import MAX_SEARCHED_CHARACTERS, compile_answer, read_judge_file
from echo_hf.errors import ConfigError
from echo_hf.systems.benchmark import load_evaluation

RATING = {"form": "rating", "answer": r"score:\s*(?P<score>\d+)", "scale": [0, 25]}
CHOICE = {"form": "choice", "scale": None, "answer": "(?P<first>1)(?P<second>2)"}
MESSAGE = "{inputs}{output}\nHow well was this done? {prompt}"
ENGINE = {"kind": "openai", "model": "m"}
SCALAR_ENGINE = {"kind": "pooling", "model": "m"}


def write(folder: Path, message: str = MESSAGE, /, **fields: Any) -> Path:
    path = folder / "judge.md"
    path.write_text(f"---\n{yaml.safe_dump({**RATING, **fields})}---\n{message}\n", "utf-8")
    return path


def refuse(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_judge_file(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_message_is_split_at_its_placeholders_alone(tmp_path: Path) -> None:
    """Braces of JSON stay text."""
    file = read_judge_file(write(tmp_path, '{prompt} {"score": [1]} {inputs}{output}'))
    parts = [("prompt", True), (' {"score": [1]} ', False), ("inputs", True), ("output", True)]
    assert file.split_message() == parts


@pytest.mark.parametrize(
    ("message", "fields", "words"),
    [
        ("{output}{promt}", {}, "did you mean 'prompt'"),
        ("{output}", {}, "expected {prompt} or {task}"),
        ("{prompt}", {}, "expected {output} once"),
        ("{prompt}{output}{output}", {}, "expected {output} once"),
        ("{prompt}{output}{inputs}{inputs}", {}, "{inputs} once or not at all"),
        ("{prompt}{first}{second}", {}, "unknown placeholder 'first'"),
        (MESSAGE, {"answer": None}, "expected answer"),
        (MESSAGE, {"answer": r"\d+"}, r"answer '\d+' has no named group"),
        (MESSAGE, {"answer": "(?P<a>"}, "no regular expression"),
        (MESSAGE, {"answer": "(?P<a>.*?)x"}, "no lazy repeats"),
        (MESSAGE, {"answer": "(?P<a>x)(?=y)"}, "no groups but"),
        (MESSAGE, {"answer": r"(?P<a>x)(?P=a)"}, "no groups but"),
        (MESSAGE, {"answer": r"(?P<a>x)\1"}, "refers to a group"),
        (MESSAGE, {"answer": "(?P<a>x)" + "|y" * 9}, "10 alternatives"),
        (MESSAGE, {"answer": "(?P<a>x)" * 80}, "640 characters"),
        (MESSAGE, {"scale": [25, 0]}, "judge.md: scale is [25, 0]: expected the lowest first"),
        (MESSAGE, {"form": "scalar"}, "is of form scalar, which has no answer: leave it out"),
        (MESSAGE, {"choices": {"tie": "equal"}}, "is of form rating, which has no choices"),
        ("{prompt}{first}{second}", {"form": "choice"}, "form choice, which has no scale"),
        ("{prompt}{first}{second}", {**CHOICE, "answer": "(?P<a>x)"}, "with the group choice"),
        ("{prompt}{first}{second}", {**CHOICE, "decimals": True}, "which has no decimals"),
        ("{prompt}{first}{second}", {**CHOICE, "combine": "min"}, "which has no combine"),
        (MESSAGE, {"message": "x"}, "message: expected below the front matter"),
    ],
)
def test_refused_files_name_what_to_mend(
    tmp_path: Path, message: str, fields: dict[str, Any], words: str
) -> None:
    assert words in refuse(write(tmp_path, message, **fields))


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?P<a>(?:x|xx)*)y",
        r"(?P<a>(?:x*y|x){20})z",
        r"(?P<a>(?:\d+,\s*){3}\d+)" + r"x*y?" * 12,
        r"(?P<a>[^y]*[^y]*[^y]*)y",
        r"(?P<a>x{1,500}x{1,500}x{1,500})y",
        r"(?P<a>(?:(?:x?){50}){40})y",
    ],
)
def test_no_accepted_pattern_searches_for_long(pattern: str) -> None:
    """Some of them would take years on this text with repeats that give back."""
    start = time.monotonic()
    assert compile_answer(pattern).search("x" * MAX_SEARCHED_CHARACTERS) is None
    assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?P<a>(?:(?:x?){500}){500}y)",
        r"(?P<a>(?:(?:(?:x?){200}){200}){200}y)",
        r"(?P<a>(?:x+x+)+)y",
        r"(?P<a>(?:x*)*)y",
        r"(?P<a>(?:x*y|x)*)z",  # cubic, although no repeat gives back
        r"(?P<a>(?:(?:x?){1,}){500})y",
        r"(?P<a>(?:x?){300000})y",
    ],
)
def test_repeats_of_repeats_are_refused_at_once(pattern: str) -> None:
    start = time.monotonic()
    with pytest.raises(ValueError, match="repeats too often"):
        compile_answer(pattern)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r'"score"\s*:\s*\[\s*(?P<a>\d+)\s*,\s*(?P<b>\d+)\s*\]', 'so "Score" : [ 3,14 ]'),
        (r"[*+?{}\]]{2}(?P<a>\d{1,2})\+?", "*]12+"),
        (r"\[\[(?P<a>\d+)\]\]|\((?P<b>\d)\)", "[[10]]"),
    ],
)
def test_accepted_patterns_find_what_plain_ones_do(pattern: str, text: str) -> None:
    plain = re.search(pattern, text, re.IGNORECASE)
    own = compile_answer(pattern).search(text)
    assert plain is not None
    assert own is not None
    assert own.groupdict() == plain.groupdict()


def test_config_holds_the_file_and_finds_it_beside_itself(tmp_path: Path) -> None:
    write(tmp_path)
    judge = {"name": "mira", "engine": ENGINE, "judge_file": "judge.md"}
    config = {"name": "lumen", "benchmark": "org/lumen@1", "judges": [judge]}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    (loaded,) = load_evaluation(path).judges
    assert loaded.judge_file == read_judge_file(tmp_path / "judge.md")
    assert JudgeConfig.model_validate(loaded.model_dump(mode="json")) == loaded
    path.write_text(yaml.safe_dump({**config, "protocol": "published"}))
    with pytest.raises(ConfigError, match="protocol 'published' does not know"):
        load_evaluation(path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"form": "choice"}, "form is 'choice', and judge_file is of form 'rating'"),
        ({"scale": [0, 4]}, "a judge_file and scale"),
        ({"mode": "structured"}, "a judge_file and mode: structured"),
        ({"rubrics": ["overall", "reference"]}, "expected [overall]"),
        ({"judge_file": None, "form": "scalar", "decimals": True}, "form 'scalar' and decimals"),
        ({"judge_file": "no.md"}, "does not exist: expected a text file"),
        ({"engine": {**SCALAR_ENGINE, "route": "score"}}, "words and then one image"),
    ],
)
def test_what_contradicts_a_file_is_refused(
    tmp_path: Path, fields: dict[str, Any], words: str
) -> None:
    known = {"name": "mira", "engine": ENGINE, "judge_file": str(write(tmp_path))}
    with pytest.raises(ValueError, match=re.escape(words)):
        JudgeConfig.model_validate({**known, **fields})


@pytest.mark.parametrize(
    ("fields", "work"),
    [
        ({}, ["rate", "compare", "answer"]),
        ({"form": "choice"}, ["compare"]),
        ({"form": "scalar"}, ["rate"]),
    ],
)
def test_form_says_what_a_judge_can_do(fields: dict[str, Any], work: list[str]) -> None:
    judge = JudgeConfig.model_validate({"name": "mira", "engine": SCALAR_ENGINE, **fields})
    assert [name for name in ("rate", "compare", "answer") if judge.can_do(name)] == work


def test_error_in_a_file_names_it_once_and_shows_its_pattern_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, MESSAGE, answer=r"(?P<a>\d+")
    known = {"name": "mira", "engine": ENGINE}
    config = {"name": "lumen", "benchmark": "org/lumen@1"}
    for name, words in (
        ("judge.md", r"answer '(?P<a>\d+' is no regular expression: missing ), "),
        ("no.md", "does not exist: expected a text file"),
    ):
        judges = [{**known, "judge_file": name}]
        (tmp_path / "config.yaml").write_text(yaml.safe_dump({**config, "judges": judges}))
        with pytest.raises(ConfigError) as caught:
            load_evaluation(tmp_path / "config.yaml")
        assert str(caught.value).count(str(path.with_name(name))) == 1
        assert f"judges.0.judge_file is {str(path.with_name(name))!r}: {words}" in str(caught.value)


@pytest.mark.parametrize(
    ("message", "system", "is_fit"),
    [
        ("{task}{inputs}{output}", None, True),
        ("{inputs}{prompt}\n{output}\n", None, True),
        ("{inputs}{output}\n{prompt}", None, False),
        ("{task}{output}{inputs}", None, False),
        ("{task}{inputs}{output}", "Be fair.", False),
    ],
)
def test_route_score_takes_words_and_then_the_output(
    tmp_path: Path, message: str, system: str | None, is_fit: bool
) -> None:
    fields = {"form": "scalar", "answer": None, "scale": None, "system": system}
    file = str(write(tmp_path, message, **fields))
    judge = {"name": "reward", "judge_file": file, "engine": {**SCALAR_ENGINE, "route": "score"}}
    if is_fit:
        assert JudgeConfig.model_validate(judge).answer_form == "scalar"
    else:
        with pytest.raises(ValueError, match="expected a judge_file without system that ends with"):
            JudgeConfig.model_validate(judge)
    no_file = {"name": "reward", "form": "scalar", "engine": judge["engine"]}
    with pytest.raises(ValueError, match="expected a judge_file without system"):
        JudgeConfig.model_validate(no_file)
