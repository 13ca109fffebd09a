"""The whole analysis of a run, and its file."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from echo_hf import build
from echo_hf.cli import app
from echo_hf.cli.posts_view import forget
from echo_hf.errors import ConfigError, RunError, SourceError
from echo_hf.report.analysis.analyze import analyze
from echo_hf.report.analysis.result import FILE, Analysis, Estimate, read_analysis, write_analysis
from echo_hf.tables import RATINGS
from tests.judging import run_for_tests as runs

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The config of the bundled benchmark, built, with a reference of its own."""
    folder = tmp_path_factory.mktemp("analysis")
    config = yaml.safe_load((ROOT / "eval_configs/quickstart.yaml").read_text("utf-8"))
    config["analysis"] = {"references": [{"name": "few", "path": "few.txt"}], "draws": 50}
    (folder / "few.txt").write_text("a photo of a cat\n" * 30, "utf-8")
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    build(folder / "config.yaml", runs=folder / "runs")
    return folder / "config.yaml"


def test_every_part_has_figures_or_a_reason(built: Path) -> None:
    """Models are not configured here; what needs neither model nor package has figures."""
    done = analyze(built, runs=built.parent / "runs")
    found = done.analysis
    parts = {name: getattr(found, name) for name in Analysis.model_fields}
    parts = {name: part for name, part in parts.items() if hasattr(part, "found")}
    assert len(parts) == 12
    for name, part in parts.items():
        assert (part.found is None) == (part.reason is not None) == (part.detail is not None), name
    for name in ("diversity", "lengths", "tasks", "failures", "interaction", "activity", "funnel"):
        assert parts[name].found is not None, name
    assert [one.name for one in found.sets] == ["benchmark", "few"]
    assert found.sets[0].prompts == found.samples > 0


def test_the_counts_are_those_of_the_build(built: Path) -> None:
    """The funnel's first step read every bundled post, and activity counts those that it kept."""
    found = analyze(built, runs=built.parent / "runs").analysis
    assert found.funnel.found is not None
    assert found.activity.found is not None
    first, last = found.funnel.found[0], found.funnel.found[-1]
    activity = found.activity.found
    assert first.kept == sum(day.posts for day in activity.days) + activity.undated
    assert (last.stage, last.makes) == ("splits", "samples")
    assert found.tasks.found is not None
    assert sum(one.samples for one in found.tasks.found.counts) == found.samples


def test_the_same_run_gives_the_same_bytes(built: Path) -> None:
    """Nothing in the file is of the moment or the machine."""
    path = analyze(built, runs=built.parent / "runs").path
    before = path.read_bytes()
    analyze(built, runs=built.parent / "runs")
    assert path.read_bytes() == before
    assert str(built.parent) not in before.decode()


def test_a_release_alone_is_analyzed(built: Path, tmp_path: Path) -> None:
    """Without posts there is no activity; everything else is as it was."""
    run = built.parent / "runs" / "quickstart"
    whole = analyze(built, runs=built.parent / "runs").analysis
    alone = analyze(str(run / "release"), runs=tmp_path).analysis
    assert str(alone.activity.reason) == "no_posts"
    assert alone.funnel == whole.funnel
    assert alone.samples == whole.samples
    assert (tmp_path / "quickstart" / FILE).exists()


def test_a_release_does_not_take_the_place_of_a_run(built: Path, tmp_path: Path) -> None:
    """A copy from elsewhere has the run's name, not its posts; the run's own release has them."""
    folder = built.parent / "runs"
    path = analyze(built, runs=folder).path
    before = path.read_bytes()
    copy = shutil.copytree(folder / "quickstart" / "release", tmp_path / "copy")
    with pytest.raises(RunError, match="is the run of a config"):
        analyze(str(copy), runs=folder)
    assert path.read_bytes() == before
    own = analyze(str(folder / "quickstart" / "release"), runs=folder).analysis
    assert own.activity.found is not None


@pytest.mark.parametrize("times", [["once"], [None]], ids=["text", "another column"])
def test_posts_of_another_shape_are_named(built: Path, tmp_path: Path, times: list[str]) -> None:
    """A table of an older version is one line, not an error of whatever reads it first."""
    config = shutil.copytree(built.parent, tmp_path / "copy") / built.name
    path = config.parent / "runs" / "quickstart" / "stages" / "collect" / "kept.parquet"
    name = "timestamp" if times[0] else "time"
    rows = {"url": ["https://example.org/1"], name: times, "keywords": [["echo"]]}
    pq.write_table(pa.table(rows), path)
    with pytest.raises(RunError, match="run `echo-hf collect` again") as refused:
        analyze(config, runs=config.parent / "runs")
    assert len(str(refused.value)) < 600
    assert "\n" not in str(refused.value)


def test_tasks_stand_without_those_of_references(built: Path, tmp_path: Path) -> None:
    """An engine that cannot be asked takes neither the samples' tasks nor win rates away."""
    config = shutil.copytree(built.parent, tmp_path / "copy") / built.name
    given = yaml.safe_load(config.read_text("utf-8"))
    given["analysis"]["task_engine"] = {"kind": "rules", "no_such_option": 1}
    config.write_text(yaml.safe_dump(given), "utf-8")
    found = analyze(config, runs=config.parent / "runs").analysis.tasks.found
    assert found is not None
    assert found.counts
    assert all(not one.in_references and not one.absent_from for one in found.counts)
    assert "no_such_option" in str(found.no_references)


def test_the_verb_prints_short_tables(built: Path) -> None:
    """Sets, tasks, failures, and one line for each part without figures."""
    shown = CliRunner().invoke(app, ["analyze", str(built), "--runs", str(built.parent / "runs")])
    assert shown.exit_code == 0, shown.output
    for line in ("benchmark", "few", "what people say failed", "no perplexity, not_configured"):
        assert line in shown.output


def test_a_reference_that_is_not_there_is_named(built: Path) -> None:
    """The mistake is said before anything is computed."""
    config = yaml.safe_load(built.read_text("utf-8"))
    config["analysis"]["references"][0]["path"] = "gone.txt"
    other = built.with_name("other.yaml")
    other.write_text(yaml.safe_dump(config), "utf-8")
    with pytest.raises(SourceError, match="no reference"):
        analyze(other, runs=built.parent / "runs")


def test_win_rates_by_task_come_from_ratings(tmp_path: Path) -> None:
    """Of a benchmark that is there already: three prompts, one system better on two of them."""
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


def test_what_is_forgotten_leaves_the_analysis(built: Path, tmp_path: Path) -> None:
    """The file holds words of posts: it goes with the post."""
    config = shutil.copytree(built.parent, tmp_path / "copy") / built.name
    path = analyze(config, runs=config.parent / "runs").path
    half = path.with_name(f".{path.name}.of_a_killed_process.partial")
    half.write_text("words of a post", "utf-8")
    posts = pq.read_table(path.parent / "stages" / "collect" / "kept.parquet", columns=["url"])
    forget([posts["url"][0].as_py()], config, runs=config.parent / "runs")
    assert not path.exists()
    assert not half.exists()


@pytest.mark.parametrize("given", ["configs/absent.yaml", "configs/absent.yml"])
def test_a_misspelt_config_is_not_asked_for_on_the_hub(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name with one slash looks like a repository, but what ends in YAML is a config."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"no config '{given}'"):
        analyze(given)


def test_a_brought_config_is_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From any folder: what is missing is its run."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="no benchmark in 'runs/gpt-4o-2025-03/release'"):
        analyze("eval_configs/gpt4o_release.yaml")


class TestFile:
    """`analysis.json` itself."""

    def test_it_is_read_back_as_it_was(self, tmp_path: Path) -> None:
        """Every figure and every null."""
        config = runs.run(tmp_path, {}, ["one"])
        done = analyze(config, runs=tmp_path / "runs")
        assert read_analysis(done.path) == done.analysis
        assert json.loads(done.path.read_bytes())["format"] == 1

    def test_no_number_is_infinite_or_none_at_all(self) -> None:
        """JSON has neither, and readers differ in what they take for them."""
        for value in (float("nan"), float("inf")):
            with pytest.raises(ValueError, match="finite"):
                Estimate(value=value)

    @pytest.mark.parametrize("content", [b"{}", b"no json", b'{"format": 2}', b"\xff"])
    def test_a_damaged_file_is_named(self, tmp_path: Path, content: bytes) -> None:
        """One line, and what to do."""
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(RunError, match="run `echo-hf analyze` again") as refused:
            read_analysis(tmp_path / FILE)
        assert "\n" not in str(refused.value)

    def test_a_file_that_is_not_there_is_null(self, tmp_path: Path) -> None:
        """A run without an analysis is no error."""
        assert read_analysis(tmp_path / FILE) is None

    def test_two_at_once_leave_one_whole_file(self, tmp_path: Path) -> None:
        """Neither writes into the other's half, and nothing else is left behind."""
        done = analyze(runs.run(tmp_path, {}, ["one"]), runs=tmp_path / "runs")
        path = tmp_path / "two" / FILE
        path.parent.mkdir()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: write_analysis(path, done.analysis), range(200)))
        assert read_analysis(path) == done.analysis
        assert list(path.parent.iterdir()) == [path]

    def test_writing_again_replaces_it_whole(self, tmp_path: Path) -> None:
        """No half of the old file is left behind the new one."""
        config = runs.run(tmp_path, {}, ["one"])
        done = analyze(config, runs=tmp_path / "runs")
        done.path.write_text("x" * 1_000_000, "utf-8")
        write_analysis(done.path, done.analysis)
        assert read_analysis(done.path) == done.analysis
