"""The ViT: how it is loaded, how it divides images, and its keys against a plain reading."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants

from echo_hf.errors import ScoreError
from echo_hf.metrics import structure_distance
from echo_hf.metrics.structure_distance import VitOptions, get_patch_grid, load_vit
from tests.errors_for_tests import said_by
from tests.metrics.images_for_metrics import noise
from tests.metrics.vit_for_tests import REASON, TINY, distance_of, weights_of, write_vit

WEIGHTS = weights_of(TINY)
COMMIT = "c" * 40
CODE = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
from transformers import PretrainedConfig
class Config(PretrainedConfig):
    model_type = "of_its_own"
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    pytest.importorskip("torch", reason=REASON)
    pytest.importorskip("transformers", reason=REASON)
    return write_vit(tmp_path / "tiny", TINY, WEIGHTS)


@pytest.fixture
def no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def _asked(model: object, **given: Any) -> VitOptions:
    chosen = {"revision": None, "layer": 2, "size": TINY.side, "device": "cpu", **given}
    return VitOptions(str(model), **chosen)


def _refused(model: object, **given: Any) -> str:
    return said_by(ScoreError, load_vit, _asked(model, **given))


def _changed(model: Path, **settings: object) -> Path:
    file = model / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **settings}), "utf-8")
    return model


@pytest.mark.extras
def test_a_folder_loads_in_float32_with_the_eps_of_dino(model: Path) -> None:
    vit = load_vit(_asked(model))
    assert {str(one.dtype) for one in vit.model.parameters()} == {"torch.float32"}
    assert vit.model.config.layer_norm_eps == 1e-6
    assert vit.model.layernorm.eps == 1e-6
    assert not vit.model.training
    assert vit.model.pooler is None


@pytest.mark.extras
def test_a_model_of_the_hub_is_known_by_its_commit(model: Path, no_network: Path) -> None:
    repository = no_network / "models--acme--vit"
    shutil.copytree(model, repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    found = structure_distance([noise(0)], [noise(1)], model="acme/vit", layer=2, size=TINY.side)
    expected = distance_of(WEIGHTS, TINY, 2, noise(0), noise(1))
    assert found.value == pytest.approx(expected, abs=1e-6)
    assert (found.definition["model"], found.definition["revision"]) == ("acme/vit", COMMIT)


@pytest.mark.extras
def test_weights_in_a_pickle_are_read_and_not_run(model: Path) -> None:
    import torch

    torch.save(
        {key: torch.from_numpy(one) for key, one in WEIGHTS.items()}, model / "pytorch_model.bin"
    )
    (model / "model.safetensors").unlink()
    found = structure_distance([noise(0)], [noise(1)], model=str(model), layer=2, size=TINY.side)
    expected = distance_of(WEIGHTS, TINY, 2, noise(0), noise(1))
    assert found.value == pytest.approx(expected, abs=1e-6)

    class Hostile:
        def __reduce__(self) -> Any:
            return Path.touch, (model / "ran",)

    torch.save({"embeddings.cls_token": Hostile()}, model / "pytorch_model.bin")
    assert _refused(model).startswith(f"cannot load {str(model)!r} on 'cpu' (")
    assert not (model / "ran").exists()


@pytest.mark.extras
def test_nothing_is_printed(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from safetensors.numpy import save_file
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    more = {**WEIGHTS, "pooler.dense.weight": WEIGHTS["encoder.layer.0.output.dense.weight"]}
    save_file(more, model / "model.safetensors", metadata={"format": "pt"})
    load_vit(_asked(model))
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


@pytest.mark.extras
@pytest.mark.parametrize(
    ("settings", "given", "says"),
    [
        ({"model_type": "of_no_one"}, {}, "(ValueError: The checkpoint you are trying to load"),
        ({"num_hidden_layers": 4}, {}, "weights are missing, first "),
        ({"hidden_size": 32}, {}, "(RuntimeError: "),
        ({}, {"device": "tpu9"}, "on 'tpu9' (RuntimeError: "),
        ({}, {"revision": "v2"}, "is a folder, which has no revision 'v2': leave it out"),
        (None, {}, "holds no model: expected 'config.json' and weights"),
    ],
)
def test_what_is_no_such_vit_is_told(
    model: Path, tmp_path: Path, settings: dict[str, Any] | None, given: dict[str, Any], says: str
) -> None:
    place = tmp_path if settings is None else _changed(model, **settings)
    assert says in _refused(place, **given)


@pytest.mark.extras
def test_code_that_comes_with_a_model_is_not_run(model: Path) -> None:
    (model / "configuration.py").write_text(CODE, "utf-8")
    auto = {"AutoConfig": "configuration.Config"}
    assert "cannot load" in _refused(_changed(model, model_type="of_its_own", auto_map=auto))
    assert not (model / "ran").exists()


@pytest.mark.extras
@pytest.mark.parametrize(
    ("name", "revision"),
    [("acme/absent", None), ("./absent", None), ("a b", None), ("acme/vit", COMMIT)],
)
def test_what_cannot_be_had_is_told(name: str, revision: str | None, no_network: Path) -> None:
    pytest.importorskip("torch", reason=REASON)
    said = f"no model {name!r} at revision {revision or 'main'!r}: neither a folder"
    assert _refused(name, revision=revision).startswith(said)


DINO: dict[str, Any] = {
    "model_type": "vit",
    "num_channels": 3,
    "num_hidden_layers": 12,
    "patch_size": 16,
    "image_size": 224,
}


@pytest.mark.parametrize(
    ("settings", "size", "says"),
    [
        ({}, 225, "size is 225: expected a multiple of 16, as 224"),
        ({"num_hidden_layers": 11}, 224, "layer is 11: expected a number from 0 to 10"),
        ({"model_type": "clip"}, 224, "model 'dino' is of type 'clip' with 3 channels"),
        ({"num_channels": 1}, 224, "is of type 'vit' with 1 channels, 224 pixels: expected a 'vit"),
        ({"image_size": [224, 112]}, 224, "[224, 112] pixels: expected a 'vit' of 3 channels and"),
    ],
)
def test_what_cannot_be_divided_is_told(settings: dict[str, Any], size: int, says: str) -> None:
    config, options = SimpleNamespace(**DINO | settings), VitOptions("dino", None, 11, size, None)
    assert says in said_by(ScoreError, get_patch_grid, config, options)
