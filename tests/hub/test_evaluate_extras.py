"""The configs of the module for `evaluate` that need the packages of an extra."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import echo_hf
from echo_hf.errors import ScoreError
from echo_hf.hub.evaluate_metric import list_configs, to_plain_values
from echo_hf.metrics import registered
from tests.metrics.images_for_metrics import noise

pytestmark = pytest.mark.extras
Load = Callable[..., Any]
INPUTS = [noise(seed, size=(40, 48)) for seed in range(4)]
OUTPUTS = [noise(9), INPUTS[1], None, noise(10)]
SEVERAL = [INPUTS[0], INPUTS[1], INPUTS[2], [INPUTS[3], INPUTS[0]]]


def _needs(name: str) -> Any:
    for package in registered()[name].packages:
        pytest.importorskip(package, reason=f"{name} needs {package}")
    return getattr(echo_hf.metrics, name)


@pytest.fixture
def tiny_vit(tmp_path: Path) -> dict[str, Any]:
    _needs("structure_distance")
    transformers = import_module("transformers")
    import_module("torch").manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.ViTConfig(**shape, intermediate_size=32, image_size=32, patch_size=8)
    folder = tmp_path / "vit"
    transformers.ViTModel(config, add_pooling_layer=False).save_pretrained(folder)
    return {"model": str(folder), "layer": 1, "size": 32, "device": "cpu"}


def test_structure_distance_is_that_of_the_function(
    load_measure: Load, tiny_vit: dict[str, Any]
) -> None:
    measure = _needs("structure_distance")
    found = load_measure("structure_distance", **tiny_vit).compute(
        predictions=OUTPUTS, references=SEVERAL, n_boot=0
    )
    assert found == to_plain_values(measure(SEVERAL, OUTPUTS, n_boot=0, **tiny_vit))
    assert found["per_sample"][1] == pytest.approx(0, abs=1e-6)
    assert found["counts"] == {"missing_output": 1}
    assert sorted(found) == _documented("structure_distance")


def test_images_measured_twice_combine(load_measure: Load, tiny_vit: dict[str, Any]) -> None:
    import evaluate

    measure = _needs("structure_distance")
    pair = [load_measure("color_shift"), load_measure("structure_distance", **tiny_vit)]
    found = evaluate.combine(pair).compute(predictions=OUTPUTS, references=SEVERAL, n_boot=0)
    shift = echo_hf.metrics.color_shift(SEVERAL, OUTPUTS, n_boot=0)
    assert found["color_shift_value"] == shift.value
    assert found["structure_distance_value"] == measure(SEVERAL, OUTPUTS, **tiny_vit).value


def test_face_identity_is_that_of_the_function(load_measure: Load, tmp_path: Path) -> None:
    measure = _needs("face_identity")
    pytest.importorskip("onnx", reason="the tiny networks are written with it")
    tiny = import_module("tests.metrics.tiny_face_pack")
    drawn = import_module("tests.metrics.tiny_face_pack").drawn
    pack = {"pack": str(tiny.write_pack(tmp_path / "pack")), "det_size": 128}
    anna = drawn({(1, 1): [(250, 20, 10), (240, 90, 30), (255, 0, 0), (230, 10, 60)]})
    bodo = drawn({(2, 1): [(200, 120, 20), (250, 200, 100), (190, 0, 40), (255, 250, 10)]})
    outputs, inputs = [anna, bodo, None], [anna, [anna, bodo], bodo]
    metric = load_measure("face_identity", **pack)
    found = metric.compute(predictions=outputs, references=inputs, n_boot=0)
    assert found == to_plain_values(measure(inputs, outputs, n_boot=0, **pack))
    assert found["per_sample"] == [pytest.approx(1), pytest.approx(1), None]
    assert sorted(found) == _documented("face_identity")


@pytest.mark.parametrize("name", ["face_identity", "structure_distance"])
def test_a_wrong_model_is_one_line(load_measure: Load, tmp_path: Path, name: str) -> None:
    _needs(name)
    metric = load_measure(name)
    metric.add_batch(predictions=OUTPUTS, references=INPUTS)
    parameter = {"face_identity": "pack", "structure_distance": "model"}[name]
    with pytest.raises(ScoreError) as caught:
        metric.compute(**{parameter: str(tmp_path / "nothing")})
    assert "\n" not in str(caught.value)


def _documented(name: str) -> list[str]:
    return sorted(list_configs()[name].gives.replace(" (of reasons)", "").split(", "))
