"""The whole analysis of a run, and its file."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from echo_hf import build
from echo_hf.builder.takedown import forget
from echo_hf.cli import app
from echo_hf.errors import ConfigError, RunError
from echo_hf.hub.release import read_release
from echo_hf.hub.run_tables import ANALYSIS_FILE
from echo_hf.report.analysis.analyze import AnalysisResult, analyze
from echo_hf.report.analysis.result import PREVIOUS, read_analysis
from echo_hf.tables import RATINGS, SAMPLES
from tests.judging import complaints_for_tests as boards
from tests.judging import run_for_tests as runs
from tests.systems import runs_for_tests as releases

ROOT = Path(__file__).resolve().parents[3]
WITH_FIGURES = {"diversity", "lengths", "tasks", "failures", "interaction", "activity", "funnel"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("analysis")
    config = yaml.safe_load((ROOT / "eval_configs/quickstart.yaml").read_text("utf-8"))
    config["analysis"] = {"references": [{"name": "few", "path": "few.txt"}], "draws": 50}
    (folder / "few.txt").write_text("a photo of a cat\n" * 30, "utf-8")
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    build(folder / "config.yaml", runs=folder / "runs")
    return folder / "config.yaml"


@pytest.fixture(scope="module")
def done(built: Path) -> AnalysisResult:
    return analyze(built, runs=built.parent / "runs")


@pytest.fixture
def copy(built: Path, done: AnalysisResult, tmp_path: Path) -> Path:
    return shutil.copytree(built.parent, tmp_path / "copy") / built.name


def _changed(config: Path, **analysis: Any) -> Path:
    given = yaml.safe_load(config.read_text("utf-8"))
    given["analysis"] |= analysis
    config.write_text(yaml.safe_dump(given), "utf-8")
    return config


def test_every_part_has_figures_or_a_reason(done: AnalysisResult, tmp_path: Path) -> None:
    """Models are not configured here; what needs neither model nor package has figures."""
    found = done.analysis
    assert len(found.parts) > len(WITH_FIGURES)
    for name, part in found.parts.items():
        assert (part.found is None) == (part.reason is not None) == (part.detail is not None), name
    assert {name for name, part in found.parts.items() if part.found is not None} >= WITH_FIGURES
    assert [one.name for one in found.sets] == ["benchmark", "few"]
    assert found.sets[0].prompts == found.samples > 0
    assert read_analysis(done.path) == found
    written = json.loads(done.path.read_bytes())
    assert written["format"] == 1
    # Other versions have figures that this one lacks.
    written["tasks"]["found"]["kinds"] = {"probe": 1}
    (tmp_path / ANALYSIS_FILE).write_text(json.dumps(written), "utf-8")
    assert read_analysis(tmp_path / ANALYSIS_FILE) == found


def _released(folder: Path, **samples: tuple[str, str | None]) -> Path:
    fields = SAMPLES.features["community_feedback"].feature
    rows = [
        releases.sample(
            name,
            task=task,
            community_feedback=[
                {**dict.fromkeys(fields), "feedback": "so", "verdict": "failure", "keyword": word}
            ],
        )
        for name, (task, word) in samples.items()
    ]
    return releases.written(folder, rows)


def test_what_changed_since_the_release_that_update_replaced(tmp_path: Path) -> None:
    """By hand: shares of two releases, and failures under the spelling of the later one."""
    known = {"a": ("edit", "colour cast"), "b": ("edit", None)}
    old = _released(tmp_path / "old", **known, c=("text_to_image", "blur"))
    new = {"d": ("composition", "Color casts"), "e": ("composition", "extra fingers")}
    now = _released(tmp_path / "now", **known, **new)
    config = releases.evaluation(now).model_copy(update={"name": "small"})
    alone = analyze(config, runs=tmp_path / "runs").analysis.since
    assert (alone.found, alone.reason) == (None, "no_release_before")
    shutil.copytree(old, tmp_path / "runs" / "small" / "previous")
    found = analyze(config, runs=tmp_path / "runs").analysis.since.found
    assert (found.name, found.target, found.samples) == (PREVIOUS, releases.TARGET.name, 3)
    assert (found.shared, found.tasks.distance) == (2, pytest.approx(1 / 2))
    changes = {one.name: one.change for one in found.tasks.moved}
    expected = {"composition": 1 / 2, "text_to_image": -1 / 3, "edit": 1 / 2 - 2 / 3}
    assert changes == pytest.approx(expected)
    moved = {one.name: (one.before, one.now) for one in found.failures.moved}
    assert moved == {"Color casts": (1, 2), "blur": (1, 0), "extra fingers": (0, 1)}
    assert (found.failures.before, found.failures.now) == (2, 3)


def test_measures_are_held_against_complaints(tmp_path: Path) -> None:
    """In the file, by the name of each in the terminal, and with a reason for those left out."""
    threads = {boards.TINT: 6, boards.LAYOUT: 2, boards.PRAISED: 6}
    release = boards.write_benchmark(tmp_path, threads)
    runs_folder = str(tmp_path / "runs")
    shown = CliRunner().invoke(app, ["analyze", "-v", str(release), "--runs", runs_folder])
    assert shown.exit_code == 0, shown.output
    row = r"yellow tint +color_shift +1\.00 +0\.\d\d-1\.00 +6 and 6 +too few"
    assert re.search(row, shown.output), shown.output
    assert "ocr_accuracy not held against complaints: it is measured where" in shown.output
    part = read_analysis(tmp_path / "runs" / "boards" / ANALYSIS_FILE).measures
    assert part.definition["measured"] == {"threads_of_each_kind": 5, "at_most": 100}
    counts = {
        group.keyword: (group.complaint_threads, len(group.measures)) for group in part.found.groups
    }
    assert counts[boards.LAYOUT] == (2, 0)
    assert counts[boards.TINT][0] == 6
    assert counts[boards.TINT][1] == sum(one.missing is None for one in part.found.measures)


def test_a_dehydrated_benchmark_has_nothing_to_measure(tmp_path: Path) -> None:
    release = boards.write_benchmark(tmp_path, {boards.TINT: 1}, dehydrated=True)
    part = analyze(str(release), runs=tmp_path / "runs").analysis.measures
    assert (part.found, part.reason) == (None, "left_out")
    assert "hydrate" in str(part.detail)


def test_the_counts_are_those_of_the_build(done: AnalysisResult) -> None:
    steps, activity, tasks = (
        done.analysis.parts[name].found for name in ("funnel", "activity", "tasks")
    )
    assert steps[0].kept == sum(day.posts for day in activity.days) + activity.undated
    assert (steps[-1].stage, steps[-1].makes) == ("splits", "samples")
    assert sum(one.samples for one in tasks.counts) == done.analysis.samples


def test_the_same_run_gives_the_same_bytes(built: Path, done: AnalysisResult) -> None:
    before = done.path.read_bytes()
    shown = CliRunner().invoke(
        app, ["analyze", "-v", str(built), "--runs", str(built.parent / "runs")]
    )
    assert shown.exit_code == 0, shown.output
    assert "no perplexity, not_configured" in shown.output
    assert done.path.read_bytes() == before
    assert str(built.parent) not in before.decode()


def test_a_set_that_the_hub_does_not_give_is_named_and_the_others_are_compared(copy: Path) -> None:
    gone = {"name": "gone", "dataset": "/no/such/set", "revision": "v1", "column": "prompt"}
    named = yaml.safe_load(copy.read_text("utf-8"))["analysis"]["references"]
    config = str(_changed(copy, references=[gone, *named]))
    shown = CliRunner().invoke(app, ["analyze", config, "--runs", str(copy.parent / "runs")])
    assert shown.exit_code == 0, shown.output
    assert "not fetched: gone: cannot load reference 'gone'" in shown.output
    found = read_analysis(copy.parent / "runs" / "quickstart" / ANALYSIS_FILE)
    assert list(found.not_fetched) == ["gone"]
    assert [one.name for one in found.sets] == ["benchmark", "few"]


def test_a_release_alone_is_analyzed(copy: Path, done: AnalysisResult, tmp_path: Path) -> None:
    whole, folder = done.analysis, copy.parent / "runs"
    release = shutil.copytree(folder / "quickstart" / "release", tmp_path / "elsewhere")
    alone = analyze(str(release), runs=tmp_path / "runs").analysis
    rows = read_release(release).datasets["analysis"]
    first = {
        urls[0]: moment for urls, moment in zip(rows["post_urls"], rows["timestamp"], strict=True)
    }
    days = Counter(moment.astimezone(datetime.UTC).date().isoformat() for moment in first.values())
    assert {day.date: day.posts for day in alone.activity.found.days} == days
    assert alone.activity.definition["counted"] != whole.activity.definition["counted"]
    assert (alone.funnel, alone.samples) == (whole.funnel, whole.samples)
    assert (tmp_path / "runs" / "quickstart" / ANALYSIS_FILE).exists()
    before = (folder / "quickstart" / ANALYSIS_FILE).read_bytes()
    with pytest.raises(RunError, match="is the run of a config"):
        analyze(str(release), runs=folder)
    assert (folder / "quickstart" / ANALYSIS_FILE).read_bytes() == before
    own = analyze(str(folder / "quickstart" / "release"), runs=folder).analysis
    assert own.activity.found is not None


def test_posts_of_another_shape_are_named(copy: Path) -> None:
    path = copy.parent / "runs" / "quickstart" / "stages" / "collect" / "kept.parquet"
    rows = {"url": ["https://example.org/1"], "timestamp": ["once"], "keywords": [["echo"]]}
    pq.write_table(pa.table(rows), path)
    with pytest.raises(RunError, match="run `echo-hf collect` again") as refused:
        analyze(copy, runs=copy.parent / "runs")
    assert "\n" not in str(refused.value)


def test_tasks_stand_without_those_of_references(copy: Path) -> None:
    config = _changed(copy, task_engine={"kind": "rules", "no_such_option": 1})
    found = analyze(config, runs=copy.parent / "runs").analysis.tasks.found
    assert found.counts
    assert all(not one.in_references and not one.absent_from for one in found.counts)
    assert "no_such_option" in str(found.no_references)


def test_win_rates_by_task_come_from_ratings(tmp_path: Path) -> None:
    config = runs.run(tmp_path, {}, ["one", "two", "three"])
    rows = [
        runs.rating(name, system, value)
        for name, both in {"one": (9, 1), "two": (9, 1), "three": (1, 9)}.items()
        for system, value in zip("ab", both, strict=True)
    ]
    runs.write(tmp_path, RATINGS, rows)
    found = analyze(config, runs=tmp_path / "runs").analysis.tasks.found
    (rate,) = found.rates
    assert (rate.split, rate.task, rate.samples) == ("text_to_image", "unknown", 3)
    assert rate.rates["a"].value == pytest.approx(2 / 3)


def test_what_is_forgotten_leaves_the_analysis(copy: Path) -> None:
    path = copy.parent / "runs" / "quickstart" / ANALYSIS_FILE
    half = path.with_name(f".{ANALYSIS_FILE}.of_a_killed_process.partial")
    half.write_text("words of a post", "utf-8")
    posts = pq.read_table(path.parent / "stages" / "collect" / "kept.parquet", columns=["url"])
    forget([posts["url"][0].as_py()], copy, runs=copy.parent / "runs")
    assert not path.exists()
    assert not half.exists()


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        # A name with one slash looks like a repository, but what ends in YAML is a config.
        ("configs/absent.yaml", ConfigError, "no config 'configs/absent.yaml'"),
        ("configs/absent.yml", ConfigError, "no config 'configs/absent.yml'"),
        # Of a config that comes with the package, what is missing is its run.
        ("eval_configs/paper.yaml", RunError, "no benchmark in 'runs/gpt-4o-2025-03/rel"),
    ],
)
def test_a_config_is_not_asked_for_on_the_hub(
    given: str, error: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=said):
        analyze(given)
