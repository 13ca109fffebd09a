"""What images will cost: totals by hand for a benchmark of three tasks."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef
from echo_hf.engines.planner import NO_WORK
from echo_hf.errors import EngineError
from echo_hf.systems.base import Task
from echo_hf.systems.estimate import expected_images, price_of
from echo_hf.systems.registry import make_system
from echo_hf.systems.rewrite import Rewrite

# Two edits, with one and two inputs, and a drawing: 40 letters each, which are 10 tokens.
TASKS = [
    Task(f"s{number}", "d" * 64, "split", "x" * 40, tuple([ImageRef("a" * 64)] * number))
    for number in range(3)
]
OPENAI = "gpt-image-2.5-sunburst"


def system(model: str | None = OPENAI, adapter: str = "openai_images", **more: Any) -> SystemConfig:
    named = {"name": "mine", "adapter": adapter, "model": model, "developer": "Northlight"}
    return SystemConfig.model_validate({**named, "status": "current", **more})


def test_images_cost_the_tokens_of_prompts_inputs_and_outputs() -> None:
    """At 5, 8 and 30 dollars a million: 30 tokens of text, three inputs, three images."""
    found = expected_images(system(), TASKS)
    low = 0.8 * 30 * 5e-6 + 3 * 194 * 8e-6 + 3 * 196 * 30e-6
    likely = 30 * 5e-6 + 3 * 4290 * 8e-6 + 3 * 1757 * 30e-6
    high = 1.25 * 30 * 5e-6 + 3 * 6467 * 8e-6 + 3 * 7024 * 30e-6
    assert found.usd == pytest.approx((low, likely, high))
    assert found.seconds == (30, 180, 360)
    assert expected_images(system(), []) == NO_WORK
    price = price_of(system())  # which an image is billed at, too
    assert price is not None
    assert (price.text_in, price.image_in, price.text_out, price.image_out) == (5, 8, None, 30)


def test_gemini_2_5_flash_image_costs_what_its_maker_says_of_one() -> None:
    """Its page: $0.039 an image of 1K, without inputs."""
    found = expected_images(system("gemini-2.5-flash-image", "google"), TASKS[:1])
    assert found.cost_usd == pytest.approx(0.039, abs=5e-4)


def test_the_price_of_a_config_is_the_one_that_holds() -> None:
    whole = expected_images(system(price={"usd_per_image": 0.5, "as_of": "2026-01-01"}), TASKS)
    assert whole.usd == (1.5, 1.5, 1.5)
    assert whole.basis.startswith("price of 2026-01-01 in the config; ")
    own = {"text_in": 0, "image_in": 0, "text_out": 0, "image_out": 60, "as_of": "2026-01-01"}
    assert expected_images(system(price=own), TASKS).cost_usd == pytest.approx(3 * 1757 * 60e-6)
    # Half a price is none: of text that comes back this config says nothing.
    half = {"image_out": 60, "as_of": "2026-01-01"}
    assert expected_images(system(price=half), TASKS).usd is None


@pytest.mark.parametrize(
    ("config", "known"),
    [
        (system("nobody-knows-it"), False),
        (system(parameters={"base_url": "https://router.example.org/v1"}), False),
        (system(parameters={"base_url": "https://api.openai.com/v1"}), True),
        (system(parameters={"base_url": "http://[not-an-address"}), True),
        (system("gemini-3-pro-image", "google", parameters={"image_size": "1K"}), True),
        (system("gemini-3-pro-image", "google", parameters={"image_size": "4K"}), False),
    ],
)
def test_a_price_is_that_of_a_model_at_its_makers_server(config: SystemConfig, known: bool) -> None:
    assert (expected_images(config, TASKS).usd is not None) == known


def test_weights_on_a_gpu_of_ones_own_bill_nothing() -> None:
    found = expected_images(system("black-forest-labs/FLUX.1-Kontext-dev", "diffusers"), TASKS)
    assert (found.usd, found.seconds, found.gpu) == ((0, 0, 0), (18, 45, 105), "an H100 or A100")
    assert expected_images(system(None, "files"), TASKS) == NO_WORK


def test_nobody_knows_what_a_server_charges_for_open_weights() -> None:
    served = {"base_url": "https://router.example.org/v1"}
    config = system("black-forest-labs/FLUX.1-Kontext-dev", parameters=served)
    assert price_of(config) is None
    assert expected_images(config, TASKS).usd is None


def test_thoughts_take_time_of_their_own() -> None:
    bagel = "ByteDance-Seed/BAGEL-7B-MoT"
    likely = [
        expected_images(
            system(bagel, "command", parameters={"parameters": {"think": think}}), TASKS
        )
        for think in (False, True)
    ]
    assert [one.seconds and one.seconds.likely for one in likely] == [3 * 12, 3 * 35]


def test_a_writer_and_an_artist_cost_together() -> None:
    """Of the writer 400 tokens of answers at 10 dollars a million, beside what it reads."""
    writer = {"kind": "openai", "model": "gpt-4o-2024-11-20"}
    artist = {"adapter": "openai_images", "model": OPENAI}
    parts = {"writer": writer, "artist": artist}
    made = make_system(system("both", "rewrite", parameters=parts))
    assert isinstance(made, Rewrite)
    found, drawn = made.estimate(TASKS), 3 * (30 / 3 * 5e-6 + 1757 * 30e-6)
    assert found.cost_usd is not None
    # The writer reads its instructions, the prompts and three images; the artist sees no image.
    read = found.cost_usd - drawn - 3 * 400 * 10e-6
    assert 0 < read - 3 * 425 * 2.5e-6 < 0.05
    assert found.seconds == pytest.approx((30 + 3 * 2 / 32, 180 + 3 * 6 / 32, 360 + 3 * 20 / 32))
    unknown = {**parts, "artist": {**artist, "model": "nobody-knows-it"}}
    alone = make_system(system("both", "rewrite", parameters=unknown))
    assert isinstance(alone, Rewrite)
    assert alone.estimate(TASKS).usd is None


def test_a_writer_that_cannot_fit_is_refused() -> None:
    writer = {"kind": "vllm", "model": "Qwen/Qwen2.5-VL-32B-Instruct", "gpu_memory_gib": 24}
    parts = {"writer": writer, "artist": {"adapter": "openai_images", "model": OPENAI}}
    made = make_system(system("both", "rewrite", parameters=parts))
    assert isinstance(made, Rewrite)
    with pytest.raises(EngineError, match="engine 'writer of mine' does not fit"):
        made.estimate(TASKS)
