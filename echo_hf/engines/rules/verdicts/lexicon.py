"""Look up words and phrases in a list of plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from echo_hf.engines.rules.folding import words_of
from echo_hf.engines.rules.words import words

ANY_WORD = "_"
# They change how strongly something is said, never what; articles do not even that.
FILLERS = words(
    en="""s re ve m ll really even very quite so just actually totally completely entirely
    absolutely also honestly literally basically kinda sorta rather somehow probably
    definitely clearly particularly especially exact a an the""",
    es="muy realmente incluso siquiera también todavía tan completamente totalmente el los las un",
    fr="très vraiment tout complètement totalement si encore la le les une",
    de="sehr wirklich ganz überhaupt gar noch völlig einfach das die der ein eine",
    pt="muito realmente totalmente completamente ainda os uma",
    it="molto davvero proprio totalmente completamente ancora il lo gli una",
)
SPELLED_OUT = (
    ("can't", "cannot"),
    ("won't", "will not"),
    ("n't", " not"),
    ("not so much", "lacking"),
    ("less so", "lacking"),
)
SPELLED_OUT = (
    ("can't", "cannot"),
    ("won't", "will not"),
    ("n't", " not"),
    ("not so much", "lacking"),
    ("less so", "lacking"),
)
HELPERS = words(en="do does did is are was were could would has")
WITHOUT_APOSTROPHE = {
    **{f"{verb}nt": f"{verb} not" for verb in HELPERS},
    "cant": "cannot",
    "wont": "will not",
    "aint": "is not",
}

FEWEST_LEFT = 2  # of a phrase: what is left of it must not be a common word

T = TypeVar("T")


def plain_words(folded: str) -> list[str]:
    """The words of a folded text, negations written out, without those that say nothing.

    Example:
        >>> plain_words("it really can't keep the face, doesn't even try")
        ['it', 'cannot', 'keep', 'face', 'does', 'not', 'try']
    """
    for written, plain in SPELLED_OUT:
        folded = folded.replace(written, plain)
    found = words_of(folded)

    if not WITHOUT_APOSTROPHE.keys().isdisjoint(found):
        found = " ".join(WITHOUT_APOSTROPHE.get(word, word) for word in found).split()
    return [word for word in found if word not in FILLERS]


def phrases(**by_language: str) -> frozenset[str]:
    """One set of the phrases of several languages, which commas separate, in plain words.

    Example:
        >>> sorted(phrases(en="cut off, out of the frame", de="abgeschnitten"))
        ['abgeschnitten', 'cut off', 'out of frame']

    Raises:
        ValueError: Of a phrase of several words fewer than two are left.
    """
    each = (phrase for several in by_language.values() for phrase in several.split(","))
    return frozenset(_plain(phrase) for phrase in each if phrase.strip())


def _plain(phrase: str) -> str:
    found = plain_words(phrase)
    if len(found) < min(len(phrase.split()), FEWEST_LEFT):
        raise ValueError(f"of the phrase {phrase!r} only {found} remains: write it without fillers")
    return " ".join(found)


class Found(NamedTuple, Generic[T]):
    """A phrase found: the words from `start` to before `end`, and what it means."""

    start: int
    end: int
    meaning: T


class Lexicon(Generic[T]):
    """Phrases with their meanings.

    Args:
        entries: Meanings with the phrases that have them; a phrase of several meanings keeps the
            first. `_` in a phrase, but not at its beginning, stands for any one word.

    Example:
        >>> lexicon = Lexicon([("bad", ["terrible", "took _ tries"]), ("good", ["not terrible"])])
        >>> [found.meaning for found in lexicon.find("it took 4 tries but is not terrible".split())]
        ['bad', 'good']
    """

    def __init__(self, entries: Iterable[tuple[T, Iterable[str]]]) -> None:
        self._root: _Node[T] = _Node()
        for meaning, several in entries:
            for phrase in several:
                self._root.add(phrase.split(), meaning)

    def find(self, plain: Sequence[str]) -> Iterator[Found[T]]:
        """The phrases in a list of words, from the left, the longest first, none overlapping."""
        at = 0
        while at < len(plain):
            first = self._root.following.get(plain[at])
            found = first.longest(plain, at + 1) if first else None
            if found:
                yield Found(at, *found)
            at = found[0] if found else at + 1


class _Node(Generic[T]):
    """What may follow the words up to here, and what they mean where a phrase ends here."""

    def __init__(self) -> None:
        self.following: dict[str, _Node[T]] = {}
        self.meanings: list[T] = []

    def add(self, plain: Sequence[str], meaning: T) -> None:
        node = self
        for word in plain:
            node = node.following.setdefault(word, _Node())
        node.meanings.append(meaning)

    def longest(self, plain: Sequence[str], at: int) -> tuple[int, T] | None:
        """Where the longest phrase from here on ends, and its meaning; as written before `_`."""
        found = (at, self.meanings[0]) if self.meanings else None
        for word in (plain[at], ANY_WORD) if at < len(plain) else ():
            following = self.following.get(word)
            longer = following.longest(plain, at + 1) if following else None
            if longer and (found is None or longer[0] > found[0]):
                found = longer
        return found
