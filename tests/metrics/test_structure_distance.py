"""Structure distance against a plain ViT in numpy, and what the protocols make of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.metrics import InputCache, StructureDistanceResult, structure_distance
from echo_hf.metrics.result import MetricReason
from echo_hf.metrics.structure_distance import (
    MEAN,
    SPREAD,
    LoadedVit,
    VitOptions,
    load_vit,
    self_similarities,
)
from tests.metrics.images_for_metrics import BOTH, CUT, noise
from tests.metrics.vit_for_tests import (
    DINO_S_16,
    REASON,
    TINY,
    Shape,
    distance_of,
    weights_of,
    write_vit,
)

torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("transformers", reason=REASON)
pytestmark = pytest.mark.extras

LAYER = 2
OF_TINY: dict[str, Any] = {"layer": LAYER, "size": TINY.side, "device": "cpu"}
WEIGHTS = weights_of(TINY)
INPUTS = [noise(seed, 20, 200 + seed, size=(36 + seed, 48)) for seed in range(12)]
OUTPUTS = [noise(seed + 50, 30, 240, size=(49, 47)) for seed in range(12)]
WHITE = Image.new("RGB", (8, 8), "white")
PAIRS = list(zip(INPUTS, OUTPUTS, strict=True))
SAMPLES: list[tuple[Any, Any]] = [
    *PAIRS[:4],
    ([INPUTS[4], INPUTS[5]], OUTPUTS[5]),
    (INPUTS[0], None),
    (INPUTS[1], CUT),
    (INPUTS[2], WHITE),
    (INPUTS[6], OUTPUTS[0]),
    (INPUTS[7], INPUTS[7]),
    ([], OUTPUTS[6]),
]
EXACT = 1e-6


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_vit(tmp_path_factory.mktemp("models") / "tiny", TINY, WEIGHTS))


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _of(samples: list[tuple[Any, Any]], model: str, **options: Any) -> StructureDistanceResult:
    sides = ([one[side] for one in samples] for side in (0, 1))
    return structure_distance(*sides, model=model, **{**OF_TINY, **options})


def _same(one: StructureDistanceResult, other: StructureDistanceResult) -> bool:
    assert one.per_sample == pytest.approx(other.per_sample, abs=EXACT)
    same = ("reasons", "notices", "definition")
    return all(getattr(one, name) == getattr(other, name) for name in same)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_number_is_that_of_a_plain_vit(tiny: str, layer: int) -> None:
    result = _of(PAIRS, tiny, layer=layer, n_boot=100)
    expected = [distance_of(WEIGHTS, TINY, layer, *pair) for pair in PAIRS]
    assert result.per_sample == pytest.approx(expected, abs=EXACT)
    assert result.value == pytest.approx(np.mean(expected), abs=EXACT)
    assert (result.n, result.coverage, result.counts) == (12, 1.0, {})
    assert result.interval is not None
    assert result.interval[0] < result.interval[1]


@pytest.mark.parametrize(("shape", "layer", "faint"), [(DINO_S_16, 3, 1.0), (TINY, 0, 3e-4)])
def test_the_real_shape_and_faint_tokens_give_the_plain_number(
    tmp_path: Path, shape: Shape, layer: int, faint: float
) -> None:
    weights = weights_of(shape, seed=1, spread=0.05, faint=faint)
    model = write_vit(tmp_path / "model", shape, weights)
    one, other = noise(3, size=(60, 90)), noise(4, 40, 180, size=(300, 200))
    found = structure_distance([one], [other], model=str(model), layer=layer, size=shape.side)
    expected = distance_of(weights, shape, layer, one, other)
    assert expected > 1e-3
    assert found.value == pytest.approx(expected, abs=1e-5)
    assert found.definition["tokens"] == shape.tokens


def test_of_several_inputs_one_distance_counts(tiny: str) -> None:
    expected = [distance_of(WEIGHTS, TINY, LAYER, one, OUTPUTS[0]) for one in INPUTS[:3]]
    sample = [(INPUTS[:3], OUTPUTS[0])]
    cases: list[tuple[dict[str, Any], float]] = [
        ({}, min(expected)),
        ({"protocol": "published"}, max(expected)),
        ({"reduction": "max"}, max(expected)),
        ({"reduction": "mean"}, sum(expected) / 3),
        ({"protocol": "published", "reduction": "min"}, min(expected)),
    ]
    for options, value in cases:
        result = _of(sample, tiny, **options)
        assert result.value == pytest.approx(value, abs=EXACT)
        (each,) = result.per_input
        assert each == pytest.approx(expected, abs=EXACT)


def test_an_unchanged_image_is_published_as_missing(tiny: str) -> None:
    samples = [(INPUTS[0], INPUTS[0]), (INPUTS[1], OUTPUTS[1])]
    corrected, published = (_of(samples, tiny, protocol=name) for name in BOTH)
    assert corrected.per_sample[0] == 0
    assert corrected.value == pytest.approx((corrected.per_sample[1] or 0) / 2)
    assert published.counts == {MetricReason.ZERO_DISTANCE: 1}
    assert published.value == corrected.per_sample[1]


@pytest.mark.parametrize("number", [np.nan, 3e38])
def test_a_vit_that_gives_no_number_has_failed(tmp_path: Path, number: float) -> None:
    name = "encoder.layer.2.attention.attention.key.bias"
    spoilt = {**WEIGHTS, name: np.full_like(WEIGHTS[name], number)}
    result = _of([(INPUTS[0], OUTPUTS[0])], str(write_vit(tmp_path / "m", TINY, spoilt)))
    assert result.counts == {MetricReason.MODEL_FAILED: 1}
    assert (result.value, result.per_sample, result.per_input) == (None, (None,), (None,))
    json.dumps(result.as_json(), allow_nan=False)


def test_batches_give_what_single_images_give(tiny: str) -> None:
    single = _of(SAMPLES, tiny, batch_size=1, threads=1)
    expected = [distance_of(WEIGHTS, TINY, LAYER, *pair) for pair in PAIRS[1:4]]
    assert single.per_sample[1:4] == pytest.approx(expected, abs=EXACT)
    for batch_size in (2, 100):
        assert _same(_of(SAMPLES, tiny, batch_size=batch_size), single)


def test_each_input_is_looked_at_once_for_all_systems(
    tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, cache = list[int](), InputCache()

    def counted(vit: LoadedVit, layer: int, images: Any) -> Any:
        looked.append(len(images))
        return self_similarities(vit, layer, images)

    for seed, seen in ((100, 24), (200, 12), (300, 12)):
        samples = list(zip(INPUTS, (noise(seed + at) for at in range(12)), strict=True))
        expected = _of(samples, tiny)
        with monkeypatch.context() as patched:
            patched.setattr(sys.modules[load_vit.__module__], "self_similarities", counted)
            assert _same(_of(samples, tiny, cache=cache), expected)
        assert sum(looked) == seen
        looked.clear()
    assert len(cache) == 12


def test_a_gpu_is_taken_where_there_is_one(tiny: str) -> None:
    result = _of([], tiny, device=None)
    assert result.definition["device"] == ("cuda" if torch.cuda.is_available() else "cpu")


def test_the_settings_of_torch_stay_as_they_are(tiny: str) -> None:
    before = torch.backends.cudnn.enabled, torch.get_float32_matmul_precision()
    plain = _of(SAMPLES[:2], tiny)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = _of(SAMPLES[:2], tiny)
        assert torch.is_autocast_enabled("cpu")
    assert mixed == plain
    assert (torch.backends.cudnn.enabled, torch.get_float32_matmul_precision()) == before


SQUARES = [noise(seed, size=(TINY.side, TINY.side)) for seed in range(3)]
IMAGES = np.stack([np.asarray(one) for one in SQUARES])


def _loaded(folder: Path, size: int = TINY.side) -> LoadedVit:
    model = write_vit(folder / "tiny", TINY, WEIGHTS)
    return load_vit(VitOptions(str(model), None, 2, size, "cpu"))


@pytest.fixture
def vit(tmp_path: Path) -> LoadedVit:
    return _loaded(tmp_path)


def _cosines(keys: Any) -> Any:
    lengths = np.sqrt((keys**2).sum(axis=-1, keepdims=True))
    return keys @ np.swapaxes(keys, -1, -2) / (lengths * np.swapaxes(lengths, -1, -2))


@pytest.mark.parametrize("size", [8, 24, 64])
@pytest.mark.parametrize("layer", [0, 2])
def test_another_size_is_what_transformers_makes(tmp_path: Path, size: int, layer: int) -> None:
    vit = _loaded(tmp_path, size)
    image = np.asarray(SQUARES[0].resize((size, size), Image.Resampling.BILINEAR))
    levels = (image / 255 - np.array(MEAN)) / np.array(SPREAD)
    pixels = torch.tensor(levels.transpose(2, 0, 1)[None], dtype=torch.float32)
    with torch.inference_mode():
        states = vit.model(
            pixels, interpolate_pos_encoding=True, output_hidden_states=True
        ).hidden_states
        blocks = vit.model.layers if hasattr(vit.model, "layers") else vit.model.encoder.layer
        attention = blocks[layer].attention
        project = getattr(attention, "k_proj", None) or attention.attention.key
        keys = project(blocks[layer].layernorm_before(states[layer])).double().numpy()
    found = self_similarities(vit, layer, image[None])
    assert found.shape == (1, (size // 8) ** 2 + 1, (size // 8) ** 2 + 1)
    np.testing.assert_allclose(found, _cosines(keys), atol=1e-5)


def test_cudnn_is_off_while_the_vit_runs(vit: LoadedVit) -> None:
    before, enabled = torch.backends.cudnn.enabled, []
    torch.backends.cudnn.enabled = True
    try:
        vit.model.embeddings.register_forward_pre_hook(
            lambda *_: enabled.append(torch.backends.cudnn.enabled)
        )
        self_similarities(vit, 0, IMAGES)
        assert torch.backends.cudnn.enabled
    finally:
        torch.backends.cudnn.enabled = before
    assert enabled == [False]
