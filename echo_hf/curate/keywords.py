"""The short name of a failure that a model gave beside a verdict, made safe to keep."""

from __future__ import annotations

import unicodedata

from echo_hf.curate.feedback_answer import JudgedComment
from echo_hf.reasons import Notice

MOST_WORDS = 6
WITH_KEYWORD = frozenset({"failure", "mixed"})


def failure_keyword(judged: JudgedComment) -> tuple[str | None, Notice | None]:
    """The keyword of a verdict, in small letters, without control and formatting characters.

    Args:
        judged: The verdict with its keyword, as a model gave them.

    Returns:
        The keyword, null where there is none; and why a given one is left out.

    Example:
        >>> judged = JudgedComment(comment=0, verdict="failure", keyword=" Colour  Cast ")
        >>> failure_keyword(judged)
        ('colour cast', None)
    """
    given = (judged.keyword or "").split()
    if not given:
        return None, None
    if judged.verdict not in WITH_KEYWORD:
        return None, Notice.KEYWORD_WITHOUT_FAILURE
    words = [word for word in map(_visible, given) if word]
    if not 0 < len(words) <= MOST_WORDS:
        return None, Notice.BAD_KEYWORD
    return " ".join(words).lower(), None


def _visible(word: str) -> str:
    return "".join(c for c in word if not unicodedata.category(c).startswith("C"))
