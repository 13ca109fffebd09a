"""ViTs that load, and those that are refused in one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from echo_hf.errors import MissingExtraError, ScoreError
from echo_hf.metrics import StructureDistance, structure_distance
from echo_hf.metrics.vit_loading import PACKAGES, VitOptions, load_vit
from tests.metrics.images_for_metrics import noise
from tests.metrics.vit_for_tests import REASON, TINY, distance_of, weights_of, write_vit
from tests.stages_for_tests import ROOT

WEIGHTS = weights_of(TINY)
COMMIT = "c" * 40
CODE = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
from transformers import PretrainedConfig
class Config(PretrainedConfig):
    model_type = "of_its_own"
"""
INSTALLED = all(find_spec(name) for name in PACKAGES)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Folder of a tiny ViT, to be spoilt."""
    pytest.importorskip("torch", reason=REASON)
    pytest.importorskip("transformers", reason=REASON)
    return write_vit(tmp_path / "tiny", TINY, WEIGHTS)


@pytest.fixture
def no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the Hub's client, and no network."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def _options(model: object, **given: Any) -> VitOptions:
    chosen = {"revision": None, "layer": 2, "size": TINY.side, "device": "cpu", **given}
    return VitOptions(str(model), **chosen)


def _refused(model: object, **given: Any) -> str:
    with pytest.raises(ScoreError) as caught:
        load_vit(_options(model, **given))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def _changed(model: Path, **settings: object) -> Path:
    file = model / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **settings}), "utf-8")
    return model


@pytest.mark.skipif(INSTALLED, reason="the packages are installed here")
def test_a_missing_extra_is_told_at_first_use() -> None:
    """One line that names it, from the function, from the first batch and from the result."""
    said = 'structure_distance needs packages that are not here: pip install "echo-hf[metrics]"'
    measured = StructureDistance()
    uses = (
        lambda: structure_distance([noise(0)], [noise(1)]),
        lambda: measured.add([noise(0)], [noise(1)]),
        measured.compute,
    )
    for use in uses:
        with pytest.raises(MissingExtraError) as caught:
            use()
        assert str(caught.value) == said
    assert len(measured) == 0


def test_wrong_samples_are_told_before_a_model_is_looked_for() -> None:
    """Whether or not the extra is there."""
    with pytest.raises(ScoreError, match="1 inputs and 2 outputs"):
        structure_distance([noise(0)], [noise(1), noise(2)], model="nobody/nothing")


@pytest.mark.extras
def test_a_folder_loads_in_float32_with_the_eps_of_dino(model: Path) -> None:
    """Whatever the file of settings says."""
    vit = load_vit(_options(model))
    assert {str(one.dtype) for one in vit.model.parameters()} == {"torch.float32"}
    assert vit.model.config.layer_norm_eps == 1e-6
    assert vit.model.layernorm.eps == 1e-6
    assert not vit.model.training
    assert vit.model.pooler is None


@pytest.mark.extras
def test_a_model_of_the_hub_is_known_by_its_commit(model: Path, no_network: Path) -> None:
    """The branch is resolved, also without the network, and the number is that of the weights."""
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
    """DINO ViT-S/16 has no others; one that does something is refused before it does."""
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
    assert _refused(model).startswith(f"cannot load {str(model)!r} (")
    assert not (model / "ran").exists()


@pytest.mark.extras
def test_nothing_is_printed(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither bars nor a report of the pooler that is left out; and both come back afterwards."""
    from safetensors.numpy import save_file
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    more = {**WEIGHTS, "pooler.dense.weight": WEIGHTS["encoder.layer.0.output.dense.weight"]}
    save_file(more, model / "model.safetensors", metadata={"format": "pt"})
    load_vit(_options(model))
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


@pytest.mark.extras
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"layer": 3}, "layer is 3: expected a number from 0 to 2, the last block of model"),
        ({"size": 36}, "size is 36: expected a multiple of 8, the side of a patch of model"),
        ({"size": 4}, "size is 4: expected a multiple of 8, the side of a patch of model"),
        ({"device": "tpu9"}, "device is 'tpu9': expected one that torch has here"),
        ({"device": "cuda:99"}, "device is 'cuda:99': expected one that torch has here"),
        ({"revision": "v2"}, "is a folder, which has no revision 'v2': leave it out"),
    ],
)
def test_wrong_choices_for_a_model_are_told(model: Path, given: dict[str, Any], says: str) -> None:
    """With the value and with what it may be."""
    assert says in _refused(model, **given)


@pytest.mark.extras
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model_type": "bert"}, "is of type 'bert': expected a 'vit' of 3 channels"),
        ({"num_channels": 1}, "is of type 'vit': expected a 'vit' of 3 channels"),
        ({"image_size": [32, 64]}, "takes [32, 64] pixels: expected a model of squares"),
        ({"model_type": "of_no_one"}, "(ValueError: The checkpoint you are trying to load"),
        ({"num_hidden_layers": 4}, "weights are missing, first "),
        ({"hidden_size": 32}, "(RuntimeError: "),
    ],
)
def test_what_is_no_such_vit_is_told(model: Path, settings: dict[str, Any], says: str) -> None:
    """Other kinds, other shapes, and weights that do not fit."""
    assert says in _refused(_changed(model, **settings))


@pytest.mark.extras
def test_code_that_comes_with_a_model_is_not_run(model: Path) -> None:
    """It is refused instead."""
    (model / "configuration.py").write_text(CODE, "utf-8")
    auto = {"AutoConfig": "configuration.Config"}
    assert "cannot load" in _refused(_changed(model, model_type="of_its_own", auto_map=auto))
    assert not (model / "ran").exists()


@pytest.mark.extras
def test_a_torchvision_that_does_not_fit_is_told(model: Path, tmp_path: Path) -> None:
    """It stops transformers from importing a ViT, with a message that names something else."""
    home = tmp_path / "packages"
    for name, text in (
        ("torchvision/__init__.py", "raise RuntimeError('operator torchvision::nms is missing')"),
        ("torchvision-0.1.dist-info/METADATA", "Name: torchvision\nVersion: 0.1\n"),
    ):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(text, "utf-8")
    code = (
        "from echo_hf.metrics import structure_distance\n"
        f"structure_distance([], [], model={str(model)!r}, layer=2, size={TINY.side})"
    )
    paths = os.pathsep.join([str(home), str(ROOT), os.environ.get("PYTHONPATH", "")])
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    ).stderr.splitlines()[-1]
    assert said.startswith("echo_hf.errors.ScoreError: cannot load")
    assert said.endswith("and a torchvision, if there is one, that fits torch")


@pytest.mark.extras
@pytest.mark.parametrize("name", ["acme/absent", "./absent", "a b"])
def test_an_unknown_name_is_told(name: str, no_network: Path) -> None:
    """With what it was taken for."""
    pytest.importorskip("torch", reason=REASON)
    assert _refused(name).startswith(f"no model {name!r} at revision 'main': neither a folder")


@pytest.mark.extras
def test_a_commit_without_its_weights_is_told(no_network: Path) -> None:
    """The name and the commit are known, and that is not enough to run it."""
    pytest.importorskip("torch", reason=REASON)
    assert _refused("acme/vit", revision=COMMIT).startswith("cannot fetch 'acme/vit' (")


@pytest.mark.extras
def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    """And what belongs there."""
    pytest.importorskip("torch", reason=REASON)
    assert "holds no model: expected 'config.json' and weights" in _refused(tmp_path)
