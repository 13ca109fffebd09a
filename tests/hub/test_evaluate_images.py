"""Images as predictions and references, before `evaluate` has them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.hub.evaluate_configs import IMAGES, MOST_BATCH_BYTES, MOST_SAMPLES, store_images
from tests.images_for_tests import encoded
from tests.metrics.images_for_metrics import noise

PNG = encoded(noise(0), "PNG")
SIDE = 200


def test_rows_are_files_and_lists_of_files(tmp_path: Path) -> None:
    """Bytes or a path each; null stays null, also in a list."""
    path = tmp_path / "a.png"
    (part,) = store_images([PNG, path, None], [[PNG, None], path, []])
    data, place = {"bytes": PNG, "path": None}, {"bytes": None, "path": str(path)}
    assert part == {"predictions": [data, place, None], "references": [[data, None], [place], []]}


def test_what_is_stored_is_read_as_it_was() -> None:
    """Inputs and outputs change places: references are inputs, predictions are outputs."""
    (part,) = store_images([PNG, None], [[PNG], []])
    table = pa.Table.from_pydict(dict(part), IMAGES.features.arrow_schema)
    inputs, outputs = IMAGES.read(**{name: table[name] for name in table.column_names})
    stored = {"bytes": PNG, "path": None}
    assert list(inputs) == [[stored], []]
    assert list(outputs) == [stored, None]


@pytest.mark.parametrize("count", [0, 1, MOST_SAMPLES, MOST_SAMPLES + 1, 3 * MOST_SAMPLES])
def test_a_part_has_so_many_samples(count: int) -> None:
    """None is lost, and none is empty."""
    parts = [len(part["predictions"]) for part in store_images([PNG] * count, [None] * count)]
    assert sum(parts) == count
    assert all(0 < one <= MOST_SAMPLES for one in parts)


def test_a_part_has_so_many_bytes() -> None:
    """It ends with the sample that reaches them."""
    half = bytes(MOST_BATCH_BYTES // 2)
    parts = [len(part["references"]) for part in store_images([half] * 5, [None] * 5)]
    assert parts == [2, 2, 1]
    assert [len(part["references"]) for part in store_images([half] * 2, [half] * 2)] == [1, 1]


def _images(count: int) -> Iterator[Image.Image]:
    for seed in range(count):
        yield noise(seed, size=(SIDE, SIDE))


def test_memory_does_not_grow_with_the_batch(load_measure: Callable[..., Any]) -> None:
    """Of images that are made as they are asked for, a few parts are held at any time."""
    metric, peaks = load_measure("color_shift"), []
    metric.add_batch(predictions=_images(8), references=_images(8))
    for count in (24, 120):
        tracemalloc.start()
        try:
            metric.add_batch(predictions=_images(count), references=_images(count))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert len(metric) == 8 + 24 + 120
    assert peaks[1] < 1.3 * peaks[0]


def test_nothing_of_a_bad_batch_stays(load_measure: Callable[..., Any]) -> None:
    """Though its first parts were right, and whatever was wrong about the last."""
    metric, good = load_measure("color_shift"), [PNG] * (2 * MOST_SAMPLES)
    metric.add_batch(predictions=[PNG], references=[PNG])
    for made, given in (([*good, 7], [*good, PNG]), ([*good, {"id": 1}], [*good, PNG])):
        with pytest.raises(ScoreError, match=rf"outputs\[{len(good)}\]"):
            metric.add_batch(predictions=made, references=given)
        assert len(metric) == 1
    with pytest.raises(ScoreError, match="end after 16 samples"):
        metric.add_batch(predictions=iter(good), references=iter([*good, PNG]))
    assert metric.compute()["n"] == 1
