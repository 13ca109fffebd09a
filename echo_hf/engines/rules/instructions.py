"""Tell whether a text is an instruction for a picture, or a description of one."""

from __future__ import annotations

from echo_hf.engines.rules import han_words as han
from echo_hf.engines.rules.common_words import FIRST_PERSON
from echo_hf.engines.rules.phrases import ORDER_START
from echo_hf.engines.rules.reading import Reading

FEWEST_WORDS = 4
FEWEST_WORDS_WITHOUT_PICTURE = 8
FEWEST_WORDS_OF_A_DESCRIPTION = 12


def is_order(said: Reading) -> bool:
    """Whether a text begins as an instruction, for whatever."""
    return begins_as_order(said.folded)


def begins_as_order(folded: str) -> bool:
    """Whether a folded text begins as an instruction; in Japanese, whether its first line ends so.

    Example:
        >>> begins_as_order("please turn this into a stamp"), begins_as_order("turn left")
        (True, False)
        >>> begins_as_order("i turned this into a stamp")
        False
    """
    return bool(ORDER_START.match(folded) or han.ORDER.match(folded))


def is_order_for_picture(said: Reading) -> bool:
    """Whether a text begins as an instruction and speaks of pictures or looks."""
    return (said.picture or said.look) and is_order(said)


def instructs(said: Reading, pictures: int) -> bool:
    """Whether an instruction, as the whole of a post, is one for a picture.

    Args:
        said: The text, which begins as an instruction.
        pictures: How many pictures the post has; without any it has to say more.
    """
    fewest = FEWEST_WORDS if pictures else FEWEST_WORDS_WITHOUT_PICTURE
    return (said.picture or said.look) and said.length >= fewest and not said.asks_for_prompt


def only_describes(said: Reading, pictures: int) -> bool:
    """Whether a text does nothing but describe a picture to be made.

    People describe their own photographs too, but then they speak of themselves.

    Args:
        said: The text.
        pictures: How many pictures the post has; without any it is no description.
    """
    described = said.description and said.length >= FEWEST_WORDS_OF_A_DESCRIPTION
    template = said.template and said.length >= FEWEST_WORDS_WITHOUT_PICTURE
    return pictures > 0 and (described or template) and is_impersonal(said)


def is_impersonal(said: Reading) -> bool:
    """Whether a text speaks neither of people nor of the target and its maker."""
    return said.words.isdisjoint(FIRST_PERSON) and not (said.target or said.developer)
