"""Records of Every Eval Ever, by its own schema, and against the figures of the run."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import jsonschema
import pytest

from echo_hf.report.export import export
from tests.judging.run_for_tests import put
from tests.report.export.runs_for_tests import DRAWN, RATED

Json = dict[str, Any]


@pytest.fixture(scope="module")
def folder(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("exported") / "eee"
    runs = finished.parent / "runs"
    export(finished, made, to="every-eval-ever", runs=runs, organization="my lab")
    return made


def records(folder: Path) -> dict[str, Json]:
    found = [json.loads(one.read_bytes()) for one in folder.rglob("*.json")]
    return {one["model_info"]["name"]: one for one in found}


def instances(folder: Path, record: Json) -> list[Json]:
    told = record["detailed_evaluation_results"]
    data = (folder / told["file_path"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == told["checksum"]
    lines = [json.loads(line) for line in data.splitlines()]
    assert len(lines) == told["total_rows"]
    return lines


def test_records_are_valid(folder: Path, test_data: Path) -> None:
    """Nothing that is no record ends in .json, which the project's readers take for one."""
    whole, part = (
        jsonschema.Draft7Validator(
            json.loads(
                (test_data / "schemas" / f"every_eval_ever{one}_0.3.0.schema.json").read_bytes()
            )
        )
        for one in ("", "_instance")
    )
    found = records(folder)
    assert {*found} == {*RATED}
    assert len({one["evaluation_id"] for one in found.values()}) == len(RATED)
    for record in found.values():
        assert [error.message for error in whole.iter_errors(record)] == []
        lines = instances(folder, record)
        assert lines
        for line in lines:
            assert [error.message for error in part.iter_errors(line)] == []
            assert line["evaluation_id"] == record["evaluation_id"]
    names = {one.suffix for one in folder.rglob("*") if one.is_file()}
    assert names == {".json", ".jsonl"}


def test_every_figure_is_there_with_its_interval(folder: Path, finished: Path) -> None:
    path = finished.parent / "runs" / "evaluation" / "results.json"
    rows = [one for one in json.loads(path.read_bytes())["results"] if one["value"] is not None]
    told = {
        (name, one["evaluation_result_id"]): one["score_details"]
        for name, record in records(folder).items()
        for one in record["evaluation_results"]
    }
    assert len(rows) == len(told) > 8
    for row in rows:
        one = told[row["system"], f"{row['split']}/{row['metric']}/{row['protocol']}"]
        assert one["score"] == row["value"]
        ends = one["uncertainty"].get("confidence_interval", {"lower": None, "upper": None})
        assert (ends["lower"], ends["upper"]) == (row["low"], row["high"])


def test_samples_add_up_to_the_win_rate(folder: Path, finished: Path) -> None:
    """Of two systems that all judges rated everywhere, the rate is the mean over samples."""
    for system, record in records(folder).items():
        scores = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
        by_result = defaultdict(list)
        for line in instances(folder, record):
            by_result[line["evaluation_result_id"]].append(line["evaluation"]["score"])
            assert line["output"]["raw"] == [f"sha256:{put(finished.parent, DRAWN[system])}"]
        assert {*by_result} == {f"{one}/win_rate/corrected" for one in SPLITS}
        for key, values in by_result.items():
            assert fmean(values) == pytest.approx(scores[key]["score_details"]["score"])


SPLITS = ("image_to_image", "text_to_image")


def test_judges_say_who_they_are_and_what_they_were_asked(folder: Path) -> None:
    """An instruction that nobody noted is not made up."""
    record = records(folder)["ash"]
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
