"""The systems that echo-hf brings for models of this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from echo_hf.config.systems import SystemConfig, read_system, shipped_systems
from echo_hf.systems.anole import AnoleSystem
from echo_hf.systems.base import System
from echo_hf.systems.diffusers import DiffusersSystem, check_size
from echo_hf.systems.diffusers_classes import check_call, pipeline_class
from tests.systems.tiny_pipelines import REASON

CLASSES = {
    "flux2_dev": "Flux2Pipeline",
    "flux2_klein": "Flux2KleinPipeline",
    "flux_kontext": "FluxKontextPipeline",
    "qwen_image_2_1": "QwenImage21Pipeline",
    "qwen_image_edit_plus": "QwenImageEditPlusPipeline",
    "sd3_5_large": "StableDiffusion3Pipeline",
    "z_image": "ZImagePipeline",
}
MAKERS: dict[str, type[DiffusersSystem] | type[AnoleSystem]] = {
    **dict.fromkeys(CLASSES, DiffusersSystem),
    "anole": AnoleSystem,
}
AS_PUBLISHED = {"flux_kontext", "anole"}


def _file(name: str) -> Path:
    return next(path for path in shipped_systems() if path.stem == name)


def _shipped(name: str) -> SystemConfig:
    return read_system(_file(name))


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_a_shipped_system_can_be_made(name: str) -> None:
    """Its parameters are those of its adapter; nothing is loaded."""
    system: System = MAKERS[name](_shipped(name))
    assert system.signature()["adapter"] == _shipped(name).adapter
    assert system.concurrency == 1


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_a_shipped_system_says_what_it_is(name: str) -> None:
    """The paper's own say what of them is not as published, and none is sold as such."""
    config = _shipped(name)
    assert config.note
    assert (config.status, config.stands_for is not None) == (
        ("as_published", True) if name in AS_PUBLISHED else ("current", False)
    )


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_the_text_of_a_shipped_system_fits_a_terminal(name: str) -> None:
    """Lines of at most 100 characters."""
    assert max(map(len, _file(name).read_text("utf-8").splitlines())) <= 100


def test_names_are_unique() -> None:
    """Tables name a system by it."""
    names = [read_system(path).name for path in shipped_systems()]
    assert len(names) == len(set(names))


@pytest.mark.extras
@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_shipped_system_is_called_as_its_pipeline_can_be(name: str) -> None:
    """Every argument is one of the class that its model names, and so is the size."""
    for package in ("torch", "diffusers", "transformers"):
        pytest.importorskip(package, reason=REASON, exc_type=ImportError)
    config = _shipped(name)
    pipeline = pipeline_class(CLASSES[name], "shipped")
    check_call(DiffusersSystem(config).options.call, pipeline, "shipped")
    check_size(config.size, pipeline.kind, "shipped")
