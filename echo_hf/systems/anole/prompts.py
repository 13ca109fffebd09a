"""A prompt and its inputs as tokens, for the three branches that guidance compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from echo_hf.errors import GenerationError

# Three pictures of 1024 tokens and the one to be drawn are more than its context of 4096.
MOST_INPUTS = 2
START, PAD = "<s>", "<pad>"
PICTURE_STARTS, PICTURE_ENDS = "<racm3:break>", "<eoss>"
END_OF_TURN = "<reserved08706>"


@dataclass(frozen=True, slots=True)
class Words:
    """The tokens around texts and pictures.

    Attributes:
        start: Before everything.
        picture_starts: Before a picture.
        picture_ends: After a picture.
        end_of_turn: After the prompt.
        pad: What fills a row up.
    """

    start: int
    picture_starts: int
    picture_ends: int
    end_of_turn: int
    pad: int


def words_of(vocabulary: Mapping[str, int] | None, place: str) -> Words:
    """Finds those tokens in a model's vocabulary.

    Args:
        vocabulary: The `vocabulary_map` of its config.
        place: What to call the system, for messages.

    Returns:
        Their numbers.

    Raises:
        GenerationError: One of them is not there.
    """
    names = (START, PICTURE_STARTS, PICTURE_ENDS, END_OF_TURN, PAD)
    missing = [name for name in names if name not in (vocabulary or {})]
    if vocabulary is None or missing:
        raise GenerationError(
            f"{place}: the model's vocabulary has no {missing[0]!r}: expected Anole, or a model "
            "that is trained from it"
        )
    return Words(*(vocabulary[name] for name in names))


def branches(
    text: Sequence[int], inputs: Sequence[Sequence[int]], words: Words
) -> tuple[list[int], list[int], list[int]]:
    """What the model reads in each branch, up to where its picture starts.

    Args:
        text: Tokens of the prompt.
        inputs: Tokens of each input picture, in order; they stand before the prompt.
        words: The tokens around them.

    Returns:
        Everything; the inputs alone; nothing.

    Example:
        >>> branches([7, 8], [[5, 6]], Words(0, 1, 2, 3, 9))
        ([0, 1, 5, 6, 2, 7, 8, 3, 1], [0, 1, 5, 6, 2, 1], [0, 1])
    """
    pictures = [
        token
        for picture in inputs
        for token in (words.picture_starts, *picture, words.picture_ends)
    ]
    everything = [words.start, *pictures, *text, words.end_of_turn, words.picture_starts]
    return (
        everything,
        [words.start, *pictures, words.picture_starts],
        [words.start, words.picture_starts],
    )
