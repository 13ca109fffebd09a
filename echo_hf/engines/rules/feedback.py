"""Tell whether a post judges a result, or says that its author tried the prompt."""

from __future__ import annotations

import re

from echo_hf.engines.rules import han_words as han
from echo_hf.engines.rules.folding import ADDRESSEES
from echo_hf.engines.rules.reading import Reading
from echo_hf.engines.rules.verdict_words import COMPLAINT, PRAISE, SELF, TRIED

LONGEST_FEEDBACK = 2000
COMPLAINED = re.compile(
    r"(?:n['’]t|\bnot|\bnever|\bcannot|\bdoesnt|\bdidnt|\bcant|\bwont)\s(?:\w{1,12}\s){0,2}"
    r"(?:work|working|look|get|let|follow|understand|do|match|generate|change|keep)\b"
    r"|content polic|policy violation|violates|(?:extra|missing|six|too many|wrong) fingers"
    r"|yellow(?:ish)? (?:tint|filter)|too (?:dark|yellow|smooth|generic)|looks (?:like ai|fake|off)"
    r"|no (?:me )?funcion|ne (?:marche|fonctionne) pas|funktioniert (?:\w{1,12} )?nicht"
    r"|klappt (?:\w{1,12} )?nicht|não funcion|non funziona|no se parece|sieht \w{0,12} ?aus wie ki"
)
PRAISED = re.compile(
    r"so good|well done|nailed it|spot on|blown away|on point|(?:pretty|so) close|10/10"
)
HAD_TRIED = re.compile(
    r"\b(?:my|our) (?:version|turn|try|take|go|own|attempt)|\bhere['’]?s m(?:ine|y)|\bgot this"
    r"|\bi got\b|\b(?:same|your|this) prompt|\bmi versi[oó]n|\bma version|\bmeine version"
    r"|\bminha versão|\bla mia versione|\bo meu\b|\bel mío|\bil mio\b|\bmeins?\b"
)
EMOJI_PRAISE = re.compile("[😍🔥👏🤩💯🙌👌❤🥰👍🤯😻💖🎉]")
EMOJI_COMPLAINT = re.compile("[👎🤮😬🙄💩😕😞😡]")
LAST_WORD = re.compile(r"\s+(?:https?://\S+|@[\w.-]+)\s*\Z")
QUESTION = re.compile(r"[?？]\W*\Z")


def judges(said: Reading) -> bool:
    """Whether a post praises or complains about a result.

    Args:
        said: What it says.

    Returns:
        True for either; praise inside a question does not count.
    """
    return _complains(said) or (_praises(said) and not QUESTION.search(said.text.rstrip()[-8:]))


def judges_own(said: Reading) -> bool:
    """Whether words beside an author's own prompt judge the result.

    Titles are full of words of praise, so these have to be part of something like a sentence.
    """
    if said.has_han and (han.PRAISE.search(said.folded) or han.COMPLAINT.search(said.folded)):
        return True
    like_a_sentence = not said.words.isdisjoint(SELF) or "!" in said.text
    return like_a_sentence and judges(said)


def says_tried(said: Reading) -> bool:
    """Whether a post says that its author used the prompt."""
    if not said.signs.isdisjoint(TRIED) or HAD_TRIED.search(said.folded):
        return True
    return said.has_han and han.TRIED.search(said.folded) is not None


def feedback_text(text: str) -> str | None:
    """What a post says, as feedback is kept.

    Args:
        text: The post's text.

    Returns:
        One span of it: all but the handles it begins with and a link or handle at its end; null
        when nothing is left, or it is longer than feedback may be.

    Example:
        >>> feedback_text("@mira_draws the hands are wrong, @tomo see? https://example.org/1")
        'the hands are wrong, @tomo see?'
    """
    leading = ADDRESSEES.match(text)
    said = text[leading.end() :] if leading else text
    last = LAST_WORD.search(said[-400:])
    while last:
        said = said[: len(said) - len(last.group())]
        last = LAST_WORD.search(said[-400:])
    said = said.strip()
    return said if 0 < len(said) <= LONGEST_FEEDBACK else None


def _complains(said: Reading) -> bool:
    if not said.signs.isdisjoint(COMPLAINT) or COMPLAINED.search(said.folded):
        return True
    if said.text.isascii():
        return False
    return bool(
        EMOJI_COMPLAINT.search(said.text) or (said.has_han and han.COMPLAINT.search(said.folded))
    )


def _praises(said: Reading) -> bool:
    if not said.signs.isdisjoint(PRAISE) or PRAISED.search(said.folded):
        return True
    if said.text.isascii():
        return False
    return bool(EMOJI_PRAISE.search(said.text) or (said.has_han and han.PRAISE.search(said.folded)))
