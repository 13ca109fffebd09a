"""Take prompts and outputs as users have them, and pair them sample by sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xxhash import xxh3_128

from echo_hf.errors import ScoreError
from echo_hf.metrics.samples import ONE_PICTURE, samples_of
from echo_hf.open_picture import PictureSource


def prompted(
    prompts: Iterable[str], outputs: Iterable[Any]
) -> tuple[list[str], Iterator[tuple[str, PictureSource | None]]]:
    """Pairs prompts with outputs.

    Args:
        prompts: For each sample the prompt.
        outputs: For each sample a picture in one of the forms of `samples_of`, or null.

    Returns:
        The prompts; and for each a digest of it with its output, taken as they are needed.

    Raises:
        ScoreError: The two differ in length, or an entry is no prompt or no picture.

    Example:
        >>> texts, pairs = prompted(["a cat", "a dog"], [b"png", None])
        >>> texts, [output for _, output in pairs]
        (['a cat', 'a dog'], [b'png', None])
    """
    texts = _texts(prompts)
    _check_lengths(texts, outputs)
    samples = samples_of([None] * len(texts), outputs)
    return texts, ((_digest(text), one.output) for text, one in zip(texts, samples, strict=True))


def _texts(prompts: Iterable[str]) -> list[str]:
    if isinstance(prompts, ONE_PICTURE) or not isinstance(prompts, Iterable):
        raise ScoreError(
            f"prompts: {type(prompts).__name__!r} is not one entry for each sample: expected a "
            "list, or a column of a dataset"
        )
    texts = list(prompts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ScoreError(f"prompts[{number}]: {type(text).__name__!r} is no text")
    return texts


def _check_lengths(texts: Sequence[str], outputs: Iterable[Any]) -> None:
    if isinstance(outputs, ONE_PICTURE) or not isinstance(outputs, Sequence):
        return
    if len(outputs) != len(texts):
        raise ScoreError(
            f"{len(texts)} prompts and {len(outputs)} outputs: expected one of each for a sample, "
            "and null for an output that is missing"
        )


def _digest(text: str) -> str:
    return xxh3_128(text.encode(errors="surrogatepass")).hexdigest()
