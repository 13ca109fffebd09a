"""Say which pictures of a sample went in and which came out, by plain rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from echo_hf.engines.rules.multimodal.edits import read_edit
from echo_hf.engines.rules.multimodal.fillings import Filling, fillings_of
from echo_hf.engines.rules.multimodal.looks import look_at
from echo_hf.engines.rules.multimodal.picture_roles import PictureRoles, Unsure
from echo_hf.engines.rules.multimodal.role_sample import Picture, Sample, read_sample
from echo_hf.engines.rules.multimodal.role_tokens import Role
from echo_hf.engines.rules.multimodal.screens import Screens, find_screens

Answer = dict[str, Any]
Shot = tuple[str, Picture]
Try = tuple[list[Picture], list[Picture]]


def roles(inputs: Mapping[str, Any]) -> str | None:
    """Answers a request about the pictures of a sample.

    Args:
        inputs: prompt, placeholders, posts (number, parent, author, text, pictures, own of each),
            pictures (number, post, alt_text, file of each) and target.

    Returns:
        The answer as JSON; null where neither words nor looks tell the pictures apart.
    """
    sample = read_sample(inputs)
    edit = read_edit(sample.prompt)
    looks = {one.number: look_at(one.file) for one in sample.pictures.values()}
    screens = find_screens(sample, edit, looks)
    if screens.unsure:
        return None
    try:
        decided = PictureRoles(sample, edit, looks, screens.all).decide()
    except Unsure:
        return None
    samples = list(_samples(sample, screens, decided))
    return json.dumps({"samples": samples}, ensure_ascii=False)


def _samples(sample: Sample, screens: Screens, decided: Mapping[int, Role]) -> Iterator[Answer]:
    """First the completions of a template, then what is none, then further screenshots."""
    inputs = _with_role(sample, decided, "input")
    outputs = _with_role(sample, decided, "output")
    fillings = fillings_of(sample, outputs)
    for filling in dict.fromkeys(fillings.values()):
        some = [one for one in outputs if fillings.get(one.number) == filling]
        yield _answer(sample, _inputs_for(sample, some, inputs), some, filling)
    rest = [one for one in outputs if one.number not in fillings]
    shots = [*_shots(sample, screens)]
    if not fillings or rest:
        main, *others = _tries(inputs, rest)
        yield _answer(sample, *main, shot=shots.pop(0) if shots else None)
        yield from (_answer(sample, *one) for one in others)
    for shot in shots:
        yield _answer(sample, [], [], shot=shot)


def _with_role(sample: Sample, decided: Mapping[int, Role], role: Role) -> list[Picture]:
    return [one for one in sample.pictures.values() if decided.get(one.number) == role]


def _shots(sample: Sample, screens: Screens) -> Iterator[Shot]:
    for kind, numbers in (("conversation", screens.conversations), ("collage", screens.collages)):
        yield from ((kind, sample.pictures[number]) for number in numbers)


def _tries(inputs: Sequence[Picture], outputs: Sequence[Picture]) -> Iterator[Try]:
    """One try for each post with pictures of its own that went in; the first has all the rest."""
    made = {one.post for one in outputs}
    apart = list(dict.fromkeys(one.post for one in inputs if one.post in made))[1:]
    for post in (None, *apart):
        yield (
            [one for one in inputs if _belongs(one, post, apart)],
            [one for one in outputs if _belongs(one, post, apart)],
        )


def _belongs(picture: Picture, post: int | None, apart: Sequence[int]) -> bool:
    return picture.post not in apart if post is None else picture.post == post


def _inputs_for(
    sample: Sample, outputs: Sequence[Picture], inputs: Sequence[Picture]
) -> list[Picture]:
    """The inputs in the posts of some outputs; where there are none, those of the task's author."""
    posts = {one.post for one in outputs}
    own = [one for one in inputs if one.post in posts]
    return own or [one for one in inputs if sample.by_task_author(sample.posts[one.post])]


def _answer(
    sample: Sample,
    inputs: Sequence[Picture],
    outputs: Sequence[Picture],
    filling: Filling = (),
    shot: Shot | None = None,
) -> Answer:
    kind, picture = shot or (None, None)
    shown = [*inputs, *outputs, *([picture] if picture else [])]
    first = [sample.primary.number] if sample.primary else []
    return {
        "inputs": [one.number for one in inputs],
        "outputs": [one.number for one in outputs],
        "posts": list(dict.fromkeys([*first, *(one.post for one in shown)])),
        "prompt_fill_blank": [
            {"placeholder": placeholder, "value": value} for placeholder, value in filling
        ],
        "conversation": picture.number if picture and kind == "conversation" else None,
        "collage": picture.number if picture and kind == "collage" else None,
    }
