"""How each class of pipelines takes images and sizes."""

from __future__ import annotations

import inspect

import pytest

from echo_hf.systems.diffusers_classes import KINDS, KONTEXT_SIZES, OURS
from tests.systems.tiny_pipelines import REASON


@pytest.mark.extras
@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_row_is_what_the_class_says_of_itself(name: str) -> None:
    """Each argument of the table is one of its call, and an image may be left out."""
    diffusers = pytest.importorskip("diffusers", reason=REASON, exc_type=ImportError)
    kind = KINDS[name]
    parameters = inspect.signature(getattr(diffusers, name).__call__).parameters
    assert set(parameters) >= kind.arguments | set(kind.defaults) | OURS
    if kind.image:
        assert parameters[kind.image].default is None


@pytest.mark.extras
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if not kind.image])
def test_a_class_from_text_alone_has_no_place_for_an_image(name: str) -> None:
    """Other than the styles of an adapter."""
    diffusers = pytest.importorskip("diffusers", reason=REASON, exc_type=ImportError)
    parameters = inspect.signature(getattr(diffusers, name).__call__).parameters
    places = {one for one in parameters if "image" in one and "ip_adapter" not in one}
    assert places == {"num_images_per_prompt"}


@pytest.mark.extras
def test_kontext_was_trained_on_these_sizes() -> None:
    """The list that diffusers resizes inputs to."""
    pytest.importorskip("diffusers", reason=REASON, exc_type=ImportError)
    from diffusers.pipelines.flux.pipeline_flux_kontext import PREFERRED_KONTEXT_RESOLUTIONS

    assert set(KONTEXT_SIZES) == set(PREFERRED_KONTEXT_RESOLUTIONS)
    assert len(KONTEXT_SIZES) == len(PREFERRED_KONTEXT_RESOLUTIONS) == 17


@pytest.mark.extras
def test_flux_2_refuses_what_the_table_says() -> None:
    """The limits of the class that looks at its inputs."""
    pytest.importorskip("diffusers", reason=REASON, exc_type=ImportError)
    from diffusers.pipelines.flux2.image_processor import Flux2ImageProcessor

    limits = inspect.signature(Flux2ImageProcessor.check_image_input).parameters
    kind = KINDS["Flux2Pipeline"]
    assert limits["min_side_length"].default == kind.shortest_side
    assert limits["max_aspect_ratio"].default == kind.longest_ratio


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("FluxKontextPipeline", (1290, 2796), (688, 1504)),
        ("FluxKontextPipeline", (1000, 1000), (1024, 1024)),
        ("FluxKontextPipeline", (300, 200), (1248, 832)),
        ("Flux2KleinPipeline", (300, 200), (1248, 832)),
        ("QwenImage21Pipeline", (1000, 1000), (1024, 1024)),
    ],
)
def test_a_size_is_like_that_of_the_input(
    name: str, given: tuple[int, int], expected: tuple[int, int]
) -> None:
    """The size that was trained on, or about a million pixels, in the shape of the input."""
    assert KINDS[name].like(given) == expected


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_size_is_one_that_the_class_draws(name: str) -> None:
    """Sides are multiples of its number."""
    kind = KINDS[name]
    assert all(
        side % kind.multiple == 0
        for given in [(1290, 2796), (4032, 3024), (512, 512), (900, 100)]
        for side in kind.like(given)
    )
