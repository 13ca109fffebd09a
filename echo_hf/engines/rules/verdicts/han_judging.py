"""Read praise and complaint out of Chinese and Japanese, which write no spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from echo_hf.engines.rules.han_words import HAN_OR_KANA
from echo_hf.engines.rules.verdicts import failures
from echo_hf.engines.rules.verdicts import han_verdict_words as words
from echo_hf.engines.rules.verdicts.tones import Mark, Said, Tone

SENTENCE_END = re.compile(
    r"[。！？!?\n；;…]{1,40}|但是?|不过|不過|(?<=[，、,\s])(?:可是|然而)|でも|けれど|だ?けど|しかし|ただし"
)


# In Japanese a word of degree may stand between what is spoken of and what is said of it.
DEGREE = "が(?:全然|全く|完全に|だいぶ|ちょっと|少し|かなり|明らかに|めっちゃ|やっぱり)?"


class Names:
    """Regular expressions under names, looked for all at once.

    Args:
        patterns: Names with what they are told by; of two at one place the first is found.
    """

    def __init__(self, patterns: Mapping[str, str]) -> None:
        spoken = {name: pattern.replace("が", DEGREE) for name, pattern in patterns.items()}
        self._each = [(name, re.compile(pattern)) for name, pattern in spoken.items()]
        self._any = re.compile("|".join(spoken.values()))

    def find(self, text: str) -> list[str]:
        """The names of what a text holds, in the order of the text."""
        return [self._name(text, found.start()) for found in self._any.finditer(text)]

    def without(self, text: str) -> str:
        """The text without them."""
        return self._any.sub(" ", text)

    def _name(self, text: str, at: int) -> str:
        return next(name for name, pattern in self._each if pattern.match(text, at))


FAULTS, TOPICS = Names(failures.HAN_FAULTS), Names(failures.HAN_TOPICS)
# What one has found, the next does not see.
IN_TURN = (
    (words.DENIED_PRAISE, Tone.COMPLAINT),
    (words.TEMPERING, Tone.TEMPERED),
    (words.PRAISE, Tone.PRAISE),
    (words.COMPLAINT, Tone.COMPLAINT),
    (words.WEAK_PRAISE, Tone.WEAK_PRAISE),
    (words.WEAK_COMPLAINT, Tone.WEAK_COMPLAINT),
)


def read_han(folded: str, *, removal: bool) -> Iterator[Said]:
    """What each sentence of a text says about a result, as far as it is Chinese or Japanese.

    Args:
        folded: The text, folded.
        removal: Whether something was to be removed.

    Yields:
        The marks and topics of each sentence.

    Example:
        >>> next(read_han("整体偏黄", removal=False)).marks[0].failure
        'colour cast'
    """
    for sentence in SENTENCE_END.split(folded):
        if HAN_OR_KANA.search(sentence):
            topics = TOPICS.find(sentence)
            asks = words.QUESTION.search(sentence) and not words.WEAK_COMPLAINT.search(sentence)
            yield Said(() if asks else list(_marks(sentence, removal=removal)), topics)


def _marks(sentence: str, *, removal: bool) -> Iterator[Mark]:
    rest = words.DENIED_COMPLAINT.sub(" ", sentence)
    if rest != sentence:
        yield Mark(Tone.PRAISE)
    for failure in FAULTS.find(rest):
        as_asked = removal and failure == failures.MISSING
        yield Mark(Tone.WEAK_PRAISE) if as_asked else Mark(Tone.COMPLAINT, failure)
    if words.SEVERAL_TRIES.search(rest):
        yield Mark(Tone.TEMPERED, failures.SEVERAL_TRIES)
    rest = FAULTS.without(rest)
    for pattern, tone in IN_TURN:
        if pattern.search(rest):
            rest = pattern.sub(" ", rest)
            yield Mark(tone)
