"""Read praise and complaint out of the words of one clause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from echo_hf.engines.rules.verdicts import failures
from echo_hf.engines.rules.verdicts import judging_words as said
from echo_hf.engines.rules.verdicts.lexicon import Found
from echo_hf.engines.rules.verdicts.signs import SIGNS, Meaning, Sign
from echo_hf.engines.rules.verdicts.tones import COMPLAINTS, Mark, Tone

REACH = 4  # words between a denial and what it denies
WISHES = frozenset({"wish", "ojalá", "magari", "hoffentlich"})
# Denials that complain also where they deny nothing that is known: "the walls aren't blue".
BARE = frozenset({"not", "pas", "nicht", "não", "non"})
SPANISH_BE = frozenset({"es", "son", "está", "están", "era", "hay", "tiene", "coincide"})
DIRECT = {
    Sign.PRAISE: Tone.PRAISE,
    Sign.WEAK_PRAISE: Tone.WEAK_PRAISE,
    Sign.AMUSED: Tone.AMUSED,
    Sign.COMPLAINT: Tone.COMPLAINT,
    Sign.WEAK_COMPLAINT: Tone.WEAK_COMPLAINT,
    Sign.HEDGED: Tone.HEDGED,
    Sign.SOFTENED: Tone.SOFTENED,
    Sign.TEMPERED: Tone.TEMPERED,
}
DENIED = {
    Sign.PRAISE: Tone.COMPLAINT,
    Sign.WEAK_PRAISE: Tone.COMPLAINT,
    Sign.AMUSED: Tone.COMPLAINT,
    Sign.SOFTENED: Tone.COMPLAINT,
    Sign.WANTED: Tone.COMPLAINT,
    Sign.WANTED_BY_ANYONE: Tone.COMPLAINT,
    Sign.COMPLAINT: Tone.PRAISE,
    Sign.WEAK_COMPLAINT: Tone.WEAK_PRAISE,
    Sign.CHANGED: Tone.WEAK_PRAISE,
    Sign.GONE: Tone.WEAK_PRAISE,
}
# "Marche pas", "klappt leider nicht": what a denial that follows may deny.
DENIED_BEFORE = frozenset(
    {Sign.PRAISE, Sign.WEAK_PRAISE, Sign.AMUSED, Sign.WANTED, Sign.WANTED_BY_ANYONE}
)
GLAD = frozenset({Sign.PRAISE, Sign.WEAK_PRAISE, Sign.AMUSED, Sign.NEUTRAL})


class Asked(NamedTuple):
    """What a picture was to be, as far as it decides how comments on it are read.

    Attributes:
        shown: Words for what it was to show: as complaints they do not count.
        removal: Whether something was to be removed.
    """

    shown: Set[str] = frozenset()
    removal: bool = False


class Clause:
    """The signs in the words of one clause.

    Args:
        words: Its plain words.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.found = [one for one in SIGNS.find(words) if not _interjected(words, one)]
        self.signs = frozenset(one.meaning.sign for one in self.found)
        self.topics = [
            one.meaning.failure or "" for one in self.found if one.meaning.sign is Sign.TOPIC
        ]
        # Where the clause first speaks of the writer, or of whoever reads it.
        self.speaker = next(
            (at for at, word in enumerate(words) if word in said.SPEAKERS), len(words)
        )

    def marks(self, topics: Sequence[str], asked: Asked, *, first: bool) -> list[Mark]:
        """The marks of praise and complaint, in order.

        Args:
            topics: What the sentence of the clause speaks of.
            asked: What the picture was to be.
            first: Whether the clause begins its sentence.

        Returns:
            Its marks.
        """
        denied = set(self._denied())
        marks = []
        for number, one in enumerate(self.found):
            mark = self._mark(number, topics, asked, denied=number in denied)
            described = number not in denied and _words(self.words, one) <= asked.shown
            if mark and not (described and mark.tone in COMPLAINTS):
                marks.append(mark)
        return [*marks, *self._repeats(), *self._denies_barely(first=first), *self._exceeds()]

    def _denied(self) -> Iterator[int]:
        if WISHES.isdisjoint(self.words):
            for number, one in enumerate(self.found):
                target = self._target(number) if one.meaning.sign is Sign.NEGATOR else None
                if target is not None:
                    yield target

    def _target(self, number: int) -> int | None:
        """Which of the signs a denial denies: the next one, or else one before it."""
        negator = self.found[number]
        for later in range(number + 1, len(self.found)):
            one = self.found[later]
            if one.start - negator.end >= REACH:
                break
            if one.meaning.sign in DENIED and not self._of_the_writer(negator, one):
                return later
        if self.words[negator.start] in said.TRAILING_NEGATORS:
            return self._target_before(number)
        return None

    def _target_before(self, number: int) -> int | None:
        for earlier in range(number - 1, -1, -1):
            one = self.found[earlier]
            if self.found[number].start - one.end >= REACH:
                break
            if one.meaning.sign in DENIED_BEFORE:
                return earlier
        return None

    def _of_the_writer(self, negator: Found[Meaning], target: Found[Meaning]) -> bool:
        """Whether it is the writer who cannot do something, not the model."""
        before = self.words[max(0, negator.start - 2) : negator.start]
        return target.meaning.sign is Sign.WANTED and not said.SPEAKERS.isdisjoint(before)

    def _mark(
        self, number: int, topics: Sequence[str], asked: Asked, *, denied: bool
    ) -> Mark | None:
        sign, failure = self.found[number].meaning
        if denied:
            return Mark(DENIED[sign], failure)
        if sign is Sign.GONE:
            return Mark(Tone.WEAK_PRAISE) if asked.removal else Mark(Tone.COMPLAINT, failure)
        if sign is Sign.CHANGED:
            return self._change(number, topics)
        if self._gets_a_topic(number):
            return Mark(Tone.WEAK_PRAISE)
        return Mark(DIRECT[sign], failure) if sign in DIRECT else None

    def _change(self, number: int, topics: Sequence[str]) -> Mark | None:
        by_writer = self.words[max(0, self.found[number].start - 1)] in said.SPEAKERS
        if by_writer or (failures.FRAGILE.isdisjoint(topics) and Sign.SUBJECT not in self.signs):
            return None
        changed = failures.IDENTITY if failures.FRAGILE.isdisjoint(topics) else topics[0]
        return Mark(Tone.COMPLAINT, failures.WHEN_CHANGED.get(changed, changed))

    def _gets_a_topic(self, number: int) -> bool:
        """Whether it says "gets the hands right" or "just gets clay"; not "gets worse"."""
        one, following = self.found[number], self.found[number + 1 : number + 2]
        if self.words[one.start] != "gets" or not following:
            return False
        return following[0].meaning.sign is Sign.TOPIC and following[0].start == one.end

    def _repeats(self) -> Iterator[Mark]:
        if Sign.REPEATED in self.signs and self.signs.isdisjoint(GLAD):
            at = next(one.start for one in self.found if one.meaning.sign is Sign.REPEATED)
            # "I still use this" is about the writer, "I always get a square" is not.
            if at < self.speaker or self.topics:
                yield Mark(Tone.WEAK_COMPLAINT)

    def _denies_barely(self, *, first: bool) -> Iterator[Mark]:
        for number, one in enumerate(self.found):
            # What a comment begins with denying is not about the picture: "not me crying at this".
            begins = first and one.start == 0
            if begins or one.start > self.speaker or not self._is_bare(one):
                continue
            if self._target(number) is None:
                yield Mark(Tone.COMPLAINT if self.topics else Tone.WEAK_COMPLAINT)
                return

    def _is_bare(self, one: Found[Meaning]) -> bool:
        word, following = self.words[one.start], self.words[one.end : one.end + 1]
        if one.meaning.sign is not Sign.NEGATOR:
            return False
        return word in BARE or (word == "no" and not SPANISH_BE.isdisjoint(following))

    def _exceeds(self) -> Iterator[Mark]:
        """Complaints of too much of something, where no phrase has said so already."""
        meant = (one for one in self.found if one.meaning.sign is not Sign.TOPIC)
        taken = {place for one in meant for place in range(one.start, one.end)}
        for at, (word, following) in enumerate(zip(self.words, self.words[1:], strict=False)):
            if word not in said.EXCESS or not taken.isdisjoint((at, at + 1)):
                continue
            if word not in said.EXCESS_OF_SOME or following in said.EXCESSIVE:
                yield Mark(Tone.COMPLAINT)
            elif word == "too" and at < self.speaker:
                yield Mark(Tone.WEAK_COMPLAINT)


def _interjected(words: Sequence[str], one: Found[Meaning]) -> bool:
    """Whether it is the "well" that only begins a sentence."""
    return one.start == 0 and words[0] == "well" and one.end == 1


def _words(words: Sequence[str], one: Found[Meaning]) -> Set[str]:
    return frozenset(words[one.start : one.end])
