"""Find pictures that show what went in beside what came out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from echo_hf.engines.rules.folding import fold
from echo_hf.engines.rules.multimodal.edits import Edit
from echo_hf.engines.rules.multimodal.looks import Look
from echo_hf.engines.rules.multimodal.role_sample import Picture, Post, Sample
from echo_hf.engines.rules.multimodal.role_words import END, START
from echo_hf.engines.rules.multimodal.said_roles import said_about
from echo_hf.engines.rules.multimodal.seams import is_pair, is_split
from echo_hf.engines.rules.names import Names

SIDE_BY_SIDE = re.compile(
    rf"{START}(?:side[ -]by[ -]side|collage|split(?:[ -]screen)?|diptych|two halves|left half"
    rf"|next to each other|lado a lado|côte à côte|nebeneinander|fianco a fianco){END}|对比图|並べ"
    r"|拼图"
)


def collages_among(
    pictures: Sequence[Picture],
    post: Post,
    sample: Sample,
    edit: Edit,
    looks: Mapping[int, Look | None],
) -> Iterator[int]:
    """Finds the collages among the pictures of a post.

    Args:
        pictures: Its pictures, without screenshots of conversations.
        post: The post.
        sample: The sample.
        edit: What its prompt asks for.
        looks: The pictures as plain measures see them, by number.

    Yields:
        The number of each. A picture in two halves is one when it is told to be, or when the
        prompt edits a picture, no other is shown, and both halves show the same.
    """
    alone = len(pictures) == 1
    by_text = alone and _tells_of_two(post.beside, sample.names)
    for picture in pictures:
        look = looks[picture.number]
        by_alt = _tells_of_two(picture.alt_text, sample.names)
        if look is None:
            found = by_alt and SIDE_BY_SIDE.search(fold(picture.alt_text)) is not None
        elif by_alt or by_text:
            found = is_split(look)
        else:
            found = alone and edit.inputs > 0 and is_pair(look)
        if found:
            yield picture.number


def _tells_of_two(text: str, names: Names) -> bool:
    """Whether a text about one picture speaks of what went in and what came out, by side."""
    said = said_about(text, 2, names)
    both = {"input", "output"} <= said.mentioned
    sided = said.sides and len(set(said.roles.values()) & {"input", "output"}) > 0
    return sided or said.order is not None or (both and SIDE_BY_SIDE.search(fold(text)) is not None)
