"""Which metrics fit a sample: what is asked of whom, and what becomes of the answers."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf.engines.base import Completion, Request
from echo_hf.errors import ConfigError, RunError
from echo_hf.judging.applicability import list_asked
from echo_hf.judging.judge import judge, judge_applicability
from echo_hf.judging.score import score
from echo_hf.judging.session import JudgingResult
from echo_hf.metrics import Metric, MetricResult, measure_each, register
from echo_hf.tables import APPLICABILITY
from tests.judging import judges_for_tests as scripted
from tests.judging.judges_for_tests import ScriptedJudge, config_of, images_of, judge_of, prompt_of
from tests.judging.run_for_tests import called, fits, root, write


def says(**flags: int) -> str:
    return json.dumps({**flags, "rationale": "An edit of a lamp."})


def flagged(asked: Request) -> str:
    return says(**{name: int(name != "face_identity") for name in asked.inputs["metrics"]})


def said(folder: Path, ask: str = "split", **options: Any) -> JudgingResult:
    asking = {"engine": {"kind": scripted.KIND}, "ask": ask}
    path = config_of(folder, [], applicability=asking)
    return judge_applicability(path, runs=folder / "runs", **options)


ASKED = [metric.name for metric in list_asked()]


def flags_of(folder: Path) -> dict[str, tuple[bool | None, ...]]:
    """The answers about each sample, null for a metric without a row."""
    rows = scripted.rows_of(folder, "applicability")
    flags = {(row["sample_id"], row["metric"]): row["applies"] for row in rows}
    return {sample: tuple(flags.get((sample, name)) for name in ASKED) for sample, _ in flags}


def test_edits_are_asked_about_inputs_and_prompts_about_text(folder: Path) -> None:
    engine = ScriptedJudge(flagged).use()
    said(folder)
    expected = dict.fromkeys(scripted.EDITS, (False, True, True, None))
    expected |= dict.fromkeys(scripted.WORDS, (None, None, None, True))
    assert flags_of(folder) == expected
    assert {row["rationale"] for row in scripted.rows_of(folder, "applicability")} == {
        "An edit of a lamp."
    }

    lamp = next(one for one in engine.asked if prompt_of(one) == "draw lamp")
    assert images_of(lamp) == [hashlib.sha256(scripted.GIVEN).hexdigest()]
    told = lamp.messages[0].parts[0].text
    assert [f'"{name}": <0 or 1>' in told for name in ASKED] == [True, True, True, False]
    assert lamp.answer is not None
    assert list(lamp.answer.model_fields) == [*ASKED[:3], "rationale"]


def test_all_may_be_asked_of_all(folder: Path) -> None:
    ScriptedJudge(flagged).use()
    said(folder, "all")
    assert flags_of(folder) == dict.fromkeys(scripted.SAMPLES, (False, True, True, True))


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ("I would say both.", "unreadable"),
        (says(face_identity=1), "off_schema"),
        (says(face_identity=2, color_shift=0, structure_distance=0), "off_schema"),
        (Completion(None, "I will not.", "refusal"), "refused"),
        (Completion(None, "no power", "error"), "engine_error"),
    ],
)
def test_a_failure_is_null_and_no_flag(folder: Path, given: str | Completion, outcome: str) -> None:
    ScriptedJudge(lambda _: given).use()
    done = said(folder, limit=1, keep_going=True)
    assert flags_of(folder) == dict.fromkeys(("lamp", "boat"), (None,) * 4)
    assert done.answered[0].outcomes["ok"] == 0
    assert scripted.rows_of(folder, "applicability")[1]["outcome"] == outcome


def test_what_is_asked_once_is_kept(folder: Path) -> None:
    write(
        folder,
        APPLICABILITY,
        [*fits("tree", text_rendering=False), *fits("gone", color_shift=None)],
    )
    engine = ScriptedJudge(flagged).use()
    said(folder, limit=2)
    assert set(flags_of(folder)) == {"lamp", "sky", "boat", "fox", "tree", "gone"}
    assert flags_of(folder)["tree"] == (None, None, None, False)
    calls = len(engine.asked)
    said(folder, limit=2)
    assert len(engine.asked) == calls == 4


def test_scores_follow_the_flags_that_the_command_asked_for(folder: Path) -> None:
    ScriptedJudge(flagged).use()
    path = config_of(folder, [], applicability={"engine": {"kind": scripted.KIND}})
    done = called(folder, "judge", "--applicability")
    assert done.exit_code == 0, done.output
    assert "applicability.parquet" in done.output
    refused = called(folder, "judge", "--applicability", "--judges", "mira")
    assert "leave out --judges" in str(refused.exception)
    metrics = score(path, runs=folder / "runs", n_boot=0).splits[0].metrics
    fitting = {one.metric: {task.sample_id for task in one.fitting} for one in metrics}
    assert fitting["color_shift"] == {*scripted.EDITS}
    assert fitting["face_identity"] == set()


EDITED = tuple(f"edit{number}" for number in range(9))


def test_what_the_release_says_counts_until_the_run_asks_anew(tmp_path: Path) -> None:
    """For metrics and for what text is rated; and the result says whose answers they are."""
    told = [
        *(row for name in EDITED for row in fits(name, color_shift=name in EDITED[:3])),
        *(row for name in scripted.WORDS for row in fits(name, text_rendering=name == "fox")),
    ]
    edits = {name: [scripted.GIVEN] for name in EDITED}
    scripted.drawn(tmp_path, edits, applicability=told)
    text_alone = judge_of(rubrics=["text_rendering"])
    engine = ScriptedJudge().use()
    path = config_of(tmp_path, [text_alone])
    assert called(tmp_path, "judge").exit_code == 0
    assert {prompt_of(one) for one in engine.asked} == {"draw fox"}
    assert fitting(path) == ("release", {*EDITED[:3]})
    shown = called(tmp_path, "score", "-v").output
    assert "which metrics fit a sample: as the release says" in shown
    assert re.search(r"color_shift.*\n(.* of 3\b.*\n){2}face", shown), shown

    refused = [row for name in EDITED for row in fits(name, "refused", color_shift=None)]
    write(tmp_path, APPLICABILITY, refused)
    assert fitting(path) == ("release", {*EDITED[:3]})  # nobody has answered yet
    own = [row for name in EDITED for row in fits(name, color_shift=name != "edit0")]
    write(tmp_path, APPLICABILITY, own)
    assert fitting(path) == ("run", {*EDITED[1:]})
    shown = called(tmp_path, "score", "-v").output
    assert "which metrics fit a sample: as was asked in this run" in shown


def fitting(path: Path) -> tuple[str, set[str]]:
    done = score(path, runs=path.parent / "runs", n_boot=0)
    metrics = [one for one in done.splits[0].metrics if one.metric == "color_shift"]
    (samples,) = {frozenset(task.sample_id for task in one.fitting) for one in metrics}
    return json.loads(done.path.read_bytes())["applicability"], {*samples}


def test_a_config_that_names_nobody_says_how(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"add, for example, `applicability: \{engine:"):
        judge_applicability(config_of(folder, []), runs=folder / "runs")


class Sharpness(Metric):
    """A metric of another package."""

    name = "sharpness"
    question = "Whether edges should stay sharp. It fits where nothing is to be blurred."
    splits = ("image_to_image",)

    def measure(self, *images: Any, **_: Any) -> MetricResult:
        return measure_each(self, images[1], lambda image: image.width)


class Roundness(Sharpness):
    """Another one, which is measured where a config names it."""

    name = "roundness"
    question = "Whether shapes should be round."
    enabled = False


def test_added_metrics_are_asked_about_in_one_further_request(folder: Path) -> None:
    """What the paper asks stays the request that it is; one that is not measured is not asked."""
    ScriptedJudge(flagged).use()
    said(folder)
    register(Sharpness)
    register(Roundness)
    engine = ScriptedJudge(flagged).use()
    done = said(folder)
    assert Counter(map(prompt_of, engine.asked)) == Counter(
        {f"draw {name}": 1 for name in scripted.EDITS}
    )  # the answers to the paper's question are stored
    assert {one.inputs["metrics"] for one in engine.asked} == {("sharpness",)}
    assert "edges should stay sharp" in engine.asked[0].messages[0].parts[0].text
    assert done.answered[0].outcomes == {"ok": len(scripted.SAMPLES)}
    rows = scripted.rows_of(folder, "applicability")
    flags = {(row["sample_id"], row["metric"]): row["applies"] for row in rows}
    assert {sample for sample, name in flags if name == "sharpness"} == {*scripted.EDITS}
    assert flags["lamp", "sharpness"] is flags["lamp", "color_shift"] is True

    asking = {"engine": {"kind": scripted.KIND}}
    path = config_of(folder, [], applicability=asking, metrics={"roundness": {}})
    engine = ScriptedJudge(flagged).use()
    judge_applicability(path, runs=folder / "runs")
    assert {one.inputs["metrics"] for one in engine.asked} == {("roundness", "sharpness")}


def test_a_rubric_fits_the_samples_that_its_question_says(folder: Path) -> None:
    """The figure of a rubric and its ratings are of these samples alone."""
    rubric = {"name": "boats", "answer": "yes_no", "question": "Whether a boat is asked for."}
    rubric |= {"instructions": "Is a boat to be seen?"}
    path = config_of(
        folder,
        [judge_of(rubrics=["boats"])],
        rubrics=[rubric],
        applicability={"engine": {"kind": scripted.KIND}},
    )

    def answer(asked: Request) -> str:
        if "metrics" not in asked.inputs:
            return "[[yes]]" if asked.inputs["output"] < "8" else "[[no]]"
        names = asked.inputs["metrics"]
        return says(**{name: int(name == "boats" and "boat" in prompt_of(asked)) for name in names})

    engine = ScriptedJudge(answer).use()
    judge_applicability(path, runs=folder / "runs")
    judge(path, runs=folder / "runs")
    further = [asked for asked in engine.asked if "boats" in asked.inputs.get("metrics", ())]
    assert len(further) == len(scripted.SAMPLES)
    assert "Whether a boat is asked for." in further[0].messages[0].parts[0].text
    rated = {(row["sample_id"], row["system"]): row["rating"] for row in scripted.rows_of(folder)}
    assert {sample for sample, _ in rated} == {"boat"}
    done = score(path, runs=folder / "runs", n_boot=0)
    values = {row.system: row.value for row in done.results if row.metric == "boats" and row.n}
    assert values == {system: rated["boat", system] for system in scripted.SYSTEMS}


def test_one_failure_leaves_the_answer_to_the_other_request(folder: Path) -> None:
    register(Sharpness)
    ScriptedJudge(
        lambda asked: "no" if "sharpness" in asked.inputs["metrics"] else flagged(asked)
    ).use()
    said(folder, limit=1, keep_going=True)
    rows = scripted.rows_of(folder, "applicability")
    lamp = {row["metric"]: (row["applies"], row["outcome"]) for row in rows[:4]}
    assert lamp["color_shift"] == (True, "ok")
    assert lamp["sharpness"] == (None, "unreadable")


def test_a_column_for_each_metric_is_read_as_before(folder: Path) -> None:
    """As older versions wrote them: a null beside an answer was not asked, others had failed."""
    wide = [
        {"sample_id": "lamp", "color_shift": True, "text_rendering": None, "outcome": "ok"},
        {"sample_id": "sky", "color_shift": None, "text_rendering": None, "outcome": "refused"},
    ]
    table = pa.Table.from_pylist([{"rationale": "so", **row} for row in wide])
    pq.write_table(table, root(folder) / "applicability.parquet")
    ScriptedJudge(flagged).use()
    fitted = score(config_of(folder, []), runs=folder / "runs", n_boot=0).splits[0].metrics
    shift = next(one for one in fitted if one.metric == "color_shift")
    assert ({task.sample_id for task in shift.fitting}, shift.unknown) == (
        {"lamp"},
        len(scripted.EDITS) - 1,
    )
    said(folder, limit=0)
    rows = [
        tuple(row[name] for name in ("sample_id", "metric", "applies", "outcome"))
        for row in scripted.rows_of(folder, "applicability")
    ]
    assert rows == [
        ("lamp", "color_shift", True, "ok"),
        ("sky", "color_shift", None, "refused"),
        ("sky", "text_rendering", None, "refused"),
    ]


def test_a_column_that_is_no_metric_is_one_line(folder: Path) -> None:
    table = pa.Table.from_pylist([{"sample_id": "lamp", "color_shift": "yes"}])
    pq.write_table(table, root(folder) / "applicability.parquet")
    with pytest.raises(RunError, match=r"'color_shift' is of type 'string', expected 'bool'"):
        score(config_of(folder, []), runs=folder / "runs", n_boot=0)
