"""Weigh what tells two pictures of a post apart: their descriptions, and how they look."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from echo_hf.engines.rules.common_words import FAMILIAR
from echo_hf.engines.rules.folding import fold, words_of
from echo_hf.engines.rules.multimodal.colours import gains_colours
from echo_hf.engines.rules.multimodal.edits import Edit
from echo_hf.engines.rules.multimodal.looks import Look
from echo_hf.engines.rules.multimodal.said_roles import said_about
from echo_hf.engines.rules.names import Names

ROLE_IN_ALT_TEXT, MOST_BY_WORDS, SEEN = 2.0, 2.0, 3.0
TIMES_MORE_COLOUR, LESS_LIGHT = 1.6, 25.0
STEM, SHORTEST_WORD = 5, 4
SENTENCE = re.compile(r"[^.;:!?\n。；：！？]+")
KEEPS = re.compile(
    r"\b(?:keep|same|unchanged|preserve|do not|don['’]t|without chang\w{0,3}|leave|maintain|mantén"
    r"|igual|garde|lass|mantenha|mantieni)\b"
)
REMOVES = re.compile(
    r"\b(?:remove|erase|delete|get rid of|without|clean up|fix|repair|quita|elimina|borra|sin"
    r"|enlève|supprime|retire|entferne|ohne|remova|tire|rimuovi|togli)\b"
)
GONE = re.compile(
    r"\b(?:removed|gone|without|erased|cleaned|repaired|fixed|no longer|no more|sin|sans|ohne|sem"
    r"|senza)\b"
)
ADDS = re.compile(r"\b(?:add|into|replace|with|put|y añade|ajoute|füge|adicione|aggiungi)\b")


@dataclass(frozen=True)
class Candidate:
    """A picture that may have gone in or come out.

    Attributes:
        alt_text: Its description, perhaps empty.
        look: The picture as plain measures see it, null where it cannot be read.
    """

    alt_text: str
    look: Look | None


def input_weight(one: Candidate, other: Candidate, prompt: str, edit: Edit, names: Names) -> float:
    """How much speaks for one of two pictures as what went in, and the other as what came out.

    Args:
        one: A picture.
        other: Another.
        prompt: The sample's prompt.
        edit: What it asks for.
        names: The names around the target.

    Returns:
        A weight; negative when more speaks for the other way round.
    """
    weight = alt_weight(one.alt_text, prompt, names) - alt_weight(other.alt_text, prompt, names)
    if one.look and other.look:
        weight += change_weight(edit, one.look, other.look)
        weight += gains_colours(prompt, one.look, other.look)
    return weight


def alt_weight(alt_text: str, prompt: str, names: Names) -> float:
    """How much a description speaks for a picture as what went in.

    Args:
        alt_text: The description.
        prompt: The sample's prompt.
        names: The names around the target.

    Returns:
        A weight: what a prompt removes is in what goes in, what it adds is in what comes out.
    """
    if not alt_text:
        return 0.0
    roles = said_about(alt_text, 1, names).mentioned - {"neither"}
    weight = 0.0
    if len(roles) == 1:
        weight = ROLE_IN_ALT_TEXT if "input" in roles else -ROLE_IN_ALT_TEXT
    folded = fold(alt_text)
    said = _stems([folded])
    removed, added = _asked(prompt)
    spoken = 2.0 * len(said & removed)
    by_words = (-spoken if GONE.search(folded) else spoken) - len(said & (added - removed))
    return weight + max(-MOST_BY_WORDS, min(MOST_BY_WORDS, by_words))


def change_weight(edit: Edit, one: Look, other: Look) -> float:
    """How much the looks of two pictures speak for one as what went in.

    Args:
        edit: What the prompt asks for.
        one: A picture.
        other: Another.

    Returns:
        A weight; 0 where the change is none that plain measures see, or they see none.
    """
    return SEEN * (_changed(edit, one, other) - _changed(edit, other, one))


def _changed(edit: Edit, before: Look, after: Look) -> bool:
    match edit.change:
        case "from_sketch":
            return before.is_line_drawing and not after.is_line_drawing
        case "to_sketch":
            return after.is_line_drawing and not before.is_line_drawing
        case "add_colour":
            return before.colourfulness * TIMES_MORE_COLOUR < after.colourfulness
        case "take_colour":
            return after.colourfulness * TIMES_MORE_COLOUR < before.colourfulness
        case "darken":
            return after.brightness + LESS_LIGHT < before.brightness
        case "brighten":
            return before.brightness + LESS_LIGHT < after.brightness
        case None:
            return before.is_line_drawing and not after.is_line_drawing


def _asked(prompt: str) -> tuple[set[str], set[str]]:
    """Stems of what a prompt takes away, and of what else it asks for."""
    removed: list[str] = []
    added: list[str] = []
    for sentence in SENTENCE.findall(fold(prompt)):
        kept = KEEPS.search(sentence)
        asked = sentence[: kept.start()] if kept else sentence
        away = REMOVES.search(asked)
        onto = ADDS.search(asked, away.end()) if away else None
        if away:
            end = onto.start() if onto else len(asked)
            removed.append(asked[away.end() : end])
            added.append(asked[: away.start()] + " " + asked[end:])
        else:
            added.append(asked)
    return _stems(removed), _stems(added)


def _stems(texts: Sequence[str]) -> set[str]:
    words = [word for text in texts for word in words_of(text)]
    return {word[:STEM] for word in words if len(word) >= SHORTEST_WORD and word not in FAMILIAR}
