"""Cut what a comment says into sentences and clauses of plain words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from echo_hf.engines.rules.verdicts.lexicon import plain_words

EXCEPT = frozenset({"except", "excepto", "salvo", "sauf", "außer", "exceto", "tranne", "eccetto"})
CONTRAST = (
    rf"(?<=[\s,])(?:(?:but|though|although|however|albeit|tho|until(?=\syou)|pero|aunque|mais"
    r"|cependant|pourtant|par contre|aber|allerdings|jedoch|mas|porém|embora|però|anche se"
    rf"|{'|'.join(sorted(EXCEPT))})(?=[\s,.!?…]|$)"
    # The French have another "ma".
    r"|ma(?=\s(?:il|la|le|l|i|gli|lo|non|ha|è|mi|ci|si|sono|che|una?|a|in|per|con|poi)\b))"
)
SENTENCE_END = re.compile(rf"(?:[!?;\n…！？；。]|(?<!\d)\.|\.(?!\d)){{1,40}}|{CONTRAST}")
CLAUSE_END = re.compile(r"[,，、:：()（）\"“”«»—–|]{1,40}|\s-{1,3}\s")
RATIO = re.compile(r"(?<!\d)(\d{1,2}) ?[:x×] ?(\d{1,2})(?!\d)")
APOSTROPHES = str.maketrans("’ʼ`´", "''''")


class Sentence(NamedTuple):
    """One sentence, or the part of one up to a word such as "but".

    Attributes:
        text: Its folded text.
        clauses: The plain words of its clauses, as far as they have any.
        end: The marks, or the word, that it ends with.
    """

    text: str
    clauses: Sequence[Sequence[str]]
    end: str

    @property
    def words(self) -> list[str]:
        """Its plain words."""
        return [word for clause in self.clauses for word in clause]

    @property
    def asks(self) -> bool:
        """Whether it ends in a question mark."""
        return "?" in self.end or "？" in self.end

    @property
    def before_contrast(self) -> bool:
        """Whether a word such as "but" ends it."""
        return self.end[:1].isalpha()


def sentences_of(folded: str) -> list[Sentence]:
    """The sentences of a folded text.

    Args:
        folded: The text, folded.

    Returns:
        Its sentences in order; the parts before and after a word of contrast are two.

    Example:
        >>> [sentence.clauses for sentence in sentences_of("great, clean suit but isn't her face")]
        [[['great'], ['clean', 'suit']], [['is', 'not', 'her', 'face']]]
    """
    plain = RATIO.sub(r"\1x\2", folded.translate(APOSTROPHES))
    found, start = [], 0
    for end in SENTENCE_END.finditer(plain):
        found.append(_sentence(plain[start : end.start()], end.group()))
        start = end.end()
    found.append(_sentence(plain[start:], ""))
    return [sentence for sentence in found if sentence.text.strip() or sentence.before_contrast]


def _sentence(text: str, end: str) -> Sentence:
    return Sentence(
        text, [words for part in CLAUSE_END.split(text) if (words := plain_words(part))], end
    )
