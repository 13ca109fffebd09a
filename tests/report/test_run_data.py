"""A run's figures, rows and images as the report has them."""

from __future__ import annotations

import base64
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.errors import RunError
from echo_hf.images.store import ImageStore
from echo_hf.report.analysis.result import read_figures
from echo_hf.report.run_data import (
    AgreementFile,
    Output,
    Results,
    outputs_of,
    ratings_of,
    systems_of,
)
from echo_hf.report.thumbnails import MeanColors, Thumbnail, looked_at, reduced
from echo_hf.scores.board import BoardRow, ranked
from echo_hf.tables import OUTPUTS, RATINGS
from tests.report.run_data_for_tests import image, measured


def test_the_best_comes_first() -> None:
    values = {"a": 0.2, "b": None, "c": 0.7, "d": 0.7}
    rows = [BoardRow(name, value, value and (0.1, 0.9)) for name, value in values.items()]
    found = ranked(rows, [["c", "d"], ["a"]])
    expected = [("c", 1, 1), ("d", 1, 1), ("a", 3, 2), ("b", None, None)]
    assert [(row.system, row.rank, row.tier) for row in found] == expected
    # Without intervals there are no tiers.
    assert ranked([BoardRow("a", 0.5)], [["a"]])[0].tier is None


def _file(**values: object) -> bytes:
    metric = {"metric": "color_shift", "system": "anole", **values}
    details = {"a": {"samples": 1, "metrics": [metric]}}
    return json.dumps({"benchmark": {}, "protocol": "corrected", "details": details}).encode()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\xff", "results.json"),
        (b'{"benchmark": {}, "protocol": "corrected", "details": {"a": {}}}', "details.a.samples"),
        (_file(metric="../../outside"), "details.a.metrics.0.metric is '../../outside'"),
        (_file(result=measured(value=math.inf)), "MetricResult.value is"),
        (_file(result=measured(per_sample=[math.nan])), "MetricResult.per_sample.0 is"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "results.json"
    assert read_figures(path, AgreementFile, "agree") is None  # there only where people were asked
    path.write_bytes(text)
    with pytest.raises(RunError, match="run `echo-hf score` again") as error:
        read_figures(path, Results, "score")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_systems_without_a_rate_are_not_lost() -> None:
    """A system that drew, but was never rated, comes after those that were."""
    rows = [
        {"metric": "m", "protocol": "corrected", "split": "s", "system": name}
        for name in ("zulu", "bravo")
    ]
    written = {"benchmark": {}, "protocol": "corrected", "details": {"s": {"samples": 0}}}
    assert systems_of(Results.model_validate({**written, "results": rows}), {}) == ("bravo", "zulu")


def _table(table: Any, *rows: dict[str, Any]) -> pa.Table:
    every = [{**dict.fromkeys(table.columns), "sample_id": "s", **row} for row in rows]
    return pa.Table.from_pylist(every, table.schema)


def test_ratings_come_in_one_order_and_only_numbers_count() -> None:
    keys = [("overall", "b", "j", 0), ("overall", "a", "k", 0), ("overall", "a", "j", 1)]
    names = ("rubric", "system", "judge", "repeat", "rating")
    values = zip(keys, (math.nan, math.inf, 3.0), strict=True)
    rows = [dict(zip(names, (*key, value), strict=True)) for key, value in values]
    found = ratings_of(_table(RATINGS, *rows))["s"]
    assert [(one.rubric, one.system, one.judge, one.repeat) for one in found] == sorted(keys)
    assert [one.value for one in found] == [3.0, None, None]


def test_where_and_why_an_output_ended() -> None:
    refused = {"system": "a", "outcome": "refused", "stage": "output", "code": "nsfw"}
    found = outputs_of(_table(OUTPUTS, refused, {"system": "b", "outcome": "ok", "image": "0"}))
    assert found["s", "a"] == Output(None, "refused", "output, nsfw", None)
    assert found["s", "b"] == Output("0", "ok", None, None)


@given(st.integers(1, 900), st.integers(1, 900))
def test_a_copy_keeps_its_shape(width: int, height: int) -> None:
    small = reduced(Image.new("RGB", (width, height)), 100)
    (block,) = {n for n in range(1, 10) if max(width, height) in range(100 * n - 99, 100 * n + 1)}
    assert small.size == (-(-width // block), -(-height // block))


def test_copies_lie_beside_the_page_or_in_it(tmp_path: Path) -> None:
    images = ImageStore(tmp_path / "pictures")
    digest = images.put(image((10, 200, 30), (640, 320)))
    ((_, (found, counts)),) = looked_at([digest], images, tmp_path, {digest})
    ((_, (held, none)),) = looked_at([digest], images, None, ())
    assert found == Thumbnail(f"thumbs/{digest[:20]}.jpg", 320, 160)
    data = (tmp_path / found.source).read_bytes()
    with Image.open(io.BytesIO(data)) as small:
        assert small.format == "JPEG"
        middle = np.asarray(small.convert("RGB"))[80, 160]
    assert np.abs(middle - np.array([10, 200, 30])).max() <= 6
    kind, text = held.source.split(",")
    assert (kind, base64.b64decode(text)) == ("data:image/jpeg;base64", data)
    assert none is None
    assert [int(counts[channel].argmax()) for channel in range(3)] == [10, 200, 30]
    colors = MeanColors()
    colors.add(counts)
    colors.add(counts * 9)  # whatever its size, an image counts once
    assert (colors.images, colors.mean, colors.hexadecimal) == (2, (10, 200, 30), "#0ac81e")


def test_images_that_cannot_be_shown(tmp_path: Path) -> None:
    images = ImageStore(tmp_path / "pictures")
    thin = images.put(image((0, 0, 0), (1, 9)))
    gone = ["0" * 64, "../../etc/passwd", "<script>"]
    found = dict(looked_at([*gone, thin], images, tmp_path, ()))
    assert found == {**dict.fromkeys(gone, "the run does not hold it"), thin: "too_small"}
    assert list((tmp_path / "thumbs").iterdir()) == []
