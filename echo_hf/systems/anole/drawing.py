"""Draw the tokens of a picture, one after the other, with three branches in a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from echo_hf.systems.anole.guidance import draw_token, guided

if TYPE_CHECKING:
    from echo_hf.systems.anole.loading import LoadedAnole
    from echo_hf.systems.anole.options import AnoleOptions


def draw_tokens(
    model: Any,
    rows: Sequence[Sequence[int]],
    loaded: LoadedAnole,
    options: AnoleOptions,
    seed: int,
) -> list[int]:
    """Draws exactly as many tokens as a picture has, and no others than a picture's.

    Args:
        model: Chameleon, as transformers has it.
        rows: What it reads in each branch: everything, the inputs alone, nothing.
        loaded: What belongs to the model.
        options: Guidance and sampling.
        seed: Of the draws.

    Returns:
        Tokens, row by row of the picture.
    """
    import torch

    generator = torch.Generator("cpu").manual_seed(seed)
    allowed = torch.tensor(sorted(loaded.codes), device=model.device)
    ids, mask = _padded(rows, loaded.words.pad, model.device)
    cache: Any = None
    drawn: list[int] = []
    with torch.inference_mode():
        while len(drawn) < loaded.count:
            logits, cache = _next(model, ids, mask, cache)
            everything, inputs, nothing = logits[:, allowed].float()
            mixed = guided(
                everything,
                inputs,
                nothing,
                text_scale=options.text_guidance,
                image_scale=options.image_guidance,
            )
            place = draw_token(mixed, options.temperature, options.top_p, generator)
            drawn.append(int(allowed[place]))
            ids = allowed[place].repeat(len(rows), 1)
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
    return drawn


def _padded(rows: Sequence[Sequence[int]], pad: int, device: Any) -> tuple[Any, Any]:
    import torch

    longest = max(map(len, rows))
    ids = [[pad] * (longest - len(row)) + list(row) for row in rows]
    mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _next(model: Any, ids: Any, mask: Any, cache: Any) -> tuple[Any, Any]:
    # Not through the model's own forward, which forbids the tokens of pictures. Places are counted
    # without what fills a row up: only their differences count, but sums are rounded.
    places = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
    read = model.model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=places,
        past_key_values=cache,
        use_cache=True,
    )
    return model.lm_head(read.last_hidden_state[:, -1]), read.past_key_values
