"""Tell by the colours that a prompt names which of two pictures is its result."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from echo_hf.engines.rules.folding import fold
from echo_hf.engines.rules.multimodal.looks import Array, Look, alike
from echo_hf.engines.rules.multimodal.role_words import END, START

# Names, and where the colour lies: hue in degrees from and to.
HUES: dict[str, tuple[str, str, float, float]] = {
    "red": (
        r"red|scarlet|crimson|rojo|roja|rouge|rote[rnsm]?|rot|vermelh[oa]|ross[oa]",
        "红|紅|赤",
        -15,
        14,
    ),
    "orange": (r"orange|naranja|laranja|arancione", "橙|橘|オレンジ", 14, 42),
    "yellow": (r"yellow|amarill[oa]|jaune|gelbe?[rnsm]?|amarel[oa]|giall[oa]", "黄", 42, 68),
    "green": (r"green|verde|vert|verte|grüne?[rnsm]?", "绿|綠|緑", 75, 165),
    "blue": (r"blue|navy|azul|bleue?|blaue?[rnsm]?|blu|azzurr[oa]", "蓝|藍|青", 190, 255),
    "purple": (
        r"purple|violet|lilac|morad[oa]|púrpura|violette?|lila|rox[oa]|viola",
        "紫",
        255,
        300,
    ),
    "pink": (r"pink|magenta|ros[ae]|rosada|rosado", "粉|ピンク", 300, 345),
}
NAMES = {
    hue: re.compile(rf"{START}(?:{latin}){END}|{han}") for hue, (latin, han, _, _) in HUES.items()
}
CLAUSE = re.compile(r"[^.,;:!?\n。，、；：！？]+")
# In such a clause colours are there already, or go away.
NOT_WANTED = re.compile(
    rf"{START}(?:keep|same|remove|without|don['’]t|not|no|leave|instead of|mantén|sin|garde|sans"
    rf"|ohne|behalte|mantenha|sem|senza|mantieni){END}|保持|去掉|不要|そのまま|変えない"
)
FROM = re.compile(
    rf"{START}(?:from|this|the|my|de"
    rf"|von)\s(?:\w{{1,12}}\s){{0,2}}?\w{{3,10}}(?:\s\w{{1,14}}){{0,3}}?\s(?=(?:to|into|a|zu"
    r"|en)\s)"
)
WEIGHT = 2.0
MORE, MOST, TIMES, TOLERANCE = 0.05, 0.4, 1.6, 0.01
SAME_SCENE, DIFFERENT, FEWEST_CHANGED = 0.5, 40.0, 0.004
SATURATED, BRIGHT = 0.3, 50.0


def gains_colours(prompt: str, one: Look, other: Look) -> float:
    """Whether one of two pictures has more of the colours that a prompt asks for.

    Args:
        prompt: A prompt that changes a picture.
        one: A picture.
        other: Another.

    Returns:
        A weight: positive when the other one has gained them, negative when this one has, 0 when
        the prompt names none or neither stands out.
    """
    wanted = wanted_colours(prompt)
    if not wanted:
        return 0.0
    where = _changed(one, other)
    if where is not None:
        mine, others = (_shares(look, wanted, where) for look in (one, other))
        return WEIGHT * (_has_gained(mine, others, MOST) - _has_gained(others, mine, MOST))
    mine, others = (_shares(look, wanted) for look in (one, other))
    return WEIGHT * (_has_gained(mine, others, MORE) - _has_gained(others, mine, MORE))


def _has_gained(before: list[float], after: list[float], least: float) -> bool:
    """Whether one of several shares has clearly grown, and none has shrunk."""
    pairs = list(zip(before, after, strict=True))
    grown = any(much - few > least and much > TIMES * few for few, much in pairs)
    return grown and all(few <= much + TOLERANCE for few, much in pairs)


def _changed(one: Look, other: Look) -> NDArray[np.bool_] | None:
    """Where two pictures of the same scene differ; null where they are of different ones."""
    if one.rgb.shape != other.rgb.shape or alike(one, other) < SAME_SCENE:
        return None
    differs: NDArray[np.bool_] = np.abs(one.rgb - other.rgb).max(axis=2) > DIFFERENT
    return differs if float(differs.mean()) > FEWEST_CHANGED else None


def wanted_colours(prompt: str) -> list[str]:
    """The colours that a prompt asks for.

    Example:
        >>> wanted_colours("change the red car to blue, keep the green trees")
        ['blue']
    """
    clauses = CLAUSE.findall(fold(prompt))
    asked = " , ".join(FROM.sub(" ", one) for one in clauses if not NOT_WANTED.search(one))
    return [hue for hue, pattern in NAMES.items() if pattern.search(asked)]


def _shares(look: Look, hues: list[str], where: NDArray[np.bool_] | None = None) -> list[float]:
    """How much of a picture, or of a part of it, has each of some colours."""
    hue, clear = _hues(look)
    shares = []
    for name in hues:
        low, high = HUES[name][2:]
        inside = (((hue - low) % 360) < (high - low)) & clear
        shares.append(float((inside if where is None else inside[where]).mean()))
    return shares


def _hues(look: Look) -> tuple[Array, NDArray[np.bool_]]:
    red, green, blue = np.moveaxis(look.rgb, 2, 0)
    hue = np.degrees(np.arctan2(np.sqrt(3) * (green - blue), 2 * red - green - blue))
    brightest = look.rgb.max(axis=2)
    return hue, (brightest > BRIGHT) & (look.chroma > SATURATED * brightest)
