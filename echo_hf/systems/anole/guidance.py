"""How three branches become one distribution, and a token is drawn from it."""

from __future__ import annotations

from typing import Any


def guided(
    everything: Any, inputs: Any, nothing: Any, *, text_scale: float, image_scale: float
) -> Any:
    """Logits under the guidance of the prompt and of the inputs.

    Args:
        everything: Logits after the prompt and its inputs; an array of any shape.
        inputs: Logits after the inputs alone.
        nothing: Logits after nothing.
        text_scale: How far the prompt pulls away from the inputs alone.
        image_scale: How far the inputs pull away from nothing.

    Returns:
        Logits of the same shape.

    Example:
        >>> guided(4.0, 2.0, 1.0, text_scale=3.0, image_scale=1.2)
        8.2
    """
    return nothing + image_scale * (inputs - nothing) + text_scale * (everything - inputs)


def draw_token(logits: Any, temperature: float, top_p: float, generator: Any) -> int:
    """Draws from the most probable tokens.

    Args:
        logits: A vector of them.
        temperature: What they are divided by.
        top_p: The tokens that stay are the fewest, the most probable first, whose probabilities
            sum to at least this.
        generator: The source of chance, on the processor.

    Returns:
        The position of the token drawn.
    """
    import torch

    values, order = (logits / temperature).softmax(-1).sort(descending=True, stable=True)
    before = values.cumsum(-1) - values
    weights = torch.where(before < top_p, values, 0.0).cpu()
    drawn = torch.multinomial(weights, 1, generator=generator)
    return int(order.cpu()[drawn])
