"""The whole analysis of a run, and its file."""

from __future__ import annotations

import datetime
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

import echo_hf
from echo_hf import build
from echo_hf.apps.events import forget
from echo_hf.builder.update import update
from echo_hf.cli import app
from echo_hf.errors import ConfigError, RunError
from echo_hf.hub.release import read_release
from echo_hf.report.analysis.analyze import Analyzed, analyze
from echo_hf.report.analysis.feedback import keyword_form
from echo_hf.report.analysis.result import BEFORE, FILE, Estimate, read_analysis
from echo_hf.tables import RATINGS
from tests.judging import run_for_tests as runs

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
def done(built: Path) -> Analyzed:
    return analyze(built, runs=built.parent / "runs")


@pytest.fixture
def copy(built: Path, done: Analyzed, tmp_path: Path) -> Path:
    return shutil.copytree(built.parent, tmp_path / "copy") / built.name


def _changed(config: Path, **analysis: Any) -> Path:
    given = yaml.safe_load(config.read_text("utf-8"))
    given["analysis"] |= analysis
    config.write_text(yaml.safe_dump(given), "utf-8")
    return config


def test_every_part_has_figures_or_a_reason(done: Analyzed) -> None:
    """Models are not configured here; what needs neither model nor package has figures."""
    found = done.analysis
    assert len(found.parts) == 14
    for name, part in found.parts.items():
        assert (part.found is None) == (part.reason is not None) == (part.detail is not None), name
    assert {name for name, part in found.parts.items() if part.found is not None} >= WITH_FIGURES
    assert [one.name for one in found.sets] == ["benchmark", "few"]
    assert found.sets[0].prompts == found.samples > 0
    assert read_analysis(done.path) == found
    assert json.loads(done.path.read_bytes())["format"] == 1


def test_what_changed_since_the_release_that_update_replaced(tmp_path: Path) -> None:
    """Half of the threads first, then all of them: counts by hand from both releases' rows."""
    corpus = Path(echo_hf.__file__).parent / "quickstart"
    folder = shutil.copytree(corpus / "pictures", tmp_path / "pictures").parent
    lines = (corpus / "posts.jsonl").read_text("utf-8").splitlines(keepends=True)
    given = yaml.safe_load((ROOT / "eval_configs/quickstart.yaml").read_text("utf-8"))
    given["posts"] = [{"source": "jsonl", "path": "posts.jsonl"}]
    config, runs_ = folder / "config.yaml", folder / "runs"
    config.write_text(yaml.safe_dump(given), "utf-8")
    (folder / "posts.jsonl").write_text("".join(lines[: len(lines) // 2]), "utf-8")
    build(config, runs=runs_)
    alone = analyze(config, runs=runs_).analysis.since
    assert (alone.found, alone.reason) == (None, "no_release_before")
    (folder / "posts.jsonl").write_text("".join(lines), "utf-8")
    old, new = (
        read_release(place).datasets["analysis"].to_list()
        for done in [update(config, runs=runs_)]
        for place in (done.previous, done.release.path)
    )
    found = analyze(config, runs=runs_).analysis.since.found
    assert found is not None
    assert (found.name, found.target, found.samples) == (BEFORE, "Lumen Image", len(old))
    assert found.shared == len({row["id"] for row in old} & {row["id"] for row in new})
    kinds = [Counter(row["task"] or "unknown" for row in rows) for rows in (old, new)]
    shares = [{name: count[name] / count.total() for name in count} for count in kinds]
    apart = {name: shares[1].get(name, 0) - shares[0].get(name, 0) for name in kinds[0] | kinds[1]}
    assert {one.name: one.change for one in found.tasks.moved} == pytest.approx(
        {name: change for name, change in apart.items() if change}
    )
    assert found.tasks.distance == pytest.approx(sum(map(abs, apart.values())) / 2)
    failed = [
        Counter(
            keyword_form(said["keyword"])
            for row in rows
            for said in row["community_feedback"]
            if said["keyword"] and said["verdict"] in ("failure", "mixed")
        )
        for rows in (old, new)
    ]
    came = {keyword_form(one.name) for one in found.failures.came}
    assert came == failed[1].keys() - failed[0].keys()
    assert came
    assert {keyword_form(one.name) for one in found.failures.went} == (
        failed[0].keys() - failed[1].keys()
    )
    assert (found.failures.before, found.failures.now) == tuple(one.total() for one in failed)


def test_the_counts_are_those_of_the_build(done: Analyzed) -> None:
    steps, activity, tasks = (
        done.analysis.parts[name].found for name in ("funnel", "activity", "tasks")
    )
    assert steps[0].kept == sum(day.posts for day in activity.days) + activity.undated
    assert (steps[-1].stage, steps[-1].makes) == ("splits", "samples")
    assert sum(one.samples for one in tasks.counts) == done.analysis.samples


def test_the_same_run_gives_the_same_bytes(built: Path, done: Analyzed) -> None:
    before = done.path.read_bytes()
    shown = CliRunner().invoke(app, ["analyze", str(built), "--runs", str(built.parent / "runs")])
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
    found = read_analysis(copy.parent / "runs" / "quickstart" / FILE)
    assert found is not None
    assert list(found.not_fetched) == ["gone"]
    assert [one.name for one in found.sets] == ["benchmark", "few"]


def test_a_release_alone_is_analyzed(copy: Path, done: Analyzed, tmp_path: Path) -> None:
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
    assert (tmp_path / "runs" / "quickstart" / FILE).exists()
    before = (folder / "quickstart" / FILE).read_bytes()
    with pytest.raises(RunError, match="is the run of a config"):
        analyze(str(release), runs=folder)
    assert (folder / "quickstart" / FILE).read_bytes() == before
    own = analyze(str(folder / "quickstart" / "release"), runs=folder).analysis
    assert own.activity.found is not None


@pytest.mark.parametrize("times", [["once"], [None]], ids=["text", "another column"])
def test_posts_of_another_shape_are_named(copy: Path, times: list[str]) -> None:
    path = copy.parent / "runs" / "quickstart" / "stages" / "collect" / "kept.parquet"
    name = "timestamp" if times[0] else "time"
    rows = {"url": ["https://example.org/1"], name: times, "keywords": [["echo"]]}
    pq.write_table(pa.table(rows), path)
    with pytest.raises(RunError, match="run `echo-hf collect` again") as refused:
        analyze(copy, runs=copy.parent / "runs")
    assert len(str(refused.value)) < 600
    assert "\n" not in str(refused.value)


def test_tasks_stand_without_those_of_references(copy: Path) -> None:
    config = _changed(copy, task_engine={"kind": "rules", "no_such_option": 1})
    found = analyze(config, runs=copy.parent / "runs").analysis.tasks.found
    assert found is not None
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
    assert found is not None
    (rate,) = found.rates
    assert (rate.split, rate.task, rate.samples) == ("text_to_image", "unknown", 3)
    assert rate.rates["a"].value == pytest.approx(2 / 3)
    assert found.no_rates is None


def test_what_is_forgotten_leaves_the_analysis(copy: Path) -> None:
    path = copy.parent / "runs" / "quickstart" / FILE
    half = path.with_name(f".{FILE}.of_a_killed_process.partial")
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


def test_no_number_is_infinite_or_none_at_all() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite"):
            Estimate(value=value)
