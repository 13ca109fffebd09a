"""Score how likely a post is about images made with the target, by its words alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from echo_hf.engines.rules.names import Names, names_of
from echo_hf.engines.rules.reading import Reading

PERHAPS = 3


class Signs(NamedTuple):
    """What a score is decided from.

    Attributes:
        said: The post's own words.
        described: The descriptions of its pictures.
        pictures: How many pictures it has.
    """

    said: Reading
    described: Reading
    pictures: int


class Verdict(NamedTuple):
    """A score from 1 (certainly not) to 5 (certainly), with a note where it is unsure."""

    score: int
    note: str | None = None


class Rung(NamedTuple):
    """One line of the ladder: the verdict, and when it holds."""

    verdict: Verdict
    holds: Callable[[Signs], bool]


def relevance(inputs: Mapping[str, Any]) -> str | None:
    """Answers a relevance request.

    Args:
        inputs: text, alt_texts, pictures, target.

    Returns:
        The answer as JSON, null where the word lists do not cover the post's language.
    """
    names = names_of(inputs["target"])
    said = Reading(inputs["text"] or "", names)
    verdict = judge(said, inputs["alt_texts"], inputs["pictures"], names)
    return ANSWERS[verdict] if verdict else None


def judge(said: Reading, alt_texts: Sequence[str], pictures: int, names: Names) -> Verdict | None:
    """Scores a post.

    Args:
        said: What it says.
        alt_texts: The descriptions of its pictures.
        pictures: How many it has.
        names: The names around the target.

    Returns:
        The first verdict of the ladder that holds; null where it would be an unsure or a negative
        one about a text whose language the word lists do not cover.
    """
    described = Reading("\n".join(alt_texts), names) if alt_texts else NOTHING
    signs = Signs(said, described, pictures)
    verdict = next(rung.verdict for rung in LADDER if rung.holds(signs))
    return verdict if verdict.score > PERHAPS or said.covered else None


def _about_another(signs: Signs) -> bool:
    return signs.said.other and not signs.said.target


def _text_only(signs: Signs) -> bool:
    said = signs.said
    if not said.text_use or said.picture or said.generation or said.looks > 1:
        return False
    return said.target or said.developer or said.artificial or said.prompt


def _asks(said: Reading) -> bool:
    return said.order or said.template or said.description


def _target_and_making(signs: Signs) -> bool:
    said = signs.said
    if said.target:
        return _generation_shown(said) or (said.picture and _made_or_judged(said))
    a_model = said.artificial or said.model
    return said.developer and (said.generation or (said.picture and a_model))


def _generation_shown(said: Reading) -> bool:
    return said.generation or _asks(said) or said.turned_into or (said.prompt and said.look)


def _made_or_judged(said: Reading) -> bool:
    return said.prompt or ((said.making or said.verdict) and not said.looking)


def _looks_only(signs: Signs) -> bool:
    said = signs.said
    named = said.target or said.developer
    return named and said.picture and said.looking and not _generation_shown(said)


def _in_description(signs: Signs) -> bool:
    described = signs.described
    return described.prompt or described.generation or described.order


def _remarkable(signs: Signs) -> bool:
    said = signs.said
    return said.wonder or signs.pictures > 0 or said.is_remark


NO_NAMES = names_of({"name": "", "developer": "", "aliases": (), "others": (), "chat_window": None})
NOTHING = Reading("", NO_NAMES)
# The first that holds decides.
LADDER = (
    Rung(Verdict(2), _about_another),
    Rung(Verdict(2), _text_only),
    Rung(Verdict(3, "the model may only be shown pictures"), _looks_only),
    Rung(Verdict(5), _target_and_making),
    Rung(Verdict(4), lambda signs: signs.said.prompt or signs.said.generation),
    Rung(Verdict(4), lambda signs: signs.said.target and signs.said.picture),
    Rung(Verdict(4), lambda signs: _asks(signs.said) or signs.said.turned_into),
    Rung(Verdict(4), lambda signs: signs.said.artificial and signs.said.picture),
    Rung(Verdict(4), _in_description),
    Rung(
        Verdict(3, "pictures are spoken of beside the maker, but not how they are made"),
        lambda signs: signs.said.developer and signs.said.picture,
    ),
    Rung(
        Verdict(3, "the target is named, but not what it was used for"),
        lambda signs: signs.said.target and _remarkable(signs),
    ),
    Rung(Verdict(2), lambda signs: signs.said.target or signs.said.developer),
    Rung(
        Verdict(3, "a picture, or talk of one, without a word on how it was made"),
        lambda signs: signs.pictures > 0 and (signs.said.is_remark or signs.said.picture),
    ),
    Rung(
        Verdict(3, "amazement without its object"),
        lambda signs: signs.said.wonder and (signs.said.is_remark or signs.pictures > 0),
    ),
    Rung(Verdict(2), lambda signs: signs.said.artificial),
    Rung(Verdict(1), lambda signs: True),  # noqa: ARG005 - the last rung always holds
)
ANSWERS = {rung.verdict: json.dumps(rung.verdict._asdict()) for rung in LADDER}
