"""What an output costs, from the price in a config and the tokens that its maker counted."""

from __future__ import annotations

from dataclasses import dataclass

from echo_hf.systems.config import Price

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Billed:
    """What is billed for a task; null where the answer does not say.

    Attributes:
        text_in: Tokens of text that were sent.
        image_in: Tokens of pictures that were sent.
        text_out: Tokens of text that came back, thinking included.
        image_out: Tokens of pictures that came back.
        pictures: How many pictures came back.
    """

    text_in: int | None = None
    image_in: int | None = None
    text_out: int | None = None
    image_out: int | None = None
    pictures: int = 0


def cost_usd(price: Price | None, billed: Billed) -> float | None:
    """The price of a task.

    Args:
        price: The config's; null where it gives none.
        billed: What was used.

    Returns:
        US dollars; null where a count or the price of what was used is not known. A price for a
        picture stands for all of it, tokens included.

    Example:
        >>> cost_usd(Price(text_in=5, image_in=8, text_out=30, image_out=30, as_of="2026-11-21"),
        ...          Billed(text_in=100, image_in=1000, text_out=0, image_out=4000))
        0.1285
    """
    if price is None:
        return None
    if price.usd_per_image is not None:
        return price.usd_per_image * billed.pictures
    parts = [
        _part(price.text_in, billed.text_in),
        _part(price.image_in, billed.image_in),
        _part(price.text_out, billed.text_out),
        _part(price.image_out, billed.image_out),
    ]
    known = [part for part in parts if part is not None]
    return sum(known) / MILLION if len(known) == len(parts) else None


def added(*costs: float | None) -> float | None:
    """The sum of several costs, null when one is not known.

    Example:
        >>> added(0.25, 0.5), added(0.25, None)
        (0.75, None)
    """
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def _part(price: float | None, tokens: int | None) -> float | None:
    if tokens == 0 or price == 0:
        return 0.0
    return None if price is None or tokens is None else price * tokens
