"""A run in formats of others: what is written, what is refused, and what stays here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.config.checks import AnsweredBy
from echo_hf.config.evaluation import Evaluation
from echo_hf.config.systems import shipped_config
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ConfigError, ReleaseError, RunError
from echo_hf.hub.load import load_manifest
from echo_hf.hub.release import read_release, rows_of
from echo_hf.report.export import ExportedRun, export, file_names, hub_eval, passed_on
from echo_hf.report.run_data import Identity, Output, Rating, ReportSample
from tests.report.run_data_for_tests import ratings_of, results, run_data

X, ELSEWHERE = "https://x.com/i/status/1", "https://example.org/1"
SYSTEM = "bravo `|` [x](javascript:1)"


def published(folder: Path, finished: Path, on_hub: str | None = "my-lab/echo@v1") -> ExportedRun:
    """A run on a benchmark on the Hub."""
    samples = [ReportSample(id=f"s{at:02}", split="text_to_image", prompt="x") for at in range(12)]
    ratings = {one.id: tuple(ratings_of({"alpha": [3], SYSTEM: [2]})) for one in samples}
    models = {"alpha": AnsweredBy(model="northlight/alpha-2")}
    found = results(samples, ratings, systems=models)
    found = found.model_copy(update={"benchmark": Identity(on_hub=on_hub)})
    data = run_data(folder, samples, None, ratings, results=found, systems=("alpha", SYSTEM))
    config = Evaluation(name="invented", benchmark=on_hub or "folder")
    manifest = load_manifest(finished.parent / "benchmark")
    return ExportedRun(data, config, "my-lab/echo@v1", manifest, None)


def test_the_hub_reads_the_results_of_each_model(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    hub_eval(published(tmp_path, finished), folder)
    request = (folder / "pull_request.md").read_text("utf-8")
    for system, name in file_names(["alpha", SYSTEM]).items():
        place = folder / name / ".eval_results" / "echo.yaml"
        (one,) = parse_eval_result_entries(yaml.safe_load(place.read_text("utf-8")))
        assert (one.dataset_id, one.task_id) == ("my-lab/echo", "text_to_image")
        assert one.value == (1 if system == "alpha" else 0)
        assert str(place.relative_to(folder)) in request
    assert "- northlight/alpha-2: `alpha/.eval_results/echo.yaml`" in request
    assert "bravo \\`\\|\\` \\[x\\](javascript:1)" in request
    told = yaml.safe_load((folder / "eval.yaml").read_text("utf-8"))
    assert {one["id"] for one in told["tasks"]} == {"image_to_image", "text_to_image"}
    assert f'"{told["evaluation_framework"]}": {{' in request


def test_what_the_hub_cannot_show_is_said(finished: Path, tmp_path: Path) -> None:
    run = published(tmp_path, finished, None)
    with pytest.raises(
        ConfigError, match="of 'invented' is a folder, and results of the Hub name one"
    ):
        hub_eval(run, tmp_path)
    with pytest.raises(ConfigError, match=r"/api/datasets/ORGANIZATION/NAME/croissant$"):
        export(run.config, tmp_path / "b", to="croissant")


def test_what_may_not_be_passed_on_stays_here(tmp_path: Path) -> None:
    """As a release leaves it out: words, posted images, and edits of them."""
    made = {"edit": (X, "e"), "words": (X, "w"), "copy": (X, "p"), "free": (ELSEWHERE, "f")}
    samples, outputs, ratings = [], {}, {}
    for name, (url, image) in made.items():
        known = {"inputs": ("i",) if name in ("edit", "free") else (), "posted": ("p",)}
        samples.append(ReportSample(name, "text_to_image", "words", urls=(url,), **known))
        outputs[name, "bravo"] = Output(image, "ok", "request, no", "said")
        ratings[name] = (Rating("bravo", "mira", "overall", 0, 3.0, "as I read it", "ok"),)
    data = run_data(tmp_path, samples, outputs, ratings)
    found = passed_on(data, {one.id: one for one in samples if X in one.urls})
    assert [(one.prompt, one.inputs, one.posted) for one in found.samples] == [
        *[("", (), ())] * 3,
        ("words", ("i",), ("p",)),
    ]
    shown = {key[0]: (one.image, one.reason, one.text) for key, one in found.outputs.items()}
    assert shown == {
        "edit": (None, None, None),
        "words": ("w", None, None),
        "copy": (None, None, None),
        "free": ("f", "request, no", "said"),
    }
    said = {name: one.explanation for name, (one,) in found.ratings.items()}
    assert said == {"edit": None, "words": None, "copy": None, "free": "as I read it"}
    assert all(one.value == 3.0 for (one,) in found.ratings.values())


def test_posts_without_rights_are_in_no_file(quickstart_run: Path, tmp_path: Path) -> None:
    """Posts of the quickstart are of X and of other platforms."""
    release, runs = read_release(quickstart_run / "release"), quickstart_run.parent
    rows = [row for name in BENCHMARKS for row in rows_of(release, name)]
    of_x = [row for row in rows if any("//x.com/" in url for url in row["post_urls"])]
    done = export(shipped_config(), tmp_path / "made", to="every-eval-ever", runs=runs)
    assert len(rows) > done.silenced == len(of_x) > 9
    files = [(done.path / one).read_text("utf-8") for one in done.files]
    said = {
        json.loads(line)["input"]["raw"]
        for text in files
        for line in text.splitlines()
        if '"raw"' in line
    }
    assert said == {"", *(row["prompt"] for row in rows if row not in of_x)}
    images = {digest for row in of_x for digest in row["input_images"] + row["output_images"]}
    assert not any(digest in text for digest in images for text in files)


def exported(config: Path, folder: Path, to: str = "lmms-eval", **options: Any) -> Any:
    return export(config, folder, to=to, runs=config.parent / "runs", **options)


def test_a_folder_of_somebody_is_not_replaced(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x", "utf-8")
    with pytest.raises(ReleaseError, match=r"holds 'thesis\.tex', which is not a part of it"):
        exported(finished, tmp_path)
    with pytest.raises(ReleaseError, match="is a file, expected a folder"):
        exported(finished, tmp_path / "thesis.tex")
    with pytest.raises(ConfigError, match=r"score with a config that has benchmark: ORG"):
        exported(finished, tmp_path / "new", "hub-eval")
    assert [one.name for one in tmp_path.iterdir()] == ["thesis.tex"]


def test_names_and_figures_are_checked_first(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--to: unknown format 'inspekt'; did you mean 'inspect'"):
        exported(finished, tmp_path / "a", "inspekt")
    config = shutil.copytree(finished.parent, tmp_path / "copy") / finished.name
    path = config.parent / "runs" / "evaluation" / "results.json"
    found = json.loads(path.read_text("utf-8"))
    found["benchmark"]["digests"]["text_to_image"] = "0" * 64
    path.write_text(json.dumps(found), "utf-8")
    with pytest.raises(RunError, match="are of other samples than its benchmark has now: run"):
        exported(config, tmp_path / "a")
    path.unlink()
    with pytest.raises(RunError, match="there are no figures in"):
        exported(config, tmp_path / "a")


def test_the_verb_tells_what_it_wrote(finished: Path, tmp_path: Path) -> None:
    given = ["export", str(finished), str(tmp_path / "made"), "--to", "lmms-eval", "--json"]
    done = CliRunner().invoke(app, [*given, "--runs", str(finished.parent / "runs")])
    told = json.loads(done.stdout)
    assert told["files"] == sorted(one.name for one in (tmp_path / "made").iterdir())
    assert told["silenced"] == 0


def test_names_become_names_of_files() -> None:
    names = ["A b", "a B", "../../etc", "", "\u202e\ud800", "é"]
    found = [*file_names(names).values()]
    assert found[0] == "a-b"
    assert found[2] == "etc"
    assert len({*found}) == len(names)
    assert all(one.isascii() and one.replace("-", "").isalnum() for one in found)
