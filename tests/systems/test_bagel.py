"""The worker for BAGEL, with something that has BAGEL's interface and no weights.

`bagel_checkout` stands for the folder that a user clones, `without_torch` for the packages of its
environment. They hold no code of BAGEL's, and show that the worker calls what is there.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.config.systems import SystemConfig, read_system, shipped_configs, shipped_systems
from echo_hf.reasons import Outcome
from echo_hf.systems.base import GenerationResult
from echo_hf.systems.command import WORKERS, CommandSystem
from echo_hf.systems.registry import make_system
from tests.images_for_tests import encoded, noise
from tests.systems.test_command import task_of

CHECKOUT = Path(__file__).with_name("bagel_checkout")
WITHOUT_TORCH = Path(__file__).with_name("without_torch")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    (tmp_path / "llm_config.json").write_text('{"tie_word_embeddings": true}')
    (tmp_path / "vit_config.json").write_text('{"num_hidden_layers": 27, "rope": true}')
    (tmp_path / "ae.safetensors").write_bytes(b"autoencoder")
    return tmp_path


def bagel(
    weights: Path, seed: int = 7, size: Any = "auto", path: Path = WITHOUT_TORCH, **parameters: Any
) -> CommandSystem:
    config = read_system(shipped_configs() / "systems/bagel.yaml").model_dump()
    command = [sys.executable, "worker:bagel", "--weights", str(weights)]
    changed = {
        "folder": str(CHECKOUT),
        "command": command,
        "parameters": parameters,
        "environment": {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"},
    }
    config |= {"seed": seed, "size": size, "parameters": {**config["parameters"], **changed}}
    system = make_system(SystemConfig(**config))
    assert isinstance(system, CommandSystem)
    return system


def drawn_by(system: CommandSystem, prompt: str, *inputs: Path) -> GenerationResult:
    assert system.preflight() is None
    with system:
        return system.draw(task_of(prompt, *inputs))


def opened(drawn: GenerationResult) -> Image.Image:
    assert drawn.image is not None, drawn
    return Image.open(io.BytesIO(drawn.image))


def plan(drawn: GenerationResult) -> tuple[list[str], bool, list[float], list[Any]]:
    said = str(drawn.text).removeprefix("<think> ").removesuffix(" </think>")
    given, think, chance, sampling = json.loads(said)
    return given, think, chance, sampling


def test_a_prompt_without_inputs(weights: Path) -> None:
    """1024 x 1024, by the sampling of the authors' notebook; what is printed does no harm."""
    drawn = drawn_by(bagel(weights, think=True, edit={"num_timesteps": 30}), "a kite")
    given, think, _, sampling = plan(drawn)
    assert opened(drawn).size == (1024, 1024)
    assert (given, think) == (["a kite"], True)
    assert sampling[:7] == [4.0, 1.0, [0.4, 1.0], 3.0, 50, 0.0, "global"]
    assert sampling[8:] == [1000, False, 0.3]
    assert drawn.seed == 7
    worker = drawn.details["worker"]
    assert (worker["name"], worker["version"]) == ("bagel", "1")
    assert drawn.details["worker_says"]["arguments"]["num_timesteps"] == 50
    fewer = drawn_by(bagel(weights, text_to_image={"num_timesteps": 20}), "a kite")
    assert fewer.details["worker_says"]["arguments"]["num_timesteps"] == 20


def test_inputs_come_in_order_before_the_prompt(weights: Path, tmp_path: Path) -> None:
    images = [noise((64, 48)), noise((80, 32))]
    paths = [tmp_path / "one", tmp_path / "two"]
    notes = Image.Exif()
    notes[0x0112] = 6  # to be turned by a quarter: the model does not read the notes of cameras
    for path, image, exif in zip(paths, images, (Image.Exif(), notes), strict=True):
        path.write_bytes(encoded(image, "PNG", exif=exif))
    images[1] = images[1].rotate(-90, expand=True)
    drawn = drawn_by(bagel(weights, think=True), "join them", *paths)
    given, _, _, sampling = plan(drawn)
    digests = [hashlib.sha256(image.tobytes()).hexdigest() for image in images]
    assert given == [*digests, "join them"]
    assert opened(drawn).size == (32, 80)
    assert sampling[:7] == [4.0, 2.0, [0.0, 1.0], 3.0, 50, 0.0, "text_channel"]


def test_the_seed_seeds_all_that_is_random(weights: Path) -> None:
    with bagel(weights, think=True) as system:
        first, again = (system.draw(task_of("a kite")) for _ in range(2))
    other = drawn_by(bagel(weights, think=True, seed=8), "a kite")
    assert first.image == again.image != other.image
    assert str(first.text).startswith("<think> ")
    assert drawn_by(bagel(weights), "a kite").text is None
    assert all(one != two for one, two in zip(plan(first)[2], plan(other)[2], strict=True))
    assert plan(first)[2][1] == np.random.RandomState(7).rand()
    assert plan(first)[2][2] == 7


@pytest.mark.parametrize(
    ("size", "inputs", "outcome"),
    [
        ({"width": 768, "height": 1024}, 0, Outcome.OK),
        ({"width": 770, "height": 1024}, 0, Outcome.UNSUPPORTED),
        ({"width": 2048, "height": 1024}, 0, Outcome.UNSUPPORTED),
        ({"width": 768, "height": 1024}, 1, Outcome.UNSUPPORTED),
        ("match_input", 1, Outcome.OK),
    ],
)
def test_sizes(size: Any, inputs: int, outcome: Outcome, weights: Path, tmp_path: Path) -> None:
    """One that the model cannot draw is said to be so, never replaced by another."""
    (tmp_path / "one").write_bytes(encoded(noise((64, 48)), "PNG"))
    drawn = drawn_by(bagel(weights, size=size), "a kite", *[tmp_path / "one"] * inputs)
    assert drawn.outcome is outcome
    if outcome is Outcome.OK:
        assert opened(drawn).size == ((64, 48) if inputs else (768, 1024))


@pytest.mark.parametrize(
    ("prompt", "parameters", "outcome", "text"),
    [
        ("nothing", {}, Outcome.NO_IMAGE, "I would rather not."),
        ("break", {}, Outcome.FAILED, "out of memory"),
        ("kite", {"thinking": True}, Outcome.FAILED, "['thinking']"),
        ("kite", {"text_to_image": {"steps": 5}}, Outcome.FAILED, "'steps'"),
    ],
)
def test_a_task_without_an_image_leaves_the_model_loaded(
    prompt: str, parameters: dict[str, Any], outcome: Outcome, text: str, weights: Path
) -> None:
    with bagel(weights, **parameters) as system:
        drawn = system.draw(task_of(prompt))
        again = system.draw(task_of(prompt))
    assert drawn.outcome is again.outcome is outcome
    assert text in str(drawn.text)


def test_the_worker_needs_nothing_of_echo_hf(weights: Path) -> None:
    source = (WORKERS / "bagel.py").read_text("utf-8")
    assert "echo_hf." not in source
    assert "import echo_hf" not in source
    assert compile(source, "bagel.py", "exec", dont_inherit=True)


@pytest.mark.extras
@pytest.mark.skipif(find_spec("accelerate") is None, reason="accelerate is not installed")
def test_weights_are_loaded_by_accelerate(weights: Path) -> None:
    import torch
    from safetensors.torch import save_file

    numbers = torch.tensor([[0.5, -2.0], [0.25, 8.0]])
    save_file({"time_embedder.weight": numbers}, weights / "ema.safetensors")
    drawn = drawn_by(bagel(weights, think=True, path=CHECKOUT), "a kite")
    assert plan(drawn)[3][7] == numbers.tolist()
    (weights / "ema.safetensors").unlink()
    with pytest.raises(Exception, match="could not be started"):
        drawn_by(bagel(weights, think=True, path=CHECKOUT), "a kite")


@pytest.mark.parametrize("name", ["bagel", "bagel_think", "files_official"])
def test_the_shipped_configs_make_systems(name: str) -> None:
    path = shipped_configs() / f"systems/{name}.yaml"
    assert path in shipped_systems()
    config = read_system(path)
    assert config.name == name
    with pytest.raises(Exception, match="no folder"):
        make_system(config).preflight()


def test_the_two_configs_of_bagel_differ_in_thinking() -> None:
    """Their outputs are never taken for each other's."""
    plain, think = (
        make_system(read_system(shipped_configs() / f"systems/{name}.yaml")).signature()
        for name in ("bagel", "bagel_think")
    )
    assert {key for key in plain if plain[key] != think[key]} == {"parameters"}
    assert (plain["parameters"], think["parameters"]) == ({"think": False}, {"think": True})
