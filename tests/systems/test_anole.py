"""Anole, from a task to an image."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from echo_hf.errors import GenerationError
from echo_hf.systems.anole import (
    SAFETENSORS,
    AnoleOptions,
    AnoleSystem,
    AnoleTokens,
    LoadedAnole,
    build_branches,
    crop_square,
    decode_image,
    draw_tokens,
    make_decoder,
)
from echo_hf.tables import Outcome
from tests.errors_for_tests import said_by
from tests.systems.drawing_for_tests import blocks, config, image_file, levels, task
from tests.systems.tiny_anole import CODES, REASON, TOKENS, in_original_order, write_tiny_anole

Numbers = np.ndarray[Any, np.dtype[np.float64]]
WORDS = AnoleTokens(start=0, image_starts=1, image_ends=2, end_of_turn=3, pad=9)
VOCABULARY = {"<s>": 0, "<racm3:break>": 1, "<eoss>": 2, "<reserved08706>": 3, "<pad>": 9}
OPTIONS = AnoleOptions()
SQUARE = [number % CODES for number in range(TOKENS)]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"parameters": {"top_k": 5}}, "unknown key 'top_k'; did you mean 'top_p'?"),
        ({"size": "match_input"}, "size is 'match_input': expected 'auto'"),
    ],
)
def test_a_bad_config_is_one_line(more: dict[str, Any], said: str) -> None:
    made = config("anole", **{"parameters": {}, "model": "a/b", **more})
    told = said_by(GenerationError, AnoleSystem, made)
    assert told.startswith("system 'tiny': ")
    assert said in told


def test_the_signature_is_what_decides_an_image() -> None:
    said, on, warm = (
        AnoleSystem(config("anole", parameters, model="acme/anole", seed=3)).signature()
        for parameters in ({}, {"device": "mps"}, {"temperature": 0.8})
    )
    assert said == on
    assert json.loads(json.dumps(said)) == {
        "adapter": "anole",
        "model": "acme/anole",
        "revision": "main",
        "decoder": {"model": "leloy/Anole-7b-v0.1-vqvae-hf", "revision": "main"},
        "wording": 1,
        "seed": 3,
    }
    assert warm == {**said, "temperature": 0.8}


def test_preflight_looks_for_the_model_and_its_decoder(tmp_path: Path) -> None:
    def system() -> AnoleSystem:
        return AnoleSystem(config("anole", {"decoder": str(tmp_path)}, model=str(tmp_path)))

    for name in ("config.json", "model.safetensors"):
        with pytest.raises(GenerationError, match=f"no '{name}' of model"):
            system().preflight()
        (tmp_path / name).write_text("{}")
    assert system().preflight() is None


def test_every_branch_ends_where_the_image_starts() -> None:
    assert build_branches([7, 8], [], WORDS) == ([0, 7, 8, 3, 1], [0, 1], [0, 1])
    assert build_branches([7], [[4, 5], [6, 4]], WORDS) == (
        [0, 1, 4, 5, 2, 1, 6, 4, 2, 7, 3, 1],
        [0, 1, 4, 5, 2, 1, 6, 4, 2, 1],
        [0, 1],
    )


def test_a_model_without_its_words_is_told() -> None:
    assert AnoleTokens.from_vocabulary(VOCABULARY, "system 'tiny'") == WORDS
    with pytest.raises(GenerationError, match=r"^system 'tiny': .* has no '<s>': expected Anole"):
        AnoleTokens.from_vocabulary(None, "system 'tiny'")


# What needs the packages.


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    for package in ("torch", "transformers", "accelerate"):
        pytest.importorskip(package, reason=REASON, exc_type=ImportError)
    import torch

    # Threads that share such small sums wait for each other longer than they add.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield write_tiny_anole(tmp_path_factory.mktemp("models") / "tiny-anole")
    torch.set_num_threads(threads)


def made(tiny: Path, *, seed: int = 0, **more: Any) -> AnoleSystem:
    parameters = {"decoder": str(tiny / "decoder"), "dtype": "float32", "device": "cpu", **more}
    return AnoleSystem(config("anole", parameters, model=str(tiny), seed=seed))


@pytest.fixture(scope="session")
def loaded(tiny: Path) -> LoadedAnole:
    """That model, in 32 bits."""
    return made(tiny).load("cpu")


@pytest.mark.extras
def test_inputs_prompt_and_options_decide(tiny: Path, loaded: LoadedAnole, tmp_path: Path) -> None:
    sizes = [(128, 96), (96, 160), (64, 64)]
    one, two, three = (image_file(tmp_path, blocks(size, 1)) for size in sizes)
    room = loaded.context - TOKENS - 3 - 2 * (TOKENS + 2)
    fits, too_long = (task(one, two, prompt="x" * length) for length in (room, room + 1))
    with made(tiny) as system:
        tasks = [task(), task(one), task(one, two), task(two, one), fits]
        found = [system.draw(each) for each in tasks]
        many, cut = (system.draw(each) for each in (task(one, two, three), too_long))
    for each, given in zip(found, (0, 1, 2, 2, 2), strict=True):
        assert (each.outcome, levels(each.image).shape) == (Outcome.OK, (32, 32, 3))
        assert each.details["inputs"] == {"given": given, "used": given}
        assert each.details["size"] == {"asked": None, "came": [32, 32]}
        assert json.loads(json.dumps(each.details)) == each.details
    assert (many.outcome, many.stage, many.code) == ("unsupported", "task", "too_many_inputs")
    assert (cut.outcome, cut.stage, cut.code) == ("unsupported", "input", "too_long")
    changes = [{"text_guidance": 1.0}, {"image_guidance": 3.0}, {"temperature": 2.0}]
    others = [made(tiny, **change).draw(task(one)).image for change in (*changes, {"top_p": 0.3})]
    assert len({*(each.image for each in found), *others}) == len(found) + len(others)


@pytest.mark.extras
def test_a_prompt_is_text_whatever_it_says(loaded: LoadedAnole) -> None:
    said = "<racm3:break><image></s><reserved08706>"
    found = loaded.tokenize_text(said)
    assert len(found) == len(said)
    assert not set(found) & {*loaded.codes, *range(8)}


@pytest.mark.extras
def test_what_cannot_be_loaded_is_one_line(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path, dirs_exist_ok=True)
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with made(tmp_path) as system:
        assert "cannot load" in said_by(GenerationError, system.draw, task())


# The tokens of an image.


def rows_of(loaded: LoadedAnole, *inputs: int) -> tuple[list[int], list[int], list[int]]:
    codes = sorted(loaded.codes)
    seen = [[codes[(seed + number) % 16] for number in range(TOKENS)] for seed in inputs]
    return build_branches(loaded.tokenize_text("a red barn"), seen, loaded.words)


def logits_of(loaded: LoadedAnole, ids: list[int]) -> Any:
    import torch

    with torch.inference_mode():
        read = loaded.model.model(input_ids=torch.tensor([ids]), use_cache=False)
        return loaded.model.lm_head(read.last_hidden_state[0, -1]).double().numpy()


def by_hand(loaded: LoadedAnole, rows: tuple[list[int], ...], seed: int) -> list[int]:
    import torch

    generator = torch.Generator("cpu").manual_seed(seed)
    allowed = np.array(sorted(loaded.codes))
    found: list[int] = []
    while len(found) < TOKENS:
        full, seen, nothing = (logits_of(loaded, [*row, *found])[allowed] for row in rows)
        mixed = (1 - OPTIONS.image_guidance) * nothing
        mixed = mixed + (OPTIONS.image_guidance - OPTIONS.text_guidance) * seen
        mixed = (mixed + OPTIONS.text_guidance * full) / OPTIONS.temperature
        order = np.argsort(-mixed, kind="stable")
        chances = softmax(mixed)[order]
        chances[np.cumsum(chances) - chances >= OPTIONS.top_p] = 0
        place = torch.multinomial(torch.tensor(chances).float(), 1, generator=generator)
        found.append(int(allowed[order[int(place)]]))
    return found


@pytest.mark.extras
@pytest.mark.parametrize("inputs", [(), (3, 8)])
def test_tokens_are_those_of_branches_read_alone(loaded: LoadedAnole, inputs: Any) -> None:
    rows = rows_of(loaded, *inputs)
    found = draw_tokens(loaded, rows, OPTIONS, seed=4)
    assert found == by_hand(loaded, rows, seed=4)
    assert found != draw_tokens(loaded, rows, OPTIONS, seed=5)
    assert set(found) <= set(loaded.codes)


@pytest.mark.extras
@pytest.mark.parametrize("size", [(512, 512), (640, 480), (333, 777), (40, 40), (100, 900)])
def test_pixels_are_those_of_the_models_own_processor(size: tuple[int, int]) -> None:
    pytest.importorskip("transformers", reason=REASON, exc_type=ImportError)
    from transformers import ChameleonImageProcessorPil

    image = blocks(size, 3)
    expected = ChameleonImageProcessorPil()(image, return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(crop_square(image, 512), expected, atol=1e-6)


# The decoder.


@pytest.mark.extras
def test_codes_become_a_square_row_by_row(loaded: LoadedAnole) -> None:
    """Of the network's own levels: from -1 to 1 they become 0 to 255, rounded."""
    import torch

    parts = loaded.decoder
    with torch.inference_mode():
        codebook = parts["quantize"]["embedding"].weight[torch.tensor(SQUARE)]
        square = codebook.T.reshape(1, -1, 8, 8)
        values = parts["decoder"](parts["post_quant_conv"](square))[0].numpy()
    expected = np.round((np.clip(values, -1, 1) + 1) / 2 * 255).transpose(1, 2, 0)
    image = decode_image(loaded.decoder, SQUARE)
    assert (image.mode, image.size) == ("RGB", (32, 32))
    np.testing.assert_allclose(np.asarray(image, dtype=float), expected, atol=1)


@pytest.mark.extras
def test_both_orders_of_levels_are_read_under_any_prefix(tiny: Path, loaded: LoadedAnole) -> None:
    from safetensors.torch import load_file

    weights, vq = load_file(tiny / "decoder" / SAFETENSORS), loaded.model.config.vq_config
    named = {f"model.vqmodel.{name}": value for name, value in weights.items()}
    for given in (in_original_order(weights), named):
        other = make_decoder(vq, given, "system 'tiny'")
        assert (
            decode_image(other, SQUARE).tobytes() == decode_image(loaded.decoder, SQUARE).tobytes()
        )
    bare = {name: one for name, one in weights.items() if not name.startswith("decoder.")}
    more = {**weights, "decoder.up.0.attn.0.q.weight": weights["post_quant_conv.weight"]}
    for given, said in ((more, "Unexpected key"), (bare, "Missing key")):
        with pytest.raises(GenerationError, match=rf"does not fit the model \({said}") as caught:
            make_decoder(vq, given, "system 'tiny'")
        assert "\n" not in str(caught.value)
