"""Adapters: what they take, what is missing for them, what images cost, and what ships."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from echo_hf.config.systems import SystemConfig, list_shipped_systems, read_system
from echo_hf.engines.base import ImageRef
from echo_hf.engines.planner import NO_WORK
from echo_hf.errors import EngineError, GenerationError, MissingExtraError
from echo_hf.systems.base import (
    OutcomeStage,
    System,
    Task,
    is_secret,
    remove_secrets,
    unsupported_task,
)
from echo_hf.systems.generate import SystemListing, list_systems
from echo_hf.systems.registry import (
    describe_config,
    estimate_cost,
    get_price,
    make_system,
    parse_options,
    register,
)
from echo_hf.systems.rewrite import Rewrite
from echo_hf.tables import Outcome
from tests.systems.drawing_for_tests import task
from tests.systems.runs_for_tests import ADAPTER, Acting, system


@pytest.mark.parametrize(
    ("number", "fewest", "most", "code", "takes"),
    [
        (3, 0, None, None, ""),
        (2, 2, 2, None, ""),
        (0, 1, 1, "too_few_inputs", "at least 1"),
        (3, 0, 2, "too_many_inputs", "at most 2"),
        (3, 0, 0, "too_many_inputs", "none"),
    ],
)
def test_a_task_fits_between_two_numbers_of_inputs(
    number: int, fewest: int, most: int | None, code: str | None, takes: str
) -> None:
    drawn = unsupported_task(task(*[ImageRef("0" * 64)] * number), fewest, most, "Anole")
    assert (drawn and drawn.code) == code
    if drawn is not None:
        assert (drawn.outcome, drawn.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
        assert drawn.text == f"the task has {number} input images, and Anole takes {takes}"


KEYS = {
    "LUMEN_API_KEY": " sk-tulip-1234 ",
    "HF_TOKEN": "hf_tulip5678",
    "SHORT_API_KEY": "abc",
    "LONGER_API_KEY": "sk-tulip-1234-and-more",
    "LANGUAGE": "en_GB.UTF-8",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect key: sk-tulip-1234.", "Incorrect key: [hidden]."),
        ("sk-tulip-1234-and-more", "[hidden]"),
        ("Bearer hf_tulip5678", "Bearer [hidden]"),
        ("at en_GB.UTF-8, abc", "at en_GB.UTF-8, abc"),
        ("https://mira:pw@example.org/a", "https://[hidden]@example.org/a"),
        ("GET /v1?alt=sse&key=AIzaTulip&x=1", "GET /v1?alt=sse&key=[hidden]&x=1"),
        ("/blob?sig=a%2Fb 403", "/blob?sig=[hidden] 403"),
        ("https://example.org/v1/images?n=1 @ noon", "https://example.org/v1/images?n=1 @ noon"),
    ],
)
def test_keys_are_hidden_and_the_rest_stays(text: str, shown: str) -> None:
    assert remove_secrets(text, KEYS) == shown


TELLING = (
    "OPENAI_API_KEY OPENAI_KEY_2 LUMEN_KEY2 AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GITHUB_TOKEN "
    "HF_TOKEN HUGGING_FACE_HUB_TOKEN REPLICATE_TOKEN LUMEN_CREDENTIALS lumen_password "
    "LUMEN_APIKEY REGISTRY_AUTH"
)
PLAIN = "TOKENIZERS_PARALLELISM MAX_TOKENS KEYBOARD PWD MONKEY SSH_AUTH_SOCK"


def test_a_variable_with_a_secret_is_known_by_its_name() -> None:
    assert [name for name in TELLING.split() if not is_secret(name)] == []
    assert [name for name in PLAIN.split() if is_secret(name)] == []


class Options(BaseModel):
    """Parameters of an adapter."""

    model_config = ConfigDict(extra="forbid")

    steps: int = 20


def test_the_parameters_are_those_of_the_adapter() -> None:
    assert parse_options(system(parameters={"steps": 4}), Options).steps == 4
    with pytest.raises(GenerationError, match="parameters: unknown key 'step'; did you"):
        parse_options(system(parameters={"step": 4}), Options)


INNER = {"inner": {"steps": 2, "api_key_env": "A"}}


@pytest.mark.parametrize(
    ("change", "decides"),
    [
        ({"adapter": "other"}, True),
        ({"model": "n"}, True),
        ({"parameters": {"inner": {"steps": 3, "api_key_env": "A"}}}, True),
        ({"parameters": {"inner": {"steps": 2, "api_key_env": "B"}}}, False),
        ({"parameters": {"inner": {"steps": 2}, "folder": "/elsewhere"}}, False),
        ({"size": "match_input"}, True),
        ({"seed": 1}, True),
        ({"limits": {"concurrency": 7}}, False),
        ({"price": {"usd_per_image": 1, "as_of": "2026-01-01"}}, False),
        ({"note": "as published", "name": "yours"}, False),
    ],
)
def test_what_decides_an_image_changes_the_signature(change: dict[str, Any], decides: bool) -> None:
    before = {"model": "m", "parameters": INNER}
    plain = describe_config(system(**before))
    assert plain == {
        "adapter": ADAPTER,
        "model": "m",
        "parameters": {"inner": {"steps": 2}},
        "size": "auto",
        "seed": 0,
    }
    assert (describe_config(system(**{**before, **change})) != plain) == decides


# What is missing.


@pytest.fixture
def _adapters() -> None:
    register("hosted", extra="openai", packages=("json",), key="LUMEN_API_KEY")(Acting)
    register("local", extra="diffusers", packages=("no_such_package_at_all",))(Acting)


def listed(folder: Path, *systems: dict[str, Any], **environment: str) -> list[SystemListing]:
    every = [
        system(f"s{number}", **one).model_dump(mode="json") for number, one in enumerate(systems)
    ]
    data = {"name": "x", "benchmark": "a/b", "systems": every}
    (folder / "config.yaml").write_text(yaml.safe_dump(data))
    return list_systems(folder / "config.yaml", environment)


@pytest.mark.usefixtures("_adapters")
def test_a_key_is_there_or_not(tmp_path: Path) -> None:
    own, other, none = listed(
        tmp_path,
        {"adapter": "hosted"},
        {"adapter": "hosted", "parameters": {"api_key_env": "OTHER_KEY"}},
        {"adapter": "hosted", "parameters": {"api_key_env": None}},
        LUMEN_API_KEY="tulip-1234",
        OTHER_KEY=" ",
    )
    assert [one.keys for one in (own, other, none)] == [
        {"LUMEN_API_KEY": True},
        {"OTHER_KEY": False},
        {},
    ]
    assert "tulip" not in repr([own, other, none])


@pytest.mark.usefixtures("_adapters")
def test_what_is_missing_is_said_of_every_part(tmp_path: Path) -> None:
    local, both, unheard, made, seeded = listed(
        tmp_path,
        {"adapter": "local", "price": {"usd_per_image": 0.5, "as_of": "2026-01-01"}},
        {"adapter": "hosted", "parameters": {"system": {"adapter": "local"}}},
        {"adapter": "unheard-of"},
        {"adapter": "files", "parameters": {"folder": "drawn"}},
        {"adapter": "hosted"},
    )
    assert (local.extra, local.keys, local.image.cost_usd) == ("diffusers", {}, 0.5)
    assert (both.extra, both.keys) == ("diffusers", {"LUMEN_API_KEY": False})
    assert [one.known for one in (local, both, unheard)] == [True, True, False]
    assert (unheard.extra, unheard.file, unheard.image.cost_usd) == (None, None, None)
    assert (made.image.cost_usd, made.no_folder) == (0.0, "drawn")
    assert (seeded.determinism, local.determinism) == ("the same seed gives the same image", None)


# The systems that echo-hf brings.

FILES = list(list_shipped_systems())
# As the figures of the paper call them; the second group cannot be had any more.
PUBLISHED = {
    *("Anole", "Bagel", "Bagel-Think", "Flux Kontext", "Nano Banana"),
    *("4o Image Gen", "Gemini 2.0 Flash", "LLM+Diffusion"),
}
GONE = {"4o Image Gen", "Gemini 2.0 Flash", "LLM+Diffusion"}


def test_all_of_the_paper_are_there_and_some_of_today() -> None:
    """Each of the paper's eight is one file's, or what stands in for it; names are unique."""
    systems = [read_system(file) for file in FILES]
    stand_for = [one.stands_for for one in systems if one.status in ("as_published", "substitute")]
    assert sorted(filter(None, {*stand_for})) == sorted(PUBLISHED)
    assert sum(one.status == "current" for one in systems) >= 6
    assert max(Counter(one.name for one in systems).values()) == 1
    assert [one.file for one in list_systems()] == FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_system_can_be_made_and_says_what_it_stands_for(file: Path) -> None:
    """By the paper's own name; what is gone is never called the paper's own."""
    config = read_system(file)
    assert config.name == file.stem
    if config.stands_for is not None:
        assert config.stands_for in PUBLISHED
        assert config.note
    if config.stands_for in GONE:
        assert config.status in ("substitute", "replay")
    try:
        made = make_system(config)
    except MissingExtraError:  # of its adapter, or of a part of it
        return
    assert isinstance(made, System)
    with made:
        first = json.dumps(made.signature(), sort_keys=True)
        assert first == json.dumps(make_system(config).signature(), sort_keys=True)
        assert made.concurrency >= 1
        assert made.determinism


# Two edits, with one and two inputs, and a drawing: 40 letters each, which are 10 tokens.
TASKS = [
    Task(f"s{number}", "d" * 64, "split", "x" * 40, tuple([ImageRef("a" * 64)] * number))
    for number in range(3)
]
OPENAI = "gpt-image-2.5-sunburst"


def priced(model: str | None = OPENAI, adapter: str = "openai_images", **more: Any) -> SystemConfig:
    named = {"name": "mine", "adapter": adapter, "model": model, "developer": "Northlight"}
    return SystemConfig.model_validate({**named, "status": "current", **more})


def test_images_cost_the_tokens_of_prompts_inputs_and_outputs() -> None:
    """At 5, 8 and 30 dollars a million: 30 tokens of text, three inputs, three images."""
    found = estimate_cost(priced(), TASKS)
    low = 0.8 * 30 * 5e-6 + 3 * 194 * 8e-6 + 3 * 196 * 30e-6
    likely = 30 * 5e-6 + 3 * 4290 * 8e-6 + 3 * 1757 * 30e-6
    high = 1.25 * 30 * 5e-6 + 3 * 6467 * 8e-6 + 3 * 7024 * 30e-6
    assert found.usd == pytest.approx((low, likely, high))
    assert found.seconds == (30, 180, 360)
    assert estimate_cost(priced(), []) == NO_WORK
    price = get_price(priced())  # which an image is billed at, too
    assert price is not None
    assert (price.text_in, price.image_in, price.text_out, price.image_out) == (5, 8, None, 30)


def test_gemini_2_5_flash_image_costs_what_its_maker_says_of_one() -> None:
    """Its page: $0.039 an image of 1K, without inputs."""
    found = estimate_cost(priced("gemini-2.5-flash-image", "google"), TASKS[:1])
    assert found.cost_usd == pytest.approx(0.039, abs=5e-4)


def test_the_price_of_a_config_is_the_one_that_holds() -> None:
    whole = estimate_cost(priced(price={"usd_per_image": 0.5, "as_of": "2026-01-01"}), TASKS)
    assert whole.usd == (1.5, 1.5, 1.5)
    assert whole.basis.startswith("price of 2026-01-01 in the config; ")
    own = {"text_in": 0, "image_in": 0, "text_out": 0, "image_out": 60, "as_of": "2026-01-01"}
    assert estimate_cost(priced(price=own), TASKS).cost_usd == pytest.approx(3 * 1757 * 60e-6)
    # Half a price is none: of text that comes back this config says nothing.
    half = {"image_out": 60, "as_of": "2026-01-01"}
    assert estimate_cost(priced(price=half), TASKS).usd is None


@pytest.mark.parametrize(
    ("config", "known"),
    [
        (priced("nobody-knows-it"), False),
        (priced(parameters={"base_url": "https://router.example.org/v1"}), False),
        (priced(parameters={"base_url": "https://api.openai.com/v1"}), True),
        (priced(parameters={"base_url": "http://[not-an-address"}), True),
        # Nobody knows what a server charges for open weights.
        (
            priced(
                "black-forest-labs/FLUX.1-Kontext-dev",
                parameters={"base_url": "https://router.example.org/v1"},
            ),
            False,
        ),
        (priced("gemini-3-pro-image", "google", parameters={"image_size": "1K"}), True),
        (priced("gemini-3-pro-image", "google", parameters={"image_size": "4K"}), False),
    ],
)
def test_a_price_is_that_of_a_model_at_its_makers_server(config: SystemConfig, known: bool) -> None:
    assert (estimate_cost(config, TASKS).usd is not None) == known


def test_weights_on_a_gpu_of_ones_own_bill_nothing() -> None:
    found = estimate_cost(priced("black-forest-labs/FLUX.1-Kontext-dev", "diffusers"), TASKS)
    assert (found.usd, found.seconds, found.gpu) == ((0, 0, 0), (18, 45, 105), "an H100 or A100")
    assert estimate_cost(priced(None, "files"), TASKS) == NO_WORK


def test_thoughts_take_time_of_their_own() -> None:
    bagel = "ByteDance-Seed/BAGEL-7B-MoT"
    likely = [
        estimate_cost(priced(bagel, "command", parameters={"parameters": {"think": think}}), TASKS)
        for think in (False, True)
    ]
    assert [one.seconds and one.seconds.likely for one in likely] == [3 * 12, 3 * 35]


def test_a_writer_and_an_artist_cost_together() -> None:
    """Of the writer 400 tokens of answers at 10 dollars a million, beside what it reads."""
    writer = {"kind": "openai", "model": "gpt-4o-2024-11-20"}
    artist = {"adapter": "openai_images", "model": OPENAI}
    parts = {"writer": writer, "artist": artist}
    made = make_system(priced("both", "rewrite", parameters=parts))
    assert isinstance(made, Rewrite)
    found, drawn = made.estimate(TASKS), 3 * (30 / 3 * 5e-6 + 1757 * 30e-6)
    assert found.cost_usd is not None
    # The writer reads its instructions, the prompts and three images; the artist sees no image.
    read = found.cost_usd - drawn - 3 * 400 * 10e-6
    assert 0 < read - 3 * 425 * 2.5e-6 < 0.05
    assert found.seconds == pytest.approx((30 + 3 * 2 / 32, 180 + 3 * 6 / 32, 360 + 3 * 20 / 32))
    unknown = {**parts, "artist": {**artist, "model": "nobody-knows-it"}}
    alone = make_system(priced("both", "rewrite", parameters=unknown))
    assert isinstance(alone, Rewrite)
    assert alone.estimate(TASKS).usd is None


def test_a_writer_that_cannot_fit_is_refused() -> None:
    writer = {"kind": "vllm", "model": "Qwen/Qwen2.5-VL-32B-Instruct", "gpu_memory_gib": 24}
    parts = {"writer": writer, "artist": {"adapter": "openai_images", "model": OPENAI}}
    made = make_system(priced("both", "rewrite", parameters=parts))
    assert isinstance(made, Rewrite)
    with pytest.raises(EngineError, match="engine 'writer of mine' does not fit"):
        made.estimate(TASKS)
