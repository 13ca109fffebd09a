"""Judges that give numbers without words, and judges from a file, in a whole run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.config.evaluation import read_judge, shipped_judges
from echo_hf.config.judge_files import JudgeFile
from echo_hf.engines.base import Request, Text, register
from echo_hf.errors import ConfigError
from echo_hf.judging.audit import audit
from echo_hf.judging.judge import judge, judge_pairs
from echo_hf.judging.score import score
from echo_hf.judging.verdicts import read_file_choice, read_file_rating, read_scalar
from echo_hf.scores.rating_table import Unrated
from tests.judging.judges_for_tests import (
    EDITS,
    SAMPLES,
    ScriptedJudge,
    config_of,
    images_of,
    judge_of,
    rated,
    rows_of,
)
from tests.judging.run_for_tests import root

KIND = "scripted_scalars"
SCALAR: dict[str, Any] = {"form": "scalar", "engine": {"kind": KIND}}
RATING_FILE = """---
form: rating
answer: '"score"\\s*:\\s*\\[\\s*(?P<done>\\d+)\\s*,\\s*(?P<kept>\\d+)\\s*\\]'
scale: [0, 25]
combine: min
---
{inputs}{output}
Rate as {"score": [done, kept]}. The words: {prompt}
"""
CHOICE_FILE = """---
form: choice
system: You compare.
answer: '(?P<choice>image [12]|equal)'
choices: {first: Image 1, second: Image 2, tie: Equal}
---
{task}{first}{second}
"""


class ScalarEngine(ScriptedJudge):
    """An engine that gives numbers without words."""

    gives_scalars = True

    def use(self, kind: str = KIND) -> ScalarEngine:
        engine = self

        class Factory:
            gives_scalars = True

            def __new__(cls, **_: Any) -> Any:
                return engine

        register(kind)(Factory)
        return engine


def texts_of(request: Request) -> list[str]:
    parts = request.messages[-1].parts
    return [part.text if isinstance(part, Text) else "image" for part in parts]


def rate(folder: Path, **options: Any) -> Any:
    return judge(folder / "evaluation.yaml", runs=folder / "runs", **options)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("-0.25", -0.25),
        ("3", 3.0),
        ("NaN", Unrated.NO_FINITE_NUMBER),
        ("Infinity", Unrated.NO_FINITE_NUMBER),
        ("1e999", Unrated.NO_FINITE_NUMBER),
        ("true", Unrated.NO_RATING),
        ("[1]", Unrated.NO_RATING),
        ("about 3", Unrated.NO_RATING),
    ],
)
def test_scalar_is_a_finite_number_or_has_a_reason(text: str, number: float | Unrated) -> None:
    assert read_scalar(text) == number


@pytest.mark.parametrize(
    ("text", "combine", "rating"),
    [
        ('{"score": [20, 10]}', "mean", 15.0),
        ('{"score": [20, 10]}', "min", 10.0),
        ('<think>"score": [1, 1]</think> "score" : [25,0]', "mean", 12.5),
        ('"score": [20, 10] and again "score": [20, 10]', "min", 10.0),
        ('"score": [20, 10], no, "score": [2, 1]', "min", Unrated.AMBIGUOUS),
        ('"score": [26, 10]', "min", Unrated.BEYOND_SCALE),
        ('"score": [2]', "min", Unrated.NO_RATING),
        ('"score": [2, 1]' + " " * 9_000, "min", Unrated.NO_RATING),
    ],
)
def test_rating_of_a_file_is_read_by_its_pattern(text: str, combine: str, rating: object) -> None:
    fields = yaml.safe_load(RATING_FILE.split("---")[1])
    file = JudgeFile.model_validate({**fields, "combine": combine, "message": "{prompt}{output}"})
    assert read_file_rating(text, file) == rating


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("Image  1 is crisper", Unrated.NO_CHOICE),
        ("I take image 2.", "second"),
        ("EQUAL", "tie"),
        ("image 1, or image 2", Unrated.TWO_CHOICES),
    ],
)
def test_choice_of_a_file_is_a_word(text: str, choice: object) -> None:
    fields = yaml.safe_load(CHOICE_FILE.split("---")[1])
    file = JudgeFile.model_validate({**fields, "message": "{prompt}{first}{second}"})
    assert read_file_choice(text, file) == choice


@pytest.mark.parametrize(
    ("text", "choice"),
    [("3.5 to 3.25", "first"), ("-1 to 0", "second"), ("2 to 2.0", "tie"), ("2 to", None)],
)
def test_choice_of_a_file_is_the_higher_number(text: str, choice: str | None) -> None:
    answer = r"(?P<first>-?[\d.]+) to (?P<second>-?[\d.]+)"
    file = JudgeFile(form="choice", answer=answer, message="{prompt}{first}{second}")
    assert read_file_choice(text, file) == (choice or Unrated.NO_CHOICE)


def test_scalars_are_kept_as_they_are_and_ranked(folder: Path) -> None:
    """Numbers closer than the width of a tie still differ, and none is averaged with a rating."""
    judges = [judge_of("mira"), judge_of("nova", **SCALAR)]
    config_of(folder, judges)
    ScriptedJudge(lambda _: rated(7)).use()
    made = {row["image"]: row["system"] for row in rows_of(folder, "outputs")}

    def answer(request: Request) -> str:
        return repr(-3.0 + 1e-9 * (made[images_of(request)[-1]] == "birch"))

    engine = ScalarEngine(answer).use()
    rate(folder)
    rows = [row for row in rows_of(folder) if row["judge"] == "nova"]
    assert {(row["system"], row["rating"]) for row in rows} == {
        ("amber", -3.0),
        ("birch", -3.0 + 1e-9),
    }
    for row in rows:
        made_by = json.loads(row["provenance"])["judge"]
        assert (made_by["form"], made_by["scale"], row["rubric"]) == ("scalar", None, "overall")
    assert {request.max_tokens for request in engine.asked} == {1}
    assert all(request.answer is None for request in engine.asked)
    assert not any("$form" in message.parts[0].text for message in engine.asked[0].messages[:1])
    score(folder / "evaluation.yaml", runs=folder / "runs")
    results = json.loads((root(folder) / "results.json").read_text())
    rates = {
        row["system"]: row["value"] for row in results["results"] if row["metric"] == "win_rate"
    }
    assert rates == {"amber": 0.0, "birch": 1.0}
    for split in results["details"].values():
        assert "mean_rating" not in {
            board["vote"] for board in split["win_rate"]["sensitivity"]["boards"]
        }


def test_numbers_that_are_none_have_a_reason_and_are_asked_again(folder: Path) -> None:
    config_of(folder, [judge_of(**SCALAR)])
    engine = ScalarEngine(lambda _: "NaN").use()
    rate(folder, keep_going=True)
    assert {(row["rating"], row["outcome"]) for row in rows_of(folder)} == {
        (None, "no_finite_number")
    }
    before = len(engine.asked)
    engine.says = lambda _: "0.5"
    rate(folder, again=True)
    assert {row["rating"] for row in rows_of(folder)} == {0.5}
    assert len(engine.asked) > before


def test_file_decides_message_and_reading(folder: Path) -> None:
    (folder / "judge.md").write_text(RATING_FILE)
    config_of(folder, [judge_of(judge_file="judge.md")])
    engine = ScriptedJudge(lambda _: '{"reasoning": "fine", "score": [20, 8]}').use()
    rate(folder)
    assert {(row["rating"], row["outcome"]) for row in rows_of(folder)} == {(8.0, "ok")}
    for request in engine.asked:
        (message,) = request.messages  # no system message, where the file has none
        *images, words = texts_of(request)
        assert message.role == "user"
        assert set(images) == {"image"}
        assert words.startswith('\nRate as {"score": [done, kept]}. The words: draw ')
    assert sorted(len(request.images) for request in engine.asked[:1]) == [2]
    scales = {tuple(json.loads(row["provenance"])["judge"]["scale"]) for row in rows_of(folder)}
    assert scales == {(0.0, 25.0)}
    asked = len(engine.asked)
    rate(folder)
    assert len(engine.asked) == asked
    (folder / "judge.md").write_text(RATING_FILE.replace("combine: min", "combine: mean"))
    rate(folder)  # the same messages: what was answered is read in the new way
    assert {row["rating"] for row in rows_of(folder)} == {14.0}
    assert len(engine.asked) == asked


def test_words_of_a_task_are_never_taken_for_placeholders(folder: Path) -> None:
    (folder / "judge.md").write_text(RATING_FILE.replace("{prompt}", "{prompt} {task}"))
    config_of(folder, [judge_of(judge_file="judge.md")])
    engine = ScriptedJudge(lambda _: '"score": [1, 1]').use()
    rate(folder)
    for request in engine.asked:
        assert texts_of(request)[-1].count("<task>") == 1


def test_trial_shows_the_pattern_as_it_is_written(folder: Path) -> None:
    (folder / "judge.md").write_text(RATING_FILE)
    config_of(folder, [judge_of(judge_file="judge.md")])
    ScriptedJudge(lambda _: "fine").use()
    (trial,) = rate(folder, tries=1).trials
    pattern = yaml.safe_load(RATING_FILE.split("---")[1])["answer"]
    assert trial.wanted == f"an answer that fits {pattern}"


def test_words_of_people_that_are_not_quoted_are_told_of(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ScriptedJudge(lambda _: '"score": [1, 1]').use()
    for placeholder, is_raw in (("{task}", False), ("{prompt}", True)):
        (folder / "judge.md").write_text(RATING_FILE.replace("{prompt}", placeholder))
        config_of(folder, [judge_of(judge_file="judge.md")])
        rate(folder, dry_run=True)
        assert ("shows people's words as they are" in caplog.text) is is_raw


def test_shipped_judges_quote_the_words_of_people() -> None:
    """A judge is told what a post says between delimiters that it cannot imitate."""
    files = [file for path in shipped_judges() if (file := read_judge(path).judge_file)]
    assert files
    assert not any(file.shows_raw_words for file in files)


def test_judge_that_chooses_compares_and_rates_nothing(folder: Path) -> None:
    (folder / "judge.md").write_text(CHOICE_FILE)
    fields = {"judge_file": "judge.md", "pairwise": {"share": 1}}
    config_of(folder, [judge_of(**fields), judge_of("nova", **SCALAR)])
    ScalarEngine().use()
    engine = ScriptedJudge(lambda _: "Image 1").use()
    judge_pairs(folder / "evaluation.yaml", runs=folder / "runs")
    rows = rows_of(folder, "comparisons")
    assert {(row["judge"], row["order"], row["winner"]) for row in rows} == {
        ("mira", "ab", "a"),
        ("mira", "ba", "b"),
    }
    assert len(rows) == 2 * len(SAMPLES)
    system, user = engine.asked[0].messages
    assert system.parts == (Text("You compare."),)
    assert isinstance(user.parts[0], Text)
    assert [texts_of(request)[1:] for request in engine.asked] == [["image", "image"]] * len(rows)
    with pytest.raises(ConfigError, match="form 'choice' with a judge_file, which rates no single"):
        rate(folder, judges=["mira"])
    with pytest.raises(ConfigError, match="form 'scalar', which compares no two outputs"):
        judge_pairs(folder / "evaluation.yaml", runs=folder / "runs", judges=["nova"])
    config_of(folder, [judge_of(**fields)])
    with pytest.raises(ConfigError, match="echo-hf judge --pairwise"):
        rate(folder)


def test_form_and_engine_have_to_fit(folder: Path) -> None:
    config_of(folder, [judge_of(form="scalar")])
    ScriptedJudge().use()
    with pytest.raises(ConfigError, match="expected an engine such as pooling or scalar_head"):
        rate(folder)
    config_of(folder, [judge_of(kind=KIND)])
    ScalarEngine().use()
    with pytest.raises(ConfigError, match="expected form: scalar"):
        rate(folder)


@pytest.mark.parametrize("size", [1.0, 1e-7])
def test_audit_holds_scalars_to_the_spread_of_real_outputs(folder: Path, size: float) -> None:
    """Of real outputs from 0 to 1, a blank at -1 passes, and one at 1 does not."""
    config_of(folder, [judge_of(**SCALAR)])
    shown = {row["image"]: row["sample_id"] for row in rows_of(folder, "outputs")}
    numbers = {name: at / (len(SAMPLES) - 1) for at, name in enumerate(SAMPLES)}
    given = {"blank": -1.0}

    def answer(request: Request) -> str:
        image = images_of(request)[-1]
        words = "".join(texts_of(request))
        own = shown.get(image)
        if own is None or f"draw {own}" not in words:
            return repr(size * given["blank"])
        return repr(size * numbers[own])

    ScalarEngine(answer).use()
    options: dict[str, Any] = {"runs": folder / "runs"}
    (done,) = audit(folder / "evaluation.yaml", **options).judges.values()
    assert done["scale"] is None
    assert (done["checks"]["blank"]["passed"], done["checks"]["renamed"]["share"]) == (True, 1)
    given["blank"] = 1.0
    (done,) = audit(folder / "evaluation.yaml", again=True, **options).judges.values()
    assert "blank" in done["failed"]


def test_audit_of_a_judge_with_one_number_is_open(folder: Path) -> None:
    config_of(folder, [judge_of(**SCALAR)])
    ScalarEngine(lambda _: "0.5").use()
    (done,) = audit(folder / "evaluation.yaml", runs=folder / "runs").judges.values()
    assert done["failed"] == []
    assert {check["reason"] for name, check in done["checks"].items() if check["rated"] > 4} == {
        "one_number"
    }
    assert EDITS


def test_file_that_echo_hf_brings_reads_what_its_authors_say(folder: Path) -> None:
    """Two numbers from 0 to 25 in a list after the reasons; the lower one counts."""
    (path,) = (path for path in shipped_judges() if path.stem == "unifiedreward_edit_9b")
    file = read_judge(path).judge_file
    assert file is not None
    answer = '{\n\n"reasoning" : "The hat is red, the sky too.",\n"score" : [22, 17.5],\n}'
    assert read_file_rating(answer, file) == 17.5
    assert read_file_rating(answer.replace("22", "26"), file) is Unrated.BEYOND_SCALE
    config_of(folder, [judge_of(judge_file=str(path.with_suffix(".md")))])
    engine = ScriptedJudge(lambda _: answer).use()
    rate(folder)
    assert {row["rating"] for row in rows_of(folder)} == {17.5}
    assert all(texts_of(request)[-1].count("draw ") == 1 for request in engine.asked)
