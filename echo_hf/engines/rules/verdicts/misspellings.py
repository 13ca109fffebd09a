"""Find words that people quote because the model got them nearly right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

QUOTED = re.compile(r"[\"“„«「『‘]\s?([^\"“”„«»「」『』‘’\n]{2,60}?)\s?[\"”“»」』’]")
CAPITALS = re.compile(r"(?<![^\W_])[^\W\d_a-zß-öø-ÿ]{4,30}(?![^\W_])")
WORD = re.compile(r"[^\W\d_]{4,30}")
SAYS = re.compile(
    r"\b(?:says?|said|wrote|writes|written|spelled|spelt|spells|reads|put|printed|puso|pone|escribi[oó]"
    r"|escribe|écrit|affiche|schreibt|schrieb|steht|geschrieben|escreveu|escreve|colocou|scrive|scritto)"
    r"\b[ :]{0,3}(?:(?:it|the words?|as|me|mi|da|jetzt|la palabra|le mot|das wort) )?",
    re.IGNORECASE,
)
TRIPLED = re.compile(r"([a-z])\1\1")
MOST_WORDS = 16
SHORTEST_FOR_TWO = 7


def misspelt(comment: str, prompt: str) -> bool:
    """Whether a comment quotes a word that is nearly, but not quite, one that was asked for.

    Args:
        comment: What it says.
        prompt: What was asked for.

    Returns:
        True when a word in quotes or capitals of the comment is a letter or two away from a word
        of the prompt that stands in quotes or capitals, or from another such word of the comment.

    Example:
        >>> misspelt("mine says “RESTUARANT” lol", "a sign that reads “RESTAURANT”")
        True
        >>> misspelt("I like the “RESTAURANT” sign", "a sign that reads “RESTAURANT”")
        False
    """
    if _stutters(comment):
        return True
    shown = list(_shown(comment))[:MOST_WORDS]
    if not shown:
        return False
    wanted = list(dict.fromkeys(_shown(prompt)))[:MOST_WORDS]
    known = set(wanted)
    return any(
        _nearly(word, other) for word in shown if word not in known for other in wanted
    ) or any(_nearly(*pair) for pair in combinations(shown, 2))


def _stutters(text: str) -> bool:
    """Whether a quoted word has a letter three times in a row."""
    return any(TRIPLED.search(quoted.group(1).lower()) for quoted in QUOTED.finditer(text))


def quotes_unasked(comment: str, prompt: str) -> bool:
    """Whether a comment says that the picture reads something that was not asked for.

    Example:
        >>> quotes_unasked("it wrote FELIZ CUMPLE on mine", "a cake that says “Happy birthday”")
        True
    """
    known = {word.lower() for word in WORD.findall(prompt)}
    for says in SAYS.finditer(comment):
        after = comment[says.end() : says.end() + 80]
        quoted = QUOTED.match(after.lstrip()) or CAPITALS.match(after.lstrip())
        if quoted and not known.issuperset(w.lower() for w in WORD.findall(quoted.group())):
            return True
    return False


def _shown(text: str) -> Iterator[str]:
    """Words in quotes or capitals, in small letters; none where capitals are how someone writes."""
    for quoted in QUOTED.finditer(text):
        yield from (word.lower() for word in WORD.findall(quoted.group(1)))
    capitals = CAPITALS.findall(text)
    if 2 * len(capitals) < max(2, len(WORD.findall(text))) or len(capitals) < 4:
        yield from (word.lower() for word in capitals)


def _nearly(one: str, other: str) -> bool:
    """Whether two different words are a letter or two apart, endings of the plural aside."""
    if one == other or abs(len(one) - len(other)) > 2 or _plural(one, other):
        return False
    most = 2 if min(len(one), len(other)) >= SHORTEST_FOR_TWO else 1
    return _distance(one, other) <= most


def _plural(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long in (short + "s", short + "es", short + "n", short + "e")


def _distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Letters inserted, removed, replaced, or swapped with their neighbour."""
    before, row = [0] * (len(other) + 1), list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
