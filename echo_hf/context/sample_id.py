"""Names of samples, made from where they come from and from nothing a model wrote."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
LENGTH = 22


def sample_id(*sources: str | int) -> str:
    """A name for the sample that comes from these sources.

    Args:
        *sources: What identifies it: the primary post's address, the place of the prompt in it,
            and whatever else tells it from its siblings.

    Returns:
        22 characters that are not easily mistaken for each other, as short UUIDs use them.

    Example:
        >>> sample_id("https://x.com/i/status/1", 0, 0)
        'Q5r3DiSWV9DEfJFpffWDgR'
    """
    text = json.dumps(sources, ensure_ascii=False)
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    letters = []
    for _ in range(LENGTH):
        number, rest = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[rest])
    return "".join(letters)


def sample_digest(prompt: str, input_images: Sequence[str]) -> str:
    """Sha256 of all that a system under test is given.

    Outputs and ratings carry it: a row whose digest differs was made for another prompt.

    Args:
        prompt: The instruction.
        input_images: Digests of the input pictures, in order.

    Returns:
        64 hexadecimal characters.
    """
    text = json.dumps([prompt, list(input_images)], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
