"""What a run holds beside its stages goes into its release, as far as it is about its samples."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf.errors import RunError
from echo_hf.hub.run_tables import (
    ReleasedTables,
    read_results,
    released_models,
    select_released_tables,
)
from echo_hf.tables import APPLICABILITY, OUTPUTS, RATINGS, RESPONSES, RESULTS, Table
from tests.hub.conftest import Samples


def kept(root: Path, table: Table, *rows: dict[str, Any]) -> None:
    full = [{**dict.fromkeys(table.columns), **row} for row in rows]
    pq.write_table(pa.Table.from_pylist(full, schema=table.schema), root / f"{table.name}.parquet")


Read = Callable[[], ReleasedTables]


@pytest.fixture
def read(tmp_path: Path, samples: Samples) -> Read:
    every = samples(*({"sample_digest": f"digest{number}"} for number in range(3)))
    released = {"text_to_image": every.select([1]), "analysis": every}
    return lambda: select_released_tables(tmp_path, released)


def test_only_rows_about_released_samples_go_on(tmp_path: Path, read: Read) -> None:
    assert read() == ({}, {})
    ratings = [
        {"sample_id": "sample0", "sample_digest": "digest0", "rating": 7.0},
        {"sample_id": "sample1", "sample_digest": "older", "rating": 3.0},
        {"sample_id": "sample1", "sample_digest": None, "rating": 3.5},
        {"sample_id": "gone", "sample_digest": "digest9", "rating": 9.0},
    ]
    kept(tmp_path, RATINGS, *ratings)
    kept(tmp_path, APPLICABILITY, {"sample_id": "sample2"}, {"sample_id": "gone"})
    kept(tmp_path, RESPONSES, {"request_key": "ab", "sources": ["u"]})
    kept(tmp_path, OUTPUTS)
    results_file(tmp_path, {"results": []})
    found = read()
    assert found.configs["ratings"]["rating"][:] == [7.0]
    assert found.configs["applicability"]["sample_id"][:] == ["sample2"]
    # What is about no sample goes on whole, and an empty table as an empty config.
    assert found.configs["responses"]["sources"][:] == [["u"]]
    empty = found.configs["outputs"]
    assert (len(empty), empty.features) == (0, OUTPUTS.features)
    assert set(found.configs) == {"outputs", "ratings", "applicability", "responses", "results"}
    assert found.left_out == {
        "ratings": {"not_released": 1, "other_sample": 2},
        "applicability": {"not_released": 1},
    }


def test_a_file_that_is_no_table_is_one_line(tmp_path: Path, read: Read) -> None:
    (tmp_path / "outputs.parquet").write_bytes(b"PAR1 no, it is not")
    with pytest.raises(RunError, match=r"outputs\.parquet.*make it again") as raised:
        read()
    assert "\n" not in str(raised.value)


WIN_RATE = {
    "metric": "win_rate",
    "protocol": "corrected",
    "split": "text_to_image",
    "system": "b",
    "value": 0.71,
    "low": 0.66,
    "high": 0.75,
    "n": 848,
    "coverage": 0.99,
    "definition": {"missing": "exclude", "judges": ["雨"]},
}
COLOR_SHIFT = {**WIN_RATE, "metric": "color_shift", "value": None, "definition": None}


def results_file(path: Path, data: Any) -> Path:
    (path / "results.json").write_text(json.dumps(data), "utf-8")
    return path / "results.json"


def test_every_figure_is_a_row(tmp_path: Path) -> None:
    data = {"results": [WIN_RATE, {**WIN_RATE, "system": "a"}, COLOR_SHIFT], "matrix": [[1]]}
    found = read_results(results_file(tmp_path, data))
    assert found.features == RESULTS.features
    assert [(row["metric"], row["system"]) for row in found] == [
        ("color_shift", "b"),
        ("win_rate", "a"),
        ("win_rate", "b"),
    ]
    row = found[2]
    assert json.loads(row.pop("definition")) == WIN_RATE["definition"]
    assert row == {name: value for name, value in WIN_RATE.items() if name != "definition"}
    assert (found[0]["value"], found[0]["definition"]) == (None, "null")


def test_a_row_says_which_model_answered_to_the_names_in_it(tmp_path: Path) -> None:
    """Of the names in its definition, else of its own system; an older file says nothing."""
    models = {name: {"model": f"{name}-1", "status": "current"} for name in ("a", "b", "雨")}
    models["c"] = {}
    board = {**WIN_RATE, "definition": {"systems": ["a", "b"], "judges": ["雨"]}}
    alone = {**COLOR_SHIFT, "definition": {"direction": "lower"}}
    data = {"results": [board, alone, {**COLOR_SHIFT, "system": "c"}]}
    named = {"systems": models, "judges": models}
    rows = read_results(results_file(tmp_path, {**data, **named}))
    told = [(json.loads(row["definition"]) or {}).get("answered_by", {}) for row in rows]
    assert [{kind: [*one] for kind, one in each.items()} for each in told] == [
        {"systems": ["b"]},
        {},
        {"systems": ["a", "b"], "judges": ["雨"]},
    ]
    assert told[2]["judges"]["雨"]["model"] == "雨-1"
    assert released_models(rows)["systems"]["b"].model == "b-1"
    assert released_models(read_results(results_file(tmp_path, data))) == {
        "systems": {},
        "judges": {},
    }
    assert released_models(None) == {"systems": {}, "judges": {}}


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ([], "the file"),
        ({}, "results"),
        ({"results": [{**WIN_RATE, "coverage": 1.5}]}, r"results\.0\.coverage is '1\.5'"),
        ({"results": [{**WIN_RATE, "mood": 1}]}, r"results\.0\.mood"),
        ({"results": [{**WIN_RATE, "value": float("nan")}]}, r"results\.0\.value"),
        ({"results": [{**WIN_RATE, "protocol": "ours"}]}, r"results\.0\.protocol is 'ours'"),
    ],
)
def test_another_shape_is_refused(tmp_path: Path, data: Any, place: str) -> None:
    with pytest.raises(RunError, match=rf"results\.json.*{place}") as raised:
        read_results(results_file(tmp_path, data))
    assert "\n" not in str(raised.value)
