"""Tasks of lmms-eval: by the fields that it documents, and by its own loader where it is."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import load_dataset

from echo_hf.report.export import export
from tests.report.export.runs_for_tests import DRAWN, GIVEN

SPLITS = ("image_to_image", "text_to_image")


@pytest.fixture(scope="module")
def folder(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("exported") / "task"
    export(finished, made, to="lmms-eval", runs=finished.parent / "runs")
    return made


class Loader(yaml.SafeLoader):
    """Reads `!function FILE.NAME` as that name."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def utils(folder: Path) -> Any:
    spec = spec_from_file_location("utils_of_task", folder / "utils.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("split", SPLITS)
def test_a_task_names_its_data_and_functions(folder: Path, split: str) -> None:
    text = (folder / f"echo_lumen_{split}.yaml").read_text("utf-8")
    task = yaml.load(text, Loader)  # noqa: S506 - it knows no more than the safe one
    assert (task["task"], task["output_type"]) == (f"echo_lumen_{split}", "generate_until")
    named = (task["doc_to_visual"], task["process_results"])
    every = [*named, *(one["aggregation"] for one in task["metric_list"])]
    for one in {*every} - {"mean"}:
        assert callable(getattr(utils(folder), one.removeprefix("utils.")))
    metrics = [one["metric"] for one in task["metric_list"]]
    assert metrics == (["drawn", "color_shift"] if split == SPLITS[0] else ["drawn"])
    dataset = load_dataset(task["dataset_path"], task["dataset_name"], split=task["test_split"])
    assert dataset[0][task["doc_to_text"]].startswith("draw ")


def test_outputs_are_kept_for_judges(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two gray stripes with a mean of 120, and an answer whose mean is 105, 115, 125 or 110."""
    monkeypatch.setenv("ECHO_HF_OUTPUTS", str(tmp_path / "kept"))
    task, drawn = utils(folder), tmp_path / "answer.png"
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


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_its_own_loader_takes_them(folder: Path) -> None:
    pytest.importorskip("lmms_eval", reason="needs lmms-eval: see `make test-extras`")
    from lmms_eval.tasks import TaskManager

    manager = TaskManager("WARNING", str(folder), include_defaults=False)
    names = [f"echo_lumen_{split}" for split in SPLITS]
    tasks = manager.load_task_or_group(names)
    for name in names:
        (doc, *_) = tasks[name].test_docs()
        assert tasks[name].doc_to_text(doc).startswith("draw ")
        assert len(tasks[name].doc_to_visual(doc)) == (1 if name == names[0] else 0)
        found = tasks[name].process_results(doc, ['{"images": []}'])
        assert found["drawn"] == 0
