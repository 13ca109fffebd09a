"""Tasks put to a server that draws as OpenAI's does, over HTTP."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.systems import read_system, shipped_systems
from echo_hf.engines.base import Usage
from echo_hf.reasons import Outcome, OutcomeStage
from tests.engines.openai.loopback_server import Answer, LoopbackServer
from tests.images_for_tests import encoded, noise
from tests.systems.drawing_for_tests import (
    IMAGE,
    KEY,
    Field,
    base64_of,
    form,
    image_answer,
    kept,
    task,
)
from tests.systems.openai_images.images_for_tests import PRICE, USAGE, Make, drawn_by


def test_a_prompt_alone_isdrawn_by(server: LoopbackServer, make: Make) -> None:
    """One request, one image, the very bytes; sizes are left to the model."""
    server.behave = lambda _: image_answer(entry={"revised_prompt": "a red fox"}, usage=USAGE)
    drawn = drawn_by(make(quality="high"))
    (asked,) = server.asked
    assert asked.path == "/v1/images/generations"
    assert asked.body == {
        "model": "tiny-image",
        "prompt": "a fox in the snow",
        "n": 1,
        "quality": "high",
    }
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (drawn.outcome, drawn.image, drawn.stage) == (Outcome.OK, IMAGE, None)
    assert (drawn.revised_prompt, drawn.usage) == ("a red fox", Usage(1100, 4000, 0))
    assert (drawn.seed, drawn.cost_usd) == (None, None)


def test_inputs_are_sent_to_be_edited_in_order(
    server: LoopbackServer, make: Make, tmp_path: Path
) -> None:
    """Both files arrive as the bytes that they are, the first one first."""
    server.behave = lambda _: image_answer()
    first, second = encoded(noise((30, 20)), "JPEG"), encoded(noise((10, 50)), "WEBP")
    drawn = drawn_by(make(moderation="low"), kept(tmp_path, first), kept(tmp_path, second))
    (asked,) = server.asked
    fields = form(asked)
    assert asked.path == "/v1/images/edits"
    assert [field for field in fields if field.file_name] == [
        Field("image[]", "input_1.jpg", "image/jpeg", first),
        Field("image[]", "input_2.webp", "image/webp", second),
    ]
    assert {field.name: field.data.decode() for field in fields if not field.file_name} == {
        "model": "tiny-image",
        "prompt": "a fox in the snow",
        "n": "1",
        "moderation": "low",
    }
    assert drawn.outcome is Outcome.OK
    assert drawn.details["inputs"] == [
        {"type": "image/jpeg", "size": [30, 20], "changed": []},
        {"type": "image/webp", "size": [10, 50], "changed": []},
    ]


def test_a_single_input_is_no_list(server: LoopbackServer, make: Make, tmp_path: Path) -> None:
    """Servers with one input know the field by its plain name."""
    server.behave = lambda _: image_answer()
    drawn_by(make(), kept(tmp_path, IMAGE))
    (asked,) = server.asked
    assert [one.name for one in form(asked) if one.file_name] == ["image"]


@pytest.mark.parametrize(
    ("size", "parameters", "expected"),
    [
        ("auto", {}, None),
        ({"width": 1280, "height": 720}, {}, "1280x720"),
        ("match_input", {}, "1248x832"),
        ("match_input", {"pixels": 262_144}, "624x416"),
        ("match_input", {"sizes": ["1024x1024", "1024x1536", "1536x1024"]}, "1536x1024"),
    ],
)
def test_the_size_follows_the_config(
    server: LoopbackServer,
    make: Make,
    tmp_path: Path,
    size: Any,
    parameters: dict[str, Any],
    expected: str | None,
) -> None:
    """Of an input of 60 x 40 pixels; what was asked for is told."""
    server.behave = lambda _: image_answer()
    inputs = kept(tmp_path, encoded(noise((60, 40)), "PNG"))
    drawn = drawn_by(make({"size": size}, **parameters), inputs)
    sent = {one.name: one.data.decode() for one in form(server.asked[0]) if not one.file_name}
    assert sent.get("size") == expected
    told = drawn.details["size"]
    assert (told and f"{told[0]}x{told[1]}") == expected


def test_a_seed_is_sent_where_the_server_takes_one(server: LoopbackServer, make: Make) -> None:
    """It is then a part of the outcome and of the signature."""
    server.behave = lambda _: image_answer()
    seeded = make({"seed": 7}, send_seed=True, extra={"num_inference_steps": 4})
    drawn = drawn_by(seeded)
    assert server.asked[0].body["seed"] == 7
    assert server.asked[0].body["num_inference_steps"] == 4
    assert drawn.seed == 7
    assert seeded.signature()["seed"] == 7


def test_tokens_are_priced_by_their_kind(server: LoopbackServer, make: Make) -> None:
    """By hand: 100 x 5 + 1000 x 8 + 4000 x 30 millionths of a dollar."""
    server.behave = lambda _: image_answer(usage=USAGE)
    assert drawn_by(make({"price": PRICE})).cost_usd == pytest.approx(0.1285)


def test_output_tokens_that_are_told_apart_are_priced_apart(
    server: LoopbackServer, make: Make
) -> None:
    """By hand: 1000 of the 4000 are text, at 10 dollars a million."""
    details = {"text_tokens": 1000, "image_tokens": 3000}
    usage = {**USAGE, "output_tokens_details": details}
    server.behave = lambda _: image_answer(usage=usage)
    assert drawn_by(make({"price": PRICE})).cost_usd == pytest.approx(0.1085)


def test_text_without_a_price_makes_the_whole_unknown(server: LoopbackServer, make: Make) -> None:
    """As with the prices of the shipped `gpt4o_image`, which name none for text that comes back."""
    shipped = next(file for file in shipped_systems() if file.stem == "gpt4o_image")
    price = read_system(shipped).model_dump(mode="json")["price"]
    texts = {"text_tokens": 1000, "image_tokens": 3000}
    server.behave = lambda _: image_answer(usage={**USAGE, "output_tokens_details": texts})
    assert drawn_by(make({"price": price})).cost_usd is None
    alone = {"text_tokens": 0, "image_tokens": 4000}
    server.behave = lambda _: image_answer(usage={**USAGE, "output_tokens_details": alone})
    assert drawn_by(make({"price": price})).cost_usd == pytest.approx(0.1285)


def test_an_image_may_come_as_a_data_url(server: LoopbackServer, make: Make) -> None:
    """It holds the image itself."""
    url = f"data:image/png;base64,{base64_of(IMAGE)}"
    server.behave = lambda _: image_answer(entry={"b64_json": None, "url": url})
    assert drawn_by(make()).image == IMAGE


@pytest.mark.parametrize(
    ("parameters", "number"), [({"most_inputs": 1}, 2), ({"fewest_inputs": 1}, 0)]
)
def test_a_task_with_the_wrong_number_of_inputs_is_unsupported(
    server: LoopbackServer,
    make: Make,
    tmp_path: Path,
    parameters: dict[str, int],
    number: int,
) -> None:
    """None is dropped, and nothing is asked."""
    drawn = drawn_by(make(**parameters), *[kept(tmp_path, IMAGE)] * number)
    assert (drawn.outcome, drawn.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
    assert drawn.code == ("too_many_inputs" if number else "too_few_inputs")
    assert drawn.details == {"limits": parameters}
    assert f"has {number} input images" in (drawn.text or "")
    assert not server.asked


def test_an_input_that_cannot_be_read_is_the_tasks_own_failure(
    server: LoopbackServer, make: Make, tmp_path: Path
) -> None:
    """Nothing is asked."""
    reference = kept(tmp_path, b"no picture")
    drawn = drawn_by(make(), reference)
    assert (drawn.outcome, drawn.code) == (Outcome.FAILED, "input")
    assert not server.asked


def test_the_key_is_in_nothing_that_is_kept(server: LoopbackServer, make: Make) -> None:
    """Not even where the server repeats it in every field."""
    entry = {"revised_prompt": f"fox {KEY}"}
    server.behave = lambda _: image_answer(
        entry=entry, model=KEY, size=KEY, headers={"x-request-id": f"r-{KEY}"}
    )
    system = make()
    drawn = drawn_by(system)
    assert drawn.outcome is Outcome.OK
    assert KEY not in repr(drawn)
    assert drawn.details["request_id"] == "r-(key)"
    json.dumps(drawn.details)
    assert KEY not in json.dumps(system.signature())


def test_a_private_server_needs_no_key(
    server: LoopbackServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is sent, whatever the environment holds."""
    server.behave = lambda _: image_answer()
    assert drawn_by(make(api_key_env=None)).outcome is Outcome.OK
    assert "authorization" not in server.asked[0].headers


def test_tasks_share_a_connection_of_many_threads(server: LoopbackServer, make: Make) -> None:
    """Each gets its own answer, and they are asked at the same time."""
    together = threading.Barrier(4, timeout=20)

    def behave(asked: Any) -> Answer:
        together.wait()
        return image_answer(entry={"revised_prompt": asked.body["prompt"]})

    server.behave = behave
    prompts = [f"fox {number}" for number in range(4)]
    with make() as system, ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda prompt: system.draw(task(prompt=prompt)), prompts))
    assert [one.revised_prompt for one in drawn] == prompts


def test_nothing_is_asked_before_the_first_task(server: LoopbackServer, make: Make) -> None:
    """Neither by making the system, nor by its signature, nor by entering it."""
    with make() as system:
        system.signature()
    assert not server.asked
