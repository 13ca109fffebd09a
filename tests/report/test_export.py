"""A run in formats of others, read back by their own readers; what is refused, and stays here."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import shutil
from collections import defaultdict
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import fmean
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import load_dataset
from huggingface_hub import parse_eval_result_entries
from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.config.checks import ModelIdentity
from echo_hf.config.evaluation import EvaluationConfig
from echo_hf.config.systems import shipped_config
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ConfigError, HubError, ReleaseError, RunError
from echo_hf.hub.load import load_manifest
from echo_hf.hub.release import read_config_rows, read_release
from echo_hf.judging.imports import NotImported, import_judgements
from echo_hf.judging.results import SavedIdentity
from echo_hf.judging.score import score
from echo_hf.report.csv_tables import write_csv
from echo_hf.report.export import (
    ExportedRun,
    export,
    make_file_names,
    remove_restricted,
    write_hub_eval,
)
from echo_hf.report.run_data import ReportSample, SavedOutput, SavedRating
from echo_hf.tables import OUTPUTS, RATINGS
from tests.judging import run_for_tests as small
from tests.judging.run_for_tests import output, put, rating, root, stripes, write
from tests.report.run_data_for_tests import WORDS as HOSTILE
from tests.report.run_data_for_tests import ratings_of, results, run_data


def exported(config: Path, folder: Path, to: str = "lmms-eval", **options: Any) -> Any:
    return export(config, folder, to=to, runs=config.parent / "runs", **options)


X, ELSEWHERE = "https://x.com/i/status/1", "https://example.org/1"
SYSTEM = "bravo `|` [x](javascript:1)"


def published(folder: Path, finished: Path, on_hub: str | None = "my-lab/echo@v1") -> ExportedRun:
    """A run on a benchmark on the Hub."""
    samples = [ReportSample(id=f"s{at:02}", split="text_to_image", prompt="x") for at in range(12)]
    ratings = {one.id: tuple(ratings_of({"alpha": [3], SYSTEM: [2]})) for one in samples}
    models = {"alpha": ModelIdentity(model="northlight/alpha-2")}
    found = results(samples, ratings, systems=models)
    found = found.model_copy(update={"benchmark": SavedIdentity(on_hub=on_hub)})
    data = run_data(folder, samples, None, ratings, results=found, systems=("alpha", SYSTEM))
    config = EvaluationConfig(name="invented", benchmark=on_hub or "folder")
    manifest = load_manifest(finished.parent / "benchmark")
    return ExportedRun(data, config, "my-lab/echo@v1", manifest, None)


# https://github.com/huggingface/hub-docs/blob/main/eval_results.yaml, field for field.
EVAL_RESULTS_SCHEMA = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "dataset": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "pattern": "^[^/]+/[^/]+$"},
                    "task_id": {"enum": ["image_to_image", "text_to_image"]},
                    "revision": {"type": "string", "pattern": "^[0-9a-f]{40}$"},
                },
                "required": ["id", "task_id"],
                "additionalProperties": False,
            },
            "value": {"type": "number"},
            "verifyToken": {"type": "string"},
            "date": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}"},
            "source": {
                "type": "object",
                "properties": {
                    "url": {"type": "string", "pattern": "^https://"},
                    **{name: {"type": "string"} for name in ("name", "user", "org")},
                },
                "required": ["url"],
                "additionalProperties": False,
            },
            "notes": {"type": "string"},
        },
        "required": ["dataset", "value"],
        "additionalProperties": False,
    },
}


def test_the_hub_reads_the_results_of_each_model(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    write_hub_eval(published(tmp_path, finished), folder)
    request = (folder / "request.md").read_text("utf-8")
    for system, name in make_file_names(["alpha", SYSTEM]).items():
        place = folder / name / ".eval_results" / "echo.yaml"
        entries = yaml.safe_load(place.read_text("utf-8"))
        jsonschema.validate(entries, EVAL_RESULTS_SCHEMA)
        (one,) = parse_eval_result_entries(entries)
        assert (one.dataset_id, one.task_id) == ("my-lab/echo", "text_to_image")
        assert one.value == (1 if system == "alpha" else 0)
        assert str(place.relative_to(folder)) in request
    assert "- northlight/alpha-2: `alpha/.eval_results/echo.yaml`" in request
    assert "bravo \\`\\|\\` \\[x\\](javascript:1)" in request
    told = yaml.safe_load((folder / "eval.yaml").read_text("utf-8"))
    assert {one["id"] for one in told["tasks"]} == {"image_to_image", "text_to_image"}
    assert all(f"`{task['id']}` (config `{task['config']}`" in request for task in told["tasks"])
    # It asks for a place on the list alone: no framework is to be registered.
    assert "Please add my-lab/echo to the list of benchmarks" in request
    assert "evaluation_framework" not in told
    assert "eval.ts" not in request


def test_a_name_that_is_no_repository_reaches_no_request(finished: Path, tmp_path: Path) -> None:
    run = published(tmp_path, finished, "my-lab/echo) [x](javascript:1@v1")
    with pytest.raises(HubError, match="is not a name of a repository"):
        write_hub_eval(run, tmp_path)


def test_what_the_hub_cannot_show_is_said(finished: Path, tmp_path: Path) -> None:
    run = published(tmp_path, finished, None)
    with pytest.raises(
        ConfigError, match=r"of 'invented' is a folder, .* score with a config that has benchmark"
    ):
        write_hub_eval(run, tmp_path)
    with pytest.raises(ConfigError, match=r"/api/datasets/ORGANIZATION/NAME/croissant$"):
        export(run.config, tmp_path / "b", to="croissant")


def test_what_may_not_be_passed_on_stays_here(tmp_path: Path) -> None:
    """As a release leaves it out: words, posted images, and edits of them."""
    made = {"edit": (X, "e"), "words": (X, "w"), "copy": (X, "p"), "free": (ELSEWHERE, "f")}
    samples, outputs, ratings = [], {}, {}
    for name, (url, image) in made.items():
        known = {"inputs": ("i",) if name in ("edit", "free") else (), "posted": ("p",)}
        samples.append(ReportSample(name, "text_to_image", "words", urls=(url,), **known))
        outputs[name, "bravo"] = SavedOutput(image, "ok", "request, no", "said")
        ratings[name] = (SavedRating("bravo", "mira", "overall", 0, 3.0, "as I read it", "ok"),)
    data = run_data(tmp_path, samples, outputs, ratings)
    found = remove_restricted(data, {one.id: one for one in samples if X in one.urls})
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
    rows = [row for name in BENCHMARKS for row in read_config_rows(release, name)]
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


def test_a_folder_of_somebody_is_not_replaced(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x", "utf-8")
    with pytest.raises(ReleaseError, match=r"holds 'thesis\.tex', which is not a part of it"):
        exported(finished, tmp_path)
    with pytest.raises(ReleaseError, match="is a file, expected a folder"):
        exported(finished, tmp_path / "thesis.tex")
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
    found = [*make_file_names(names).values()]
    assert found[0] == "a-b"
    assert found[2] == "etc"
    assert len({*found}) == len(names)
    assert all(one.isascii() and one.replace("-", "").isalnum() for one in found)


GIVEN = stripes((100, 100, 100), (140, 140, 140))
DRAWN = {
    "ash": stripes((90, 90, 90), (150, 150, 150)),
    "birch <b>": stripes((60, 80, 100), (140, 150, 160)),
}
EDITS, WORDS = {"lamp": [GIVEN]}, ("boat", "fox", "tree")
SPLITS = BENCHMARKS
RATED = {"ash": (9, 7, 5, 4), "birch <b>": (8, 7, 6, 2)}
JUDGE = {
    "name": "mira",
    "developer": "Northlight",
    "status": "current",
    "engine": {"kind": "vllm", "model": "northlight/mira-7b"},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The config of a run whose ratings are written down here; nobody may change it."""
    folder = tmp_path_factory.mktemp("scored")
    small.run(folder, EDITS, WORDS)
    config = folder / "evaluation.yaml"
    data = yaml.safe_load(config.read_text("utf-8"))
    config.write_text(yaml.safe_dump({**data, "judges": [JUDGE]}), "utf-8")
    outputs, ratings = [], []
    for system, values in RATED.items():
        image = put(folder, DRAWN[system])
        for name, value in zip(("lamp", *WORDS), values, strict=True):
            inputs = EDITS.get(name, [])
            known = {"sample_digest": small.digest_of(name, inputs)}
            outputs.append(output(name, system, inputs, image=image))
            ratings.append(rating(name, system, value, explanation=HOSTILE[0], **known))
            ratings.append(rating(name, system, value + 1, judge="wren", repeat=1, **known))
    outputs.append(output("boat", "cedar", outcome="refused", text=HOSTILE[1]))
    write(folder, OUTPUTS, outputs)
    write(folder, RATINGS, ratings)
    score(config, runs=folder / "runs", n_boot=50)
    return config


Json = dict[str, Any]


@pytest.fixture(scope="module")
def eee(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("exported") / "eee"
    return exported(finished, made, "every-eval-ever", organization="my lab").path


def records(eee: Path) -> dict[str, Json]:
    found = [json.loads(one.read_bytes()) for one in eee.rglob("*.json")]
    return {one["model_info"]["name"]: one for one in found}


def instances(eee: Path, record: Json) -> list[Json]:
    told = record["detailed_evaluation_results"]
    data = (eee / told["file_path"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == told["checksum"]
    lines = [json.loads(line) for line in data.splitlines()]
    assert len(lines) == told["total_rows"]
    return lines


def test_records_are_valid(eee: Path, test_data: Path) -> None:
    """Nothing that is no record ends in .json, which the project's readers take for one."""
    whole, part = (
        jsonschema.Draft7Validator(
            json.loads(
                (test_data / "schemas" / f"every_eval_ever{one}_0.3.0.schema.json").read_bytes()
            )
        )
        for one in ("", "_instance")
    )
    found = records(eee)
    assert {*found} == {*RATED}
    assert len({one["evaluation_id"] for one in found.values()}) == len(RATED)
    for record in found.values():
        assert [error.message for error in whole.iter_errors(record)] == []
        lines = instances(eee, record)
        assert lines
        for line in lines:
            assert [error.message for error in part.iter_errors(line)] == []
            assert line["evaluation_id"] == record["evaluation_id"]
    names = {one.suffix for one in eee.rglob("*") if one.is_file()}
    assert names == {".json", ".jsonl"}


def test_every_figure_is_there_with_its_interval(eee: Path, finished: Path) -> None:
    path = finished.parent / "runs" / "evaluation" / "results.json"
    rows = [one for one in json.loads(path.read_bytes())["results"] if one["value"] is not None]
    told = {
        (name, one["evaluation_result_id"]): one["score_details"]
        for name, record in records(eee).items()
        for one in record["evaluation_results"]
    }
    assert len(rows) == len(told) > 8
    for row in rows:
        one = told[row["system"], f"{row['split']}/{row['metric']}/{row['protocol']}"]
        assert one["score"] == row["value"]
        ends = one["uncertainty"].get("confidence_interval", {"lower": None, "upper": None})
        assert (ends["lower"], ends["upper"]) == (row["low"], row["high"])


def test_samples_add_up_to_the_win_rate(eee: Path, finished: Path) -> None:
    """Of two systems that all judges rated everywhere, the rate is the mean over samples."""
    for system, record in records(eee).items():
        scores = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
        by_result = defaultdict(list)
        for line in instances(eee, record):
            by_result[line["evaluation_result_id"]].append(line["evaluation"]["score"])
            assert line["output"]["raw"] == [f"sha256:{put(finished.parent, DRAWN[system])}"]
        assert {*by_result} == {f"{one}/win_rate/corrected" for one in SPLITS}
        for key, values in by_result.items():
            assert fmean(values) == pytest.approx(scores[key]["score_details"]["score"])


def test_judges_say_who_they_are_and_what_they_were_asked(eee: Path) -> None:
    """An instruction that nobody noted is not made up."""
    record = records(eee)["ash"]
    (rate, *_) = (
        one
        for one in record["evaluation_results"]
        if "win_rate/corr" in one["evaluation_result_id"]
    )
    told = rate["metric_config"]["llm_scoring"]
    mira, wren = (one["model_info"] for one in told["judges"])
    assert mira["id"] == "northlight/mira-7b"
    assert wren["id"] == "unknown/wren"
    assert (told["input_prompt"], told["aggregation_method"]) == ("", "majority_vote")
    assert record["source_metadata"]["source_organization_name"] == "my lab"


@pytest.fixture(scope="module")
def lmms(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(finished, tmp_path_factory.mktemp("exported") / "task").path


class Loader(yaml.SafeLoader):
    """Reads `!function FILE.NAME` as that name."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def utils(lmms: Path) -> Any:
    spec = spec_from_file_location("utils_of_task", lmms / "utils.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("split", SPLITS)
def test_a_task_names_its_data_and_functions(lmms: Path, split: str) -> None:
    text = (lmms / f"echo_lumen_{split}.yaml").read_text("utf-8")
    task = yaml.load(text, Loader)  # noqa: S506 - it knows no more than the safe one
    assert (task["task"], task["output_type"]) == (f"echo_lumen_{split}", "generate_until")
    named = (task["doc_to_visual"], task["process_results"])
    every = [*named, *(one["aggregation"] for one in task["metric_list"])]
    for one in {*every} - {"mean"}:
        assert callable(getattr(utils(lmms), one.removeprefix("utils.")))
    metrics = [one["metric"] for one in task["metric_list"]]
    assert metrics == (["drawn", "color_shift"] if split == SPLITS[0] else ["drawn"])
    dataset = load_dataset(task["dataset_path"], task["dataset_name"], split=task["test_split"])
    assert dataset[0][task["doc_to_text"]].startswith("draw ")


def test_outputs_are_kept_for_judges(
    lmms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two gray stripes with a mean of 120, and an answer whose mean is 105, 115, 125 or 110."""
    monkeypatch.setenv("ECHO_HF_OUTPUTS", str(tmp_path / "kept"))
    monkeypatch.setenv("ECHO_HF_ANSWERS", str(tmp_path))
    task, drawn = utils(lmms), tmp_path / "answer.png"
    drawn.write_bytes(DRAWN["birch <b>"])
    doc = {"id": "lamp", "prompt": "draw lamp", "input_images": [{"bytes": GIVEN, "path": None}]}
    one = task.process_results(doc, [json.dumps({"text": "", "images": [str(drawn)]})])
    assert one["drawn"] == 1
    assert (tmp_path / "kept" / "lamp.png").read_bytes() == DRAWN["birch <b>"]
    expected = sum((given - made) ** 2 for given, made in ((120, 100), (120, 115), (120, 130)))
    assert task.color_shift([one["color_shift"]]) == pytest.approx(expected**0.5)
    images = [None, 5, "", [], [None], {"a": 1}, ["/nowhere.png"], ["x" * 5000]]
    for answer in ("", "no", "{}", "[]", *(json.dumps({"images": one}) for one in images)):
        assert task.process_results(doc, [answer])["drawn"] == 0


def test_an_answer_and_an_id_lead_to_no_other_folder(
    lmms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer is a model's text, and an id a stranger's."""
    answers, kept = tmp_path / "answers", tmp_path / "kept"
    answers.mkdir()
    monkeypatch.chdir(answers)
    monkeypatch.setenv("ECHO_HF_OUTPUTS", str(kept))
    (tmp_path / "own.png").write_bytes(DRAWN["ash"])
    (answers / "link.png").symlink_to(tmp_path / "own.png")
    (answers / "made.png").write_bytes(DRAWN["ash"])
    os.mkfifo(answers / "pipe.png")
    task, doc = utils(lmms), {"id": "lamp", "input_images": []}
    strange = [str(tmp_path / "own.png"), "../own.png", "link.png", "pipe.png", "/etc/passwd"]
    for path in (*strange, "/dev/zero", "file:///etc/passwd"):
        answer = json.dumps({"images": [path]})
        assert task.process_results(doc, [answer])["drawn"] == 0, path
    assert not kept.exists()
    answer = json.dumps({"images": ["made.png"]})
    for name in ("../own", "/nowhere/own", "a/b", "..", "", ".hidden", "a\\b"):
        with pytest.raises(ValueError, match="is no name of a file"):
            task.process_results({**doc, "id": name}, [answer])
    assert not kept.exists()
    assert task.process_results(doc, [answer])["drawn"] == 1
    assert [one.name for one in kept.iterdir()] == ["lamp.png"]


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_its_own_loader_takes_them(lmms: Path) -> None:
    pytest.importorskip("lmms_eval", reason="needs lmms-eval: see `make test-extras`")
    from lmms_eval.tasks import TaskManager

    manager = TaskManager("WARNING", str(lmms), include_defaults=False)
    names = [f"echo_lumen_{split}" for split in SPLITS]
    tasks = manager.load_task_or_group(names)
    for name in names:
        (doc, *_) = tasks[name].test_docs()
        assert tasks[name].doc_to_text(doc).startswith("draw ")
        assert len(tasks[name].doc_to_visual(doc)) == (1 if name == names[0] else 0)
        found = tasks[name].process_results(doc, ['{"images": []}'])
        assert found["drawn"] == 0


def inspect(test: Any) -> Any:
    return pytest.mark.extras(pytest.mark.filterwarnings("ignore:::inspect_ai")(test))


@pytest.fixture(scope="module")
def logged(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    made = shutil.copytree(finished.parent, tmp_path_factory.mktemp("exported") / "copy")
    export(made / finished.name, made / "logs", to="inspect", runs=made / "runs")
    return made


@inspect
def test_a_log_reads_back(logged: Path) -> None:
    from inspect_ai.log import read_eval_log

    names = sorted(one.name for one in (logged / "logs").iterdir())
    files = [f"{one}_{split}.eval" for one in ("ash", "birch-b") for split in SPLITS]
    assert names == [*files, "cedar_text_to_image.eval"]
    log = read_eval_log(str(logged / "logs" / files[2]), resolve_attachments=True)
    (sample,) = log.samples
    asked, answer = sample.messages
    assert asked.content[0].text == "draw lamp"
    images = [
        base64.b64decode(one.image.partition(",")[2]) for one in (asked.content[1], *answer.content)
    ]
    assert images == [GIVEN, DRAWN["birch <b>"]]
    assert {name: one.value for name, one in sample.scores.items()} == {
        "mira overall 0": 8,
        "wren overall 1": 9,
    }
    assert sample.scores["mira overall 0"].explanation == HOSTILE[0]
    found = json.loads((root(logged) / "results.json").read_bytes())["results"]
    rows = [one for one in found if (one["system"], one["split"]) == ("birch <b>", SPLITS[0])]
    rates = {
        f"{one['metric']} ({one['protocol']})": one["value"]
        for one in rows
        if one["value"] is not None
    }
    told = {one.name: next(iter(one.metrics.values())).value for one in log.results.scores}
    assert told == rates
    cedar = read_eval_log(str(logged / "logs" / "cedar_text_to_image.eval"))
    assert cedar.samples[0].messages[1].text == "refused"


@inspect
def test_the_viewer_bundles_them(logged: Path) -> None:
    """Words of others stay data: the page that it writes has none of them."""
    from inspect_ai.log import bundle_log_dir

    bundle_log_dir(str(logged / "logs"), str(logged / "page"))
    assert len([*(logged / "page" / "logs").glob("*.eval")]) == 5
    assert HOSTILE[0] not in (logged / "page" / "index.html").read_text("utf-8")


@inspect
def test_a_log_of_others_needs_no_names_of_ours(logged: Path, tmp_path: Path) -> None:
    """Samples by prompt, systems by model, scores by their own names; letters are no ratings."""
    from inspect_ai import log, model, scorer

    asked = "draw boat"
    answer = model.ChatMessageAssistant(content="I would rather not")
    scores = {"model_graded": scorer.Score(value="C"), "wren": scorer.Score(value=0.5)}
    sample = log.EvalSample(id=1, epoch=2, input=asked, target="", messages=[answer], scores=scores)
    spec = log.EvalSpec(
        created="2026-03-02T10:00:00+00:00",
        task="theirs",
        dataset=log.EvalDataset(),
        model="northlight/lumen",
        config=log.EvalConfig(),
    )
    log.write_eval_log(log.EvalLog(eval=spec, samples=[sample]), str(tmp_path / "one.eval"))
    small.run(tmp_path, EDITS, WORDS)
    config, runs = tmp_path / "evaluation.yaml", tmp_path / "runs"
    done = import_judgements(config, tmp_path / "one.eval", runs=runs, format="inspect")
    assert (done.rows, done.systems) == ({"outputs": 1, "ratings": 2}, ("northlight/lumen",))
    columns = ["sample_id", "judge", "repeat", "rating", "outcome"]
    found = pq.read_table(root(tmp_path) / "ratings.parquet").select(columns).to_pylist()
    assert [[*row.values()] for row in found] == [
        ["boat", "model_graded", 1, None, "no_rating"],
        ["boat", "wren", 1, 0.5, "ok"],
    ]
    (tmp_path / "two.eval").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(RunError, match=r"two\.eval' is no log of inspect_ai"):
        import_judgements(config, tmp_path / "two.eval", runs=runs, format="inspect")


@inspect
def test_what_was_exported_comes_back(logged: Path, tmp_path: Path) -> None:
    small.run(tmp_path, EDITS, WORDS)
    config, runs = tmp_path / "evaluation.yaml", tmp_path / "runs"
    done = import_judgements(config, logged / "logs", runs=runs, format="inspect")
    assert (done.rows, done.left_out) == ({"outputs": 9, "ratings": 16}, {})
    same = {
        "outputs": ["sample_id", "system", "sample_digest", "image", "outcome"],
        "ratings": ["sample_id", "system", "judge", "rubric", "repeat", "rating", "explanation"],
    }
    for name, columns in same.items():
        mine, theirs = (
            pq.read_table(root(one) / f"{name}.parquet").select(columns).to_pylist()
            for one in (logged, tmp_path)
        )
        assert theirs == sorted(mine, key=lambda row: [*map(str, row.values())])
    own = logged / "evaluation.yaml"
    again = import_judgements(own, logged / "logs", runs=logged / "runs", format="inspect")
    assert again.left_out == {NotImported.TAKEN: 25}


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def test_tidy_rows_are_those_of_the_run(finished: Path, tmp_path: Path) -> None:
    made = exported(finished, tmp_path / "made", "csv")
    assert made.files == ("board.csv", "metrics.csv", "ratings.csv")
    board, metrics, ratings = (read_csv(made.path / name) for name in made.files)
    figures = json.loads((root(finished.parent) / "results.json").read_text("utf-8"))["results"]
    told = {(row["split"], row["metric"], row["system"], row["protocol"]): row for row in metrics}
    assert len(told) == len(metrics) == len(figures)
    for row in figures:
        shown = told[row["split"], row["metric"], row["system"], row["protocol"]]
        for name in ("value", "low", "high", "n", "coverage"):
            assert (float(shown[name]) if shown[name] else None) == row[name]
    corrected = [row for row in figures if row["metric"] == "win_rate"]
    corrected = [row for row in corrected if row["protocol"] == board[0]["protocol"]]
    assert {
        (row["split"], row["system"], float(row["win_rate"])) for row in board if row["win_rate"]
    } == {
        (row["split"], row["system"], row["value"]) for row in corrected if row["value"] is not None
    }
    rows = pq.read_table(root(finished.parent) / "ratings.parquet").to_pylist()
    key = ("sample_id", "system", "judge", "rubric", "repeat")
    expected = {tuple(str(row[name]) for name in key): row["rating"] for row in rows}
    assert {
        tuple(row[name] for name in key): float(row["rating"]) if row["rating"] else None
        for row in ratings
    } == expected


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "＝"])
def test_no_text_of_a_stranger_is_a_formula(finished: Path, tmp_path: Path, start: str) -> None:
    run = published(tmp_path, finished)
    words = f'{start}HYPERLINK("https://example.org/","x"), and\nmore \ud800'
    ratings = {
        name: tuple(replace(one, explanation=words) for one in some)
        for name, some in run.data.ratings.items()
    }
    write_csv(replace(run, data=replace(run.data, ratings=ratings)), tmp_path)
    rows = read_csv(tmp_path / "ratings.csv")
    assert len(rows) == 24
    assert {row["explanation"] for row in rows} == {"'" + words.replace("\ud800", "\ufffd")}
    assert {row["rating"] for row in rows} == {"3", "2"}
