"""Draw the tokens of an image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from echo_hf.systems.anole import LoadedAnole, draw_tokens
from echo_hf.systems.anole_tokens import AnoleOptions, branches
from tests.systems.tiny_anole import TOKENS

pytestmark = pytest.mark.extras
OPTIONS = AnoleOptions()


def _rows(loaded: LoadedAnole, *inputs: int) -> tuple[list[int], list[int], list[int]]:
    codes = sorted(loaded.codes)
    images = [[codes[(seed + number) % 16] for number in range(TOKENS)] for seed in inputs]
    return branches(loaded.text_tokens("a red barn"), images, loaded.words)


def _by_hand(
    loaded: LoadedAnole, rows: tuple[list[int], ...], options: AnoleOptions, seed: int
) -> list[int]:
    """Each branch read from its beginning for every token, alone and without a cache."""
    import torch

    generator = torch.Generator("cpu").manual_seed(seed)
    allowed = np.array(sorted(loaded.codes))
    drawn: list[int] = []
    while len(drawn) < TOKENS:
        full, images, nothing = (_logits(loaded, [*row, *drawn])[allowed] for row in rows)
        mixed = (1 - options.image_guidance) * nothing
        mixed = mixed + (options.image_guidance - options.text_guidance) * images
        mixed = (mixed + options.text_guidance * full) / options.temperature
        order = np.argsort(-mixed, kind="stable")
        chances = softmax(mixed)[order]
        chances[np.cumsum(chances) - chances >= options.top_p] = 0
        place = torch.multinomial(torch.tensor(chances).float(), 1, generator=generator)
        drawn.append(int(allowed[order[int(place)]]))
    return drawn


def _logits(loaded: LoadedAnole, ids: list[int]) -> Any:
    import torch

    with torch.inference_mode():
        read = loaded.model.model(input_ids=torch.tensor([ids]), use_cache=False)
        return loaded.model.lm_head(read.last_hidden_state[0, -1]).double().numpy()


@pytest.mark.parametrize("inputs", [(), (3,), (3, 8)])
def test_tokens_are_those_of_branches_read_alone(
    loaded: LoadedAnole, inputs: tuple[int, ...]
) -> None:
    """Neither the cache, nor rows filled up to one length, nor the batch change a draw."""
    rows = _rows(loaded, *inputs)
    found = draw_tokens(loaded.model, rows, loaded, OPTIONS, seed=4)
    assert found == _by_hand(loaded, rows, OPTIONS, seed=4)


def test_an_image_has_all_its_tokens_and_no_others(loaded: LoadedAnole) -> None:
    """Even where the model would rather write."""
    found = draw_tokens(loaded.model, _rows(loaded), loaded, OPTIONS, seed=0)
    assert len(found) == TOKENS
    assert set(found) <= set(loaded.codes)
    unlimited = _logits(loaded, _rows(loaded)[0])
    assert int(np.argmax(unlimited)) not in loaded.codes


def test_the_seed_decides_the_tokens(loaded: LoadedAnole) -> None:
    """The same one the same tokens."""
    rows = _rows(loaded, 1)
    one, again, other = (
        draw_tokens(loaded.model, rows, loaded, OPTIONS, seed) for seed in (0, 0, 1)
    )
    assert one == again != other


def test_stock_chameleon_writes_no_images(loaded: LoadedAnole) -> None:
    """The reason for all this: its own forward leaves the tokens of images no chance."""
    import torch

    with torch.inference_mode():
        logits = loaded.model(torch.tensor([_rows(loaded)[0]])).logits[0, -1]
    assert (logits[sorted(loaded.codes)] == torch.finfo(logits.dtype).min).all()
