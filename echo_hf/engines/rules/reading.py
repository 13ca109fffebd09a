"""What plain matching sees in one text."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from typing import Generic, TypeVar

from echo_hf.engines.rules import han_words as han
from echo_hf.engines.rules import phrases
from echo_hf.engines.rules import verdict_words as verdicts
from echo_hf.engines.rules import words as latin
from echo_hf.engines.rules.coverage import covers
from echo_hf.engines.rules.folding import fold, without_addresses, words_of
from echo_hf.engines.rules.names import Names

MOST_WORDS_OF_A_REMARK = 6
FEWEST_LOOKS = 4
MANY_LOOKS = 8
WORDS_PER_LOOK = 14

# Every word that is a sign of something: most words of most posts are none.
SIGNS = frozenset[str]().union(
    *(
        {latin.PICTURE, latin.LOOK, latin.MAKING, latin.ORDER, latin.WEAK_ORDER, latin.ARTIFICIAL}
        | {latin.ABBREVIATIONS, latin.GENERATION, latin.GENERATION_HEADS, latin.PROMPT}
        | {latin.PROMPT_BY_COLON, latin.TEXT_USE, latin.LOOKING, latin.MODEL}
        | {verdicts.PRAISE, verdicts.COMPLAINT, verdicts.TRIED}
    )
)

T = TypeVar("T")


class sign(Generic[T]):  # noqa: N801 - used as a decorator, like property
    """A property computed once; `functools.cached_property` takes a lock for it on Python 3.11."""

    def __init__(self, find: Callable[[Reading], T]) -> None:
        self.find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, reading: Reading, owner: type | None = None) -> T:
        value = reading.__dict__[self.name] = self.find(reading)
        return value


class Reading:
    """The signs in a text; each is looked for when it is first asked about.

    Args:
        text: What a post says.
        names: The names around the target.
    """

    def __init__(self, text: str, names: Names) -> None:
        self.text = without_addresses(text)
        self.folded = fold(self.text)
        every = words_of(self.folded)
        self.words = frozenset(every)
        self.signs = self.words & SIGNS
        self.has_han = not text.isascii() and han.HAN_OR_KANA.search(text) is not None
        self._count, self._names = len(every), names

    @sign
    def length(self) -> int:
        """Number of words; two Chinese or Japanese characters count as one."""
        if not self.has_han:
            return self._count
        return self._count + (len(han.HAN_OR_KANA.findall(self.folded)) + 1) // 2

    @sign
    def is_remark(self) -> bool:
        """It is too short to be about something else."""
        return self.length <= MOST_WORDS_OF_A_REMARK

    @sign
    def covered(self) -> bool:
        """The word lists cover its language."""
        return covers(self.folded, self.words)

    @sign
    def target(self) -> bool:
        """It names the target, or the application it is used in."""
        return self._names.names_target(self.folded, self.words)

    @sign
    def developer(self) -> bool:
        """It names the target's maker."""
        return self._names.names_developer(self.folded, self.words)

    @sign
    def other(self) -> bool:
        """It names another model, not only to compare with it."""
        return self._names.uses_other(self.folded, self.words)

    @sign
    def picture(self) -> bool:
        """It speaks of pictures, or of a kind of picture."""
        return self._any(latin.PICTURE, han.PICTURE)

    @sign
    def look(self) -> bool:
        """It says what something looks like."""
        return self._any(latin.LOOK, han.LOOK)

    @sign
    def making(self) -> bool:
        """It speaks of making or changing something."""
        return self._any(latin.MAKING, han.MAKING)

    @sign
    def generation(self) -> bool:
        """It says that pictures are generated."""
        if self._any(latin.GENERATION, han.GENERATION):
            return True
        heads = not self.signs.isdisjoint(latin.GENERATION_HEADS)
        return heads and phrases.GENERATION.search(self.folded) is not None

    @sign
    def artificial(self) -> bool:
        """It speaks of language or picture models in general."""
        if not self.signs.isdisjoint(latin.ARTIFICIAL):
            return True
        short = not self.signs.isdisjoint(latin.ABBREVIATIONS)
        return (short or self.has_han) and phrases.ABBREVIATED.search(self.text) is not None

    @sign
    def model(self) -> bool:
        """It has the word "model"."""
        return self._any(latin.MODEL, han.MODEL)

    @sign
    def prompt(self) -> bool:
        """It gives, offers or asks for a prompt."""
        if self.has_han and han.PROMPT.search(self.folded):
            return True
        if not self.signs.isdisjoint(latin.PROMPT):
            return phrases.PROMPT_MEANT.search(self.folded) is not None or self.asks_for_prompt
        by_colon = not self.signs.isdisjoint(latin.PROMPT_BY_COLON)
        return by_colon and self.picture and phrases.COLON.search(self.folded) is not None

    @sign
    def asks_for_prompt(self) -> bool:
        """It only asks somebody for their prompt."""
        if self.signs.isdisjoint(latin.PROMPT) or self.length > 2 * MOST_WORDS_OF_A_REMARK:
            return False
        return phrases.PROMPT_ASKED.search(self.folded) is not None

    @sign
    def order(self) -> bool:
        """One of its lines or sentences is an instruction for a picture."""
        if not (self.picture or self.look):
            return False
        if self.has_han and any(han.ORDER.match(line) for line in self.folded.splitlines()):
            return True
        if self.signs.isdisjoint(latin.ORDER):
            weak = not self.signs.isdisjoint(latin.WEAK_ORDER)
            return weak and self.looks > 1 and self._has_order_line()
        return self._has_order_line()

    def _has_order_line(self) -> bool:
        return phrases.ORDER_LINE.search(self.folded) is not None

    @sign
    def looks(self) -> int:
        """How many different words for pictures and their looks it has."""
        count = sum(word in latin.PICTURE or word in latin.LOOK for word in self.signs)
        if not self.has_han:
            return count
        return count + sum(len(set(one.findall(self.folded))) for one in (han.PICTURE, han.LOOK))

    @sign
    def description(self) -> bool:
        """It says little but what a picture looks like."""
        if self.looks < FEWEST_LOOKS:
            return False
        return self.looks >= MANY_LOOKS or self.looks * WORDS_PER_LOOK >= self.length

    @sign
    def template(self) -> bool:
        """It has blanks to fill in, or settings as JSON, for a picture."""
        if not (self.picture or self.look):
            return False
        if phrases.JSON_START.search(self.folded):
            return True
        return not self.is_remark and phrases.BLANK.search(self.folded) is not None

    @sign
    def turned_into(self) -> bool:
        """Something was turned into a kind of picture."""
        return self.picture and self.making and phrases.INTO.search(self.folded) is not None

    @sign
    def text_use(self) -> bool:
        """It speaks of what language models do with text."""
        return self._any(latin.TEXT_USE, han.TEXT_USE)

    @sign
    def looking(self) -> bool:
        """It speaks of reading a picture that exists."""
        return self._any(latin.LOOKING, han.LOOKING)

    @sign
    def wonder(self) -> bool:
        """It is amazed."""
        return self._any(verdicts.WONDER, han.WONDER) or self._has(phrases.EMOJI_WONDER)

    @sign
    def verdict(self) -> bool:
        """It has a word of praise or complaint."""
        return (
            self.wonder
            or self._any(verdicts.PRAISE, han.PRAISE)
            or self._any(verdicts.COMPLAINT, han.COMPLAINT)
        )

    def _any(self, of: Set[str], of_han: re.Pattern[str]) -> bool:
        if not self.signs.isdisjoint(of):
            return True
        return self.has_han and of_han.search(self.folded) is not None

    def _has(self, emoji: re.Pattern[str]) -> bool:
        return not self.text.isascii() and emoji.search(self.text) is not None
