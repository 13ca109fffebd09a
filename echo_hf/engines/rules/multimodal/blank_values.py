"""Read, from what people say, what they put into the blanks of a template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from echo_hf.engines.rules.folding import LINK, fold, words_of
from echo_hf.engines.rules.han_words import HAN_OR_KANA
from echo_hf.engines.rules.multimodal.role_words import END, START
from echo_hf.engines.rules.multimodal.value_words import (
    ATTRIBUTES,
    HAN_REMARK,
    LEAD,
    REACTIONS,
    REMARKS,
)

MOST_WORDS, MOST_LETTERS, MOST_HAN = 7, 60, 24
MOST_SENTENCES = 24
SENTENCE_END = re.compile(r"[\n!?。！？]+|\.(?=\s|$)|…")
# The clearer a separator, the earlier it is tried.
SEPARATORS = (
    re.compile(r"\s*(?:[/|;；·+&×→➡]|\s[x–—-]\s)\s*"),
    re.compile(r"\s*[,，、](?:\s*(?:and|y|et|und|e)\s)?\s*"),
    re.compile(rf"\s*(?:[,，、]|{START}(?:and|y|et|und|e){END})\s*|\s*[和と跟]\s*"),
    re.compile(r"\s+(?:and|with|as|in|y|con|et|avec|und|mit|e|com)\s+|\s*[和と跟]\s*"),
)
PIECE_END = re.compile(r"[,，、;；/|]|\s(?:and|y|et|und)\s")
WHOLE = re.compile(r"(?!)")
MOST_PIECES = 32
EDGES = " \t\r\n\"'“”„«»‘’「」『』《》[]【】(){}<>*_`~,，、.。:：;；!！?？…-–—=/|&+"
PICTOGRAPHS = re.compile(
    "[\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\ufe0f\u200d\U0001f000-\U0001faff]+"
)
HANDLES = re.compile(r"(?:\s*[@＠][\w.-]+[:,]?)+\s*|#\w+")
JOINING = re.compile(r"(?:and|with|y|con|et|avec|und|mit|e|com|和|と)\s+")
ARTICLE = re.compile(
    r"(?:an?|the|some|un[ae]?|el|la|los|las|le|les|eine?n?|der|die|das|den|uma?|o|il|lo)\s+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Blank:
    """A blank of a template.

    Attributes:
        placeholder: It, with its marks.
        name: What it calls the thing that it leaves open, empty when it has no name.
        after_article: Whether an article stands before it.
        start: Where it stands first.
    """

    placeholder: str
    name: str
    after_article: bool
    start: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """Values for all blanks, as one sentence lists them.

    Attributes:
        values: One for each blank, in their order.
        announced: Whether words such as "mine:" say what they are.
    """

    values: tuple[str, ...]
    announced: bool


def listings(text: str, blanks: Sequence[Blank]) -> Iterator[Listing]:
    """The sentences of a text that list a value for each blank.

    Args:
        text: What somebody says beside a picture.
        blanks: The blanks of the template, in order.

    Yields:
        What each such sentence lists.

    Example:
        >>> pet, word = Blank("[PET]", "pet", True), Blank("[WORD]", "word", False)
        >>> said = "mine: a hen, and the word is EGG. love it"
        >>> [one.values for one in listings(said, [pet, word])]
        [('hen', 'EGG')]
    """
    for sentence in sentences(text):
        lead = LEAD.match(fold(sentence))
        said = sentence[lead.end() :] if lead else sentence
        values = listed(said, blanks)
        if values:
            yield Listing(values, lead is not None or _names_any(said, blanks))


def named(text: str, blanks: Sequence[Blank]) -> dict[Blank, str]:
    """The values that a text gives by the names of the blanks, as in "animal: fox".

    Args:
        text: What somebody says.
        blanks: The blanks of the template.

    Returns:
        The values found; a blank that is given two has none.
    """
    found: dict[Blank, set[str]] = {}
    for sentence in sentences(text):
        for piece in PIECE_END.split(sentence, maxsplit=MOST_PIECES):
            blank = _named(piece, blanks)
            value = value_of(piece, blank) if blank else None
            if blank and value:
                found.setdefault(blank, set()).add(value)
    return {blank: values.pop() for blank, values in found.items() if len(values) == 1}


def _names_any(said: str, blanks: Sequence[Blank]) -> bool:
    return any(_named(piece, blanks) for piece in PIECE_END.split(said, maxsplit=MOST_PIECES))


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, without links, handles and hashtags.

    Example:
        >>> list(sentences("@tomo a hen! EGG. #eggs"))
        ['a hen', 'EGG']
    """
    plain = HANDLES.sub(" ", LINK.sub(" ", text))
    pieces = (piece.strip() for piece in SENTENCE_END.split(plain))
    yield from islice((piece for piece in pieces if piece), MOST_SENTENCES)


def listed(said: str, blanks: Sequence[Blank]) -> tuple[str, ...] | None:
    """The values that a piece of text lists, one for each blank.

    Args:
        said: A piece of text, without the words that announce it.
        blanks: The blanks, in order.

    Returns:
        The values in the order of the blanks; null where it lists another number of things, or
        something that cannot be a value.
    """
    if len(blanks) == 1 and said.count(",") > 1:
        return None  # It lists several things.
    for part in (said, _without_remark(said)):
        for separator in SEPARATORS if len(blanks) > 1 else (WHOLE,):
            pieces = separator.split(part, maxsplit=MOST_PIECES)
            values = _in_order(pieces, blanks) if len(pieces) == len(blanks) else None
            if values:
                return values
    return _by_words(said, blanks)


def _by_words(said: str, blanks: Sequence[Blank]) -> tuple[str, ...] | None:
    # "a turtle postman", for an animal and its job.
    value = value_of(said, Blank("", "", after_article=True))
    words_said = value.split() if value else []
    told = ARTICLE.match(said.strip(EDGES)) and not ATTRIBUTES.intersection(map(fold, words_said))
    if len(blanks) != 2 or len(words_said) != 2 or not told:
        return None
    return _in_order(words_said, blanks)


def _without_remark(said: str) -> str:
    # "a hen, came out great" lists one thing.
    head, comma, tail = said.rpartition(",")
    return head if comma and not REMARKS.isdisjoint(words_of(fold(tail))) else said


def _in_order(pieces: Sequence[str], blanks: Sequence[Blank]) -> tuple[str, ...] | None:
    named = {at: blank for at, piece in enumerate(pieces) if (blank := _named(piece, blanks))}
    rest = iter([blank for blank in blanks if blank not in named.values()])
    if len(set(named.values())) < len(named):
        return None
    values: dict[Blank, str] = {}
    for at, piece in enumerate(pieces):
        blank = named.get(at) or next(rest)
        value = value_of(piece, blank)
        if value is None:
            return None
        values[blank] = value
    return tuple(values[blank] for blank in blanks)


def _named(piece: str, blanks: Sequence[Blank]) -> Blank | None:
    folded = fold(piece)
    return next((blank for blank in blanks if blank.name and _name(blank).match(folded)), None)


def _name(blank: Blank) -> re.Pattern[str]:
    return re.compile(
        rf"(?:\W{{0,4}}(?:(?:and|with|y|et|und|e)\s)?(?:(?:the|my|el|la|le|der|die|das|o|a|il)\s)?"
        rf"\W?{re.escape(blank.name)}\W?\s?(?:is|was|es|est|ist|é|è){END}"
        rf"|[^\n]{{0,30}}?(?<![^\W_]){re.escape(blank.name)}\W?\s?(?:[:：=→]|是|は|为|為))\s?"
    )


def value_of(piece: str, blank: Blank) -> str | None:
    """The value that a piece of text gives to a blank.

    Args:
        piece: A few words, perhaps with the blank's name before them.
        blank: The blank.

    Returns:
        The value as it goes into the prompt, without an article where the prompt has one; null
        when the piece is a remark, too long, or nothing.

    Example:
        >>> value_of(" and the word is “TEA” ☕", Blank("[WORD]", "word", False))
        'TEA'
        >>> value_of("so cute!", Blank("[PET]", "pet", True)) is None
        True
    """
    named = _name(blank).match(fold(piece)) if blank.name else None
    bare = piece[named.end() :] if named else piece
    value = (PICTOGRAPHS.sub(" ", bare).strip(EDGES)) or bare.strip(EDGES)
    joining = JOINING.match(value.lower())
    value = value[joining.end() :] if joining else value
    article = ARTICLE.match(value)
    if blank.after_article and article:
        value = value[article.end() :]
    return value if _is_value(value) else None


def _is_value(value: str) -> bool:
    folded = fold(value)
    if len(value) > MOST_LETTERS or not any(map(_shows, value)):
        return False
    if REACTIONS.issuperset(value.replace(" ", "")):
        return False
    if HAN_OR_KANA.search(value):
        return len(value) <= MOST_HAN and HAN_REMARK.search(value) is None
    found = words_of(folded.replace("'", "").replace("’", ""))
    return len(found) <= MOST_WORDS and REMARKS.isdisjoint(found)


def _shows(sign: str) -> bool:
    return sign.isalnum() or PICTOGRAPHS.match(sign) is not None
