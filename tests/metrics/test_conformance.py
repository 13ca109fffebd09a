"""What every metric keeps to, also one that another package registers, and who reads it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import evaluate
import pytest
import yaml
from PIL import Image
from pydantic import BaseModel

import echo_hf
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.errors import ConfigError, EchoError, MissingExtraError, ScoreError
from echo_hf.hub.evaluate_metric import EchoMetric
from echo_hf.judging.applicability import fill_applicability_prompt
from echo_hf.judging.score import score
from echo_hf.metrics import Metric, MetricResult, Unmeasured, measure_each, register, registered
from echo_hf.metrics.base import ARROWS, find_metric, list_measured
from echo_hf.reasons import MetricReason
from echo_hf.report.export import export
from echo_hf.report.report import report
from echo_hf.systems.benchmark import load_evaluation
from echo_hf.tables import OUTPUTS, RATINGS
from tests.images_for_tests import encoded
from tests.judging import run_for_tests as small
from tests.judging.run_for_tests import called, output, page_of, put, rating, stripes, write


class Redness(Metric):
    """The level of red of the first pixel."""

    name, title, better, needs = "redness", "Redness of a corner", "lower", ("outputs",)
    about = "how red the corner is"
    question = "Whether the corner may be red. It fits where nobody asked for red."
    bounds = (0, 255)

    class Options(Metric.Options):
        """How redness is measured.

        Attributes:
            least: Corners that are less red have no number.
        """

        least: int = 0

    def measure(self, outputs: Any, *, protocol: Any, options: Any, **_: Any) -> MetricResult:
        def read_corner(image: Image.Image) -> float | Unmeasured:
            red, *_ = image.getpixel((0, 0))  # type: ignore[misc]
            return Unmeasured(MetricReason.NO_LEVELS) if red < options.least else red

        return measure_each(self, outputs, read_corner, protocol=protocol)


class Length(Metric):
    """How long the prompt of an output is, for each pixel of its width."""

    name, needs = "length", ("outputs", "prompts")

    def measure(self, outputs: Any, prompts: Any, **_: Any) -> MetricResult:
        lengths = iter([len(prompt) for prompt in prompts])
        return measure_each(self, outputs, lambda image: next(lengths) / image.width)


class Likes(Metric):
    """The share of ratings that are above 5."""

    name, needs, splits = "likes", ("ratings",), ("text_to_image",)
    enabled = False

    def measure(self, ratings: Any, *, names: Sequence[str], **_: Any) -> MetricResult:
        by_name = {row["sample_id"]: row["rating"] for row in ratings.to_pylist()}
        values = [None if by_name[name] is None else float(by_name[name] > 5) for name in names]
        rated = [value for value in values if value is not None]
        unrated = Unmeasured(MetricReason.UNRATED)
        return MetricResult(
            value=sum(rated) / len(rated) if rated else None,
            per_sample=tuple(values),
            interval=None,
            n=len(rated),
            coverage=len(rated) / len(values),
            reasons=tuple(unrated if value is None else None for value in values),
            definition={"metric": self.name},
        )


PLUG_INS = {metric.name: metric for metric in (Redness, Length, Likes)}
NAMES = sorted({*registered(), *PLUG_INS})


@pytest.fixture(params=NAMES)
def metric(request: pytest.FixtureRequest) -> type[Metric]:
    plug_in = PLUG_INS.get(request.param)
    return register(plug_in) if plug_in else registered()[request.param]


GIVEN, RED = (stripes((10, 20, 30), (200, 180, 160)), stripes((250, 20, 30), (20, 180, 160)))
WORDS = ("boat", "fox")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two edits and two prompts, what two systems drew, and what a judge said."""
    small.run(tmp_path, {"lamp": [GIVEN], "sky": [RED]}, WORDS)
    digests = {name: put(tmp_path, data) for name, data in (("copy", GIVEN), ("red", RED))}
    rows = [
        output(name, system, inputs, image=digest)
        for system, digest in digests.items()
        for name, inputs in (("lamp", [GIVEN]), ("sky", [RED]), *((word, []) for word in WORDS))
    ]
    # One image of several samples is a placeholder, so that each has another.
    for number, row in enumerate(rows):
        level = 10 if row["system"] == "copy" else 250
        row["image"] = put(tmp_path, stripes((level, number, 30), (20, 180, 160 + number)))
    write(tmp_path, OUTPUTS, rows)
    ratings = [
        rating(word, system, value, rubric=rubric)
        for rubric in ("overall", "text_rendering")
        for word in WORDS
        for system, value in (("copy", 3), ("red", 9))
    ]
    write(tmp_path, RATINGS, ratings)
    return tmp_path


def named(run: Path, *names: str, **options: Any) -> Path:
    """The config of the run, with metrics that it names."""
    path = run / "evaluation.yaml"
    settings = yaml.safe_load(path.read_text("utf-8"))
    settings["metrics"] = dict.fromkeys(names, options)
    path.write_text(yaml.safe_dump(settings), "utf-8")
    return path


def test_it_says_what_it_is(metric: type[Metric]) -> None:
    assert find_metric(metric.name) is metric
    assert re.fullmatch(r"[A-Z][\w ]+", metric.title)
    assert metric.better in ARROWS
    assert metric.splits
    assert metric.Options().model_dump() is not None  # each has a default
    assert bool(metric.extra) == bool(metric.packages)
    if metric.name not in PLUG_INS:
        assert metric.about
        assert metric.card.startswith("# ")
        assert metric.function in (None, getattr(echo_hf.metrics, metric.name))


def test_its_options_are_a_section_of_a_config(metric: type[Metric], run: Path) -> None:
    config = load_evaluation(named(run, metric.name))
    assert isinstance(config.metrics.root[metric.name], BaseModel)
    assert config.metrics.root[metric.name] == metric.Options()
    saved = EvaluationBase.model_validate({"name": "a", "metrics": config.model_dump()["metrics"]})
    assert saved.metrics == config.metrics
    with pytest.raises(ConfigError, match=rf"metrics\.{metric.name}: unknown key 'wrong'") as told:
        load_evaluation(named(run, metric.name, wrong=1))
    assert "\n" not in str(told.value)
    with pytest.raises(ConfigError, match=rf"unknown metric '{metric.name}x'; did you mean"):
        load_evaluation(named(run, f"{metric.name}x"))


def test_it_is_measured_shown_reported_and_exported(metric: type[Metric], run: Path) -> None:
    """With its number, or with what there is to install in its place."""
    config = named(run, metric.name)
    scores = score(config, runs=run / "runs", n_boot=0)
    rows = [row for row in scores.results if row.metric == metric.name]
    assert {row.system for row in rows} == {"copy", "red"}
    assert {row.split for row in rows} <= {*metric.splits}
    saved = json.loads(scores.path.read_text("utf-8"))
    assert {row["system"] for row in saved["results"] if row["metric"] == metric.name} == {
        "copy",
        "red",
    }
    assert f"{metric.name} {ARROWS[metric.better]}" in page_of(run)
    page = report(config, runs=run / "runs").path.read_text("utf-8")
    assert metric.title in page
    export(config, run / "csv", to="csv", runs=run / "runs")
    table = csv.DictReader((run / "csv" / "metrics.csv").read_text("utf-8").splitlines())
    assert {row["system"] for row in table if row["metric"] == metric.name} == {"copy", "red"}
    export(config, run / "eee", to="every-eval-ever", runs=run / "runs")
    if any(row.value is not None for row in rows):
        told = [
            each["metric_config"]
            for file in (run / "eee").rglob("*.json")
            for each in json.loads(file.read_text("utf-8"))["evaluation_results"]
            if each["metric_config"]["metric_kind"] == metric.name
        ]
        assert {each["lower_is_better"] for each in told} == {metric.better == "lower"}
        assert {each["metric_name"] for each in told} == {f"{metric.title} (corrected)"}
    else:
        reasons = [row.definition for row in rows if isinstance(row.definition, dict)]
        missing = {str(each["missing"]) for each in reasons if "missing" in each}
        assert all(re.search(r"pip install|on the Hub|fits no", text) for text in missing)
        assert missing or all(each["without_number"] for each in reasons)


def test_it_gates_a_system(metric: type[Metric], run: Path) -> None:
    shown = called(run, "compare", "copy", "red", "--metric", metric.name, "--margin", "0.01")
    assert not isinstance(shown.exception, KeyError | TypeError)
    assert metric.name in shown.output + str(shown.exception)


@pytest.fixture
def evaluate_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", tmp_path / "evaluate")


@pytest.mark.usefixtures("evaluate_cache")
def test_evaluate_knows_it(metric: type[Metric]) -> None:
    measure = EchoMetric(metric.name)
    alone = len(metric.needs) == 1
    assert {*measure.features} == {"predictions"} | (set() if alone else {"references"})
    assert measure.description.startswith(f"ECHO's {metric.name}: ")


def test_a_missing_package_is_told_with_what_to_install(
    metric: type[Metric], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric, "packages", ("no_such_package_at_all",))
    with pytest.raises(MissingExtraError, match=rf"^{metric.name} needs packages .*: pip install"):
        metric.check_installed()


def test_its_question_is_asked_as_it_stands(metric: type[Metric]) -> None:
    if metric.question is None:
        return
    prompt = fill_applicability_prompt([metric]).text
    assert metric.question.strip() in prompt
    assert f'"{metric.name}": ' in prompt
    assert f'{{"{metric.name}": <0 or 1>, "rationale"' in prompt


def test_the_numbers_of_plug_ins_are_theirs(run: Path) -> None:
    """The corner of one system has red 10, of the other 250; its ratings are 3, of the other 9."""
    for plug_in in PLUG_INS.values():
        register(plug_in)
    scores = score(named(run, "likes"), runs=run / "runs", n_boot=0)
    values = {(row.metric, row.split, row.system): row.value for row in scores.results}
    for split in ("image_to_image", "text_to_image"):
        assert [values["redness", split, name] for name in ("copy", "red")] == [10, 250]
    # "draw boat" and "draw fox" have 9 and 8 letters, both images 16 columns.
    assert values["length", "text_to_image", "copy"] == pytest.approx((9 + 8) / 2 / 16)
    assert [values["likes", "text_to_image", name] for name in ("copy", "red")] == [0, 1]
    shown = called(run, "compare", "copy", "red", "--metric", "redness", "--margin", "10")
    assert shown.exit_code in (1, 3), shown.output


def test_options_reach_a_metric(run: Path) -> None:
    register(Redness)
    scores = score(named(run, "redness", least=100), runs=run / "runs", n_boot=0)
    rows = {row.system: row for row in scores.results if row.metric == "redness"}
    assert (rows["copy"].value, rows["copy"].n, rows["red"].value) == (None, 0, 250)


def test_one_that_is_not_enabled_is_measured_where_it_is_named(run: Path) -> None:
    register(Likes)
    names = {metric.name for metric in list_measured()}
    assert "ocr_accuracy" not in names
    assert "likes" not in names
    assert {metric.name for metric in list_measured({"likes"})} == {*names, "likes"}


def test_without_metrics_in_a_config_those_of_the_paper_are_measured() -> None:
    paper = ["face_identity", "color_shift", "structure_distance", "text_rendering"]
    assert [metric.name for metric in list_measured()] == paper
    assert list(registered())[:4] == paper


MODULE = """
from echo_hf.metrics import Metric, measure_each, register

@register
class Width(Metric):
    name, needs = "width", ("outputs",)

    def measure(self, outputs, *, protocol, options, names):
        return measure_each(self, outputs, lambda image: image.width)
"""


def installed(folder: Path, points: str, code: str = MODULE) -> None:
    (facts := folder / "widths-1.0.dist-info").mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: widths\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[echo_hf.metrics]\n{points}\n")
    (folder / "widths_for_test.py").write_text(code)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(import_module("sys").modules, "widths_for_test", raising=False)
    return tmp_path / "site"


def test_an_installed_package_brings_its_metric(site: Path, run: Path) -> None:
    installed(site, "width = widths_for_test:Width")
    assert registered()["width"].title == "Width"
    scores = score(run / "evaluation.yaml", runs=run / "runs", n_boot=0)
    assert {row.value for row in scores.results if row.metric == "width"} == {16}


@pytest.mark.parametrize(
    ("points", "code", "says"),
    [
        ("width = widths_for_test:Gone", MODULE, "install or fix that package"),
        ("wide = widths_for_test:Width", MODULE, "expected the same name for both"),
        ("width = widths_for_test:WIDTH", "WIDTH = 3", "expected a subclass of Metric"),
    ],
)
def test_a_package_that_brings_none_is_one_line(
    site: Path, points: str, code: str, says: str
) -> None:
    installed(site, points, code)
    with pytest.raises(EchoError, match=says) as told:
        registered()
    assert "\n" not in str(told.value)


def make(**facts: Any) -> type[Metric]:
    return type("Made", (Metric,), {"measure": lambda *_, **__: None, "name": "made", **facts})


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        (make(name="Not A Name"), "lower-case letters"),
        (make(name="win_rate"), "none of applies, bradley_terry"),
        (make(better="more"), "unknown better 'more'"),
        (make(needs=("pixels",)), "unknown needs 'pixels'"),
        (make(splits=("analysis",)), "unknown splits 'analysis'"),
        (make(Options=dict), "no model of pydantic"),
        (make(name="color_shift"), "is defined by 'echo_hf.metrics.color_shift' and"),
        (type("Made", (Metric,), {"name": "made"}), "measures nothing"),
        (3, "no class of a metric"),
    ],
)
def test_what_is_no_metric_is_refused(metric: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)) as told:
        register(metric)
    assert "\n" not in str(told.value)


def test_a_result_of_other_samples_is_refused(run: Path) -> None:
    class Short(Redness):
        name = "short"

        def measure(self, outputs: Any, **given: Any) -> MetricResult:
            return super().measure([*outputs][:1], **given)

    register(Short)
    with pytest.raises(ScoreError, match=r"'short' gave 1 numbers and 1 reasons for 2 samples"):
        score(run / "evaluation.yaml", runs=run / "runs", n_boot=0)


def test_a_number_that_is_none_is_refused(run: Path) -> None:
    class Endless(Redness):
        name = "endless"

        def measure(self, outputs: Any, **given: Any) -> MetricResult:
            result = super().measure(outputs, **given)
            return replace(result, per_sample=(float("nan"), *result.per_sample[1:]))

    register(Endless)
    with pytest.raises(ScoreError, match=r"'endless' gave a number that is not finite: expected"):
        score(run / "evaluation.yaml", runs=run / "runs", n_boot=0)


def test_a_metric_of_others_that_fails_takes_no_other_with_it(run: Path) -> None:
    class Broken(Metric):
        name, needs = "broken", ("outputs",)

        def measure(self, *_: Any, **__: Any) -> MetricResult:
            raise RuntimeError("no such model")

    register(Broken)
    done = score(run / "evaluation.yaml", runs=run / "runs", n_boot=0)
    rows = [row for split in done.splits for row in split.metrics]
    broken = {row.missing for row in rows if row.metric == "broken"}
    assert broken == {"it failed: RuntimeError: no such model"}
    assert any(row.result for row in rows if row.metric == "color_shift")


Protocol = Literal["published", "corrected"]


@pytest.mark.parametrize("protocol", ["published", "corrected"])
def test_each_image_is_measured_or_has_a_reason(protocol: Protocol) -> None:
    images = [stripes((level, 0, 0), (9, 9, 9)) for level in (100, 50, 30)]
    blank = encoded(Image.new("RGB", (8, 8), (5, 5, 5)), "PNG")
    outputs = [*images, None, b"no image", blank, images[0]]
    result = Redness(n_boot=0).measure(
        outputs, protocol=protocol, options=Redness.Options(least=40), names="abcdefg"
    )
    reasons = [missing and missing.reason.value for missing in result.reasons]
    assert reasons == [
        *("placeholder", None, "no_levels"),
        *("missing_output", "bad_output", "blank_output", "placeholder"),
    ]
    assert result.per_sample == (None, 50, None, None, None, None, None)
    assert (result.value, result.n, result.coverage) == (50, 1, pytest.approx(1 / 7))
    assert result.definition["direction"] == "lower is better"
    assert json.loads(json.dumps(result.definition)) == result.definition


def test_a_result_of_a_metric_that_is_gone_is_still_shown(run: Path) -> None:
    """As it says itself which direction is better; its name is its title."""
    register(Redness)
    config = run / "evaluation.yaml"
    score(config, runs=run / "runs", n_boot=0)
    import_module("echo_hf.config.evaluation").METRICS.entries.pop("redness")
    assert "redness ↓" in page_of(run)
    page = report(config, runs=run / "runs").path.read_text("utf-8")
    assert re.search(r"Redness <span[^>]*>lower is better", page)


@pytest.mark.usefixtures("evaluate_cache")
def test_the_module_of_evaluate_computes_a_plug_in() -> None:
    register(Redness)
    measure = EchoMetric("redness", least=100)
    found = measure.compute(predictions=[RED, GIVEN], n_boot=0)
    assert (found["per_sample"], found["counts"]) == ([250.0, None], {"no_levels": 1})
    with pytest.raises(ScoreError, match="unknown key 'most'"):
        EchoMetric("redness").compute(predictions=[RED], most=1)


@pytest.mark.usefixtures("evaluate_cache")
def test_the_module_of_evaluate_takes_prompts_and_ratings_of_one_system() -> None:
    register(Length)
    register(Likes)
    length = EchoMetric("length").compute(predictions=[RED], references=["a fox, red"], n_boot=0)
    assert length is not None
    assert length["per_sample"] == [10 / 16]
    rows = [
        {"sample_id": name, "system": "a", "judge": "mira", "rating": value}
        for name, value in (("boat", 9), ("fox", 2))
    ]
    likes = EchoMetric("likes").compute(predictions=rows)
    assert likes is not None
    assert likes["per_sample"] == [1, 0]
    with pytest.raises(ScoreError, match="ratings of 2 systems: expected those of one"):
        EchoMetric("likes").compute(predictions=[*rows, {**rows[0], "system": "b"}])
