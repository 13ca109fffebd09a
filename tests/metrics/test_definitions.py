"""What a result says of itself is plain JSON, for every metric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import echo_hf
from echo_hf.metrics import (
    MetricResult,
    color_shift,
    face_identity,
    ocr_accuracy,
    structure_distance,
    text_rendering,
)
from tests.metrics.images_for_metrics import noise
from tests.metrics.test_cards import METRICS

INPUTS, OUTPUTS = [noise(1)], [noise(2)]
ROWS = [{"sample_id": "s", "system": "a", "judge": "j", "rating": 5}]
BOTH = ("published", "corrected")
EXTRAS = {"structure_distance": "torch", "face_identity": "insightface", "ocr_accuracy": "rapidocr"}


def _of(name: str, folder: Path, protocol: Any) -> list[MetricResult]:
    """The metric's result on one sample; packages of its extra are there."""
    if name == "color_shift":
        return [color_shift(INPUTS, OUTPUTS, protocol=protocol)]
    if name == "text_rendering":
        return [text_rendering(ROWS, protocol=protocol)]
    if name == "ocr_accuracy":
        return [ocr_accuracy(["a cat"], OUTPUTS, vocabulary=words) for words in (["cat"], None)]
    if name == "face_identity":
        from tests.metrics.tiny_face_pack import write_pack

        pack = write_pack(folder / "pack")
        return [face_identity(INPUTS, OUTPUTS, pack=pack, det_size=128, protocol=protocol)]
    from tests.metrics.vit_for_tests import TINY, weights_of, write_vit

    model = str(write_vit(folder / "vit", TINY, weights_of(TINY)))
    sizes: dict[str, Any] = {"model": model, "layer": 2, "size": TINY.side}
    return [structure_distance(INPUTS, OUTPUTS, protocol=protocol, **sizes)]


def _is_plain(definition: Any) -> None:
    """Reading its JSON gives the very same, and nothing in it is NaN."""
    assert json.loads(json.dumps(definition, allow_nan=False)) == definition


@pytest.mark.parametrize("protocol", BOTH)
@pytest.mark.parametrize("name", sorted(set(METRICS) - set(EXTRAS) - {"win_rate"}))
def test_a_definition_is_plain_json(name: str, protocol: str, tmp_path: Path) -> None:
    """So that models and files hold it as it is."""
    for result in _of(name, tmp_path, protocol):
        _is_plain(result.definition)


@pytest.mark.extras
@pytest.mark.parametrize("protocol", BOTH)
@pytest.mark.parametrize("name", EXTRAS)
def test_a_definition_of_a_metric_with_an_extra_is_plain_json(
    name: str, protocol: str, tmp_path: Path
) -> None:
    """As above, of networks too."""
    pytest.importorskip(EXTRAS[name], reason=f"{name} needs {EXTRAS[name]}")
    for result in _of(name, tmp_path, protocol):
        _is_plain(result.definition)


@pytest.mark.parametrize("protocol", BOTH)
def test_the_definition_of_win_rates_is_plain_json(protocol: Any) -> None:
    """As every other."""
    _is_plain(echo_hf.scores.win_rate(ROWS, protocol=protocol).definition)
