"""The worker for BAGEL, with something that has BAGEL's interface and no weights.

`bagel_checkout` stands for the folder that a user clones. It holds no code of BAGEL's, and shows
that the worker calls what is there.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.config.systems import SystemConfig, read_system, shipped_configs
from echo_hf.systems.base import GenerationResult
from echo_hf.systems.command import WORKERS_FOLDER, CommandSystem
from echo_hf.systems.registry import make_system
from echo_hf.tables import Outcome
from tests.images_for_tests import encoded, noise
from tests.systems.drawing_for_tests import levels
from tests.systems.test_command import task_of

CHECKOUT = Path(__file__).with_name("bagel_checkout")
NUMBERS = [[0.5, -2.0], [0.25, 8.0]]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    import torch
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("weights")
    save_file({"time_embedder.weight": torch.tensor(NUMBERS)}, folder / "ema.safetensors")
    (folder / "llm_config.json").write_text('{"tie_word_embeddings": true}')
    (folder / "vit_config.json").write_text('{"num_hidden_layers": 27, "rope": true}')
    (folder / "ae.safetensors").write_bytes(b"autoencoder")
    return folder


def bagel(weights: Path, seed: int = 7, size: Any = "auto", **parameters: Any) -> CommandSystem:
    config = read_system(shipped_configs() / "systems/bagel.yaml").model_dump()
    changed = {
        "folder": str(CHECKOUT),
        "command": [sys.executable, "worker:bagel", "--weights", str(weights)],
        "parameters": parameters,
        "environment": {"PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"},
    }
    config |= {"seed": seed, "size": size, "parameters": {**config["parameters"], **changed}}
    system = make_system(SystemConfig(**config))
    assert isinstance(system, CommandSystem)
    assert system.preflight() is None
    return system


def shape(drawn: GenerationResult) -> tuple[int, ...]:
    return levels(drawn.image).shape[:2]


def plan(drawn: GenerationResult) -> tuple[list[str], bool, list[float], list[Any]]:
    said = str(drawn.text).removeprefix("<think> ").removesuffix(" </think>")
    given, think, chance, sampling = json.loads(said)
    return given, think, chance, sampling


@pytest.mark.extras
def test_a_prompt_without_inputs(weights: Path) -> None:
    """1024 x 1024, by the sampling of the authors' notebook; what is printed does no harm."""
    with bagel(weights, think=True, edit={"num_timesteps": 30}) as system:
        drawn, again, *rest = (system.draw(task_of(one)) for one in ("kite", "kite", "nothing"))
        broken = system.draw(task_of("break"))
    given, think, chance, sampling = plan(drawn)
    assert (shape(drawn), drawn.seed) == ((1024, 1024), 7)
    assert (given, think) == (["kite"], True)
    assert sampling[:7] == [4.0, 1.0, [0.4, 1.0], 3.0, 50, 0.0, "global"]
    assert sampling[7] == NUMBERS  # which accelerate has read
    assert sampling[8:] == [1000, False, 0.3]
    assert drawn.details["worker"]["name"] == "bagel"
    assert drawn.details["worker_says"]["arguments"]["num_timesteps"] == 50
    # The seed seeds all that is random.
    assert drawn.image == again.image
    assert chance[1:] == [np.random.RandomState(7).rand(), 7]
    # A task without an image leaves the model loaded.
    assert [(one.outcome, one.text) for one in rest] == [("no_image", "I would rather not.")]
    assert (broken.outcome, broken.text) == ("failed", "out of memory")


@pytest.mark.extras
def test_inputs_come_in_order_before_the_prompt(weights: Path, tmp_path: Path) -> None:
    images, notes = [noise((64, 48)), noise((80, 32))], Image.Exif()
    notes[0x0112] = 6  # to be turned by a quarter: the model does not read the notes of cameras
    paths = [tmp_path / "one", tmp_path / "two"]
    for path, image, exif in zip(paths, images, (Image.Exif(), notes), strict=True):
        path.write_bytes(encoded(image, "PNG", exif=exif))
    images[1] = images[1].rotate(-90, expand=True)
    with bagel(weights, seed=8, size="match_input", think=True) as system:
        drawn = system.draw(task_of("join them", *paths))
    given, _, chance, sampling = plan(drawn)
    digests = [hashlib.sha256(image.tobytes()).hexdigest() for image in images]
    assert (given, chance[2], shape(drawn)) == ([*digests, "join them"], 8, (80, 32))
    assert sampling[:7] == [4.0, 2.0, [0.0, 1.0], 3.0, 50, 0.0, "text_channel"]


def size(width: int, height: int) -> dict[str, Any]:
    return {"size": {"width": width, "height": height}}


@pytest.mark.extras
@pytest.mark.parametrize(
    ("inputs", "given", "outcome", "text"),
    [
        (0, {**size(768, 1024), "text_to_image": {"num_timesteps": 20}}, Outcome.OK, "None"),
        (0, size(2048, 1024), Outcome.UNSUPPORTED, "in multiples of 16 up to 1024"),
        (1, size(768, 1024), Outcome.UNSUPPORTED, "for prompts without input"),
        (0, {"thinking": True}, Outcome.FAILED, "['thinking']"),
        (0, {"text_to_image": {"steps": 5}}, Outcome.FAILED, "'steps'"),
    ],
)
def test_what_the_model_cannot_draw_is_never_replaced(
    inputs: int, given: Any, outcome: Outcome, text: str, weights: Path, tmp_path: Path
) -> None:
    (tmp_path / "one").write_bytes(encoded(noise((64, 48)), "PNG"))
    with bagel(weights, **given) as system:
        drawn = system.draw(task_of("a kite", *[tmp_path / "one"] * inputs))
    assert drawn.outcome is outcome
    assert text in str(drawn.text)
    if outcome is Outcome.OK:
        assert shape(drawn) == (1024, 768)
        assert drawn.details["worker_says"]["arguments"]["num_timesteps"] == 20


def test_the_worker_needs_nothing_of_echo_hf() -> None:
    source = (WORKERS_FOLDER / "bagel.py").read_text("utf-8")
    assert "echo_hf." not in source
    assert "import echo_hf" not in source


def test_the_two_configs_of_bagel_differ_in_thinking() -> None:
    """Their outputs are never taken for each other's."""
    plain, think = (
        make_system(read_system(shipped_configs() / f"systems/{name}.yaml")).signature()
        for name in ("bagel", "bagel_think")
    )
    assert {key for key in plain if plain[key] != think[key]} == {"parameters"}
    assert (plain["parameters"], think["parameters"]) == ({"think": False}, {"think": True})
